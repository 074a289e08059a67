/* SPDX-License-Identifier: Apache-2.0 */
/* What a program wrote is bytes; JSON holds UTF-8. The way from one to the other. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/*
 * A JSON string of these bytes. What is not UTF-8 becomes U+FFFD, one for each maximal part of a
 * character, and *binary (may be NULL) says whether that happened. NULL: no memory.
 */
json_t *utf8_to_json(const char *data, size_t len, bool *binary);
