/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a message to the method that answers it: what the text is, which era it belongs to, whether it says about itself what the
 * era wants, which client it is from, and whether one more call is within the bounds.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/loop/worker.h"
#include "mcp/mcp-private.h"

enum { TICK_S = 30, LIST_TTL_MS = 60000 };

const struct mcp_method mcp_methods[] = {
	{ "initialize", MCP_LEGACY, NULL, -1, false, mcp_answer_initialize },
	{ "ping", MCP_LEGACY, NULL, -1, false, mcp_answer_ping },
	{ "logging/setLevel", MCP_LEGACY, NULL, -1, false, mcp_answer_set_level },
	{ "server/discover", MCP_MODERN, NULL, LIST_TTL_MS, true, mcp_answer_discover },
	{ "tools/list", MCP_LEGACY | MCP_MODERN, NULL, LIST_TTL_MS, true, mcp_answer_tools_list },
	{ "tools/call", MCP_LEGACY | MCP_MODERN, "name", -1, false, mcp_answer_tools_call },
	{ "resources/list", MCP_LEGACY | MCP_MODERN, NULL, 0, false, mcp_answer_resources_list },
	{ "resources/templates/list", MCP_LEGACY | MCP_MODERN, NULL, LIST_TTL_MS, true,
	  mcp_answer_templates_list },
	{ "resources/read", MCP_LEGACY | MCP_MODERN, "uri", 0, false, mcp_answer_resources_read },
	{ "prompts/list", MCP_LEGACY | MCP_MODERN, NULL, LIST_TTL_MS, true,
	  mcp_answer_prompts_list },
	{ "prompts/get", MCP_LEGACY | MCP_MODERN, "name", -1, false, mcp_answer_prompts_get },
	{ "completion/complete", MCP_LEGACY | MCP_MODERN, NULL, -1, false, mcp_answer_complete },
	{ "resources/subscribe", MCP_LEGACY, NULL, -1, false, mcp_answer_subscribe },
	{ "resources/unsubscribe", MCP_LEGACY, NULL, -1, false, mcp_answer_unsubscribe },
	{ "subscriptions/listen", MCP_MODERN, NULL, -1, false, mcp_answer_listen },
	{ "tasks/get", MCP_MODERN, "taskId", -1, false, mcp_answer_task_get },
	{ "tasks/update", MCP_MODERN, "taskId", -1, false, mcp_answer_task_update },
	{ "tasks/cancel", MCP_MODERN, "taskId", -1, false, mcp_answer_task_cancel },
	{ 0 },
};

const struct mcp_method *mcp_method_find(const char *name, enum mcp_era era)
{
	for (const struct mcp_method *m = mcp_methods; m->name; m++)
		if (strcmp(m->name, name) == 0)
			return m->eras & era ? m : NULL;
	return NULL;
}

/* --- refusals before there is a call --- */

static void end_with(const struct mcp_arrival *in, enum mcp_outcome outcome, json_t *message)
{
	_cleanup_free_ char *text = message ? mcp_message_text(message) : NULL;
	const struct mcp_ending ending = { .outcome = outcome,
					   .event = "",
					   .session = "",
					   .text = text ? span_of(text)
							: (struct span){ NULL, 0 } };

	in->door.ops->end(in->door.data, &ending);
}

/* Words for the outcomes that need no more than words. */
static const struct mcp_words {
	int code;
	const char *text;
} outcome_words[_MCP_OUTCOME_MAX] = {
	[MCP_NO_METHOD] = { MCP_METHOD_NOT_FOUND, "Method not found" },
	[MCP_NEEDS_SESSION] = { MCP_INVALID_REQUEST,
				"send initialize first, and repeat the MCP-Session-Id of its "
				"answer" },
	[MCP_NO_SESSION] = { MCP_INVALID_REQUEST,
			     "there is no such session (any more); send initialize again" },
	[MCP_BAD_VERSION] = { MCP_INVALID_REQUEST,
			      "MCP-Protocol-Version names a revision that is not supported" },
	[MCP_TOO_MANY] = { MCP_INTERNAL_ERROR,
			   "too many requests are being answered; try again later" },
	[MCP_FAILED] = { MCP_INTERNAL_ERROR, "out of memory" },
};

static void refuse_plainly(const struct mcp_arrival *in, const json_t *id, enum mcp_outcome outcome)
{
	const struct mcp_words *words = &outcome_words[outcome];

	end_with(in, outcome, mcp_make_error(id, words->code, words->text, NULL));
}

/* --- a request becomes a call --- */

