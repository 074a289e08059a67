/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648 §4) with padding; line breaks are skipped, anything else is refused. */
#pragma once

#include "base/macro.h"

/* Room that decoding len characters can need. */
static inline size_t base64_decoded_max(size_t len)
{
	return len / 4 * 3 + 3;
}
/* ret has room for base64_decoded_max(len). -EINVAL: not base64. */
int base64_decode(const char *text, size_t len, char *ret, size_t *ret_len) _must_check_;
