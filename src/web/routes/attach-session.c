/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/sessions/{id}/attach: a WebSocket to a session.
 *
 *   in    {"type": "execute", "code": TEXT, …}       as the body of POST /v1/sessions/{id}/execute
 *         {"type": "return", "call_id": ID, "result": VALUE} or "error": {"type", "message"}
 *         {"type": "interrupt"}   {"type": "reset"}   {"type": "ping"}
 *   out   {"event": …, "execution": ID, …}           events of the session's executions, of all clients, one after another
 *         {"type": …}                                the answer to a message: accepted, interrupted, reset, pong or error.
 *                                                    It repeats the message's `id`. A `return` has no answer but an error.
 *
 * A client that attaches gets the events of the executions that run or wait, from their beginning. A session with an attached client does
 * not expire. When the session ends, a close frame with 1000 follows the last event.
 *
 * An execution goes on when its client disconnects, unless it may call host functions: it would wait for answers in vain, so it is
 * cancelled. Nothing is queued for a slow reader but FOLLOWED_MAX cursors: the events wait in the engine.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "spec/yaml.h"
#include "web/routes/event-socket.h"

enum {
	MESSAGE_BYTES_MAX =
		4 << 20, /* a host function's result is at most 1 MiB, before escaping */
	FOLLOWED_MAX = 64,
	QUESTIONS_MAX = 16,
	ID_BYTES_MAX = 128,
};

/* An execution whose events are to be sent. */
struct followed {
	struct followed *next;
	struct watcher *watcher;
	struct execution *cancels; /* when the client goes; or NULL */
	char id[32];
};

/* An interrupt or a reset that the session has not answered yet. */
struct attach_question {
	struct attach_question *next;
	struct session_attach *asker; /* NULL: it has gone */
	bool interrupts;
	json_t *id; /* of the message, or NULL */
};

struct session_attach {
	struct event_socket socket;
	struct session_listener listener;
	struct engine *engine;
	struct followed *first, **last;
	size_t n_followed;
	struct attach_question *questions;
	size_t n_questions;
};

static struct session_attach *attach_of_socket(struct event_socket *s)
{
	return (struct session_attach *)((char *)s - offsetof(struct session_attach, socket));
}

/* --- answers --- */

/* Sends the answer with the id of its message; takes over the tree. */
static void attach_answer(struct session_attach *a, const json_t *id, json_t *tree)
{
	if (tree && id)
		(void)json_object_set(tree, "id", (json_t *)(uintptr_t)id);
	(void)!event_socket_send(&a->socket, tree);
}

static void answer_error(struct session_attach *a, const json_t *id, const struct error *err)
{
	const struct problem p = problem_from_error(err);
	json_t *tree = problem_to_json(&p);

	(void)json_object_del(tree, "title");
	(void)json_object_del(tree, "status");
	if (tree)
		(void)json_object_set_new(tree, "type", json_string("error"));
	attach_answer(a, id, tree);
}

static void attach_refuse(struct session_attach *a, const json_t *id, const char *field,
			  const char *detail)
{
	struct error err = { 0 };

	(void)!error_field(&err, field, "%s", detail);
	answer_error(a, id, &err);
}

/* --- events --- */

static void unfollow_first(struct session_attach *a)
{
	struct followed *f = a->first;

	assert(f && a->n_followed > 0);
	a->first = f->next;
	if (!a->first)
		a->last = &a->first;
	a->n_followed--;
	f->watcher = watcher_free(f->watcher);
	f->cancels = execution_unref(f->cancels);
	free(f);
}

static int next_session_event(struct event_socket *s, struct event *ret)
{
	struct session_attach *a = attach_of_socket(s);
	int r;

	while (a->first) {
		s->keys.execution = a->first->id;
		r = watcher_next(a->first->watcher, ret);
		if (r != -ENODATA)
			return r;
		unfollow_first(a);
	}
	return a->listener.session ? 0 : -ENODATA;
}