static void read_meta(struct mcp_call *call)
{
	const json_t *meta = json_object_get(call->message.params, "_meta");
	const json_t *token = json_object_get(meta, "progressToken");

	if (json_is_string(token) || json_is_integer(token))
		call->progress.token = token;
	call->progress.done = -1;
	call->log_level = MCP_LOG_OFF;
	if (call->era == MCP_MODERN)
		call->log_level = mcp_log_level_called(
			json_string_value(json_object_get(meta, MCP_META_LOG)));
}

static struct mcp_call *call_new(struct mcp *m, const struct mcp_arrival *in,
				 struct mcp_message *message, struct mcp_client *client)
{
	struct caller *caller = caller_get(m->options.callers, in->caller);
	const struct slot_demand demand = { SLOT_MCP_CALLS, 1, 1 };
	struct mcp_call *call = NULL;

	if (caller && (!client || client->n_calls < MCP_CALLS_PER_CLIENT) &&
	    caller_check(m->options.callers, caller, demand, NULL) == 0)
		call = calloc(1, sizeof(*call));
	if (call) {
		*call = (struct mcp_call){ .mcp = m,
					   .next = m->calls,
					   .client = client,
					   .door = in->door,
					   .era = client && !in->client ? MCP_LEGACY : MCP_MODERN,
					   .message = { .root = TAKE_PTR(message->root),
							.id = message->id,
							.params = message->params },
					   .sees_all = in->sees_all,
					   .started_ns = clock_now_ns() };
		charge_take(&call->charges.call, m->options.callers, caller, SLOT_MCP_CALLS, 1);
		/* The door has asked for them while they arrived, and may go before the call does. */
		charge_take(&call->charges.bytes, m->options.callers, caller, SLOT_BODY_BYTES,
			    (int64_t)in->text.len);
		if (m->calls)
			m->calls->previous = call;
		m->calls = call;
		if (client)
			client->n_calls++;
	}
	(void)caller_put(m->options.callers, caller);
	return call;
}

/* Hands a call to its method. Returns it if it is still to be answered. */
static struct mcp_call *answer_call(struct mcp_call *call, const struct mcp_headers *headers)
{
	bool ended = false;
	int r;

	call->ended = &ended;
	call->message.headers = headers;
	r = mcp_input_read(call);
	if (r == 0)
		r = call->method->answer(call, call->message.params);
	if (ended)
		return NULL;
	call->ended = NULL;
	call->message.headers = NULL;
	if (r >= 0)
		return call;
	mcp_call_fail(call, MCP_INTERNAL_ERROR,
		      r == -ENOMEM ? "out of memory" : "the server has failed", NULL);
	return NULL;
}

void mcp_call_again(struct mcp_call *call)
{
	(void)answer_call(call, NULL);
}

static struct mcp_call *begin_call(struct mcp *m, const struct mcp_arrival *in,
				   struct mcp_message *message, struct mcp_call *like)
{
	json_t *id = json_incref(message->id);
	struct mcp_call *call = call_new(m, in, message, like->client);

	if (!call)
		refuse_plainly(in, id, MCP_TOO_MANY);
	json_decref(id);
	if (!call)
		return NULL;
	call->era = like->era;
	call->version = like->version;
	call->method = like->method;
	read_meta(call);
	return answer_call(call, in->headers);
}

/* --- notifications and responses --- */

static void take_notification(struct mcp_client *client, const struct mcp_message *message)
{
	const json_t *id = json_object_get(message->params, "requestId");
	struct mcp_call *call = client && id ? mcp_client_call(client, id) : NULL;

	/* An `initialize` is never cancelled. */
	if (call && strcmp(message->method, "notifications/cancelled") == 0 &&
	    call->method->answer != mcp_answer_initialize)
		mcp_call_cancel(call);
}

/* --- the two eras --- */

static struct mcp_call *take_modern(struct mcp *m, const struct mcp_arrival *in,
				    struct mcp_message *message)
{
	struct mcp_call like = { .era = MCP_MODERN,
				 .version = MCP_MODERN_VERSION,
				 .client = in->client };
	struct mcp_refusal r;

	if (message->kind == MCP_NOTIFICATION) {
		take_notification(in->client, message);
		end_with(in, MCP_ACCEPTED, NULL);
		return NULL;
	}
	like.method = mcp_method_find(message->method, MCP_MODERN);
	r = mcp_judge_modern(message, in->headers, like.method ? like.method->name_key : NULL);
	if (r.outcome != MCP_ANSWERED) {
		end_with(in, r.outcome, mcp_make_error(message->id, r.code, r.text, r.data));
		return NULL;
	}
	if (!like.method) {
		refuse_plainly(in, message->id, MCP_NO_METHOD);
		return NULL;
	}
	return begin_call(m, in, message, &like);
}

