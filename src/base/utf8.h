/* SPDX-License-Identifier: Apache-2.0 */
/* What a program wrote is bytes; JSON holds UTF-8. The way from one to the other. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

bool utf8_is_valid(const char *data, size_t len);
/* Appends the bytes; what is not UTF-8 becomes U+FFFD, one for each maximal part of a character. */
int utf8_replace(const char *data, size_t len, struct buf *out) _must_check_;
