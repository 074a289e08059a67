/* SPDX-License-Identifier: Apache-2.0 */
/* Host calls and other lines of a runner, without a sandbox: this test has the runner's end of the channel. */
#include "session/session-private.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

enum { CALLS_MOST = 12 };

struct call_scene {
	struct loop *loop;
	struct callers callers;
	struct sessions all;
	struct session session;
	struct session_life life;
	struct turn turn;
	int fd; /* the runner's end */
	int calls, outputs;
	char last[64];
};

static int on_event(void *data, const struct run_event *event)
{
	struct call_scene *s = data;

	if (event->kind == RUN_RICH)
		s->outputs++;
	if (event->kind != RUN_HOST_CALL)
		return 0;
	s->calls++;
	(void)snprintf(s->last, sizeof(s->last), "%s",
		       json_string_value(json_object_get(event->body, "call_id")));
	return 0;
}

static void on_nothing(void *data, int r)
{
	(void)data;
	(void)r;
}

static void on_no_message(void *data, void *message, size_t bytes)
{
	(void)data;
	(void)message;
	(void)bytes;
}

static int enter(void **state)
{
	const struct channel_listener listener = { NULL, evaluation_read, evaluation_drop,
						   on_no_message, on_nothing };
	struct call_scene *s = calloc(1, sizeof(*s));

	if (!s)
		return -1;
	*state = s;
	s->loop = loop_new();
	s->callers.rules[SLOT_SESSION_BYTES] = (struct slot_rule){ .max = 1 << 20,
								   .own_max = 1 << 20 };
	s->all.o.callers = &s->callers;
	s->all.o.host_calls = CALLS_MOST;
	s->session.all = &s->all;
	s->session.caller = caller_get(&s->callers, "me");
	s->session.state = SESSION_BUSY;
	s->session.life = &s->life;
	s->life.session = &s->session;
	s->life.is_ready = true;
	s->life.turn = &s->turn;
	s->turn.session = &s->session;
	s->turn.life = &s->life;
	s->turn.number = 7;
	s->turn.allowed = json_pack("[s, s]", "f", "g");
	s->turn.to.observer = (struct run_observer){
		s, run_event_bit(RUN_HOST_CALL) | run_event_bit(RUN_RICH), on_event
	};
	return channel_open(&s->life.channel, s->loop, listener, &s->fd);
}

static int leave(void **state)
{
	struct call_scene *s = *state;

	host_calls_done(&s->turn);
	json_decref(s->turn.allowed);
	json_decref(s->turn.calls);
	evaluation_done(&s->turn.answer);
	channel_close(&s->life.channel);
	charge_done(&s->life.held);
	(void)caller_put(&s->callers, s->session.caller);
	(void)fd_close(s->fd);
	(void)loop_free(s->loop);
	free(s);
	return 0;
}

static void hear(struct call_scene *s, const char *text)
{
	json_t *message = json_loads(text, 0, NULL);

	assert_non_null(message);
	session_on_message(&s->session, message, strlen(text));
	json_decref(message);
}

/* The line that the runner gets, or "". */
static const char *told(struct call_scene *s)
{
	static char line[512];
	ssize_t n = recv(s->fd, line, sizeof(line) - 1, MSG_DONTWAIT);

	line[n > 0 ? n : 0] = '\0';
	return line;
}

static int answer(struct call_scene *s, const char *id, const char *text, enum error_code *ret)
{
	json_t *body = json_loads(text, 0, NULL);
	struct error err = { 0 };
	int r = session_answer(&s->session, id, body, &err);

	*ret = err.code;
	json_decref(body);
	return r;
}

static void test_a_call_and_its_answer(void **state)
{
	struct call_scene *s = *state;
	enum error_code code;
	json_t *entry;

	hear(s, "{\"op\":\"call\",\"call\":3,\"name\":\"f\",\"args\":[1],\"kwargs\":{}}");
	assert_int_equal(s->calls, 1);
	assert_string_equal(s->last, "3");
	assert_string_equal(told(s), "");
	assert_int_equal(answer(s, "3", "{\"result\":{\"$set\":[1]}}", &code), 0);
	assert_string_equal(told(s), "{\"op\":\"return\",\"call\":3,\"result\":{\"$set\":[1]}}\n");
	entry = json_array_get(s->turn.calls, 0);
	assert_true(json_is_real(json_object_get(entry, "duration")));
	assert_true(json_is_null(json_object_get(entry, "error")));
	/* Twice. */
	assert_true(answer(s, "3", "{\"result\":1}", &code) < 0);
	assert_int_equal(code, ERROR_NOT_FOUND);
	assert_string_equal(told(s), "");
}

