/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See utf8.h. A lead byte fixes how many bytes follow and the range of the first of them (which is
 * what excludes over-long forms, surrogates and values beyond U+10FFFF); later ones are 80..BF.
 */
#include "base/utf8.h"

#include <string.h>

struct lead {
	unsigned char from, to;	 /* lead bytes */
	unsigned char follow;	 /* bytes after it */
	unsigned char low, high; /* range of the first of those */
};

static const struct lead leads[] = {
	{ 0x00, 0x7f, 0, 0, 0 },       { 0xc2, 0xdf, 1, 0x80, 0xbf }, { 0xe0, 0xe0, 2, 0xa0, 0xbf },
	{ 0xe1, 0xec, 2, 0x80, 0xbf }, { 0xed, 0xed, 2, 0x80, 0x9f }, { 0xee, 0xef, 2, 0x80, 0xbf },
	{ 0xf0, 0xf0, 3, 0x90, 0xbf }, { 0xf1, 0xf3, 3, 0x80, 0xbf }, { 0xf4, 0xf4, 3, 0x80, 0x8f },
};

/*
 * Bytes of the character at data. If data holds no valid character, *broken is set and the bytes to replace are
 * returned.
 */
static size_t measure_character(const unsigned char *data, size_t len, bool *broken)
{
	const struct lead *lead = NULL;
	size_t n = 1;

	for (size_t i = 0; i < ARRAY_SIZE(leads) && !lead; i++)
		if (data[0] >= leads[i].from && data[0] <= leads[i].to)
			lead = &leads[i];
	*broken = true;
	if (!lead)
		return 1;
	for (; n <= lead->follow; n++) {
		unsigned char low = n == 1 ? lead->low : 0x80;
		unsigned char high = n == 1 ? lead->high : 0xbf;

		if (n >= len || data[n] < low || data[n] > high)
			return n;
	}
	*broken = false;
	return n;
}

size_t utf8_decode(const char *data, size_t len, uint32_t *ret)
{
	const unsigned char *bytes = (const unsigned char *)data;
	bool broken;
	size_t n = len > 0 ? measure_character(bytes, len, &broken) : 0;
	uint32_t c;

	if (n == 0 || broken)
		return 0;
	c = n == 1 ? bytes[0] : bytes[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (bytes[i] & 0x3f);
	*ret = c;
	return n;
}

bool utf8_is_hidden(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0x00, 0x1f },	    { 0x7f, 0x9f },	{ 0x61c, 0x61c },
		{ 0x200b, 0x200b }, { 0x200e, 0x200f }, { 0x2028, 0x202e },
		{ 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

size_t utf8_mark(const char *data, size_t len)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t n = sizeof(mark) - 1;

	return len >= n && memcmp(data, mark, n) == 0 ? n : 0;
}

bool utf8_is_valid(const char *data, size_t len)
{
	bool broken = false;
	size_t i = 0;

	while (i < len && !broken) {
		/* Fast path: most text is mostly ASCII. */
		if ((unsigned char)data[i] < 0x80)
			i++;
		else
			i += measure_character((const unsigned char *)data + i, len - i, &broken);
	}
	return !broken;
}

int utf8_replace(const char *data, size_t len, struct buf *out)
{
	static const char replacement[] = "\xef\xbf\xbd";
	size_t sound = 0; /* start of the valid bytes that are not appended yet */

	for (size_t i = 0; i < len;) {
		bool broken;
		size_t n = measure_character((const unsigned char *)data + i, len - i, &broken);
		int r;

		if (broken) {
			r = buf_append(out, data + sound, i - sound);
			if (r < 0)
				return r;
			r = buf_puts(out, replacement);
			if (r < 0)
				return r;
			sound = i + n;
		}
		i += n;
	}
	return buf_append(out, data + sound, len - sound);
}
