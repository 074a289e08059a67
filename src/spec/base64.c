/* SPDX-License-Identifier: Apache-2.0 */
/* See base64.h. Four characters make 24 bits; bits that padding leaves over must be zero. */
#include "spec/base64.h"

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_decode(const char *text, size_t len, char *ret, size_t *ret_len)
{
	uint32_t bits = 0;
	size_t digits = 0, padding = 0, n = 0;

	for (size_t i = 0; i < len; i++) {
		int d = digit(text[i]);

		if (text[i] == '\n' || text[i] == '\r')
			continue;
		if (text[i] == '=') {
			padding++;
			continue;
		}
		if (d < 0 || padding > 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)d;
		if (++digits % 4 == 0) {
			ret[n++] = (char)(bits >> 16);
			ret[n++] = (char)(bits >> 8);
			ret[n++] = (char)bits;
			bits = 0;
		}
	}
	switch (digits % 4) {
	case 0:
		if (padding != 0)
			return -EINVAL;
		break;
	case 2:
		if (padding != 2 || (bits & 0xf) != 0)
			return -EINVAL;
		ret[n++] = (char)(bits >> 4);
		break;
	case 3:
		if (padding != 1 || (bits & 0x3) != 0)
			return -EINVAL;
		ret[n++] = (char)(bits >> 10);
		ret[n++] = (char)(bits >> 2);
		break;
	default:
		return -EINVAL;
	}
	*ret_len = n;
	return 0;
}
