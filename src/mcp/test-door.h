/* SPDX-License-Identifier: Apache-2.0 */
/* A server over invented tools, without an engine, and a door that remembers what came through it. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "base/caller.h"
#include "base/loop/loop.h"
#include "mcp/input.h"
#include "mcp/prompt.h"
#include "mcp/resource.h"
#include "mcp/tool.h"

struct test_door {
	int said, ended;
	enum mcp_outcome outcome;
	char session[64], event[64], first_event[64];
	json_t *last, *answer; /* the last message that was not the answer; the answer */
};

static void door_say(void *data, const char *event, struct span text)
{
	struct test_door *d = data;

	if (d->said++ == 0)
		(void)snprintf(d->first_event, sizeof(d->first_event), "%s", event);
	(void)snprintf(d->event, sizeof(d->event), "%s", event);
	if (text.len == 0)
		return;
	json_decref(d->last);
	d->last = json_loadb(text.data, text.len, JSON_ALLOW_NUL, NULL);
}

static bool door_is_full(void *data _unused_)
{
	return false;
}

static void door_end(void *data, const struct mcp_ending *ending)
{
	struct test_door *d = data;

	d->ended++;
	d->outcome = ending->outcome;
	(void)snprintf(d->session, sizeof(d->session), "%s", ending->session);
	json_decref(d->answer);
	d->answer = ending->text.len > 0
			    ? json_loadb(ending->text.data, ending->text.len, JSON_ALLOW_NUL, NULL)
			    : NULL;
}

static const struct mcp_door_ops test_door_ops = { door_say, door_is_full, door_end };

static inline void door_done(struct test_door *d)
{
	json_decref(d->last);
	json_decref(d->answer);
	*d = (struct test_door){ 0 };
}

static inline struct mcp_door door_of(struct test_door *d)
{
	return (struct mcp_door){ &test_door_ops, d };
}

/* --- tools --- */

static json_t *any_input(const struct mcp_options *app _unused_)
{
	return json_pack("{s:s, s:{s:{s:s, s:s}}}", "type", "object", "properties", "region",
			 "type", "string", "x-mcp-header", "Region");
}

static int call_echo(struct mcp_call *call, const json_t *arguments)
{
	mcp_call_answer(call, (struct mcp_answer){ .structured = json_deep_copy(arguments) });
	return 0;
}

/* The calls that wait; the test ends them. */
enum { WAITING_MAX = 4096 };
static struct mcp_call *waiting[WAITING_MAX];
static size_t n_waiting, n_cancelled, n_freed;

static void wait_cancel(void *data _unused_)
{
	n_cancelled++;
}

static void wait_free(void *data)
{
	n_freed++;
	for (size_t i = 0; i < n_waiting; i++)
		if (waiting[i] == data)
			waiting[i] = waiting[--n_waiting];
}

static int call_wait(struct mcp_call *call, const json_t *arguments _unused_)
{
	static const struct mcp_call_ops ops = { wait_cancel, wait_free };

	if (n_waiting == WAITING_MAX)
		return -ENOMEM;
	waiting[n_waiting++] = call;
	mcp_call_set(call, call, &ops);
	mcp_call_progress(call, 0.5, 1, "half");
	mcp_call_log(call, MCP_LOG_WARNING, "test", json_string("waits"));
	return 0;
}

static int call_fail(struct mcp_call *call _unused_, const json_t *arguments _unused_)
{
	return -EIO;
}

static int call_ask(struct mcp_call *call, const json_t *arguments _unused_)
{
	const json_t *name = mcp_call_input(call, "name");

	if (!name)
		return mcp_call_ask(call,
				    json_pack("{s:{s:s, s:{s:s}}}", "name", "method",
					      "elicitation/create", "params", "message", "Who?"),
				    json_string("asked"));
	mcp_call_answer(call, (struct mcp_answer){ .structured = json_pack("{s:O, s:O}", "name",
									   name, "state",
									   mcp_call_state(call)) });
	return 0;
}

static const struct mcp_tool test_tools[] = {
	{ .name = "echo",
	  .title = "Echo",
	  .description = "d",
	  .input_schema = any_input,
	  .call = call_echo },
	{ .name = "wait",
	  .title = "Wait",
	  .description = "d",
	  .input_schema = any_input,
	  .call = call_wait },
	{ .name = "fail",
	  .title = "Fail",
	  .description = "d",
	  .input_schema = any_input,
	  .call = call_fail },
	{ .name = "ask",
	  .title = "Ask",
	  .description = "d",
	  .input_schema = any_input,
	  .call = call_ask },
	{ 0 },
};

static int read_uri(struct mcp_call *call, const struct mcp_uri *uri)
{
	json_t *values = json_object();

	for (size_t i = 0; i < uri->n; i++)
		(void)json_object_set_new(values, uri->variables[i].name,
					  json_string(uri->variables[i].value));
	mcp_call_result(call, json_pack("{s:[{s:s, s:o}]}", "contents", "uri", uri->text, "values",
					values));
	return 0;
}

static const struct mcp_resource test_resources[] = {
	{ .uri = "x://fixed", .name = "fixed", .read = read_uri },
	{ .uri = "x://one/{id}", .name = "one", .read = read_uri },
	{ .uri = "x://one/{id}/tail", .name = "tail", .read = read_uri },
	{ .uri = "x://rest/{id}/{+path}", .name = "rest", .read = read_uri },
	{ 0 },
};

static int get_hello(struct mcp_call *call, const json_t *arguments)
{
	mcp_call_result(
		call,
		json_pack("{s:[o]}", "messages",
			  mcp_user_says(json_string_value(json_object_get(arguments, "name")))));
	return 0;
}

static const struct mcp_prompt test_prompts[] = {
	{ .name = "hello",
	  .description = "d",
	  .arguments = { { "name", "d", true, NULL } },
	  .get = get_hello },
	{ 0 },
};

struct test_server {
	struct loop *loop;
	struct callers callers;
	struct mcp *mcp;
};

static inline int server_open(struct test_server *s)
{
	static const struct mcp_tables tables = { test_tools, test_resources, test_prompts, true };
	static const struct mcp_tables *const all[] = { &tables, NULL };
	struct mcp_options options = { .callers = &s->callers, .tables = all };
	struct error err = { 0 };

	*s = (struct test_server){ .loop = loop_new() };
	options.loop = s->loop;
	return s->loop ? mcp_new(&options, &s->mcp, &err) : -ENOMEM;
}

static inline void server_close(struct test_server *s)
{
	s->mcp = mcp_free(s->mcp);
	s->loop = loop_free(s->loop);
}
