/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of events and of parts of results that are trees, and the book of all shapes. Those of requests and results are in spec/. */
#include "web/routes/schema-table.h"

#include "spec/request.h"
#include "spec/result.h"

#define EVENT(word)                                                                                \
	{ "event", "=" word },                                                                     \
		{ "seq", "integer", "from 1, without gaps; the same for every reader" },           \
		{ "time", "time" },                                                                \
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

static const struct schema shapes[] = {
	{ "Problem", "An API error (RFC 9457).",
	  FIELDS({ "type", "=about:blank" }, { "title", "string", "name of the HTTP status" },
		 { "status", "integer", "HTTP status" },
		 { "code", "string",
		   "stable word, for programs, such as invalid_field or not_found" },
		 { "detail", "string", "one sentence that says what to do, for people" },
		 { "field", "string", "key of the request that is wrong" }),
	  "type title status code detail" },
	{ "Failure", "An error that ended a program.",
	  FIELDS({ "type", "string?", "name of the exception, compile_error, …" },
		 { "message", "string?" }, { "file", "string?" }, { "line", "integer?" },
		 { "traceback", "string?",
		   "as the interpreter prints it; only of evaluated programs" }),
	  "*-traceback" },
	{ "Denial", "Something that the sandbox refused.",
	  FIELDS({ "what", "string", "what the program tried" },
		 { "rule", "string", "what refused it" }, { "count", "integer" },
		 { "hint", "string?", "what would permit it" },
		 { "source", "string", "program: read from the program's own error message" }),
	  "*-source" },
	{ "DestinationUse", "Connections of a program to one host and port.",
	  FIELDS({ "host", "string", "as the program named it" }, { "port", "integer" },
		 { "outcome", "connected|refused|unreachable|timed_out" },
		 { "count", "integer", "connections" }, { "sent", "integer", "bytes" },
		 { "received", "integer", "bytes" }),
	  "*" },
	{ "RichOutput", "A value in the forms that its type offers.",
	  FIELDS({ "data", "{any}", "content by MIME type" }, { "metadata", "{any}" }), "*" },
	{ "HostCall", "One call of a host function.",
	  FIELDS({ "call_id", "string" }, { "name", "string" },
		 { "duration", "number?", "seconds; null: it was not answered" },
		 { "error", "CallError or string?", "as the client answered" }),
	  "*" },
	{ "TurnSession", "The session of an execution.",
	  FIELDS({ "id", "string" },
		 { "state", "kept|lost",
		   "lost: the variables are gone, in this execution or since the one before" },
		 { "lost", "string?",
		   "why the interpreter ended, and whether its files are kept" }),
	  "*" },
	{ "ChosenTimeout", "A timeout that Atoll chose.",
	  FIELDS({ "timeout", "number", "seconds" }, { "reason", "string" }), "*" },
	{ "StartEvent", "The execution was accepted.",
	  FIELDS(EVENT("start"), { "data", "Started" }), EVENT_KEYS },
	{ "StdoutEvent", "The program wrote to standard output.", FIELDS(OUTPUT("stdout")),
	  EVENT_KEYS " offset" },
	{ "StderrEvent", "The program wrote to standard error.", FIELDS(OUTPUT("stderr")),
	  EVENT_KEYS " offset" },
	{ "OutputEvent", "An evaluated program showed a value.",
	  FIELDS(EVENT("output"), { "data", "RichOutput" }), EVENT_KEYS },
	{ "HostCallEvent", "The program calls a function of the client.",
	  FIELDS(EVENT("host_call"), { "data", "HostCallRequest" }), EVENT_KEYS },
	{ "StageEvent", "A stage ended.", FIELDS(EVENT("stage"), { "data", "StageEnd" }),
	  EVENT_KEYS },
	{ "UsageEvent", "Counters of a running program, once a second.",
	  FIELDS(EVENT("usage"), { "data", "LiveUsage" }), EVENT_KEYS },
	{ "ResultEvent", "The end of the execution.", FIELDS(EVENT("result"), { "data", "Result" }),
	  EVENT_KEYS },
	{ "Started", "What has started.",
	  FIELDS({ "id", "string", "of the execution" }, { "language", "string?" },
		 { "created_at", "time" }),
	  "*" },
	{ "HostCallRequest", "A call that waits for the client's answer.",
	  FIELDS({ "call_id", "string", "for POST …/calls/{call}" },
		 { "name", "string", "the function" }, { "args", "[any]" }, { "kwargs", "{any}" }),
	  "call_id name" },
	{ "StageEnd", "How a stage ended.",
	  FIELDS({ "name", "string" }, { "status", RESULT_STATUSES }, { "exit_code", "integer?" },
		 { "duration", "number?", "seconds" }),
	  "*" },
	{ "LiveUsage", "Counters so far; null: this host does not have one.",
	  FIELDS({ "cpu_time", "number", "seconds" }, { "user", "number", "seconds" },
		 { "system", "number", "seconds" }, { "memory_peak", "integer?", "bytes" },
		 { "pids_peak", "integer?" }, { "io_read", "integer?", "bytes" },
		 { "io_write", "integer?", "bytes" }),
	  "*" },
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
