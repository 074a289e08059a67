/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of JSON that routes name, for /openapi.json; words that several files with shapes take; their tables. */
#pragma once

#include "spec/result.h"
#include "spec/schema.h"

extern const struct schema_book api_book;

#define SCHEMA_STATE "queued|running|" RESULT_STATUSES

extern const struct schema history_shapes[], host_shapes[], session_shapes[], compat_shapes[];
