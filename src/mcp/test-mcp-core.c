/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol from outside: messages through doors, of both eras, against the specification's words. */
#include <setjmp.h>
#include <stdarg.h>

#include "mcp/test-door.h"

#include <cmocka.h>

#define META                                                                                       \
	"\"_meta\": {\"io.modelcontextprotocol/protocolVersion\": \"2026-07-28\", "                \
	"\"io.modelcontextprotocol/clientCapabilities\": {\"elicitation\": {}}}"

/* The header lines of one message; NULL: absent. */
struct header_lines {
	const char *version, *method, *name, *session, *region;
};

static struct span param_of(void *data, const char *name)
{
	const struct header_lines *l = data;

	return strcmp(name, "Region") == 0 ? span_of(l->region) : (struct span){ NULL, 0 };
}

static struct mcp_headers headers_of(struct header_lines *l)
{
	return (struct mcp_headers){ span_of(l->version), span_of(l->method), span_of(l->name),
				     span_of(l->session), param_of,	      l };
}

static struct mcp_call *post_as(struct test_server *s, struct test_door *d, struct header_lines l,
				const char *caller, const char *text)
{
	const struct mcp_headers headers = headers_of(&l);
	const struct mcp_arrival in = {
		.caller = caller, .headers = &headers, .door = door_of(d), .text = span_of(text)
	};

	door_done(d);
	return mcp_take(s->mcp, &in);
}

static struct mcp_call *post(struct test_server *s, struct test_door *d, struct header_lines l,
			     const char *text)
{
	return post_as(s, d, l, "a", text);
}

static json_int_t code_of(const struct test_door *d)
{
	return json_integer_value(json_object_get(json_object_get(d->answer, "error"), "code"));
}

static json_t *result_of(const struct test_door *d)
{
	return json_object_get(d->answer, "result");
}

static const struct header_lines modern_list = { "2026-07-28", "tools/list", NULL, NULL, NULL };

static struct header_lines modern_call(const char *tool)
{
	return (struct header_lines){ "2026-07-28", "tools/call", tool, NULL, NULL };
}

static void begin_session(struct test_server *s, char ret[64])
{
	struct test_door d = { 0 };

	assert_null(post(s, &d, (struct header_lines){ 0 },
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
			 "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}},"
			 "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"));
	assert_int_equal(d.outcome, MCP_ANSWERED);
	(void)snprintf(ret, 64, "%s", d.session);
	assert_true(strlen(ret) > 30);
	door_done(&d);
}

static int setup(void **state)
{
	static struct test_server s;

	n_waiting = n_cancelled = n_freed = 0;
	*state = &s;
	return server_open(&s);
}

static int teardown(void **state)
{
	server_close(*state);
	return n_waiting == 0 ? 0 : -1;
}

