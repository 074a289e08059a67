/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and repairs UTF-8: programs write bytes, JSON holds UTF-8. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* The character at the front and how many bytes it has; 0: none, or no UTF-8. */
size_t utf8_decode(const char *data, size_t len, uint32_t *ret);
/*
 * Control characters, and characters that show another order, another line or nothing. The joiners U+200C and U+200D are not among
 * them, because words and emoji need them.
 */
bool utf8_is_hidden(uint32_t c);
/* Bytes of the byte order mark that the text begins with: 3, or 0. */
size_t utf8_mark(const char *data, size_t len);
bool utf8_is_valid(const char *data, size_t len);
/* Appends the bytes; each maximal invalid part becomes one U+FFFD. */
int utf8_replace(const char *data, size_t len, struct buf *out) _must_check_;