static enum mcp_outcome legacy_client(struct mcp *m, const struct mcp_arrival *in,
				      const struct mcp_message *message, struct mcp_client **ret)
{
	struct error err = { 0 };
	bool begins = message->kind == MCP_REQUEST && strcmp(message->method, "initialize") == 0;
	int r;

	if (!begins || in->client) {
		enum mcp_outcome outcome = mcp_client_find(m, in, ret);

		/* A WebSocket's client may say hello, and ping, before `initialize`. */
		if (outcome == MCP_NEEDS_SESSION && in->client &&
		    (begins || message->kind != MCP_REQUEST ||
		     strcmp(message->method, "ping") == 0))
			return MCP_ANSWERED;
		return outcome;
	}
	r = mcp_client_new(m, in, ret, &err);
	return r == 0 ? MCP_ANSWERED : r == -ENOMEM ? MCP_FAILED : MCP_TOO_MANY;
}

static struct mcp_call *take_legacy(struct mcp *m, const struct mcp_arrival *in,
				    struct mcp_message *message)
{
	struct mcp_call like = { .era = MCP_LEGACY };
	enum mcp_outcome outcome = legacy_client(m, in, message, &like.client);

	if (outcome != MCP_ANSWERED) {
		refuse_plainly(in, message->id, outcome);
		return NULL;
	}
	if (message->kind != MCP_REQUEST) {
		if (message->kind == MCP_NOTIFICATION)
			take_notification(like.client, message);
		else
			mcp_input_take(like.client, message);
		end_with(in, MCP_ACCEPTED, NULL);
		return NULL;
	}
	like.version = like.client->version;
	like.method = mcp_method_find(message->method, MCP_LEGACY);
	if (!like.method) {
		end_with(in, MCP_ANSWERED,
			 mcp_make_error(message->id, MCP_METHOD_NOT_FOUND, "Method not found",
					NULL));
		return NULL;
	}
	return begin_call(m, in, message, &like);
}

/* A large message is parsed on the worker, when its door runs on a fiber. */
struct message_reading {
	struct span text;
	struct mcp_message message;
	struct mcp_fault fault;
	int r;
};

static void read_message(void *data)
{
	struct message_reading *reading = data;

	reading->r = mcp_message_read(reading->text, &reading->message, &reading->fault);
}

struct mcp_call *mcp_take(struct mcp *m, const struct mcp_arrival *in)
{
	struct message_reading reading = { .text = in->text };
	struct mcp_call *call = NULL;

	worker_call(in->text.len, read_message, &reading);
	if (reading.r < 0) {
		end_with(in, MCP_MALFORMED,
			 mcp_make_error(reading.fault.id, reading.fault.code, reading.fault.text,
					NULL));
		json_decref(reading.fault.id);
	} else if (mcp_era_of(&reading.message, in->headers) == MCP_MODERN) {
		call = take_modern(m, in, &reading.message);
	} else {
		call = take_legacy(m, in, &reading.message);
	}
	mcp_message_done(&reading.message);
	return call;
}

/* --- who the server is: `initialize` of the legacy era, `server/discover` of the modern one --- */

static const char instructions[] =
	"Atoll runs code in a sandbox on this machine and says exactly what happened. Use "
	"execute_code for one program; it starts in "
	"milliseconds, has no network, and its files are gone afterwards. Use create_session and "
	"run_in_session when variables and files "
	"should stay between calls, and fork_session to try several continuations of one state. "
	"Long output is shown by its head and "
	"tail: read the rest with read_output (range or grep). When a limit ended the program, the "
	"result names it and the value worth "
	"retrying with.";

bool mcp_lists_may_change(const struct mcp *m)
{
	bool changes = false;

	for (const struct mcp_tables *const *t = m->options.tables; *t; t++)
		changes = changes || (*t)->changes;
	return changes;
}

static json_t *server_capabilities(const struct mcp *m, enum mcp_era era)
{
	const int changes = mcp_lists_may_change(m);
	json_t *able = json_pack("{s:{s:b}, s:{s:b}, s:{s:b, s:b}, s:{}}", "tools", "listChanged",
				 changes, "prompts", "listChanged", changes, "resources",
				 "listChanged", 0, "subscribe", 1, "completions");

	if (able && era == MCP_LEGACY)
		(void)json_object_set_new(able, "logging", json_object());
	else if (able)
		(void)json_object_set_new(able, "extensions",
					  json_pack("{s:{}}", "io.modelcontextprotocol/tasks"));
	return able;
}

