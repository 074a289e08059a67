/* SPDX-License-Identifier: Apache-2.0 */
/* Kept messages: their ids, their bound, and what a client that comes back gets. */
#include "mcp/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct seen {
	char events[16][REPLAY_ID];
	size_t n;
};

static void see(void *data, const char *event, struct span text)
{
	struct seen *s = data;

	assert_true(text.len > 0);
	if (s->n < 16)
		memcpy(s->events[s->n], event, strlen(event) + 1);
	s->n++;
}

static const struct mcp_door_ops seen_ops = { .say = see };

static struct callers callers = { .rules[SLOT_MCP_REPLAY_BYTES] = { .max = 3 * REPLAY_BYTES / 2,
								    .own_max = 3 * REPLAY_BYTES } };

static void test_events(void **state)
{
	struct mcp_replay r;
	struct caller *caller = caller_get(&callers, "a");
	struct mcp_stream *first, *second;
	struct seen seen = { .n = 0 };
	char event[REPLAY_ID];
	uint64_t stream, number;

	(void)state;
	mcp_replay_init(&r, &callers, caller);
	first = mcp_stream_new(&r, false);
	second = mcp_stream_new(&r, false);
	mcp_stream_keep(first, (struct span){ NULL, 0 }, event);
	assert_string_equal(event, "1-0");
	mcp_stream_keep(first, span_of("a"), event);
	mcp_stream_keep(second, span_of("b"), event);
	assert_string_equal(event, "2-0");
	mcp_stream_keep(first, span_of("c"), event);
	assert_string_equal(event, "1-2");
	assert_int_equal(mcp_event_parse(span_of(event), &stream, &number), 0);
	assert_true(stream == 1 && number == 2);
	assert_int_equal(mcp_event_parse(span_of("1"), &stream, &number), -EINVAL);
	assert_int_equal(mcp_event_parse(span_of("1-x"), &stream, &number), -EINVAL);

	first->door = (struct mcp_door){ &seen_ops, &seen };
	mcp_stream_replay(first, 0);
	assert_int_equal(seen.n, 2);
	assert_string_equal(seen.events[1], "1-2");
	mcp_replay_done(&r);
	(void)caller_put(&callers, caller);
	assert_int_equal(callers.all[SLOT_MCP_REPLAY_BYTES].used, 0);
}

/* The oldest go first; the account of all clients bounds them together. */
static void test_bounds(void **state)
{
	struct mcp_replay r, other;
	struct caller *caller = caller_get(&callers, "a");
	struct mcp_stream *s;
	char event[REPLAY_ID], *large = calloc(1, REPLAY_BYTES + 1);
	const struct span half = { large, REPLAY_BYTES / 2 };

	(void)state;
	assert_non_null(large);
	mcp_replay_init(&r, &callers, caller);
	mcp_replay_init(&other, &callers, caller);
	s = mcp_stream_new(&r, false);
	for (int i = 0; i < 5; i++)
		mcp_stream_keep(s, half, event);
	assert_int_equal(r.bytes, REPLAY_BYTES);
	/* A message that is larger than all is not kept, and drops none. */
	mcp_stream_keep(s, (struct span){ large, REPLAY_BYTES + 1 }, event);
	assert_int_equal(r.bytes, REPLAY_BYTES);
	s = mcp_stream_new(&other, false);
	mcp_stream_keep(s, half, event);
	mcp_stream_keep(s, half, event);
	assert_int_equal(other.bytes, REPLAY_BYTES / 2);
	mcp_replay_done(&r);
	mcp_replay_done(&other);
	(void)caller_put(&callers, caller);
	free(large);
}

/* Streams that have ended make room; streams that have not are bounded. */
static void test_streams(void **state)
{
	struct mcp_replay r;
	struct caller *caller = caller_get(&callers, "a");
	struct mcp_stream *s = NULL;

	(void)state;
	mcp_replay_init(&r, &callers, caller);
	for (int i = 0; i < 3 * REPLAY_STREAMS; i++) {
		s = mcp_stream_new(&r, false);
		assert_non_null(s);
		s->has_ended = true;
	}
	assert_int_equal(r.n_streams, REPLAY_STREAMS);
	assert_null(mcp_stream_find(&r, 1));
	assert_ptr_equal(mcp_stream_find(&r, 3 * REPLAY_STREAMS), s);
	for (int i = 0; i < 3 * REPLAY_STREAMS; i++)
		s = mcp_stream_new(&r, false);
	assert_null(s);
	mcp_replay_done(&r);
	(void)caller_put(&callers, caller);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_streams),
	};

	return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
