/* SPDX-License-Identifier: Apache-2.0 */
/* A program's output, as lines to match against patterns. */
#pragma once

#include "base/buf.h"
#include "base/span.h"
#include "spec/request.h"

#include <stdbool.h>

enum {
	TEXT_BYTES_MAX =
		256 << 10,    /* of a longer stream only the first and the last half are read */
	TEXT_LINE_MAX = 4096, /* of a longer line only the first bytes are matched */
	TEXT_SLOTS = 9,
	PATTERNS_MAX = 1024,
};

/*
 * A regular expression of PCRE2 with holes, each a % and a letter; the whole line must match. Groups other than holes do not capture:
 * (?:…). A hole takes as little as it can, but blanks are all taken.
 *   %f path without blanks or quotes   %p path, any text (both fill slot f)
 *   %l %c decimal numbers              %e name of a type: letters, digits, _ . $ \ :
 *   %m any text, also none             %n %1 %2 %3 any text, at least one byte
 *   %s any text, also none, not kept   %_ blanks, also none
 */
struct pattern {
	const char *text;  /* NULL: matches everything, with no slot */
	const char *needs; /* is part of every line that matches; NULL: not known */
	unsigned number;   /* its own, from 1: what it compiles to is kept by this */
};

struct slots {
	struct span at[TEXT_SLOTS];
};

bool text_match(const struct pattern *p, struct span line, struct slots *ret);
/* The piece that the hole with this letter took; data NULL: the pattern has none. */
struct span slot(const struct slots *s, char letter);
int64_t slot_number(const struct slots *s, char letter); /* 0: none, or too long */

/* Takes the first line off; its end is not part of it. */
struct span text_line(struct span *rest);
/* Colours and other escape sequences removed, CR LF made LF, bounded as above. */
int text_clean(struct span text, struct buf *ret) _must_check_;
/* Only blanks, ~ and ^, one ^ at least: what interpreters print below a line. The first ^, or -1. */
int64_t text_caret(struct span line);

bool span_starts(struct span s, const char *prefix);
bool span_has(struct span s, const char *part);
struct span text_trim(struct span s);