int mcp_answer_initialize(struct mcp_call *call, const json_t *params)
{
	const json_t *asked = json_object_get(params, "protocolVersion");
	struct mcp_client *c = call->client;

	if (!json_is_string(asked)) {
		const bool never_began = c->id[0] && !c->version;

		mcp_call_fail(call, MCP_INVALID_PARAMS, "params.protocolVersion: give a text",
			      NULL);
		if (never_began)
			mcp_client_end(c);
		return 0;
	}
	/* The revision that both sides speak: the client's, if it is known, else the newest legacy one. */
	c->version = mcp_legacy_version(
		(struct span){ json_string_value(asked), json_string_length(asked) });
	if (!c->version)
		c->version = mcp_legacy_versions[0];
	call->version = c->version;
	json_decref(c->able);
	c->able = json_incref(json_object_get(params, "capabilities"));
	(void)snprintf(call->session, sizeof(call->session), "%s", c->id);
	mcp_call_result(call,
			json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", c->version,
				  "capabilities", server_capabilities(call->mcp, MCP_LEGACY),
				  "serverInfo", mcp_server_info(), "instructions", instructions));
	return 0;
}

int mcp_answer_discover(struct mcp_call *call, const json_t *params _unused_)
{
	mcp_call_result(call,
			json_pack("{s:[s], s:o, s:s}", "supportedVersions", MCP_MODERN_VERSION,
				  "capabilities", server_capabilities(call->mcp, MCP_MODERN),
				  "instructions", instructions));
	return 0;
}

int mcp_answer_ping(struct mcp_call *call, const json_t *params _unused_)
{
	mcp_call_result(call, json_object());
	return 0;
}

int mcp_answer_set_level(struct mcp_call *call, const json_t *params)
{
	const char *name = json_string_value(json_object_get(params, "level"));
	enum mcp_log_level level = mcp_log_level_called(name);

	if (level == MCP_LOG_OFF) {
		mcp_call_fail(call, MCP_INVALID_PARAMS,
			      "params.level: give debug, info, notice, warning, error, critical, "
			      "alert or emergency",
			      NULL);
		return 0;
	}
	call->client->log_level = level;
	mcp_call_result(call, json_object());
	return 0;
}

/* --- the server --- */

static int on_mcp_tick(void *data, uint32_t events _unused_)
{
	struct mcp *m = data;

	mcp_clients_expire(m);
	source_set_time(m->tick, clock_now_ns() + TICK_S * NS_PER_SEC);
	return 0;
}

int mcp_new(const struct mcp_options *options, struct mcp **ret, struct error *err)
{
	struct slot_rule *rules = options->callers->rules;
	struct mcp *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return error_oom(err);
	m->options = *options;
	rules[SLOT_MCP_CLIENTS] = (struct slot_rule){ .max = MCP_CLIENTS_MAX,
						      .own_max = MCP_CLIENTS_PER_CALLER };
	rules[SLOT_MCP_CALLS] = (struct slot_rule){ .max = MCP_CALLS_MAX,
						    .own_max = MCP_CALLS_PER_CALLER };
	rules[SLOT_MCP_LISTENS] = (struct slot_rule){ .max = MCP_LISTENS_MAX,
						      .own_max = MCP_LISTENS_PER_CALLER };
	rules[SLOT_MCP_REPLAY_BYTES] = (struct slot_rule){ .max = REPLAY_TOTAL_BYTES,
							   .own_max = REPLAY_TOTAL_BYTES / 2 };
	while (getrandom(m->secret, sizeof(m->secret), 0) != (ssize_t)sizeof(m->secret))
		;
	r = mcp_lists_make(m);
	if (r == 0)
		r = loop_add_timer(options->loop, clock_now_ns() + TICK_S * NS_PER_SEC,
				   (struct handler){ on_mcp_tick, m }, &m->tick);
	if (r < 0) {
		(void)mcp_free(m);
		return error_oom(err);
	}
	*ret = m;
	return 0;
}

void mcp_drain(struct mcp *m)
{
	mcp_listeners_end(m);
}

struct mcp *mcp_free(struct mcp *m)
{
	if (!m)
		return NULL;
	m->tick = source_free(m->tick);
	while (m->calls) {
		m->calls->client = NULL;
		mcp_call_free(m->calls);
	}
	while (m->clients)
		mcp_client_end(m->clients);
	mcp_lists_free(m);
	free(m);
	return NULL;
}