static void test_errors_of_the_host(void **state)
{
	struct call_scene *s = *state;
	enum error_code code;

	hear(s, "{\"op\":\"call\",\"call\":1,\"name\":\"f\"}");
	hear(s, "{\"op\":\"call\",\"call\":2,\"name\":\"g\"}");
	assert_int_equal(
		answer(s, "1", "{\"error\":{\"type\":\"KeyError\",\"message\":\"k\"}}", &code), 0);
	assert_string_equal(told(s), "{\"op\":\"return\",\"call\":1,\"error\":{\"type\":"
				     "\"KeyError\",\"message\":\"k\"}}\n");
	assert_int_equal(answer(s, "2", "{\"error\":\"words\"}", &code), 0);
	assert_string_equal(told(s), "{\"op\":\"return\",\"call\":2,\"error\":{\"type\":"
				     "\"RuntimeError\",\"message\":\"words\"}}\n");
}

static void test_answers_that_are_none(void **state)
{
	static const char *const bodies[] = { "{}", "[]", "{\"error\":null}", "{\"error\":5}",
					      "{\"error\":[]}" };
	static const char *const ids[] = { "2", "", "x", "1x", "-1", "99999999999999999999" };
	struct call_scene *s = *state;
	enum error_code code;

	hear(s, "{\"op\":\"call\",\"call\":1,\"name\":\"f\"}");
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		assert_true(answer(s, "1", bodies[i], &code) < 0);
		assert_int_equal(code, ERROR_INPUT);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		assert_true(answer(s, ids[i], "{\"result\":1}", &code) < 0);
		assert_int_equal(code, ERROR_NOT_FOUND);
	}
	assert_string_equal(told(s), "");
	/* It still waits. */
	assert_int_equal(answer(s, "1", "{\"result\":null}", &code), 0);
}

static void test_calls_that_are_refused(void **state)
{
	struct call_scene *s = *state;
	char text[80];

	hear(s, "{\"op\":\"call\",\"call\":1,\"name\":\"h\"}");
	assert_non_null(strstr(told(s), "no such host function"));
	hear(s, "{\"op\":\"call\",\"call\":1}");
	assert_non_null(strstr(told(s), "no such host function"));
	for (int i = 0; i < CALLS_MOST; i++) {
		(void)snprintf(text, sizeof(text), "{\"op\":\"call\",\"call\":%d,\"name\":\"f\"}",
			       i);
		hear(s, text);
	}
	assert_int_equal(s->calls, CALLS_MOST);
	hear(s, "{\"op\":\"call\",\"call\":500,\"name\":\"f\"}");
	assert_non_null(strstr(told(s), "at most 12 host calls"));
	assert_int_equal(json_array_size(s->turn.calls), CALLS_MOST);
	/* Nothing runs: nothing is called. */
	s->session.state = SESSION_IDLE;
	hear(s, "{\"op\":\"call\",\"call\":501,\"name\":\"h\"}");
	assert_string_equal(told(s), "");
}

/* Lines about other executions, and lines of no meaning, change nothing. */
static void test_lines_that_do_not_belong(void **state)
{
	static const char *const lines[] = {
		"{}",
		"[]",
		"{\"op\":5}",
		"{\"op\":\"none\"}",
		"{\"op\":\"ready\"}",
		"{\"op\":\"done\"}",
		"{\"op\":\"done\",\"n\":8}",
		"{\"op\":\"file\",\"n\":6}",
		"{\"op\":\"output\",\"n\":6,\"data\":{}}",
		"{\"op\":\"output\",\"n\":7,\"data\":1}",
	};
	struct call_scene *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		hear(s, lines[i]);
	assert_int_equal(s->session.state, SESSION_BUSY);
	assert_null(s->turn.answer.done);
	assert_int_equal(s->outputs, 0);
	hear(s, "{\"op\":\"output\",\"n\":7,\"data\":{\"a/b\":1}}");
	assert_int_equal(s->outputs, 1);
	assert_string_equal(told(s), "");
}

#define WITH_TURN(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TURN(test_a_call_and_its_answer),	  WITH_TURN(test_errors_of_the_host),
		WITH_TURN(test_answers_that_are_none),	  WITH_TURN(test_calls_that_are_refused),
		WITH_TURN(test_lines_that_do_not_belong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
