/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece of a text that another object owns: not necessarily NUL-terminated, valid as long as the owner keeps
 * the text.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const char *data; /* NULL: no text at all (an empty text has a pointer) */
	size_t len;
};

static inline struct span span_of(const char *text)
{
	return (struct span){ text, text ? strlen(text) : 0 };
}

static inline bool span_is(struct span s, const char *text)
{
	return s.data && s.len == strlen(text) && memcmp(s.data, text, s.len) == 0;
}

/* As span_is(), but of the same length it takes the same time wherever they differ: for secrets. */
bool span_is_secret(struct span s, const char *text);
/* ASCII only: header names, tokens and host names. */
bool span_is_nocase(struct span s, const char *text);
/* Without spaces and tabs at both ends. */
struct span span_trim(struct span s);
/* Takes the part before the separator off the front of rest; false: rest was empty. */
bool span_split(struct span *rest, char separator, struct span *ret);
/* Decimal digits only, no sign, no leading zero but "0" itself. -EINVAL, -ERANGE. */
int span_to_i64(struct span s, int64_t *ret) _must_check_;
