/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See parse.h. A number is digits, optionally a point and digits (".5" has none before it), optionally a unit. The whole part
 * and the fraction stay integers until the unit is known; the product is formed in 128 bits, so the
 * only rounding is down to the base unit (byte, millisecond, thousandth).
 */
#include "base/parse.h"

#include <stdbool.h>
#include <string.h>

/* 10^18 times the largest unit (2^40) stays far below 2^127. */
enum { FRACTION_DIGITS_MAX = 18 };

struct decimal {
	uint64_t whole;
	uint64_t fraction;	/* the digits after the point … */
	uint64_t fraction_unit; /* … over this power of ten */
	size_t fraction_digits;
};

struct unit {
	const char *name;
	int64_t scale;
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", KiB },
	{ "kb", KiB },
	{ "kib", KiB },
	{ "m", MiB },
	{ "mb", MiB },
	{ "mib", MiB },
	{ "g", GiB },
	{ "gb", GiB },
	{ "gib", GiB },
	{ "t", 1024 * GiB },
	{ "tb", 1024 * GiB },
	{ "tib", 1024 * GiB },
};

static const struct unit time_units[] = {
	{ "", MS_PER_SEC },
	{ "ms", 1 },
	{ "s", MS_PER_SEC },
	{ "sec", MS_PER_SEC },
	{ "secs", MS_PER_SEC },
	{ "second", MS_PER_SEC },
	{ "seconds", MS_PER_SEC },
	{ "m", 60 * MS_PER_SEC },
	{ "min", 60 * MS_PER_SEC },
	{ "mins", 60 * MS_PER_SEC },
	{ "minute", 60 * MS_PER_SEC },
	{ "minutes", 60 * MS_PER_SEC },
	{ "h", 3600 * MS_PER_SEC },
	{ "hr", 3600 * MS_PER_SEC },
	{ "hrs", 3600 * MS_PER_SEC },
	{ "hour", 3600 * MS_PER_SEC },
	{ "hours", 3600 * MS_PER_SEC },
	{ "d", 24 * 3600 * MS_PER_SEC },
	{ "day", 24 * 3600 * MS_PER_SEC },
	{ "days", 24 * 3600 * MS_PER_SEC },
	{ "w", 7 * 24 * 3600 * MS_PER_SEC },
	{ "week", 7 * 24 * 3600 * MS_PER_SEC },
	{ "weeks", 7 * 24 * 3600 * MS_PER_SEC },
};

static const struct unit milli_units[] = { { "", 1000 } };

/* Moves *p over digits and returns how many; a value too large becomes UINT64_MAX. */
static size_t read_digits(const char **p, uint64_t *ret)
{
	const char *start = *p;
	uint64_t value = 0;

	for (; **p >= '0' && **p <= '9'; (*p)++) {
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**p - '0'), &value))
			value = UINT64_MAX;
	}
	*ret = value;
	return (size_t)(*p - start);
}

static int read_decimal(const char **p, struct decimal *ret)
{
	struct decimal d = { .fraction_unit = 1 };

	if (read_digits(p, &d.whole) == 0 && **p != '.')
		return -EINVAL;
	if (**p == '.') {
		(*p)++;
		d.fraction_digits = read_digits(p, &d.fraction);
		if (d.fraction_digits == 0)
			return -EINVAL;
		for (size_t i = 0; i < MIN(d.fraction_digits, FRACTION_DIGITS_MAX); i++)
			d.fraction_unit *= 10;
	}
	*ret = d;
	return 0;
}

/* Ignores case. strcasecmp() would depend on the locale. */
static bool unit_matches(const char *unit, const char *text, size_t n)
{
	for (; n > 0 && *unit && (*unit == *text || *unit == *text + ('a' - 'A')); unit++, n--)
		text++;
	return *unit == '\0' && n == 0;
}

/* Moves *p over letters; NULL: they are no unit. */
static const struct unit *read_unit(const char **p, const struct unit *units, size_t n_units)
{
	size_t n = strspn(*p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	const char *start = *p;

	*p += n;
	for (size_t i = 0; i < n_units; i++)
		if (unit_matches(units[i].name, start, n))
			return &units[i];
	return NULL;
}

/* Moves *p over a number and its unit. */
static int read_scaled(const char **p, const struct unit *units, size_t n,
		       const struct unit **ret_unit, int64_t *ret)
{
	struct decimal d;
	__int128 value;
	int r = read_decimal(p, &d);

	if (r < 0)
		return r;
	*ret_unit = read_unit(p, units, n);
	if (!*ret_unit)
		return -EINVAL;
	if (d.fraction_digits > FRACTION_DIGITS_MAX)
		return -ERANGE;
	value = (__int128)d.whole * (*ret_unit)->scale +
		(__int128)d.fraction * (*ret_unit)->scale / (__int128)d.fraction_unit;
	if (value > INT64_MAX)
		return -ERANGE;
	*ret = (int64_t)value;
	return 0;
}

static int parse_scaled(const char *text, const struct unit *units, size_t n, int64_t *ret)
{
	const struct unit *unit;
	int64_t value;
	int r = read_scaled(&text, units, n, &unit, &value);

	/* A text that is no number is none, however large it begins. */
	if (r != -EINVAL && *text)
		r = -EINVAL;
	if (r == 0)
		*ret = value;
	return r;
}

int parse_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int parse_i64(const char *text, int64_t *ret)
{
	static const struct unit one[] = { { "", 1 } };

	/* Whole numbers only: read_digits() stops at a point. */
	if (strchr(text, '.'))
		return -EINVAL;
	return parse_scaled(text, one, ARRAY_SIZE(one), ret);
}

int parse_size(const char *text, int64_t *ret_bytes)
{
	return parse_scaled(text, size_units, ARRAY_SIZE(size_units), ret_bytes);
}

int parse_time(const char *text, int64_t *ret_ms)
{
	const struct unit *unit, *before = NULL;
	int64_t sum = 0, part;

	do {
		int r = read_scaled(&text, time_units, ARRAY_SIZE(time_units), &unit, &part);

		if (r < 0)
			return *text ? -EINVAL : r;
		/* Several parts have a unit each, from large to small. */
		if (before && (!unit->name[0] || unit->scale >= before->scale))
			return -EINVAL;
		if (*text && !unit->name[0])
			return -EINVAL;
		if (__builtin_add_overflow(sum, part, &sum))
			return -ERANGE;
		before = unit;
	} while (*text);
	*ret_ms = sum;
	return 0;
}

int parse_milli(const char *text, int64_t *ret_milli)
{
	return parse_scaled(text, milli_units, ARRAY_SIZE(milli_units), ret_milli);
}
