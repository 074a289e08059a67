/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few hundred executions of all kinds at once, by several callers, some watched, some cancelled, some given up, in an order
 * that a fixed seed decides: everything that was accepted gets one result, and nothing is left.
 */
#include "engine/test-support.h"

enum { CLIENTS = 300, CALLERS = 5 };

struct guest {
	struct submitter client;
	struct watcher *watcher;
	char id[HISTORY_ID];
	int64_t seq, bytes;
	bool job, refused, cancelled, over;
};

static struct guest guests[CLIENTS];
static uint32_t seed = 20261115;

static uint32_t dice(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 16) % n;
}

static void pull(void *data)
{
	struct guest *g = data;
	struct event ev;
	int r;

	while ((r = watcher_next(g->watcher, &ev)) == 1) {
		assert_true(ev.seq > g->seq);
		g->seq = ev.seq;
		g->bytes += (int64_t)ev.bytes.len;
		/* Some leave in the middle, some end what they see. */
		if (dice(50) == 0) {
			g->watcher = watcher_free(g->watcher);
			return;
		}
		if (dice(60) == 0 && watcher_execution(g->watcher))
			g->cancelled |= execution_cancel(watcher_execution(g->watcher)) == 0;
	}
	if (r == -ENODATA) {
		g->over = true;
		g->watcher = watcher_free(g->watcher);
	}
}

static void arrive(struct guest *g, int index)
{
	static const char *const codes[] = {
		"echo hello",
		"echo out; echo err >&2; exit 3",
		"sleep 0.05; echo late",
		"head -c 200000 /dev/zero | tr '\\\\0' z",
		"kill -KILL $$",
		"echo x > file; cat file",
	};
	static const char *const callers[CALLERS] = { "a", "b", "c", "d", "e" };
	char body[256];
	struct submission in = { .caller = callers[dice(CALLERS)],
				 .mode = (enum submit_mode)dice(3) };

	(void)snprintf(body, sizeof(body),
		       "{\"language\": \"bash\", \"code\": \"%s\", \"priority\": %d, \"labels\": "
		       "{\"n\": \"%d\"}}",
		       codes[dice(ARRAY_SIZE(codes))], (int)dice(21) - 10, index);
	g->job = in.mode == SUBMIT_DETACHED;
	if (submit(&g->client, body, in) < 0) {
		assert_int_equal(g->client.err.code, ERROR_BUSY);
		g->refused = true;
		return;
	}
	(void)snprintf(g->id, sizeof(g->id), "%s", execution_id(g->client.x));
	if (dice(3) == 0) {
		assert_int_equal(engine_watch(fix.engine, NULL,
					      (struct engine_place){ g->id, NULL }, &g->watcher,
					      NULL),
				 0);
		watcher_set_ops(g->watcher, &(struct watcher_ops){ .data = g, .on_ready = pull });
		pull(g);
	}
	if (dice(20) == 0)
		g->cancelled |= execution_cancel(g->client.x) == 0;
	if (dice(20) == 0 && !g->job) {
		/* The client is gone. */
		execution_forget(g->client.x);
		g->client.ended = true;
	}
}

static int64_t rows_of(const char *status)
{
	struct history_count count = { 0 };
	struct error err = { 0 };

	assert_int_equal(history_count(fix.history, &(struct history_filter){ .status = status },
				       &count, &err),
			 0);
	assert_true(count.exact);
	return count.n;
}

static void test_crowd(void **state)
{
	int accepted = 0;

	(void)state;
	for (int i = 0; i < CLIENTS; i++) {
		arrive(&guests[i], i);
		accepted += !guests[i].refused;
		if (dice(4) == 0)
			run_for_ms(dice(30));
	}
	for (int i = 0; i < 8000 && (!engine_is_idle(fix.engine) || fix.engine->queue.count > 0);
	     i++)
		run_for_ms(5);
	assert_int_equal(fix.engine->queue.count, 0);
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES) + engine_used(fix.engine, SLOT_JOBS) +
				 engine_used(fix.engine, SLOT_WAITED),
			 0);
	assert_true(accepted > CLIENTS / 4);
	for (int i = 0; i < CLIENTS; i++) {
		struct guest *g = &guests[i];

		if (g->refused)
			continue;
		assert_true(g->job ? g->client.accepted : g->client.ended);
		assert_true(!g->watcher || g->over);
		assert_true(execution_has_ended(g->client.x));
		client_done(&g->client);
	}
	assert_int_equal(rows_of(NULL), accepted);
	assert_int_equal(rows_of("queued") + rows_of("running"), 0);
	assert_int_equal(rows_of("internal_error") + rows_of("interrupted"), 0);
	for (size_t i = 0; i < TABLE_SIZE; i++)
		assert_null(fix.engine->table[i]);
	assert_int_equal(executor_count(fix.executor), 0);
}

static int setup_small(void **state)
{
	int r = setup_engine(state);

	close_engine();
	fix.options.running_max = 6;
	fix.options.queue_max = 60;
	fix.options.queue_per_caller = 20;
	open_history();
	open_engine();
	return r;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_crowd, setup_small, teardown_engine),
	};

	return cmocka_run_group_tests(tests, setup_service, teardown_service);
}
