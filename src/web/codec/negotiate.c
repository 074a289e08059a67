/* SPDX-License-Identifier: Apache-2.0 */
/* See negotiate.h. Accept is RFC 9110 §12.5.1, Range §14. Malformed parts of either are ignored. */
#include "web/codec/negotiate.h"

/* "q=0.5" in thousandths; -1: not a weight. */
static int read_weight(struct span text)
{
	int weight = 0, unit = 1000;

	if (text.len == 0 || text.len > 5 || (text.data[0] != '0' && text.data[0] != '1') ||
	    (text.len > 1 && text.data[1] != '.'))
		return -1;
	for (size_t i = 0; i < text.len; i++) {
		if (i == 1)
			continue;
		if (text.data[i] < '0' || text.data[i] > '9')
			return -1;
		weight += (text.data[i] - '0') * unit;
		unit /= 10;
	}
	return weight > 1000 ? -1 : weight;
}

/*
 * How closely a range of an Accept header matches a type: 3 exactly, 2 by its first half, 1 by a wildcard, 0
 * not.
 */
static int accept_closeness(struct span range, const char *type)
{
	size_t main_len = strcspn(type, "/") + 1;

	if (span_is_nocase(range, type))
		return 3;
	if (span_is(range, "*/*"))
		return 1;
	if (range.len != main_len + 1 || range.data[main_len] != '*')
		return 0;
	for (size_t i = 0; i < main_len; i++)
		if ((range.data[i] | 0x20) != (type[i] | 0x20))
			return 0;
	return 2;
}

/* The weight of a type: that of the closest matching range; 0 without one. */
static int accept_weigh(struct span accept, const char *type)
{
	int best = 0, weight = 0;
	struct span item, part;

	while (span_split(&accept, ',', &item)) {
		struct span range;
		int q = 1000, close;

		(void)span_split(&item, ';', &range);
		while (span_split(&item, ';', &part)) {
			part = span_trim(part);
			if (part.len > 2 && (part.data[0] | 0x20) == 'q' && part.data[1] == '=')
				q = read_weight((struct span){ part.data + 2, part.len - 2 });
		}
		close = accept_closeness(span_trim(range), type);
		if (q >= 0 && close > best) {
			best = close;
			weight = q;
		}
	}
	return weight;
}

const char *accept_choose(struct span accept, const char *const *types)
{
	const char *chosen = NULL;
	int best = 0;

	if (!accept.data)
		return types[0];
	for (; *types; types++) {
		int weight = accept_weigh(accept, *types);

		if (weight > best) {
			best = weight;
			chosen = *types;
		}
	}
	return chosen;
}

bool content_type_is(struct span value, const char *type)
{
	struct span media;

	return span_split(&value, ';', &media) && span_is_nocase(span_trim(media), type);
}

/* Digits, leading zeros allowed; a number that is too large means "to the end". */
static int read_position(struct span s, int64_t *ret)
{
	while (s.len > 1 && s.data[0] == '0') {
		s.data++;
		s.len--;
	}
	switch (span_to_i64(s, ret)) {
	case 0:
		return 0;
	case -ERANGE:
		*ret = INT64_MAX;
		return 0;
	default:
		return -EINVAL;
	}
}

int range_parse(struct span value, int64_t size, struct byte_range *ret)
{
	struct span unit, first;
	int64_t from = 0, to = INT64_MAX;

	if (!span_split(&value, '=', &unit) || !span_is_nocase(span_trim(unit), "bytes") ||
	    !value.data)
		return 1;
	value = span_trim(value);
	if (!memchr(value.data, '-', value.len) || memchr(value.data, ',', value.len))
		return 1;
	(void)span_split(&value, '-', &first);
	if (first.len == 0) {
		/* "-5": the last five bytes. */
		if (read_position(value, &to) < 0)
			return 1;
		if (to == 0 || size == 0)
			return -ERANGE;
		from = MAX(size - to, 0);
		to = size - 1;
	} else if (read_position(first, &from) < 0 ||
		   (value.len > 0 && read_position(value, &to) < 0) || to < from) {
		return 1;
	}
	if (from >= size)
		return -ERANGE;
	*ret = (struct byte_range){ from, MIN(to, size - 1) - from + 1 };
	return 0;
}