/* A reader that is FOLLOWED_MAX executions behind misses those of other clients. */
static void on_session_execution(void *data, const char *id)
{
	struct session_attach *a = attach_of_socket(data);
	const struct watcher_ops ops = { .data = data,
					 .on_ready = event_socket_wake,
					 .on_lost = event_socket_lost };
	struct followed *f = a->n_followed < FOLLOWED_MAX ? calloc(1, sizeof(*f)) : NULL;

	if (!f || engine_watch(a->engine, NULL, (struct engine_place){ id, NULL }, &f->watcher,
			       NULL) < 0) {
		free(f);
		return;
	}
	(void)snprintf(f->id, sizeof(f->id), "%s", id);
	watcher_set_ops(f->watcher, &ops);
	*a->last = f;
	a->last = &f->next;
	a->n_followed++;
	tunnel_yield(a->socket.tunnel);
}

/* --- messages --- */

static void take_execute(struct session_attach *a, json_t *message, const json_t *id)
{
	struct session *s = a->listener.session;
	struct submission in = { .mode = SUBMIT_ANNOUNCED };
	struct submitted sent = { 0 };
	struct error err = { 0 };
	struct followed *f;
	bool calls = session_calls_host(s) || json_object_get(message, "host_functions");

	(void)json_object_del(message, "type");
	(void)json_object_del(message, "id");
	if (a->n_followed == FOLLOWED_MAX) {
		(void)!error_set(&err, ERROR_BUSY, EBUSY,
				 "%d executions wait to be read; read their events first",
				 FOLLOWED_MAX);
		answer_error(a, id, &err);
		return;
	}
	if (session_execute(s, message, &in, &sent, &err) < 0) {
		answer_error(a, id, &err);
		return;
	}
	attach_answer(a, id,
		      json_pack("{s:s, s:s}", "type", "accepted", "execution",
				execution_id(sent.execution)));
	for (f = a->first; f && strcmp(f->id, execution_id(sent.execution)) != 0;)
		f = f->next;
	if (f && calls)
		f->cancels = TAKE_PTR(sent.execution);
	(void)execution_unref(sent.execution);
}

static void take_return(struct session_attach *a, json_t *message, const json_t *id)
{
	const char *call = json_string_value(json_object_get(message, "call_id"));
	struct error err = { 0 };

	if (!call)
		attach_refuse(a, id, "call_id", "call_id: give the call_id of the host_call event");
	else if (session_answer(a->listener.session, call, message, &err) < 0)
		answer_error(a, id, &err);
}

static void answer_interrupt(struct session_attach *a, const json_t *id, bool did, bool kept)
{
	attach_answer(a, id,
		      json_pack("{s:s, s:b, s:s}", "type", "interrupted", "interrupted", did,
				"state", kept ? "kept" : "lost"));
}

static void question_free(struct attach_question *q)
{
	if (q->asker) {
		struct attach_question **at = &q->asker->questions;

		while (*at != q)
			at = &(*at)->next;
		*at = q->next;
		q->asker->n_questions--;
	}
	json_decref(q->id);
	free(q);
}

static void on_question_answered(void *data, struct session *s, const struct error *err)
{
	struct attach_question *q = data;
	struct session_attach *a = q->asker;

	if (a && err)
		answer_error(a, q->id, err);
	else if (a && q->interrupts)
		answer_interrupt(a, q->id, true, session_kept(s));
	else if (a)
		attach_answer(
			a, q->id,
			json_pack("{s:s, s:o}", "type", "reset", "session", session_to_json(s)));
	if (a)
		tunnel_yield(a->socket.tunnel);
	question_free(q);
}

static struct attach_question *question_new(struct session_attach *a, const json_t *id,
					    bool interrupts)
{
	struct attach_question *q = a->n_questions < QUESTIONS_MAX ? calloc(1, sizeof(*q)) : NULL;

	if (!q)
		return NULL;
	*q = (struct attach_question){ .next = a->questions,
				       .asker = a,
				       .interrupts = interrupts,
				       .id = json_incref((json_t *)(uintptr_t)id) };
	a->questions = q;
	a->n_questions++;
	return q;
}

static void ask_of_session(struct session_attach *a, const json_t *id, bool interrupts)
{
	struct attach_question *q = question_new(a, id, interrupts);
	const struct session_reply reply = { q, on_question_answered };
	struct error err = { 0 };
	int r;

	if (!q) {
		(void)!error_set(&err, ERROR_BUSY, EBUSY,
				 "%d interrupts and resets wait for their answers already",
				 QUESTIONS_MAX);
		answer_error(a, id, &err);
		return;
	}
	r = interrupts ? session_interrupt(a->listener.session, reply, &err)
		       : session_reset(a->listener.session, reply, &err);
	if (r >= 0)
		return;
	if (interrupts && err.code == ERROR_ENDED)
		answer_interrupt(a, id, false, true);
	else
		answer_error(a, id, &err);
	question_free(q);
}

