/* SPDX-License-Identifier: Apache-2.0 */
/* Events and readers of them, without an engine. */
#pragma once

#include "engine/stream/events.h"
#include "engine/stream/spool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static inline json_t *word(const char *text)
{
	return json_string(text);
}

static inline int next_of(struct events *l, const struct event_cursor *c, struct step *ret)
{
	int r = events_next(l, c, ret);

	assert_true(r >= 0);
	if (r == 1)
		assert_true(ret->kind == EVENT_STDOUT || ret->kind == EVENT_STDERR ||
			    ret->kind == EVENT_RESULT || ret->body);
	if (r == 1)
		step_done(ret);
	return r;
}

static inline void fill(struct events *l)
{
	events_init(l);
	assert_int_equal(events_add_control(l, EVENT_START, word("start"), 1), 0);
	events_add_bytes(l, EVENT_STDOUT, (struct span){ NULL, 3 }, 2);
	events_add_bytes(l, EVENT_STDERR, (struct span){ NULL, 2 }, 3);
	events_add_bytes(l, EVENT_STDOUT, (struct span){ NULL, 4 }, 4);
	events_add_bytes(l, EVENT_STDOUT, (struct span){ NULL, 1 }, 5);
	events_add_usage(l, word("usage"), 6);
	assert_int_equal(events_add_control(l, EVENT_STAGE, word("run"), 7), 0);
}
