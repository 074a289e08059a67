/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a text costs in an answer: JSON escapes it once in structuredContent, and again where that object is repeated as text.
 * A bound on the cost is a bound on the answer.
 */
#include "mcp/text-scan.h"

enum { COST_PLAIN = 2, COST_LINE = 5, COST_QUOTE = 6, COST_CONTROL = 13 };

static size_t byte_cost(unsigned char c)
{
	switch (c) {
	case '\n':
	case '\t':
	case '\r':
	case '\b':
	case '\f':
		return COST_LINE; /* \n and \\n */
	case '"':
	case '\\':
		return COST_QUOTE; /* \" and \\\" */
	default:
		/* A byte that is not UTF-8 becomes U+FFFD: three bytes, twice. */
		return c < ' ' || c == 0x7f ? COST_CONTROL : c < 0x80 ? COST_PLAIN : 3 * COST_PLAIN;
	}
}

size_t text_cost(struct span text)
{
	size_t cost = 0;

	for (size_t i = 0; i < text.len; i++)
		cost += byte_cost((unsigned char)text.data[i]);
	return cost;
}

static bool is_inside(struct span text, size_t at)
{
	return at < text.len && ((unsigned char)text.data[at] & 0xc0) == 0x80;
}

size_t text_head(struct span text, size_t max_cost)
{
	size_t cost = 0, n = 0;

	while (n < text.len && (cost += byte_cost((unsigned char)text.data[n])) <= max_cost)
		n++;
	while (n > 0 && is_inside(text, n))
		n--;
	return n;
}

size_t text_tail(struct span text, size_t max_cost)
{
	size_t cost = 0, n = 0;

	while (n < text.len &&
	       (cost += byte_cost((unsigned char)text.data[text.len - 1 - n])) <= max_cost)
		n++;
	while (n > 0 && n < text.len && is_inside(text, text.len - n))
		n--;
	return n;
}
