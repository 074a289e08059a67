/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model gets of a result: one sentence that says how it ended, one that says what to do about it, the line of the error, and
 * head and tail of what was printed, with the number of the first line that was left out. Pure; an answer of this is never larger than
 * ANSWER_COST_MAX, images not counted.
 */
#pragma once

#include "mcp/text-scan.h"

#include <jansson.h>

enum { ANSWER_COST_MAX = 16 << 10, ANSWER_HEAD_COST = 512 /* of the message around it */ };

/* Bytes of an answer with this structuredContent: the object, and the same as text. SIZE_MAX: no memory. */
size_t answer_cost(const json_t *structured);
/* Texts of this cost may be added to it. */
size_t answer_room(const json_t *structured);

struct brief_view {
	const json_t *result;	/* doc/result.md, or the state of one that has not ended */
	const json_t *analysis; /* doc/http.md; NULL: none was made */
	int images;		/* how many follow as content of their own */
};

/* The shape RunResult of tool-shapes.c. NULL: no memory. */
json_t *brief_result(const struct brief_view *view);
/* Head and tail of a text in the bound; where: how to read the rest, before " with start_line N". */
json_t *brief_text(struct span text, size_t max_cost, const char *where);
/* "12 ms", "1.5 s", "2 min 5 s" */
void brief_seconds(double seconds, char *ret, size_t size);
