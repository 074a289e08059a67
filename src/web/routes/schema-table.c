/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of results and events, and the book of all shapes; those of requests are in spec/request.h. See schema-table.h. */
#include "web/routes/schema-shapes.h"

#include "spec/request.h"

#define CAUSE                                                                                      \
	"exit|signal|timeout|cpu_time|idle|memory|output|pids|disk|policy|cancelled|setup|"        \
	"interrupted|internal"

static const struct schema_field problem[] = {
	{ "type", "=about:blank", NULL },
	{ "title", "string", "name of the HTTP status" },
	{ "status", "integer", "HTTP status" },
	{ "code", "string", "stable word, for programs, such as invalid_field or not_found" },
	{ "detail", "string", "one sentence that says what to do, for people" },
	{ "field", "string", "key of the request that is wrong" },
	{ 0 },
};

static const struct schema_field cause[] = {
	{ "kind", CAUSE, NULL },
	{ "detail", "string?", "one sentence" },
	{ "limit_key", "string?", "key of the limit that was hit" },
	{ "limit", "number?", "value of that limit" },
	{ "peak", "number?", "measured peak" },
	{ "retryable", "boolean", NULL },
	{ "suggest", "number?", "a limit worth retrying with" },
	{ 0 },
};

static const struct schema_field usage[] = {
	{ "user", "number?", "seconds" },
	{ "system", "number?", "seconds" },
	{ "pids_peak", "integer?", NULL },
	{ "io_read", "integer?", "bytes" },
	{ "io_write", "integer?", "bytes" },
	{ "start", "number?", "seconds from acceptance to the program's first instruction" },
	{ "limit_hits", "[string]", "limits that were hit although the exit code is 0" },
	{ 0 },
};

static const struct schema_field stage[] = {
	{ "name", "string", NULL },
	{ "status", SCHEMA_STATUS, NULL },
	{ "exit_code", "integer?", NULL },
	{ "signal", "integer?", NULL },
	{ "duration", "number?", "seconds" },
	{ "cpu_time", "number?", "seconds" },
	{ "memory_peak", "integer?", "bytes" },
	{ "cause", "Cause", NULL },
	{ "stdout", "string", "only of stages with streams of their own: a compiler's output" },
	{ "stderr", "string", NULL },
	{ 0 },
};

static const struct schema_field test[] = {
	{ "name", "string", "as given" },
	{ "group", "string", "as given" },
	{ "verdict",
	  "passed|wrong_answer|presentation_error|compile_error|timeout|limit|cancelled|error|"
	  "checker_error|skipped",
	  NULL },
	{ "code", "AC|WA|TLE|MLE|OLE|RE|CE|PE|IE|SK", "the same in the word of contest judges" },
	{ "passed", "boolean", NULL },
	{ "status", SCHEMA_STATUS, "of the program" },
	{ "exit_code", "integer?", "of the program, also when its output is wrong" },
	{ "signal", "integer?", NULL },
	{ "cause", "Cause", "reason for the program's end" },
	{ "stdout", "string?", "whole up to limits.output" },
	{ "stderr", "string?", NULL },
	{ "duration", "number?", "seconds" },
	{ "cpu_time", "number?", "seconds" },
	{ "memory_peak", "integer?", "bytes" },
	{ "clock", "string?", "which one found it too slow: cpu or wall" },
	{ "waited", "number",
	  "seconds by which its timeout was extended, because others used its processor" },
	{ "error", "Failure?", "the error that ended the program, where it is recognised" },
	{ "difference", "Difference?", "the first one between output and expected" },
	{ "points", "number", "0 unless the test passed, or its checker gave some" },
	{ "message", "string", "what the program that judges printed, or how it failed" },
	{ "transcript", "string",
	  "the talk with an interactor: lines of the program begin with >, its with <" },
	{ 0 },
};

