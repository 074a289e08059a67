/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648 §4) with padding. Line breaks are skipped; any other foreign character is refused. */
#pragma once

#include "base/macro.h"

/* An upper bound for the decoded bytes of len characters. */
static inline size_t base64_decoded_max(size_t len)
{
	return len / 4 * 3 + 3;
}
/* ret has room for base64_decoded_max(len). -EINVAL: not base64. */
/* NUL-terminated, for the caller to free; NULL: no memory. */
char *base64_encode(const void *data, size_t len);
int base64_decode(const char *text, size_t len, char *ret, size_t *ret_len) _must_check_;
