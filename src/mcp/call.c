/* SPDX-License-Identifier: Apache-2.0 */
/* See call.h: the life of one request from mcp_take() to its answer. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "mcp/mcp-private.h"
#include "spec/result.h"

enum {
	PROGRESS_EVERY_MS = 100, /* on average */
	PROGRESS_BURST_MS = 1000,
	TEXT_MAX = 1 << 30,
};

/* --- what handlers ask --- */

const struct mcp_options *mcp_call_app(const struct mcp_call *call)
{
	return &call->mcp->options;
}

struct mcp *mcp_call_server(const struct mcp_call *call)
{
	return call->mcp;
}

const char *mcp_call_caller(const struct mcp_call *call)
{
	return call->charges.call.caller->name;
}

const char *mcp_call_viewer(const struct mcp_call *call)
{
	return call->sees_all ? NULL : mcp_call_caller(call);
}

int64_t mcp_call_started_ns(const struct mcp_call *call)
{
	return call->started_ns;
}

bool mcp_call_needs_client(const struct mcp_call *call)
{
	return call->era == MCP_MODERN && !call->task.is_answered;
}

const json_t *mcp_call_able(const struct mcp_call *call)
{
	const json_t *meta = json_object_get(call->message.params, "_meta");

	if (call->era == MCP_MODERN)
		return json_object_get(meta, MCP_META_ABLE);
	return call->client ? call->client->able : NULL;
}

void mcp_call_set(struct mcp_call *call, void *data, const struct mcp_call_ops *ops)
{
	call->handler.data = data;
	call->handler.ops = ops;
}

/* --- messages before the answer --- */

/* The stream of a legacy call over HTTP begins with the first thing it says. */
static struct mcp_stream *stream_of(struct mcp_call *call)
{
	if (!call->stream && call->client && call->client->id[0]) {
		call->stream = mcp_stream_new(&call->client->replay, false);
		if (call->stream) {
			call->stream->holder = &call->stream;
			call->stream->door = call->door;
		}
	}
	return call->stream;
}

void mcp_call_begin(struct mcp_call *call, char ret_event[MCP_EVENT])
{
	/* Clients of older revisions take an event without data for a broken message. */
	bool knows = call->version && strcmp(call->version, "2025-11-25") >= 0;
	struct mcp_stream *s = knows ? stream_of(call) : NULL;

	ret_event[0] = '\0';
	if (s && s->events == 0)
		mcp_stream_keep(s, (struct span){ NULL, 0 }, ret_event);
}

void mcp_call_say(struct mcp_call *call, json_t *message)
{
	_cleanup_free_ char *text = mcp_message_text(message);
	char event[REPLAY_ID] = "";
	struct mcp_stream *s;

	if (!text || call->is_cancelled || (!call->door.ops && !call->stream))
		return;
	s = stream_of(call);
	if (s)
		mcp_stream_keep(s, span_of(text), event);
	if (call->door.ops)
		call->door.ops->say(call->door.data, event, span_of(text));
}

bool mcp_call_wants_progress(const struct mcp_call *call)
{
	if (!call->progress.token || call->is_cancelled || call->task.is_answered)
		return false;
	return !call->door.ops || !call->door.ops->is_full(call->door.data);
}

/* A call may say something ten times at once, then ten times a second. */
static bool pays_progress(struct mcp_call *call)
{
	int64_t now_ns = clock_now_ns(), paid_ns = MAX(call->progress.paid_ns, now_ns);

	paid_ns += PROGRESS_EVERY_MS * NS_PER_MS;
	if (paid_ns - now_ns > PROGRESS_BURST_MS * NS_PER_MS)
		return false;
	call->progress.paid_ns = paid_ns;
	return true;
}

void mcp_call_progress(struct mcp_call *call, double done, double total, const char *message)
{
	json_t *params;

	if (!mcp_call_wants_progress(call) || done <= call->progress.done || !pays_progress(call))
		return;
	call->progress.done = done;
	params = json_pack("{s:O, s:f, s:s*}", "progressToken", call->progress.token, "progress",
			   done, "message", message);
	if (params && total > 0)
		(void)json_object_set_new(params, "total", json_real(total));
	mcp_call_say(call, mcp_make_notification("notifications/progress", params));
}

static const char *const log_names[] = { "debug", "info",     "notice", "warning",
					 "error", "critical", "alert",	"emergency" };

enum mcp_log_level mcp_log_level_called(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(log_names); i++)
		if (strcmp(log_names[i], name) == 0)
			return (enum mcp_log_level)i;
	return MCP_LOG_OFF;
}

void mcp_call_log(struct mcp_call *call, enum mcp_log_level level, const char *logger, json_t *data)
{
	enum mcp_log_level wanted = call->log_level;

	if (call->era == MCP_LEGACY)
		wanted = call->client ? call->client->log_level : MCP_LOG_OFF;
	if (level < wanted || level >= MCP_LOG_OFF || !data || call->task.is_answered) {
		json_decref(data);
		return;
	}
	mcp_call_say(call,
		     mcp_make_notification("notifications/message",
					   json_pack("{s:s, s:s*, s:o}", "level", log_names[level],
						     "logger", logger, "data", data)));
}

