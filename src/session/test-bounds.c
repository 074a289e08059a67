/* SPDX-License-Identifier: Apache-2.0 */
/* What callers may have of the front's memory through sessions, without a sandbox: refusals come before one is asked for. */
#include "session/session-private.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

struct bounds_scene {
	struct loop *loop;
	struct callers callers;
	struct sessions *all;
};

static int enter(void **state)
{
	struct bounds_scene *s = calloc(1, sizeof(*s));
	struct sessions_options o = { .max = 16, .max_per_caller = 16 };

	if (!s)
		return -1;
	*state = s;
	s->loop = o.loop = loop_new();
	o.callers = &s->callers;
	return sessions_new(&o, &s->all);
}

static int leave(void **state)
{
	struct bounds_scene *s = *state;

	assert_null(s->callers.list);
	(void)sessions_free(s->all);
	(void)loop_free(s->loop);
	free(s);
	return 0;
}

static json_t *text_of(size_t bytes)
{
	char *text = malloc(bytes);
	json_t *value;

	assert_non_null(text);
	memset(text, 'x', bytes);
	value = json_stringn(text, bytes);
	free(text);
	return value;
}

static void test_shares(void **state)
{
	struct bounds_scene *s = *state;

	assert_int_equal(s->callers.rules[SLOT_SESSIONS].own_max, 14);
	assert_true(s->callers.rules[SLOT_SESSIONS].divided);
}

/* The files that a session begins with stay in memory for its resets. */
static void test_files(void **state)
{
	struct bounds_scene *s = *state;
	json_t *body = json_pack("{s:s, s:{s:o, s:{s:o}}}", "language", "bash", "files", "a",
				 text_of(3000), "b", "base64", text_of(3000));
	struct error err = { 0 };

	s->callers.rules[SLOT_SESSION_BYTES] = (struct slot_rule){ .max = 10000, .own_max = 6000 };
	assert_int_equal(session_create(s->all, "me", body, (struct session_reply){ 0 }, &err),
			 -EBUSY);
	assert_int_equal(err.code, ERROR_BUSY);
	assert_string_equal(err.text, "your sessions hold as many bytes of files and outputs as "
				      "they may together; close one, or write its files once it "
				      "lives");
	assert_int_equal(s->callers.all[SLOT_SESSION_BYTES].used, 0);
	json_decref(body);
}

/* An execution that waits holds its code until its end. */
static void test_turns(void **state)
{
	struct bounds_scene *s = *state;
	struct session *session = session_new(s->all, "me");
	json_t *body = json_pack("{s:o}", "code", text_of(3000));
	struct submission in = { 0 };
	struct submitted got = { 0 };
	struct error err = { 0 };
	struct turn *t;

	assert_non_null(session);
	s->callers.rules[SLOT_WAITING_BYTES] = (struct slot_rule){ .max = 9999, .own_max = 3000 };
	assert_int_equal(session_execute(session, body, &in, &got, &err), -EBUSY);
	assert_non_null(strstr(err.text, "as many bytes as they may together"));
	t = turn_new(session);
	assert_non_null(t);
	t->line = strdup("{\"op\": \"run\"}");
	assert_int_equal(turn_charge(t, &err), 0);
	assert_int_equal(s->callers.all[SLOT_WAITING_BYTES].used, strlen(t->line));
	turn_free(t);
	assert_int_equal(s->callers.all[SLOT_WAITING_BYTES].used, 0);
	(void)session_unref(session);
	json_decref(body);
}

/* What a program prints is kept in memory, and stops growing when its caller has enough. */
static void test_logs(void **state)
{
	enum { ROOM = 200 << 10, SPARE = 64 << 20 };
	struct bounds_scene *s = *state;
	struct session *session = session_new(s->all, "me");
	const int64_t *used = &s->callers.all[SLOT_SESSION_BYTES].used;
	struct result_stream kept = { 0 };
	static char text[64 << 10];

	assert_non_null(session);
	s->callers.rules[SLOT_SESSION_BYTES] = (struct slot_rule){ .max = SPARE + ROOM,
								   .own_max = SPARE + ROOM };
	memset(text, 'x', sizeof(text));
	session_log(session, OUTPUT_STDOUT, (struct span){ text, 100 });
	assert_int_equal(*used, 4096);
	for (int i = 0; i < 100; i++)
		session_log(session, i % 2 ? OUTPUT_STDOUT : OUTPUT_STDERR,
			    (struct span){ text, sizeof(text) });
	/* It has grown by doubling, once beyond that room. */
	assert_in_range(*used, ROOM / 2, 2 * ROOM);
	assert_int_equal(session->log.out.bytes + session->log.err.bytes, 100 + 100 * sizeof(text));
	assert_int_equal(capture_text(&session->log.out, &kept), 0);
	assert_true(kept.truncated);
	free(kept.text);
	(void)session_unref(session);
	assert_int_equal(*used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_shares, enter, leave),
		cmocka_unit_test_setup_teardown(test_logs, enter, leave),
		cmocka_unit_test_setup_teardown(test_files, enter, leave),
		cmocka_unit_test_setup_teardown(test_turns, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
