/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of events and of parts of results that are trees, and the book of all shapes. Those of requests and results are in spec/. */
#include "web/routes/schema-shapes.h"

#include "spec/request.h"
#include "spec/result.h"

static const struct schema_field problem[] = {
	{ "type", "=about:blank", NULL },
	{ "title", "string", "name of the HTTP status" },
	{ "status", "integer", "HTTP status" },
	{ "code", "string", "stable word, for programs, such as invalid_field or not_found" },
	{ "detail", "string", "one sentence that says what to do, for people" },
	{ "field", "string", "key of the request that is wrong" },
	{ 0 },
};

static const struct schema_field failure[] = {
	{ "type", "string?", "name of the exception, compile_error, …" },
	{ "message", "string?", NULL },
	{ "file", "string?", NULL },
	{ "line", "integer?", NULL },
	{ "traceback", "string?", "as the interpreter prints it; only of evaluated programs" },
	{ 0 },
};

static const struct schema_field denial[] = {
	{ "what", "string", "what the program tried" },
	{ "rule", "string", "what refused it" },
	{ "count", "integer", NULL },
	{ "hint", "string?", "what would permit it" },
	{ "source", "string", "program: read from the program's own error message" },
	{ 0 },
};

static const struct schema_field destination_use[] = {
	{ "host", "string", "as the program named it" },
	{ "port", "integer", NULL },
	{ "outcome", "connected|refused|unreachable|timed_out", NULL },
	{ "count", "integer", "connections" },
	{ "sent", "integer", "bytes" },
	{ "received", "integer", "bytes" },
	{ 0 },
};

static const struct schema_field rich_output[] = {
	{ "data", "{any}", "content by MIME type" },
	{ "metadata", "{any}", NULL },
	{ 0 },
};

static const struct schema_field host_call_entry[] = {
	{ "call_id", "string", NULL },
	{ "name", "string", NULL },
	{ "duration", "number?", "seconds; null: it was not answered" },
	{ "error", "CallError or string?", "as the client answered" },
	{ 0 },
};

static const struct schema_field turn_session[] = {
	{ "id", "string", NULL },
	{ "state", "kept|lost",
	  "lost: the variables are gone, in this execution or since the one before" },
	{ "lost", "string?", "why the interpreter ended, and whether its files are kept" },
	{ 0 },
};

static const struct schema_field chosen_timeout[] = {
	{ "timeout", "number", "seconds" },
	{ "reason", "string", NULL },
	{ 0 },
};

/* --- events --- */

#define EVENT(word)                                                                                \
	{ "event", "=" word, NULL },                                                               \
		{ "seq", "integer", "from 1, without gaps; the same for every reader" },           \
		{ "time", "time", NULL },                                                          \
		{ "id", "string", "for Last-Event-ID; in server-sent events a field of its own" }, \
	{                                                                                          \
		"execution", "string", "id of its execution; only over a session's WebSocket"      \
	}

#define OUTPUT(word)                                                                               \
	EVENT(word), { "data", "string", "what the program wrote; U+FFFD for what is not UTF-8" }, \
		{ "offset", "integer", "of its first byte in the stream" },                        \
	{                                                                                          \
		"binary", "boolean", "true: some bytes are not UTF-8"                              \
	}

#define EVENT_KEYS "event seq time data"

static const struct schema_field started[] = {
	{ "id", "string", "of the execution" },
	{ "language", "string?", NULL },
	{ "created_at", "time", NULL },
	{ 0 },
};

static const struct schema_field host_call[] = {
	{ "call_id", "string", "for POST …/calls/{call}" },
	{ "name", "string", "the function" },
	{ "args", "[any]", NULL },
	{ "kwargs", "{any}", NULL },
	{ 0 },
};

static const struct schema_field stage_end[] = {
	{ "name", "string", NULL },
	{ "status", SCHEMA_STATUS, NULL },
	{ "exit_code", "integer?", NULL },
	{ "duration", "number?", "seconds" },
	{ 0 },
};

static const struct schema_field live_usage[] = {
	{ "cpu_time", "number", "seconds" }, { "user", "number", "seconds" },
	{ "system", "number", "seconds" },   { "memory_peak", "integer?", "bytes" },
	{ "pids_peak", "integer?", NULL },   { "io_read", "integer?", "bytes" },
	{ "io_write", "integer?", "bytes" }, { 0 },
};

static const struct schema_field start_event[] = { EVENT("start"),
						   { "data", "Started", NULL },
						   { 0 } };
static const struct schema_field stdout_event[] = { OUTPUT("stdout"), { 0 } };
static const struct schema_field stderr_event[] = { OUTPUT("stderr"), { 0 } };
static const struct schema_field output_event[] = { EVENT("output"),
						    { "data", "RichOutput", NULL },
						    { 0 } };
static const struct schema_field call_event[] = { EVENT("host_call"),
						  { "data", "HostCallRequest", NULL },
						  { 0 } };