/* Texts that are no messages, and requests that no session or no _meta belongs to. */
static const struct refused_message {
	struct header_lines lines;
	const char *text;
	enum mcp_outcome outcome;
	int code;
} refused[] = {
	{ { 0 }, "{", MCP_MALFORMED, MCP_PARSE_ERROR },
	{ { 0 }, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":NaN}", MCP_MALFORMED, MCP_PARSE_ERROR },
	{ { 0 }, "[]", MCP_MALFORMED, MCP_INVALID_REQUEST },
	{ { 0 },
	  "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
	  MCP_MALFORMED,
	  MCP_INVALID_REQUEST },
	{ { 0 },
	  "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
	  MCP_MALFORMED,
	  MCP_INVALID_REQUEST },
	{ { 0 },
	  "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
	  MCP_MALFORMED,
	  MCP_INVALID_REQUEST },
	{ { 0 },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}",
	  MCP_MALFORMED,
	  MCP_INVALID_REQUEST },
	{ { 0 }, "{\"jsonrpc\":\"2.0\",\"id\":1}", MCP_MALFORMED, MCP_INVALID_REQUEST },
	{ { 0 },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
	  MCP_NEEDS_SESSION,
	  MCP_INVALID_REQUEST },
	{ { .session = "mcp_nothing" },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
	  MCP_NO_SESSION,
	  MCP_INVALID_REQUEST },
	{ { .session = "x", .version = "1999-01-01" },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
	  MCP_BAD_VERSION,
	  MCP_INVALID_REQUEST },
	{ { "2026-07-28", "tools/list", NULL, NULL, NULL },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
	  MCP_BAD_META,
	  MCP_INVALID_PARAMS },
	{ { "2027-01-01", "tools/list", NULL, NULL, NULL },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
	  "\"io.modelcontextprotocol/protocolVersion\":\"2027-01-01\","
	  "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
	  MCP_UNSUPPORTED_VERSION,
	  MCP_VERSION_UNSUPPORTED },
	{ { "2026-07-28", NULL, NULL, NULL, NULL },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}",
	  MCP_HEADER_MISMATCH,
	  MCP_HEADERS_DISAGREE },
	{ { NULL, "tools/list", NULL, NULL, NULL },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}",
	  MCP_HEADER_MISMATCH,
	  MCP_HEADERS_DISAGREE },
	{ { "2026-07-28", "TOOLS/LIST", NULL, NULL, NULL },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}",
	  MCP_HEADER_MISMATCH,
	  MCP_HEADERS_DISAGREE },
	{ { "2026-07-28", "tools/call", "other", NULL, NULL },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
	  "\"name\":\"echo\"," META "}}",
	  MCP_HEADER_MISMATCH,
	  MCP_HEADERS_DISAGREE },
	{ { "2026-07-28", "ping", NULL, NULL, NULL },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{" META "}}",
	  MCP_NO_METHOD,
	  MCP_METHOD_NOT_FOUND },
	{ { "2026-07-28", "initialize", NULL, NULL, NULL },
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{" META "}}",
	  MCP_NO_METHOD,
	  MCP_METHOD_NOT_FOUND },
};

static void test_refusals(void **state)
{
	struct test_server *s = *state;
	struct test_door d = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		assert_null(post(s, &d, refused[i].lines, refused[i].text));
		assert_int_equal(d.ended, 1);
		if (d.outcome != refused[i].outcome || code_of(&d) != refused[i].code)
			fail_msg("case %zu: outcome %d, code %d", i, (int)d.outcome,
				 (int)code_of(&d));
	}
	door_done(&d);
}

static void test_modern(void **state)
{
	struct test_server *s = *state;
	struct test_door d = { 0 };

	assert_null(
		post(s, &d, modern_list,
		     "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"tools/list\",\"params\":{" META
		     "}}"));
	assert_string_equal(json_string_value(json_object_get(d.answer, "id")), "q");
	assert_int_equal(json_array_size(json_object_get(result_of(&d), "tools")), 4);
	assert_string_equal(json_string_value(json_object_get(result_of(&d), "resultType")),
			    "complete");
	assert_true(json_is_integer(json_object_get(result_of(&d), "ttlMs")));

	/* Every argument that a header repeats must be repeated. */
	assert_null(post(s, &d, modern_call("=?base64?ZWNobw==?="),
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
			 "\"name\":\"echo\",\"arguments\":{\"region\":\"eu\"}," META "}}"));
	assert_int_equal(d.outcome, MCP_HEADER_MISMATCH);
	assert_null(post(s, &d,
			 (struct header_lines){ "2026-07-28", "tools/call", "echo", NULL, " eu " },
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
			 "\"name\":\"echo\",\"arguments\":{\"region\":\"eu\"}," META "}}"));
	assert_int_equal(d.outcome, MCP_ANSWERED);
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(result_of(&d), "structuredContent"), "region")),
			    "eu");

	/* A failure of the server is an error of the protocol; the call is over. */
	assert_null(post(s, &d, modern_call("fail"),
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
			 "\"name\":\"fail\"," META "}}"));
	assert_int_equal(code_of(&d), MCP_INTERNAL_ERROR);
	assert_null(post(s, &d, modern_call("nothing"),
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
			 "\"name\":\"nothing\"," META "}}"));
	assert_int_equal(code_of(&d), MCP_INVALID_PARAMS);
	door_done(&d);
}

