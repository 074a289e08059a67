/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a program as a JSON string: see base/utf8.h. */
#pragma once

#include "base/utf8.h"

#include <jansson.h>

/*
 * A JSON string of these bytes, repaired as base/utf8.h does; *binary (may be NULL) says whether bytes were
 * replaced. NULL: no memory.
 */
json_t *utf8_to_json(const char *data, size_t len, bool *binary);
