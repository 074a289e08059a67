/* SPDX-License-Identifier: Apache-2.0 */
/* A text of fixed size, joined without stdio, for use after clone; an overflow is remembered and reported once. */
#pragma once

#include "plan/plan.h"

#include <stdbool.h>
#include <string.h>

struct text {
	char data[PLAN_PATH_MAX + 128];
	size_t len;
	bool overflow;
};

static inline void text_add(struct text *t, const char *s)
{
	size_t n = strlen(s);

	if (n >= sizeof(t->data) - t->len) {
		t->overflow = true;
		return;
	}
	memcpy(t->data + t->len, s, n + 1);
	t->len += n;
}

static inline void text_add_number(struct text *t, uint64_t value, unsigned base)
{
	char digits[24];
	size_t i = sizeof(digits) - 1;

	digits[i] = '\0';
	do
		digits[--i] = (char)('0' + value % base);
	while ((value /= base) > 0);
	text_add(t, digits + i);
}