/* --- the end --- */

void mcp_call_free(struct mcp_call *call)
{
	if (call->previous)
		call->previous->next = call->next;
	else
		call->mcp->calls = call->next;
	if (call->next)
		call->next->previous = call->previous;
	assert(!call->client || call->client->n_calls > 0);
	if (call->client)
		call->client->n_calls--;
	mcp_unsubscribe_all(call->mcp, NULL, call);
	if (call->handler.ops && call->handler.ops->free)
		call->handler.ops->free(call->handler.data);
	if (call->stream)
		call->stream->holder = NULL;
	if (call->ended)
		*call->ended = true;
	call->task.timer = source_free(call->task.timer);
	mcp_asking_free(call->asking);
	json_decref(call->task.record);
	charge_done(&call->charges.listens);
	charge_done(&call->charges.bytes);
	charge_done(&call->charges.call);
	free(call->resource.text);
	json_decref(call->message.root);
	free(call);
}

void mcp_call_end(struct mcp_call *call, enum mcp_outcome outcome, char *text)
{
	static const char no_memory[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":"
					"-32603,\"message\":\"out of memory\"}}";
	const struct mcp_door door = call->door;
	char event[REPLAY_ID] = "";
	struct mcp_ending ending = { .outcome = outcome, .event = event };

	call->door = (struct mcp_door){ NULL, NULL };
	ending.session = call->session;
	if (call->is_cancelled)
		ending.outcome = MCP_CANCELLED;
	else
		ending.text = span_of(text ? text : no_memory);
	if (!text && !call->is_cancelled)
		ending.outcome = MCP_FAILED;
	if (call->stream) {
		if (ending.text.len > 0)
			mcp_stream_keep(call->stream, ending.text, event);
		call->stream->has_ended = true;
		call->stream->door = (struct mcp_door){ NULL, NULL };
	}
	if (door.ops)
		door.ops->end(door.data, &ending);
	free(text);
	if (call->client)
		mcp_client_used(call->client);
	mcp_call_free(call);
}

void mcp_call_cancel(struct mcp_call *call)
{
	if (call->is_cancelled)
		return;
	call->is_cancelled = true;
	if (mcp_input_waits(call))
		mcp_call_end(call, MCP_CANCELLED, NULL);
	else if (call->handler.ops && call->handler.ops->cancel)
		call->handler.ops->cancel(call->handler.data);
}

void mcp_call_gone(struct mcp_call *call)
{
	call->door = (struct mcp_door){ NULL, NULL };
	if (call->stream)
		call->stream->door = call->door;
	if (mcp_call_needs_client(call))
		mcp_call_cancel(call);
}

void mcp_call_reject(struct mcp_call *call, enum mcp_outcome outcome, int code, const char *text,
		     json_t *data)
{
	mcp_call_end(call, outcome,
		     mcp_message_text(mcp_make_error(call->message.id, code, text, data)));
}

void mcp_call_fail(struct mcp_call *call, enum mcp_code code, const char *text, json_t *data)
{
	if (call->task.record)
		mcp_call_result(call, mcp_task_fail(call, code, text, data));
	else
		mcp_call_reject(call, MCP_ANSWERED, code, text, data);
}

/* --- results --- */

json_t *mcp_server_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "atoll", "title", "Atoll", "version",
			 ATOLL_VERSION);
}

static void set_new_if_absent(json_t *object, const char *key, json_t *value)
{
	if (json_object_get(object, key))
		json_decref(value);
	else
		(void)json_object_set_new(object, key, value);
}

/* What every result of the modern era says about itself. */
static void sign_result(const struct mcp_call *call, json_t *result)
{
	json_t *meta = json_object_get(result, "_meta");

	set_new_if_absent(result, "resultType", json_string("complete"));
	if (!meta)
		(void)json_object_set_new(result, "_meta", meta = json_object());
	set_new_if_absent(meta, MCP_META_SERVER, mcp_server_info());
	if (!call->method || call->method->ttl_ms < 0)
		return;
	set_new_if_absent(result, "ttlMs", json_integer(call->method->ttl_ms));
	set_new_if_absent(result, "cacheScope",
			  json_string(call->method->is_public ? "public" : "private"));
}

void mcp_call_detach(struct mcp_call *call, json_t *result)
{
	_cleanup_free_ char *text = NULL;
	const struct mcp_door door = call->door;
	struct mcp_ending ending = { .outcome = MCP_ANSWERED, .event = "", .session = "" };

	if (!result)
		return;
	sign_result(call, result);
	text = mcp_message_text(mcp_make_result(call->message.id, result));
	if (!text)
		return;
	ending.text = span_of(text);
	call->task.is_answered = true;
	call->door = (struct mcp_door){ NULL, NULL };
	if (call->client)
		call->client->n_calls--;
	call->client = NULL;
	if (door.ops)
		door.ops->end(door.data, &ending);
}