/* A modern client that leaves cancels; its answer is dropped. */
static void test_modern_gone(void **state)
{
	struct test_server *s = *state;
	struct test_door d = { 0 };
	struct mcp_call *call = post(
		s, &d, modern_call("wait"),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
		"\"name\":\"wait\"," META "}}");

	assert_non_null(call);
	assert_true(mcp_call_needs_client(call));
	assert_int_equal(d.said, 0); /* neither progress nor log was asked for */
	mcp_call_gone(call);
	assert_int_equal(n_cancelled, 1);
	mcp_call_answer(call, (struct mcp_answer){ .structured = json_object() });
	assert_int_equal(d.ended, 0);
	assert_int_equal(n_freed, 1);
}

/* A legacy call goes on without its client, which comes back for the answer. */
static void test_resume(void **state)
{
	struct test_server *s = *state;
	struct test_door d = { 0 }, again = { 0 };
	char session[64];
	struct header_lines l = { .session = session };
	struct mcp_headers headers = headers_of(&l);
	struct mcp_arrival in = { .caller = "a", .headers = &headers, .door = door_of(&again) };
	struct mcp_stream *stream;
	struct mcp_call *call;

	begin_session(s, session);
	headers = headers_of(&l);
	call = post(s, &d, l,
		    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"
		    "\"name\":\"wait\",\"_meta\":{\"progressToken\":\"t\"}}}");
	assert_non_null(call);
	assert_int_equal(d.said, 1);
	mcp_call_gone(call);
	assert_int_equal(n_cancelled, 0);
	mcp_call_progress(call, 0.75, 1, NULL);

	in.text = span_of(d.first_event);
	mcp_follow(s->mcp, &in, &stream);
	assert_non_null(stream);
	assert_int_equal(again.said, 1); /* what was missed */
	mcp_call_answer(call, (struct mcp_answer){ .structured = json_object() });
	assert_int_equal(again.ended, 1);
	assert_int_equal(json_integer_value(json_object_get(again.answer, "id")), 7);

	/* The stream has ended; it is still replayed, and ends at once. */
	door_done(&again);
	mcp_follow(s->mcp, &in, &stream);
	assert_null(stream);
	assert_int_equal(again.said, 2);
	assert_int_equal(again.ended, 1);
	door_done(&d);
	door_done(&again);
}