static const struct schema_field test_group[] = {
	{ "name", "string", NULL },
	{ "verdict",
	  "passed|wrong_answer|presentation_error|compile_error|timeout|limit|cancelled|error|"
	  "checker_error|skipped",
	  "of its first test that failed" },
	{ "code", "AC|WA|TLE|MLE|OLE|RE|CE|PE|IE|SK", NULL },
	{ "passed", "boolean", NULL },
	{ "points", "number", "absent if neither it nor one of its tests has any" },
	{ "possible", "number", NULL },
	{ 0 },
};

static const struct schema_field difference[] = {
	{ "line", "integer", "in the output, from 1" },
	{ "column", "integer", "in characters, from 1" },
	{ "expected", "string?", "what should stand there; null: nothing" },
	{ "got", "string?", "what stands there; null: the output has ended" },
	{ 0 },
};

static const struct schema_field points[] = {
	{ "earned", "number", NULL },
	{ "possible", "number", NULL },
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

static const struct schema_field file[] = {
	{ "path", "string", NULL },
	{ "size", "integer", "bytes" },
	{ "sha256", "string", NULL },
	{ 0 },
};

static const struct schema_field change[] = {
	{ "path", "string", "below /workspace" },
	{ "change", "added|changed|removed", NULL },
	{ "type", "file|directory|link|other", NULL },
	{ "size", "integer", "bytes of a file" },
	{ "sha256", "string?", "of an added or changed file" },
	{ "conflict", "boolean",
	  "another run changed this path meanwhile; this run ended later and won" },
	{ 0 },
};

static const struct schema_field skipped[] = {
	{ "path", "string", "below /workspace" },
	{ "reason", "string", NULL },
	{ 0 },
};

static const struct schema_field isolation[] = {
	{ "tier", "string?", "full, reduced or minimal" },
	{ "user", "string?", NULL },
	{ "cgroup", "string?", NULL },
	{ "seccomp", "string?", NULL },
	{ "landlock", "integer", "the ABI in force" },
	{ "proc", "string?", NULL },
	{ "net", "string?", NULL },
	{ "broker", "string?", "confined or open" },
	{ "front", "string?",
	  "confined, partly, open, or caller (the calling process made the sandbox itself)" },
	{ "missing", "[string]", "layers that did not hold" },
	{ 0 },
};

static const struct schema_field result[] = {
	{ "id", "string", NULL },
	{ "language", "string?", NULL },
	{ "status", SCHEMA_STATUS, NULL },
	{ "success", "boolean", NULL },
	{ "exit_code", "integer?",
	  "128+n for signal n, 124 timeout, 137 memory, null where nothing ran" },
	{ "signal", "integer?", NULL },
	{ "cause", "Cause", NULL },
	{ "stdout", "string", "head and tail if longer than limits.output" },
	{ "stderr", "string", NULL },
	{ "stdout_bytes", "integer", "bytes that the program wrote" },
	{ "stderr_bytes", "integer", NULL },
	{ "stdout_truncated", "boolean", NULL },
	{ "stderr_truncated", "boolean", NULL },
	{ "stdout_binary", "boolean",
	  "stdout has bytes that are not UTF-8; they are shown as U+FFFD" },
	{ "stderr_binary", "boolean", NULL },
	{ "value", "any", "value of the last expression, or of the invoked method" },
	{ "value_type", "string", "name of the value's type; only of evaluated programs" },
	{ "value_repr", "string",
	  "the value as its language prints it; only of evaluated programs, and of values that are "
	  "not large" },
	{ "value_truncated", "boolean",
	  "the value is too large for this result and null here; GET …/value has all of it; only "
	  "of evaluated programs" },
	{ "value_bytes", "integer", "of the JSON text of such a value" },
	{ "outputs", "[RichOutput]",
	  "charts, tables and other rich values; only of evaluated programs" },
	{ "files", "[File]", "files that the program wrote in the work directory" },
	{ "files_truncated", "boolean", NULL },
	{ "duration", "number?", "seconds" },
	{ "cpu_time", "number?", "seconds" },
	{ "memory_peak", "integer?", "bytes" },
	{ "usage", "Usage", NULL },
	{ "stages", "[Stage]", NULL },
	{ "tests", "[Test]", "verdict and output of each test of the request" },
	{ "groups", "[TestGroup]", "of tests; absent without" },
	{ "points", "Points",
	  "sum over the groups and the tests without one; absent if none has any" },
	{ "error", "Failure?", "the error that ended the program, where it is recognised" },
	{ "suggestion", "string", "what to do about the error; absent where it is not known" },
	{ "history", "boolean", "false: nothing of the execution is stored; absent otherwise" },
	{ "warnings", "[string]",
	  "what the caller would not expect: a module to preload that does not exist, the loss of "
	  "a "
	  "session's state after the last execution; absent without" },
	{ "denials", "[Denial]", NULL },
	{ "denials_omitted", "integer", "number of refusals that are not listed" },
	{ "isolation", "Isolation", NULL },
	{ "network", "[DestinationUse]",
	  "connections; absent unless the request names destinations" },
	{ "network_omitted", "integer", "number of connections that are not listed" },
	{ "changes", "[Change]", "changes to the workspace; absent without a workspace" },
	{ "changes_omitted", "integer", "number of changes that are not listed" },
	{ "skipped", "[SkippedEntry]",
	  "entries that a workspace cannot hold, such as pipes and links that leave it" },
	{ "applied", "boolean", "true: all changes were applied; false: none" },
	{ "apply_error", "string", "reason why wanted changes were not applied" },
	{ "host_calls", "[HostCall]", "each call; absent without host functions" },
	{ "session", "TurnSession", "only of executions in a session" },
	{ "timeout_chosen", "ChosenTimeout?", "of an \"adaptive\" timeout" },
	{ "labels", "{string}", NULL },
	{ "runtime", "string?", NULL },
	{ "policy", "string?", NULL },
	{ "via", "daemon|pool|direct", "the broker that ran it" },
	{ "cached_build", "boolean", NULL },
	{ "created_at", "time", "UTC" },
	{ "node", "string?", NULL },
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
	{ "Cause", "Reason for the end.", cause, "*" },
	{ "Usage", "Values of the kernel's counters.", usage, "*" },
	{ "Stage", "One step of a run.", stage, "*-stdout stderr" },
	{ "Test", "Outcome of one test.", test, "*-name group points message transcript" },
	{ "Difference", "Where an output differs from what was expected.", difference, "*" },
	{ "TestGroup", "Outcome of tests that stand together.", test_group, "*-points possible" },
	{ "Points", "What the tests were worth.", points, "*" },
	{ "Failure", "An error that ended a program.", failure, "*-traceback" },
	{ "Denial", "Something that the sandbox refused.", denial, "*-source" },
	{ "DestinationUse", "Connections of a program to one host and port.", destination_use,
	  "*" },
	{ "RichOutput", "A value in the forms that its type offers.", rich_output, "*" },
	{ "HostCall", "One call of a host function.", host_call_entry, "*" },
	{ "TurnSession", "The session of an execution.", turn_session, "*" },
	{ "ChosenTimeout", "A timeout that Atoll chose.", chosen_timeout, "*" },
	{ "File", "A file that a program wrote.", file, "*" },
	{ "Change", "A change that a program made to its workspace.", change, "*-conflict" },
	{ "SkippedEntry", "An entry that was not kept.", skipped, "*" },
	{ "Isolation", "Isolation layers that held the program.", isolation, "*" },
	{ "Result", "Result of an execution.", result,
	  "*-tests groups points suggestion value_type value_repr value_truncated "
	  "value_bytes outputs "
	  "denials_omitted network network_omitted "
	  "host_calls session history warnings changes "
	  "changes_omitted skipped applied apply_error" },
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

static const struct schema *const tables[] = {
	request_shapes, shapes, history_shapes, host_shapes, session_shapes, compat_shapes, NULL
};

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
