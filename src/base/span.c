/* SPDX-License-Identifier: Apache-2.0 */
/* See span.h. Case folding is ASCII only and does not depend on the locale. */
#include "base/span.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool span_is_secret(struct span s, const char *text)
{
	const size_t n = strlen(text);
	unsigned char different = s.len != n;

	for (size_t i = 0; i < MIN(n, s.len); i++)
		different |= (unsigned char)(s.data[i] ^ text[i]);
	return !different;
}

bool span_is_nocase(struct span s, const char *text)
{
	if (!s.data || s.len != strlen(text))
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (lower(s.data[i]) != lower(text[i]))
			return false;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct span span_trim(struct span s)
{
	while (s.len > 0 && is_blank(s.data[0])) {
		s.data++;
		s.len--;
	}
	while (s.len > 0 && is_blank(s.data[s.len - 1]))
		s.len--;
	return s;
}

bool span_split(struct span *rest, char separator, struct span *ret)
{
	const char *end;

	if (!rest->data)
		return false;
	end = memchr(rest->data, separator, rest->len);
	*ret = *rest;
	if (!end) {
		*rest = (struct span){ 0 };
		return true;
	}
	ret->len = (size_t)(end - rest->data);
	rest->len -= ret->len + 1;
	rest->data = end + 1;
	return true;
}

int span_to_i64(struct span s, int64_t *ret)
{
	int64_t value = 0;

	if (s.len == 0 || (s.len > 1 && s.data[0] == '0'))
		return -EINVAL;
	for (size_t i = 0; i < s.len; i++)
		if (s.data[i] < '0' || s.data[i] > '9')
			return -EINVAL;
	for (size_t i = 0; i < s.len; i++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, s.data[i] - '0', &value))
			return -ERANGE;
	*ret = value;
	return 0;
}