/* A session is its caller's: to another one it looks as if it did not exist. DELETE ends it with its calls. */
static void test_session(void **state)
{
	struct test_server *s = *state;
	struct test_door d = { 0 }, other = { 0 };
	char session[64];
	struct header_lines l = { .session = session };
	struct mcp_headers headers;
	struct mcp_arrival in = { .caller = "b", .headers = &headers };

	begin_session(s, session);
	headers = headers_of(&l);
	assert_null(post_as(s, &d, l, "b", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"));
	assert_int_equal(d.outcome, MCP_NO_SESSION);
	assert_int_equal(mcp_leave(s->mcp, &in), MCP_NO_SESSION);
	assert_null(post(s, &d, l, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"));
	assert_int_equal(d.outcome, MCP_ANSWERED);
	assert_non_null(post(s, &other, l,
			     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
			     "\"name\":\"wait\"}}"));
	in.caller = "a";
	assert_int_equal(mcp_leave(s->mcp, &in), MCP_ACCEPTED);
	assert_int_equal(n_cancelled, 1);
	mcp_call_answer(waiting[0], (struct mcp_answer){ .structured = json_object() });
	assert_int_equal(other.outcome, MCP_CANCELLED);
	assert_null(other.answer);
	assert_null(post(s, &d, l, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"));
	assert_int_equal(d.outcome, MCP_NO_SESSION);
	door_done(&d);
	door_done(&other);
}

static void test_cancelled(void **state)
{
	struct test_server *s = *state;
	struct test_door d = { 0 }, other = { 0 };
	char session[64];
	struct header_lines l = { .session = session };

	begin_session(s, session);
	assert_non_null(post(s, &d, l,
			     "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\","
			     "\"params\":{\"name\":\"wait\"}}"));
	assert_null(post(s, &other, l,
			 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
			 "\"requestId\":\"x\"}}"));
	assert_int_equal(other.outcome, MCP_ACCEPTED);
	assert_int_equal(n_cancelled, 1);
	mcp_call_answer(waiting[0], (struct mcp_answer){ .structured = json_object() });
	assert_int_equal(d.outcome, MCP_CANCELLED);
	door_done(&d);
	door_done(&other);
}

/* One handler asks clients of both eras. */
static void test_input(void **state)
{
	static const char again[] =
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
		"\"ask\",\"inputResponses\":{\"name\":{\"action\":\"accept\"}},\"requestState\":"
		"\"%s%s\"," META "}}";
	struct test_server *s = *state;
	struct test_door d = { 0 }, other = { 0 };
	char session[64], text[2048], closed[512];
	struct header_lines l = { .session = session };
	json_t *id;

	assert_null(post(s, &d, modern_call("ask"),
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
			 "\"name\":\"ask\"," META "}}"));
	assert_string_equal(json_string_value(json_object_get(result_of(&d), "resultType")),
			    "input_required");
	(void)snprintf(closed, sizeof(closed), "%s",
		       json_string_value(json_object_get(result_of(&d), "requestState")));
	/* A changed state, and another caller's, are refused. */
	(void)snprintf(text, sizeof(text), again, closed, "0");
	assert_null(post(s, &d, modern_call("ask"), text));
	assert_int_equal(code_of(&d), MCP_INVALID_PARAMS);
	(void)snprintf(text, sizeof(text), again, closed, "");
	assert_null(post_as(s, &d, modern_call("ask"), "b", text));
	assert_int_equal(code_of(&d), MCP_INVALID_PARAMS);
	assert_null(post(s, &d, modern_call("ask"), text));
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(result_of(&d), "structuredContent"), "state")),
			    "asked");

	begin_session(s, session);
	assert_non_null(post(s, &d, l,
			     "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{"
			     "\"name\":\"ask\"}}"));
	id = json_object_get(d.last, "id");
	assert_string_equal(json_string_value(json_object_get(d.last, "method")),
			    "elicitation/create");
	(void)snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{}}",
		       json_string_value(id));
	assert_null(post(s, &other, l, text));
	assert_int_equal(other.outcome, MCP_ACCEPTED);
	assert_int_equal(d.ended, 1);
	assert_int_equal(json_integer_value(json_object_get(d.answer, "id")), 9);
	door_done(&d);
	door_done(&other);
}

static void test_uris(void **state)
{
	static const char *const cases[][3] = {
		{ "x://fixed", "", "" },
		{ "x://one/7", "id", "7" },
		{ "x://one/a%20b", "id", "a b" },
		{ "x://one/7/tail", "id", "7" },
		{ "x://rest/7/a/b", "path", "a/b" },
		{ "x://one/", NULL, NULL },
		{ "x://one/7/other", NULL, NULL },
		{ "x://one/%00", NULL, NULL },
		{ "x://one/%zz", NULL, NULL },
		{ "x://rest/7/", NULL, NULL },
		{ "x://fixed2", NULL, NULL },
		{ "", NULL, NULL },
	};
	struct test_server *s = *state;
	struct test_door d = { 0 };
	struct header_lines l = { "2026-07-28", "resources/read", NULL, NULL, NULL };
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const json_t *content, *values;

		(void)snprintf(text, sizeof(text),
			       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\","
			       "\"params\":{\"uri\":\"%s\"," META "}}",
			       cases[i][0]);
		l.name = cases[i][0];
		assert_null(post(s, &d, l, text));
		content = json_array_get(json_object_get(result_of(&d), "contents"), 0);
		values = json_object_get(content, "values");
		if (!cases[i][1]) {
			assert_int_equal(code_of(&d), MCP_INVALID_PARAMS);
			continue;
		}
		assert_string_equal(json_string_value(json_object_get(content, "uri")),
				    cases[i][0]);
		if (*cases[i][1])
			assert_string_equal(json_string_value(json_object_get(values, cases[i][1])),
					    cases[i][2]);
	}
	door_done(&d);
}

