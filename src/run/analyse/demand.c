/* SPDX-License-Identifier: Apache-2.0 */
/* See demand.h. Two tables: texts before a size in a message, and texts before a size in a program. */
#include "run/analyse/demand.h"

#include "base/macro.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define DEMAND_MAX ((double)(INT64_C(1) << 60))

struct demand_cursor {
	const char *at, *end;
};

static bool cursor_take(struct demand_cursor *c, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
		return false;
	c->at += n;
	return true;
}

static void cursor_skip(struct demand_cursor *c, const char *set)
{
	while (c->at < c->end && *c->at && strchr(set, *c->at))
		c->at++;
}

/* Digits, with _ between them as programs write them. */
static bool cursor_digits(struct demand_cursor *c, double *ret)
{
	if (c->at == c->end || !isdigit((unsigned char)*c->at))
		return false;
	for (*ret = 0; c->at < c->end && (isdigit((unsigned char)*c->at) || *c->at == '_'); c->at++)
		if (*c->at != '_')
			*ret = MIN(*ret * 10 + (*c->at - '0'), DEMAND_MAX);
	return true;
}

static double demand_power(double base, double exponent)
{
	double value = 1;

	for (int i = 0; i < exponent && value < DEMAND_MAX; i++)
		value *= base;
	return MIN(value, DEMAND_MAX);
}

/* 10**9, 1e9, 1024 */
static bool cursor_term(struct demand_cursor *c, double *ret)
{
	double exponent;

	cursor_skip(c, " (");
	if (!cursor_digits(c, ret))
		return false;
	if (cursor_take(c, "e"))
		return cursor_digits(c, &exponent) &&
		       (*ret = MIN(*ret * demand_power(10, exponent), DEMAND_MAX), true);
	cursor_skip(c, " ");
	if (!cursor_take(c, "**"))
		return true;
	cursor_skip(c, " ");
	if (!cursor_digits(c, &exponent))
		return false;
	*ret = demand_power(*ret, exponent);
	return true;
}

/* A product or a shift of constants, up to the end of an argument. */
static double cursor_constant(struct demand_cursor *c)
{
	double value, next;

	if (!cursor_term(c, &value))
		return 0;
	for (;;) {
		bool shift;

		cursor_skip(c, " )uUlL");
		shift = cursor_take(c, "<<");
		if (!shift && !cursor_take(c, "*"))
			break;
		if (!cursor_term(c, &next))
			return 0;
		value = MIN(value * (shift ? demand_power(2, next) : next), DEMAND_MAX);
	}
	return c->at == c->end || strchr(",;]}\n\r", *c->at) ? value : 0;
}

/* 7.45 GiB, 7.5 Gb, 8589934592 bytes, 8589934592-byte */
static double cursor_size(struct demand_cursor *c)
{
	static const char units[] = "KMGT";
	double value, part = 0.1;
	const char *unit;

	if (!cursor_digits(c, &value))
		return 0;
	if (cursor_take(c, "."))
		for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++, part /= 10)
			value += (*c->at - '0') * part;
	cursor_skip(c, " -");
	unit = c->at < c->end && *c->at ? strchr(units, toupper((unsigned char)*c->at)) : NULL;
	if (unit)
		return MIN(value * demand_power(1024, (double)(unit - units + 1)), DEMAND_MAX);
	return cursor_take(c, "byte") ? value : 0;
}

/* What stands before an amount. */
struct demand_head {
	const char *text;
	int bytes_each;
};

static int64_t demand_most(struct span text, const struct demand_head *rows, size_t n,
			   double (*read)(struct demand_cursor *c))
{
	double most = 0, size;

	for (size_t i = 0; i < n; i++) {
		struct demand_cursor c = { text.data, text.data + text.len };
		const char *found;

		while (c.at < c.end && (found = memmem(c.at, (size_t)(c.end - c.at), rows[i].text,
						       strlen(rows[i].text)))) {
			c.at = found + strlen(rows[i].text);
			size = read(&c) * rows[i].bytes_each;
			most = MAX(most, size);
		}
	}
	return (int64_t)MIN(most, DEMAND_MAX);
}

int64_t demand_in_words(struct span text)
{
	static const struct demand_head heads[] = {
		{ "Unable to allocate ", 1 },		  /* numpy */
		{ "cannot allocate vector of size ", 1 }, /* R */
		{ "memory allocation of ", 1 },		  /* Rust */
		{ "tried to allocate ", 1 },		  /* PHP */
		{ "cannot allocate ", 1 },		  /* Go */
	};

	return demand_most(text, heads, ARRAY_SIZE(heads), cursor_size);
}

int64_t demand_in_code(struct span code)
{
	static const struct demand_head heads[] = {
		{ "bytearray(", 1 }, { "bytes(", 1 },	     { "\" * ", 1 },	 { "' * ", 1 },
		{ "] * ", 8 },	     { ".zeros(", 8 },	     { ".ones(", 8 },	 { ".full(", 8 },
		{ "malloc(", 1 },    { "Buffer.alloc(", 1 }, { "new byte[", 1 }, { "new long[", 8 },
		{ "new int[", 4 },   { "[]byte, ", 1 },	     { "[0u8; ", 1 },
	};

	return demand_most(code, heads, ARRAY_SIZE(heads), cursor_constant);
}
