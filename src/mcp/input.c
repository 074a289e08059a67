/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See input.h. A modern client brings the state back, so it is sealed: HMAC-SHA256 over the state, its time, and what it belongs
 * to (caller, method, name, arguments), with a key of this process. A legacy client is asked over the connection of its call.
 */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/hmac.h"
#include "mcp/mcp-private.h"

enum { STATE_TTL_S = 600, INPUTS_MAX = 16, STATE_BYTES_MAX = 64 << 10 };

/* What the handler waits for: of a legacy call, across its requests to the client. */
struct mcp_asking {
	json_t *open;  /* {id of a request: key} */
	json_t *given; /* {key: result} */
	json_t *state; /* or NULL */
};

void mcp_asking_free(struct mcp_asking *a)
{
	if (!a)
		return;
	json_decref(a->open);
	json_decref(a->given);
	json_decref(a->state);
	free(a);
}

bool mcp_input_waits(const struct mcp_call *call)
{
	return call->asking && json_object_size(call->asking->open) > 0;
}

const json_t *mcp_call_input(const struct mcp_call *call, const char *key)
{
	return call->asking ? json_object_get(call->asking->given, key) : NULL;
}

const json_t *mcp_call_state(const struct mcp_call *call)
{
	return call->asking ? call->asking->state : NULL;
}

/* --- the seal --- */

/* The seal of a state that belongs to this call, to be freed. NULL: no memory. */
static char *seal_of(const struct mcp_call *call, const char *payload)
{
	const struct span key = { (const char *)call->mcp->secret, sizeof(call->mcp->secret) };
	const json_t *arguments = json_object_get(call->message.params, "arguments");
	const json_t *name = json_object_get(call->message.params, call->method->name_key);
	/* Absent arguments and empty ones are the same. */
	const bool has_any = json_object_size(arguments) > 0;
	_cleanup_free_ char *text = has_any ? json_dumps(arguments, JSON_SORT_KEYS | JSON_COMPACT)
					    : NULL;
	const char *words[] = { payload, mcp_call_caller(call), call->method->name,
				json_is_string(name) ? json_string_value(name) : "",
				text ? text : "" };
	struct span parts[ARRAY_SIZE(words)];
	uint8_t mac[SHA256_BYTES];

	if (has_any && !text)
		return NULL;
	/* With the NUL at its end, no word can begin in the one before. */
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		parts[i] = (struct span){ words[i], strlen(words[i]) + 1 };
	hmac_sha256(key, parts, ARRAY_SIZE(parts), mac);
	return base64_encode(mac, sizeof(mac));
}

/* "BASE64.SEAL" of {"state", "until"}; NULL: no memory. */
static char *state_close(const struct mcp_call *call, const json_t *state)
{
	json_int_t until = clock_realtime_ns() / NS_PER_SEC + STATE_TTL_S;
	json_t *tree = json_pack("{s:O, s:I}", "state", state, "until", until);
	_cleanup_free_ char *text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
	_cleanup_free_ char *payload = text ? base64_encode(text, strlen(text)) : NULL;
	_cleanup_free_ char *mark = payload ? seal_of(call, payload) : NULL;
	char *closed = NULL;

	json_decref(tree);
	if (!mark || asprintf(&closed, "%s.%s", payload, mark) < 0)
		return NULL;
	return closed;
}

/* NULL: it is not ours, or too old. */
static json_t *state_open(const struct mcp_call *call, const char *closed)
{
	const char *dot = strrchr(closed, '.');
	size_t n = dot ? (size_t)(dot - closed) : 0, len = 0;
	_cleanup_free_ char *payload = n > 0 ? strndup(closed, n) : NULL;
	_cleanup_free_ char *text = payload ? malloc(base64_decoded_max(n)) : NULL;
	_cleanup_free_ char *mark = text ? seal_of(call, payload) : NULL;
	json_t *tree, *state = NULL;

	if (!mark || !span_is_secret(span_of(mark), dot + 1) ||
	    base64_decode(payload, n, text, &len) < 0)
		return NULL;
	tree = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	if (json_integer_value(json_object_get(tree, "until")) >= clock_realtime_ns() / NS_PER_SEC)
		state = json_incref(json_object_get(tree, "state"));
	json_decref(tree);
	return state;
}

/* --- what a modern request brings --- */

static const char *judge_inputs(const json_t *given)
{
	const char *key;
	json_t *value;

	if (!given)
		return NULL;
	if (!json_is_object(given) || json_object_size(given) > INPUTS_MAX)
		return "params.inputResponses: give an object";
	json_object_foreach((json_t *)(uintptr_t)given, key, value) if (
		!json_is_object(value)) return "params.inputResponses: each response is an object";
	return NULL;
}

int mcp_input_read(struct mcp_call *call)
{
	json_t *given = json_object_get(call->message.params, "inputResponses");
	const json_t *closed = json_object_get(call->message.params, "requestState");
	const char *wrong = judge_inputs(given);

	if (call->era != MCP_MODERN || !call->method->name_key || (!given && !closed))
		return 0;
	if (closed && (!json_is_string(closed) || json_string_length(closed) > STATE_BYTES_MAX))
		wrong = "params.requestState: give back the text that you got";
	if (wrong) {
		mcp_call_fail(call, MCP_INVALID_PARAMS, wrong, NULL);
		return -EINVAL;
	}
	call->asking = calloc(1, sizeof(*call->asking));
	if (!call->asking)
		return -ENOMEM;
	call->asking->given = json_incref(given);
	if (!closed)
		return 0;
	call->asking->state = state_open(call, json_string_value(closed));
	if (call->asking->state)
		return 0;
	mcp_call_fail(call, MCP_INVALID_PARAMS,
		      "params.requestState: it is not of this request, or too old", NULL);
	return -EINVAL;
}