static void take_interrupt(struct session_attach *a, json_t *message _unused_, const json_t *id)
{
	ask_of_session(a, id, true);
}

static void take_reset(struct session_attach *a, json_t *message _unused_, const json_t *id)
{
	ask_of_session(a, id, false);
}

static void take_ping(struct session_attach *a, json_t *message _unused_, const json_t *id)
{
	attach_answer(a, id, json_pack("{s:s}", "type", "pong"));
}

static const struct attach_message {
	const char *type;
	void (*take)(struct session_attach *a, json_t *message, const json_t *id);
} attach_messages[] = {
	{ "execute", take_execute }, { "return", take_return }, { "interrupt", take_interrupt },
	{ "reset", take_reset },     { "ping", take_ping },
};

static void take_message(struct session_attach *a, json_t *message)
{
	static const struct error ended = { .code = ERROR_NOT_FOUND,
					    .text = "the session has ended" };
	const char *type = json_string_value(json_object_get(message, "type"));
	const struct attach_message *kind = NULL;
	json_auto_t *id = json_incref(json_object_get(message, "id"));

	for (size_t i = 0; type && i < ARRAY_SIZE(attach_messages); i++)
		if (strcmp(attach_messages[i].type, type) == 0)
			kind = &attach_messages[i];
	if (id && !json_is_integer(id) &&
	    (!json_is_string(id) || json_string_length(id) > ID_BYTES_MAX))
		attach_refuse(a, NULL, "id", "id: give a number or a text of at most 128 bytes");
	else if (!kind)
		attach_refuse(a, id, "type",
			      "type: give execute, return, interrupt, reset or ping");
	else if (!a->listener.session)
		answer_error(a, id, &ended);
	else
		kind->take(a, message, id);
}

static void on_session_text(struct event_socket *s, struct span text)
{
	const struct document doc = { "message", text.data, text.len };
	struct session_attach *a = attach_of_socket(s);
	struct error err = { 0 };
	json_t *message = NULL;

	if (json_has_few_values(text) && json_parse(&doc, &message, &err) >= 0) {
		take_message(a, message);
		json_decref(message);
	} else if (err.code != ERROR_NONE) {
		answer_error(a, NULL, &err);
	} else {
		attach_refuse(a, NULL, "type", "the message has too many values");
	}
}

static void on_session_bytes(struct event_socket *s, struct span bytes _unused_)
{
	attach_refuse(attach_of_socket(s), NULL, "type", "send messages as text frames with JSON");
}

/* --- the connection --- */

static void on_session_gone(struct event_socket *s)
{
	struct session_attach *a = attach_of_socket(s);

	session_unlisten(&a->listener);
	while (a->first) {
		if (a->first->cancels)
			(void)execution_cancel(a->first->cancels);
		unfollow_first(a);
	}
	for (struct attach_question *q = a->questions; q; q = q->next)
		q->asker = NULL;
	event_socket_done(s);
	free(a);
}

int session_attach_get(struct request_ctx *ctx)
{
	static const struct event_socket_ops ops = {
		.message_bytes_max = MESSAGE_BYTES_MAX,
		.next = next_session_event,
		.on_text = on_session_text,
		.on_bytes = on_session_bytes,
		.on_gone = on_session_gone,
	};
	struct api *api = request_app(ctx);
	struct session *s = session_of(ctx);
	struct session_attach *a;
	int r;

	if (!s)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return respond_no_memory(ctx);
	a->engine = api->engine;
	a->last = &a->first;
	a->listener = (struct session_listener){ .data = &a->socket,
						 .on_execution = on_session_execution,
						 .on_closed = event_socket_wake };
	r = event_socket_init(&a->socket, &ops, request_loop(ctx));
	if (r < 0 || event_socket_upgrade(&a->socket, ctx) < 0) {
		on_session_gone(&a->socket);
		return r;
	}
	session_listen(s, &a->listener);
	event_socket_pump(&a->socket);
	return 0;
}
