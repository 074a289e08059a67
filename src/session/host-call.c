/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls from a session's code to functions of its client. The runner's call becomes an event of the execution; the client's answer
 * goes back to the runner. Names, numbers and sizes are bounded here, because the runner's own bounds are in reach of the code.
 */
#include "session/session-private.h"

#include "base/clock.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct refusal {
	char text[160]; /* why a call is not passed on; "": it is */
};

static struct refusal host_call_refusal(const struct turn *t, const char *name, size_t bytes)
{
	const int64_t most = t->session->all->o.host_calls;
	struct refusal why = { "" };
	bool allowed = false;
	json_t *value;
	size_t i;

	json_array_foreach(t->allowed, i, value)
	{
		allowed |= name && strcmp(session_function_name(value), name) == 0;
	}
	if (!allowed)
		return (struct refusal){ "there is no such host function" };
	if ((int64_t)t->n_calls >= most)
		(void)snprintf(why.text, sizeof(why.text),
			       "an execution makes at most %" PRId64 " host calls; "
			       "sessions.host_calls in atoll.yaml raises that",
			       most);
	else if (bytes > HOST_VALUE_MAX)
		return (struct refusal){ "the arguments of a host call are at most 1 MiB" };
	return why;
}

static int host_call_list(struct turn *t, int64_t number, const char *name)
{
	struct host_call *call = calloc(1, sizeof(*call));
	json_t *entry = json_pack("{s:o, s:s, s:n, s:n}", "call_id",
				  json_sprintf("%" PRId64, number), "name", name, "duration",
				  "error");

	if (!t->calls)
		t->calls = json_array();
	if (!call || !entry || json_array_append_new(t->calls, entry) < 0) {
		free(call);
		return -ENOMEM;
	}
	*call = (struct host_call){
		.next = t->open_calls, .number = number, .asked_ns = clock_now_ns(), .entry = entry
	};
	t->open_calls = call;
	t->n_calls++;
	return 0;
}

void host_call_take(struct session *s, json_t *message, size_t bytes)
{
	struct turn *t = s->life->turn;
	const char *name = json_string_value(json_object_get(message, "name"));
	int64_t number = json_integer_value(json_object_get(message, "call"));
	json_t *args = json_object_get(message, "args"),
	       *kwargs = json_object_get(message, "kwargs");
	struct refusal why;
	json_t *body;

	if (!t || t->file.fn || s->state != SESSION_BUSY)
		return;
	why = host_call_refusal(t, name, bytes);
	if (!why.text[0] && host_call_list(t, number, name) < 0)
		why = (struct refusal){ "the server ran out of memory" };
	if (why.text[0]) {
		body = json_pack("{s:s, s:I, s:{s:s, s:s}}", "op", "return", "call",
				 (json_int_t)number, "error", "type", "RuntimeError", "message",
				 why.text);
		(void)!life_send(s->life, body);
		json_decref(body);
		return;
	}
	body = json_pack("{s:o, s:s, s:O*, s:O*}", "call_id", json_sprintf("%" PRId64, number),
			 "name", name, "args", json_is_array(args) ? args : NULL, "kwargs",
			 json_is_object(kwargs) ? kwargs : NULL);
	if (body)
		(void)run_observer_tell(&t->to.observer,
					&(struct run_event){ RUN_HOST_CALL, .body = body });
	json_decref(body);
}

static void host_call_close(struct host_call *call, json_t *error)
{
	int64_t us = (clock_now_ns() - call->asked_ns) / 1000;

	(void)json_object_set_new(call->entry, "duration", json_real((double)us / 1e6));
	if (error)
		(void)json_object_set(call->entry, "error", error);
	free(call);
}

void host_calls_done(struct turn *t)
{
	while (t->open_calls) {
		struct host_call *call = t->open_calls;
		json_t *words = json_string("the execution ended before there was an answer");

		t->open_calls = call->next;
		host_call_close(call, words);
		json_decref(words);
	}
}

/* {"type", "message"}, also of a client that gives only a text. */
static json_t *host_call_error(json_t *given)
{
	const char *type = json_string_value(json_object_get(given, "type"));
	const char *message = json_is_string(given)
				      ? json_string_value(given)
				      : json_string_value(json_object_get(given, "message"));

	return json_pack("{s:s, s:s}", "type", type ? type : "RuntimeError", "message",
			 message ? message : "");
}

static struct host_call *host_call_find(struct turn *t, const char *call_id)
{
	int64_t number;

	if (!t || parse_i64(call_id, &number) < 0)
		return NULL;
	for (struct host_call **at = &t->open_calls; *at; at = &(*at)->next)
		if ((*at)->number == number) {
			struct host_call *call = *at;

			*at = call->next;
			return call;
		}
	return NULL;
}

static int host_call_check(const json_t *body, struct error *err)
{
	const json_t *given = json_object_get(body, "error");
	bool fails = given && !json_is_null(given);

	if (!fails && !json_object_get(body, "result"))
		return error_field(err, "result", "result: give the call's result, or error");
	if (fails && !json_is_string(given) && !json_is_object(given))
		return error_field(err, "error", "error: give a text, or type and message");
	if (json_dumpb(body, NULL, 0, JSON_COMPACT) > HOST_VALUE_MAX)
		return error_set(err, ERROR_TOO_LARGE, EFBIG,
				 "the answer to a host call is at most 1 MiB");
	return 0;
}

int session_answer(struct session *s, const char *call_id, const json_t *body, struct error *err)
{
	json_t *result = json_object_get(body, "result"), *given = json_object_get(body, "error");
	json_t *error, *message;
	struct host_call *call;
	int r = host_call_check(body, err);

	if (r < 0)
		return r;
	error = given && !json_is_null(given) ? host_call_error(given) : NULL;
	call = host_call_find(s->life ? s->life->turn : NULL, call_id);
	if (!call) {
		json_decref(error);
		return error_set(err, ERROR_NOT_FOUND, ENOENT,
				 "there is no open call with this id; it was answered, or its "
				 "execution has ended");
	}
	message = json_pack("{s:s, s:I, s:O}", "op", "return", "call", (json_int_t)call->number,
			    error ? "error" : "result", error ? error : result);
	host_call_close(call, json_object_get(error, "message"));
	r = life_send(s->life, message);
	json_decref(message);
	json_decref(error);
	return r == -ENOMEM ? error_oom(err) : 0;
}

bool session_calls_host(const struct session *s)
{
	return json_array_size(s->made.host_functions) > 0;
}