static const struct schema_field stage_event[] = { EVENT("stage"),
						   { "data", "StageEnd", NULL },
						   { 0 } };
static const struct schema_field usage_event[] = { EVENT("usage"),
						   { "data", "LiveUsage", NULL },
						   { 0 } };
static const struct schema_field result_event[] = { EVENT("result"),
						    { "data", "Result", NULL },
						    { 0 } };

static const struct schema shapes[] = {
	{ "Problem", "An API error (RFC 9457).", problem, "type title status code detail" },
	{ "Failure", "An error that ended a program.", failure, "*-traceback" },
	{ "Denial", "Something that the sandbox refused.", denial, "*-source" },
	{ "DestinationUse", "Connections of a program to one host and port.", destination_use,
	  "*" },
	{ "RichOutput", "A value in the forms that its type offers.", rich_output, "*" },
	{ "HostCall", "One call of a host function.", host_call_entry, "*" },
	{ "TurnSession", "The session of an execution.", turn_session, "*" },
	{ "ChosenTimeout", "A timeout that Atoll chose.", chosen_timeout, "*" },
	{ "StartEvent", "The execution was accepted.", start_event, EVENT_KEYS },
	{ "StdoutEvent", "The program wrote to standard output.", stdout_event,
	  EVENT_KEYS " offset" },
	{ "StderrEvent", "The program wrote to standard error.", stderr_event,
	  EVENT_KEYS " offset" },
	{ "OutputEvent", "An evaluated program showed a value.", output_event, EVENT_KEYS },
	{ "HostCallEvent", "The program calls a function of the client.", call_event, EVENT_KEYS },
	{ "StageEvent", "A stage ended.", stage_event, EVENT_KEYS },
	{ "UsageEvent", "Counters of a running program, once a second.", usage_event, EVENT_KEYS },
	{ "ResultEvent", "The end of the execution.", result_event, EVENT_KEYS },
	{ "Started", "What has started.", started, "*" },
	{ "HostCallRequest", "A call that waits for the client's answer.", host_call,
	  "call_id name" },
	{ "StageEnd", "How a stage ended.", stage_end, "*" },
	{ "LiveUsage", "Counters so far; null: this host does not have one.", live_usage, "*" },
	{ 0 },
};

static const struct schema *const tables[] = { request_shapes, result_shapes, shapes,
					       history_shapes, host_shapes,   session_shapes,
					       compat_shapes,  NULL };

static const struct schema_union unions[] = {
	{ "Event", "One thing that happened in an execution; `result` is the last one.",
	  "StartEvent StdoutEvent StderrEvent OutputEvent HostCallEvent StageEvent UsageEvent "
	  "ResultEvent",
	  "event" },
	{ "Execution", "A result, or the state of an execution that has not ended.",
	  "QueuedExecution RunningExecution Result", NULL },
	{ 0 },
};

/* Of each shape that is sent to Atoll, and of two that come from it: the tests send and check all of them. */
static const struct schema_example examples[] = {
	{ "Problem",
	  "{\"type\": \"about:blank\", \"title\": \"Bad Request\", \"status\": 400, \"code\": "
	  "\"invalid_field\", \"detail\": \"limits.timeout: -1 is below the minimum of 1 ms "
	  "(allowed: 1 ms to 300 s)\", \"field\": \"limits.timeout\"}" },
	{ "ExecuteRequest",
	  "{\"language\": \"python\", \"code\": \"print(int(input()) * 2)\", \"stdin\": \"21\", "
	  "\"limits\": {\"timeout\": \"5s\"}}" },
	{ "SessionRequest", "{\"language\": \"python\", \"idle_timeout\": 60}" },
	{ "ForkRequest", "{\"count\": 2}" },
	{ "TurnRequest", "{\"code\": \"x = 6\\nx * 7\"}" },
	{ "Batch", "{\"executions\": [{\"language\": \"python\", \"code\": \"print(6 * 7)\"}]}" },
	{ "CallAnswer", "{\"result\": 42}" },
	{ "ExecuteCall", "{\"generated_code\": \"print(6 * 7)\", \"timeout\": 5}" },
	{ "ToolArguments", "{\"language\": \"python\", \"code\": \"print(6 * 7)\"}" },
	{ "ToolCall",
	  "{\"tool_name\": \"execute_code\", \"arguments\": {\"language\": \"python\", \"code\": "
	  "\"print(6 * 7)\"}}" },
	{ "McpMessage", "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}" },
	{ "Event", "{\"event\": \"stdout\", \"seq\": 2, \"time\": \"2026-11-18T21:41:10.937Z\", "
		   "\"data\": \"42\\n\", \"offset\": 0}" },
	{ 0 },
};

const struct schema_book api_book = {
	.tables = tables, .unions = unions, .examples = examples, .place = "#/components/schemas/"
};
