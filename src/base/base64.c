/* SPDX-License-Identifier: Apache-2.0 */
/* See base64.h. Four characters make 24 bits; bits that padding leaves over must be zero. */
#include "base/base64.h"

#include <stdlib.h>

/* The value of each digit plus one; 0: the character is no digit. */
static const unsigned char digits[256] = {
	['A'] = 1,  ['B'] = 2,	['C'] = 3,  ['D'] = 4,	['E'] = 5,  ['F'] = 6,	['G'] = 7,
	['H'] = 8,  ['I'] = 9,	['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14,
	['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21,
	['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28,
	['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35,
	['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49,
	['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
	['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63,
	['/'] = 64,
};

static int digit(char c)
{
	return digits[(unsigned char)c] - 1;
}

/* Decodes whole groups up to the first character that is no digit; returns how many characters were read. */
static size_t decode_groups(const char *text, size_t len, char *ret)
{
	size_t i = 0;

	for (; i + 4 <= len; i += 4) {
		int a = digit(text[i]), b = digit(text[i + 1]);
		int c = digit(text[i + 2]), d = digit(text[i + 3]);

		if ((a | b | c | d) < 0)
			break;
		*ret++ = (char)(a << 2 | b >> 4);
		*ret++ = (char)(b << 4 | c >> 2);
		*ret++ = (char)(c << 6 | d);
	}
	return i;
}

int base64_decode(const char *text, size_t len, char *ret, size_t *ret_len)
{
	uint32_t bits = 0;
	size_t n_digits = 0, padding = 0, n = 0;

	for (size_t i = 0; i < len; i++) {
		size_t plain = n_digits % 4 == 0 && padding == 0
				       ? decode_groups(text + i, len - i, ret + n)
				       : 0;
		int d;

		i += plain;
		n += plain / 4 * 3;
		if (i == len)
			break;
		d = digit(text[i]);
		if (text[i] == '\n' || text[i] == '\r')
			continue;
		if (text[i] == '=') {
			padding++;
			continue;
		}
		if (d < 0 || padding > 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)d;
		if (++n_digits % 4 == 0) {
			ret[n++] = (char)(bits >> 16);
			ret[n++] = (char)(bits >> 8);
			ret[n++] = (char)bits;
			bits = 0;
		}
	}
	switch (n_digits % 4) {
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

char *base64_encode(const void *data, size_t len)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = data;
	char *text = malloc((len + 2) / 3 * 4 + 1), *out = text;

	for (size_t i = 0; text && i < len; i += 3) {
		size_t left = len - i;
		uint32_t bits = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
				(left > 2 ? in[i + 2] : 0);

		*out++ = alphabet[bits >> 18];
		*out++ = alphabet[bits >> 12 & 63];
		*out++ = left > 1 ? alphabet[bits >> 6 & 63] : '=';
		*out++ = left > 2 ? alphabet[bits & 63] : '=';
	}
	if (text)
		*out = '\0';
	return text;
}
