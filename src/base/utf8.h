/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and repairs UTF-8: programs write bytes, JSON holds UTF-8. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

bool utf8_is_valid(const char *data, size_t len);
/* Appends the bytes; each maximal invalid part becomes one U+FFFD. */
int utf8_replace(const char *data, size_t len, struct buf *out) _must_check_;
