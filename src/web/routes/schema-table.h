/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of JSON that routes name, for /openapi.json. */
#pragma once

#include "spec/schema.h"

extern const struct schema_book api_book;