/* Beyond its bounds a caller is refused, and other callers are not. */
static void test_bounds(void **state)
{
	static const char text[] =
		"{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{\"name\":"
		"\"wait\"," META "}}";
	enum { MOST = 2048 };
	struct test_server *s = *state;
	static struct test_door doors[MOST];
	struct test_door d = { 0 };
	char one[512];

	for (int i = 0; i < MOST; i++) {
		(void)snprintf(one, sizeof(one), text, i);
		assert_non_null(post(s, &doors[i], modern_call("wait"), one));
	}
	assert_null(post(s, &d, modern_call("wait"), one));
	assert_int_equal(d.outcome, MCP_TOO_MANY);
	assert_non_null(post_as(s, &d, modern_call("wait"), "b", one));
	while (n_waiting > 0)
		mcp_call_answer(waiting[0], (struct mcp_answer){ .structured = json_object() });
	for (int i = 0; i < MOST; i++)
		door_done(&doors[i]);
	assert_int_equal(s->callers.all[SLOT_MCP_CALLS].used, 0);
	door_done(&d);
}

/* Sessions that clients have left are given up for new ones. */
static void test_sessions_bound(void **state)
{
	struct test_server *s = *state;
	char first[64], session[64];
	struct test_door d = { 0 };

	begin_session(s, first);
	for (int i = 0; i < 1024; i++)
		begin_session(s, session);
	assert_int_equal(s->callers.all[SLOT_MCP_CLIENTS].used, 1024);
	assert_null(post(s, &d, (struct header_lines){ .session = first },
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"));
	assert_int_equal(d.outcome, MCP_NO_SESSION);
	door_done(&d);
}

static void test_listen(void **state)
{
	struct test_server *s = *state;
	struct test_door d = { 0 };
	struct header_lines l = { "2026-07-28", "subscriptions/listen", NULL, NULL, NULL };
	struct mcp_call *call = post(
		s, &d, l,
		"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"subscriptions/listen\",\"params\":{"
		"\"notifications\":{\"toolsListChanged\":true,\"resourcesListChanged\":true,"
		"\"resourceSubscriptions\":[\"x://fixed\",\"x://no\"]}," META "}}");
	const json_t *params, *honoured;

	assert_non_null(call);
	assert_int_equal(d.said, 1);
	params = json_object_get(d.last, "params");
	honoured = json_object_get(params, "notifications");
	assert_true(json_is_true(json_object_get(honoured, "toolsListChanged")));
	assert_null(json_object_get(honoured, "resourcesListChanged"));
	assert_int_equal(json_array_size(json_object_get(honoured, "resourceSubscriptions")), 1);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(params, "_meta"),
						   "io.modelcontextprotocol/subscriptionId")),
		5);
	mcp_lists_changed(s->mcp, MCP_PROMPTS_CHANGED);
	assert_int_equal(d.said, 1);
	mcp_lists_changed(s->mcp, MCP_TOOLS_CHANGED);
	assert_int_equal(d.said, 2);
	mcp_drain(s->mcp);
	assert_int_equal(d.ended, 1);
	assert_non_null(result_of(&d));
	assert_int_equal(s->callers.all[SLOT_MCP_LISTENS].used, 0);
	door_done(&d);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_refusals),	   CASE(test_modern),  CASE(test_modern_gone),
		CASE(test_resume),	   CASE(test_session), CASE(test_cancelled),
		CASE(test_input),	   CASE(test_uris),    CASE(test_bounds),
		CASE(test_sessions_bound), CASE(test_listen),
	};

	return cmocka_run_group_tests_name("mcp", tests, NULL, NULL);
}