void mcp_call_result(struct mcp_call *call, json_t *result)
{
	if (result && call->task.record && !json_object_get(result, "taskId"))
		result = mcp_task_wrap(call, result);
	if (result && call->era == MCP_MODERN)
		sign_result(call, result);
	mcp_call_end(call, MCP_ANSWERED,
		     result ? mcp_message_text(mcp_make_result(call->message.id, result)) : NULL);
}

void mcp_call_answer(struct mcp_call *call, struct mcp_answer answer)
{
	json_t *result = NULL;

	if (!answer.content && answer.structured) {
		char *text = json_dumps(answer.structured,
					JSON_COMPACT | JSON_ENCODE_ANY |
						result_json_flags(answer.structured));

		answer.content = text ? json_pack("[{s:s, s:s}]", "type", "text", "text", text)
				      : NULL;
		free(text);
	} else if (!answer.content) {
		answer.content = json_array();
	}
	if (answer.content)
		result = json_pack("{s:o, s:o*, s:o*}", "content", answer.content,
				   "structuredContent", answer.structured, "isError",
				   answer.is_error ? json_true() : NULL);
	else
		json_decref(answer.structured);
	mcp_call_result(call, result);
}

void mcp_call_refuse(struct mcp_call *call, const struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	int r;

	buf_init(&text, 2 * sizeof(err->text));
	r = buf_puts(&text, err->text);
	if (r == 0 && err->retry_after_s > 0)
		r = buf_printf(&text, " (the same call may succeed in %d s)", err->retry_after_s);
	mcp_call_answer(
		call,
		(struct mcp_answer){
			.content = r == 0 ? json_pack("[o]", mcp_text(text.data, text.len)) : NULL,
			.is_error = true,
		});
}

/* Failures of Atoll's parts, as errors of JSON-RPC. Rows that are not here are internal errors. */
static const struct mcp_failure {
	enum error_code code;
	enum mcp_code means;
	const char *word;
} failures[] = {
	{ ERROR_INPUT, MCP_INVALID_PARAMS, "invalid_field" },
	{ ERROR_POLICY, MCP_INVALID_PARAMS, "policy_refused" },
	{ ERROR_CALLBACKS_OFF, MCP_INVALID_PARAMS, "callbacks_off" },
	{ ERROR_RUNTIME, MCP_INVALID_PARAMS, "unknown_language" },
	{ ERROR_TOO_LARGE, MCP_INVALID_PARAMS, "too_large" },
	{ ERROR_NOT_FOUND, MCP_INVALID_PARAMS, "not_found" },
	{ ERROR_NOT_ENDED, MCP_INVALID_PARAMS, "not_ended" },
	{ ERROR_ENDED, MCP_INVALID_PARAMS, "already_ended" },
	{ ERROR_CONFLICT, MCP_INVALID_PARAMS, "conflict" },
	{ ERROR_BUSY, MCP_INTERNAL_ERROR, "busy" },
	{ ERROR_NO_ROOM, MCP_INTERNAL_ERROR, "busy" },
	{ ERROR_NOT_READY, MCP_INTERNAL_ERROR, "not_ready" },
	{ ERROR_STOPPING, MCP_INTERNAL_ERROR, "draining" },
	{ ERROR_STORAGE, MCP_INTERNAL_ERROR, "storage" },
	{ ERROR_LOST, MCP_INTERNAL_ERROR, "interrupted" },
};

void mcp_call_error(struct mcp_call *call, const struct error *err)
{
	const struct mcp_failure internal = { ERROR_INTERNAL, MCP_INTERNAL_ERROR, "internal" };
	const struct mcp_failure *is = &internal;
	json_t *data;

	for (size_t i = 0; i < ARRAY_SIZE(failures); i++)
		if ((enum error_code)err->code == failures[i].code)
			is = &failures[i];
	data = json_pack("{s:s}", "code", is->word);
	if (err->field[0])
		(void)json_object_set_new(data, "field", json_string(err->field));
	if (err->retry_after_s > 0)
		(void)json_object_set_new(data, "retryAfter", json_integer(err->retry_after_s));
	mcp_call_fail(call, is->means, err->text, data);
}

void mcp_call_no_resource(struct mcp_call *call, const char *uri)
{
	mcp_call_fail(call, call->era == MCP_MODERN ? MCP_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND,
		      "Resource not found; resources/list and resources/templates/list have all",
		      json_pack("{s:s}", "uri", uri));
}

/* --- content --- */

json_t *mcp_text(const char *text, size_t n)
{
	_cleanup_buf_ struct buf good = { 0 };

	if (!utf8_is_valid(text, n)) {
		buf_init(&good, TEXT_MAX);
		if (utf8_replace(text, n, &good) < 0)
			return NULL;
		text = good.data;
		n = good.len;
	}
	return json_pack("{s:s, s:s%}", "type", "text", "text", text, n);
}

json_t *mcp_image(const char *base64, const char *mime_type)
{
	return json_pack("{s:s, s:s, s:s}", "type", "image", "data", base64, "mimeType", mime_type);
}