/* --- asking --- */

/* The capability that a client needs for a request, or NULL. */
static const char *needed_for(const char *method)
{
	static const char *const needs[][2] = { { "elicitation/create", "elicitation" },
						{ "sampling/createMessage", "sampling" },
						{ "roots/list", "roots" } };

	for (size_t i = 0; method && i < ARRAY_SIZE(needs); i++)
		if (strcmp(needs[i][0], method) == 0)
			return needs[i][1];
	return NULL;
}

/* The first capability that is missing; NULL: none. */
static const char *missing_for(const struct mcp_call *call, json_t *requests)
{
	const json_t *able = mcp_call_able(call);
	const char *key;
	json_t *request;

	json_object_foreach(requests, key, request)
	{
		const char *needed = needed_for(
			json_string_value(json_object_get(request, "method")));

		if (needed && !json_object_get(able, needed))
			return needed;
	}
	return NULL;
}

void mcp_call_lacks(struct mcp_call *call, const char *capability, json_t *required)
{
	char text[160];

	(void)snprintf(text, sizeof(text), "the client has not declared the capability %.64s",
		       capability);
	if (call->era == MCP_MODERN) {
		mcp_call_reject(call, MCP_NEEDS_CAPABILITY, MCP_CAPABILITY_MISSING, text,
				json_pack("{s:o}", "requiredCapabilities", required));
		return;
	}
	json_decref(required);
	if (call->tool)
		mcp_call_answer(call,
				(struct mcp_answer){
					.content = json_pack("[o]", mcp_text(text, strlen(text))),
					.is_error = true });
	else
		mcp_call_fail(call, MCP_INVALID_REQUEST, text, NULL);
}

static int ask_modern(struct mcp_call *call, json_t *requests, json_t *state)
{
	_cleanup_free_ char *closed = state ? state_close(call, state) : NULL;
	json_t *result = json_pack("{s:s, s:O, s:s*}", "resultType", "input_required",
				   "inputRequests", requests, "requestState", closed);

	if (state && !closed) {
		json_decref(result);
		result = NULL;
	}
	mcp_call_result(call, result);
	return 0;
}

static int ask_legacy(struct mcp_call *call, json_t *requests, json_t *state)
{
	struct mcp_asking *a = calloc(1, sizeof(*a));
	const char *key;
	json_t *request;

	if (!a)
		return -ENOMEM;
	*a = (struct mcp_asking){ .open = json_object(),
				  .given = json_object(),
				  .state = json_incref(state) };
	mcp_asking_free(call->asking);
	call->asking = a;
	json_object_foreach(requests, key, request)
	{
		json_t *id = json_sprintf("ask-%lld", (long long)++call->mcp->next_request);

		(void)json_object_set_new(a->open, json_string_value(id), json_string(key));
		mcp_call_say(call,
			     mcp_make_request(id,
					      json_string_value(json_object_get(request, "method")),
					      json_incref(json_object_get(request, "params"))));
		json_decref(id);
	}
	return 0;
}

int mcp_call_ask(struct mcp_call *call, json_t *requests, json_t *state)
{
	const char *missing = requests ? missing_for(call, requests) : NULL;
	int r = requests ? 0 : -ENOMEM;

	if (call->handler.ops && call->handler.ops->free)
		call->handler.ops->free(call->handler.data);
	mcp_call_set(call, NULL, NULL);
	if (missing)
		mcp_call_lacks(call, missing, json_pack("{s:{}}", missing));
	else if (r == 0)
		r = call->era == MCP_MODERN ? ask_modern(call, requests, state)
					    : ask_legacy(call, requests, state);
	json_decref(requests);
	json_decref(state);
	return r;
}

/* --- answers of a legacy client --- */

static void refuse_asker(struct mcp_call *call, const json_t *error)
{
	const char *text = json_string_value(json_object_get(error, "message"));
	struct error err = { 0 };

	(void)!error_set(&err, ERROR_CONFLICT, ECANCELED, "the client refused to answer: %.200s",
			 text ? text : "");
	if (call->tool)
		mcp_call_refuse(call, &err);
	else
		mcp_call_error(call, &err);
}

void mcp_input_take(struct mcp_client *client, const struct mcp_message *message)
{
	const char *id = json_string_value(message->id);
	struct mcp_call *call = id ? client->mcp->calls : NULL;
	struct mcp_asking *a;

	while (call && (call->client != client || !call->asking ||
			!json_object_get(call->asking->open, id)))
		call = call->next;
	if (!call)
		return;
	a = call->asking;
	if (!json_is_object(message->result)) {
		refuse_asker(call, message->error);
		return;
	}
	(void)json_object_set(a->given, json_string_value(json_object_get(a->open, id)),
			      message->result);
	(void)json_object_del(a->open, id);
	if (json_object_size(a->open) == 0)
		mcp_call_again(call);
}
