/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of SPEC §3, §5 and §12 as tables; see schema-table.h. A test checks results against them. */
#include "api/schema-table.h"

#include <stddef.h>

#define STATUS "success|error|timeout|limit|cancelled|denied|setup_error|interrupted|internal_error"
#define STATE  "queued|running|" STATUS
#define CAUSE                                                                                      \
	"exit|signal|timeout|cpu_time|idle|memory|output|pids|disk|policy|cancelled|setup|"        \
	"interrupted|internal"

static const struct schema_field problem[] = {
	{ "type", "string", "about:blank" },
	{ "title", "string", "name of the HTTP status" },
	{ "status", "integer", "HTTP status" },
	{ "code", "string", "stable word, for programs" },
	{ "detail", "string", "one sentence that says what to do, for people" },
	{ "field", "string", "key of the request that is wrong" },
	{ 0 },
};

static const struct schema_field execute_request[] = {
	{ "language", "string",
	  "a name or alias of GET /v1/languages, or NAME@VERSION: python@3.11" },
	{ "code", "string", "the program" },
	{ "args", "[string]", "arguments of the program" },
	{ "stdin", "any", "standard input: text, or {\"base64\": …}" },
	{ "env", "{string}", "environment variables" },
	{ "files", "{any}", "path below /sandbox: text, or {\"base64\": …}" },
	{ "limits", "Limits", NULL },
	{ "network", "string",
	  "none (loopback and nothing else), off (no sockets but AF_UNIX), allow:HOST:PORT,… or "
	  "host" },
	{ "policy", "string", "a name of GET /v1/policies" },
	{ "workspace", "any", "name of a persistent directory, shown at /workspace" },
	{ "commit", "string",
	  "when writes to the workspace are applied: always (the default), on_success or never" },
	{ "read_only", "boolean", "only /tmp is writable" },
	{ "image", "string", "a root directory of the host, where the operator allows it" },
	{ "tty", "boolean", "the program gets a terminal" },
	{ "merge_stderr", "boolean",
	  "both streams come as stdout, in the order of writing; stderr stays empty" },
	{ "preload", "[string]", "modules to load before the program begins" },
	{ "compiler_args", "[string]", "arguments of the compiler, after those of the language" },
	{ "stages", "[StageRequest]", "programs that run in order in one sandbox until one fails" },
	{ "tests", "[object]",
	  "{\"stdin\", \"expected\", \"checker\", \"points\"}: each has a fresh run and a "
	  "verdict" },
	{ "eval", "boolean",
	  "value and outputs of the result: the value of the last expression, charts and tables" },
	{ "invoke", "object", "{\"class\", \"method\", \"params\"}: the answer is in value" },
	{ "archive", "string", "tar, tar.gz or zip in base64, unpacked into /sandbox" },
	{ "entry", "string",
	  "the file of `files` to run; with code: the name under which the code is stored "
	  "[main.<ext>]" },
	{ "labels", "{string}", "labels to search for" },
	{ "collect", "[string]", "patterns of files to keep [all files]" },
	{ "priority", "integer", "a job with a higher priority waits less; -10 to 10, default 0" },
	{ "callback_url", "string", "URL that gets the result by POST, if the operator allows it" },
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

static const struct schema_field stage_request[] = {
	{ "name", "string", "name of the entry in the result's stages [stage-N]" },
	{ "code", "string",
	  "code of the request's language, in /sandbox/main-N.<ext>; a shell command if the "
	  "request "
	  "names no language or bash" },
	{ "argv", "[string]", "a command, in every language; give code or argv" },
	{ "stdin", "string", "standard input" },
	{ "env", "{string}", "variables of this stage; they override those of the request" },
	{ "limits", "Limits", "limits of this stage; they override those of the request" },
	{ 0 },
};

static const struct schema_field stage[] = {
	{ "name", "string", NULL },
	{ "status", STATUS, NULL },
	{ "exit_code", "integer?", NULL },
	{ "signal", "any", NULL },
	{ "duration", "number?", "seconds" },
	{ "cpu_time", "number?", "seconds" },
	{ "memory_peak", "integer?", "bytes" },
	{ "cause", "Cause", NULL },
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
	{ "change", "string", "added, changed or removed" },
	{ "type", "string", "file, directory or link" },
	{ "size", "integer", "bytes of a file" },
	{ "sha256", "string?", "of an added or changed file" },
	{ "conflict", "boolean",
	  "another run changed this path meanwhile; this run ended later and won" },
	{ 0 },
};

static const struct schema_field files[] = {
	{ "id", "string", NULL },
	{ "files", "[File]", NULL },
	{ "truncated", "boolean", "more files were written than are kept" },
	{ 0 },
};

static const struct schema_field isolation[] = {
	{ "tier", "string?", "full or reduced" },
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
	{ "status", STATUS, NULL },
	{ "success", "boolean", NULL },
	{ "exit_code", "integer?",
	  "128+n for signal n, 124 timeout, 137 memory, null where nothing ran" },
	{ "signal", "any", NULL },
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
	{ "outputs", "[object]",
	  "rich outputs: {\"data\": {MIME type: content}, \"metadata\"}; only of evaluated "
	  "programs" },
	{ "files", "[File]", "files that the program wrote in the work directory" },
	{ "files_truncated", "boolean", NULL },
	{ "duration", "number?", "seconds" },
	{ "cpu_time", "number?", "seconds" },
	{ "memory_peak", "integer?", "bytes" },
	{ "usage", "Usage", NULL },
	{ "stages", "[Stage]", NULL },
	{ "tests", "[object]", "verdict and output of each test of the request" },
	{ "points", "object", "{\"earned\", \"possible\"}; absent if no test has any" },
	{ "error", "object?", "{\"type\", \"message\", \"file\", \"line\"}" },
	{ "warnings", "[string]",
	  "parts of the request that had no effect, such as a module to preload that does not "
	  "exist; absent without" },
	{ "denials", "[object]", NULL },
	{ "isolation", "Isolation", NULL },
	{ "changes", "[Change]", "changes to the workspace; absent without a workspace" },
	{ "changes_omitted", "integer", "number of changes that are not listed" },
	{ "skipped", "[object]",
	  "{\"path\", \"reason\"}: entries that a workspace cannot hold, such as pipes and links "
	  "that "
	  "leave it" },
	{ "applied", "boolean", "true: all changes were applied; false: none" },
	{ "apply_error", "string", "reason why wanted changes were not applied" },
	{ "host_calls", "[object]",
	  "{\"call_id\", \"name\", \"duration\", \"error\"} of each call; absent without host "
	  "functions" },
	{ "session", "object",
	  "{\"id\", \"state\": kept or lost}; only of executions in a session" },
	{ "timeout_chosen", "any", "value and reason of an \"adaptive\" timeout" },
	{ "labels", "{string}", NULL },
	{ "runtime", "string?", NULL },
	{ "policy", "string?", NULL },
	{ "via", "string", "the broker that ran it: daemon, pool or direct" },
	{ "cached_build", "boolean", NULL },
	{ "created_at", "string", "UTC" },
	{ "node", "string", NULL },
	{ 0 },
};

static const struct schema_field execution[] = {
	{ "id", "string", NULL },
	{ "status", STATE, "while queued or running, only the keys below are present" },
	{ "language", "string?", NULL },
	{ "policy", "string?", NULL },
	{ "created_at", "string", "UTC" },
	{ "started_at", "string?", "UTC; absent after the end" },
	{ "stdout_bytes", "integer", "bytes so far" },
	{ "stderr_bytes", "integer", NULL },
	{ "usage", "object?", "measured once a second while the program runs" },
	{ "labels", "{string}", NULL },
	{ 0 },
};

static const struct schema_field accepted[] = {
	{ "id", "string", NULL },
	{ "status", STATE "|ended", "ended: an earlier job with the same key has ended" },
	{ 0 },
};

static const struct schema_field batch[] = {
	{ "executions", "[ExecuteRequest]", "1 to 100 jobs" },
	{ 0 },
};

static const struct schema_field batch_item[] = {
	{ "id", "string", "of an accepted job" },
	{ "status", STATE "|ended", "as of a single job" },
	{ "problem", "Problem", "why the job was refused, instead of id and status" },
	{ 0 },
};

static const struct schema_field batch_accepted[] = {
	{ "executions", "[BatchItem]", "in the order of the request" },
	{ 0 },
};

static const struct schema_field page[] = {
	{ "executions", "[object]", "newest first, without outputs" },
	{ "next", "string?", "cursor of the next page" },
	{ 0 },
};

static const struct schema_field cleanup[] = {
	{ "cancelled", "integer", "executions that were queued or running" },
	{ "deleted", "integer", "ended executions that were removed" },
	{ "sessions", "integer", "sessions that were ended" },
	{ 0 },
};

static const struct schema_field cancelled[] = {
	{ "id", "string", NULL },
	{ "cancelled", "boolean", "the execution was queued or running; its result follows" },
	{ "deleted", "boolean", "the execution had ended and was removed" },
	{ 0 },
};

static const struct schema_field analysis[] = {
	{ "is_error", "boolean", NULL },
	{ "error_type", "string", "none, timeout, memory, python_exception, compile_error, …" },
	{ "exception", "string?", NULL },
	{ "message", "string?", NULL },
	{ "file", "string?", NULL },
	{ "line", "integer?", NULL },
	{ "frames", "[object]", "innermost first" },
	{ "excerpt", "any", "lines around the error" },
	{ "category", "any", NULL },
	{ "suggestion", "any", "proposed remedy" },
	{ 0 },
};

static const struct schema_field debug_report[] = {
	{ "status", "success|failure", NULL },
	{ "exit_code", "integer?", NULL },
	{ "execution_time", "number?", "seconds" },
	{ "timestamp", "string", "UTC" },
	{ "language", "string?", "language with the version of its runtime" },
	{ "container_id", "string", "the execution's id" },
	{ "output", "object", "{\"stdout\", \"stderr\"}" },
	{ "resource_usage", "object", NULL },
	{ "error_type", "string", "only after a failure" },
	{ "error_message", "string?", "only after a failure" },
	{ "output_files", "object", "path: {\"size\", \"sha256\"}; absent without files" },
	{ "cause", "Cause", NULL },
	{ "analysis", "Analysis", NULL },
	{ "limits", "[object]", "{\"name\", \"limit\", \"peak\", \"share\", \"hit\"}" },
	{ "denials", "[object]", NULL },
	{ 0 },
};

static const struct schema_field diff[] = {
	{ "a", "string", "id of the first execution" },
	{ "b", "string", "id of the second execution" },
	{ "same", "boolean", "only usage differs" },
	{ "status", "object", "{\"a\", \"b\"}, as for every key with one value" },
	{ "exit_code", "object", NULL },
	{ "signal", "object", NULL },
	{ "error", "object", NULL },
	{ "value", "object", NULL },
	{ "language", "object", NULL },
	{ "runtime", "object", NULL },
	{ "policy", "object", NULL },
	{ "stdout", "object", "{\"same\", \"added\", \"removed\", \"diff\", \"truncated\"}" },
	{ "stderr", "object", NULL },
	{ "files", "object", "{\"added\", \"removed\", \"changed\"}" },
	{ "request", "object", "keys that differ" },
	{ "usage", "object", "{\"a\", \"b\", \"delta\"} each" },
	{ 0 },
};

static const struct schema_field languages[] = { { "languages", "[object]", NULL }, { 0 } };

static const struct schema_field policies[] = { { "policies", "[object]", NULL }, { 0 } };

static const struct schema_field limit_table[] = { { "limits", "[object]", NULL }, { 0 } };

static const struct schema_field stats[] = {
	{ "total", "integer", "executions that ended" },
	{ "by_status", "{integer}", NULL },
	{ "success_rate", "number?", "0 to 1" },
	{ "failure_rate", "number?", "share of all other endings, 0 to 1" },
	{ "timeout_rate", "number?", "share of timeouts, 0 to 1; they count as failures too" },
	{ "latency", "{any}", "seconds: mean, p50, p90, p99, max" },
	{ "by_language", "{object}", "the same keys for each language" },
	{ "by_label", "{object}", "the same keys for each NAME=VALUE" },
	{ "since", "string?", "UTC" },
	{ "until", "string?", "UTC" },
	{ "now", "object", "queue, pool and storage at this moment" },
	{ 0 },
};

static const struct schema_field doctor[] = {
	{ "ok", "boolean", "the default policy can be enforced in full" },
	{ "summary", "string", NULL },
	{ "fix", "string?", "one command that fixes it" },
	{ "missing", "[string]", "layers" },
	{ "cgroup", "string?", NULL },
	{ "landlock", "integer", "the ABI in force" },
	{ "rootless", "boolean", NULL },
	{ "sections", "[object]", "checks by subject" },
	{ 0 },
};

static const struct schema_field session_request[] = {
	{ "language", "string", "python, javascript, ruby or bash [python]" },
	{ "name", "string", "a name of the caller's own, once at a time" },
	{ "limits", "Limits", "of each execution; memory, pids and disk of the session" },
	{ "policy", "string", "a name of GET /v1/policies" },
	{ "files", "{any}", "path below /sandbox: text, or {\"base64\": …}" },
	{ "env", "{string}", "environment variables" },
	{ "network", "string", "as of an execution" },
	{ "preload", "[string]", "modules that the interpreter begins with" },
	{ "labels", "{string}", "labels" },
	{ "read_only", "boolean", "only /tmp is writable" },
	{ "host_functions", "[string]", "functions of the client that every execution may call" },
	{ "rules", "object", "rules of the language's own, for Python: imports, filesystem" },
	{ "idle_timeout", "number", "seconds without use until the session ends [600]" },
	{ "forkable", "boolean",
	  "Python: POST …/fork can copy it [true, where the host and the policy permit it]" },
	{ 0 },
};

static const struct schema_field fork_request[] = {
	{ "count", "integer", "how many copies, 1 to 32 [1]" },
	{ 0 },
};

static const struct schema_field session_fields[] = {
	{ "id", "string", NULL },
	{ "name", "string", NULL },
	{ "language", "string", NULL },
	{ "state", "starting|idle|busy", NULL },
	{ "created_at", "string", NULL },
	{ "expires_at", "string", "when it ends if it is not used" },
	{ "idle_timeout", "number", "seconds" },
	{ "executions", "integer", "how many have ended" },
	{ "waiting", "integer", "executions that wait or run" },
	{ "limits", "object", "of an execution that names none" },
	{ "labels", "{string}", NULL },
	{ "isolation", "object", "as of a result" },
	{ "forkable", "boolean", "POST …/fork can copy it" },
	{ "parent", "string?", "the session that it was forked from" },
	{ 0 },
};

static const struct schema_field session_list[] = {
	{ "sessions", "[Session]", NULL },
	{ 0 },
};

static const struct schema_field turn_request[] = {
	{ "code", "string", "the program" },
	{ "limits", "Limits", "of this execution" },
	{ "host_functions", "[string]", "functions of the client that this execution may call" },
	{ "globals", "{any}", "variables to set before it begins" },
	{ "labels", "{string}", "labels to search for" },
	{ 0 },
};

static const struct schema_field interrupted[] = {
	{ "interrupted", "boolean", "false: no code ran" },
	{ "state", "kept|lost", "whether the session's variables are still there" },
	{ 0 },
};

static const struct schema_field logs[] = {
	{ "stdout", "string", NULL },
	{ "stderr", "string", NULL },
	{ "truncated", "boolean", "bytes in the middle were left out" },
	{ 0 },
};

static const struct schema_field call_answer[] = {
	{ "result", "any", "the function's result" },
	{ "error", "any", "{\"type\", \"message\"} of the exception, or a text" },
	{ 0 },
};

static const struct schema_field session_files[] = {
	{ "files", "[object]", "{\"path\", \"size\", \"type\", \"mtime\"}" },
	{ 0 },
};

static const struct schema_field tool_arguments[] = {
	{ "language", "string", "a name of GET /v1/languages, with case" },
	{ "code", "string", "the program" },
	{ "stdin", "string?", "standard input; not given in a session" },
	{ "timeout", "number?", "seconds, clamped to 1 to 300 [30]" },
	{ "session_id", "string?",
	  "keeps the state between calls; letters, digits, _ and -, at most 64" },
	{ "files", "{any}", "path below /sandbox: text, or {\"base64\": …}" },
	{ "args", "[string]", "arguments of the program" },
	{ "env", "{string}", "environment variables" },
	{ 0 },
};

static const struct schema_field tool_call[] = {
	{ "tool_name", "string", "execute_code" },
	{ "arguments", "ToolArguments", NULL },
	{ 0 },
};

static const struct schema_field mcp_message[] = {
	{ "jsonrpc", "string", "2.0" },
	{ "id", "any", "of a request and its answer: a text or an integer" },
	{ "method", "string", "of a request or a notification" },
	{ "params", "object", NULL },
	{ "result", "object", NULL },
	{ "error", "object", "code, message, data" },
	{ 0 },
};

static const struct schema_field resource_metadata[] = {
	{ "resource", "string", "the URL of /mcp" },
	{ "authorization_servers", "[string]", NULL },
	{ "bearer_methods_supported", "[string]", NULL },
	{ "resource_name", "string", NULL },
	{ 0 },
};

static const struct schema_field tool_answer[] = {
	{ "stdout", "string", "at most 100,000 characters" },
	{ "stderr", "string", "at most 100,000 characters" },
	{ "exit_code", "integer", "-1: the code did not run to its end" },
	{ "execution_time", "number", "seconds" },
	{ "status", "success|timeout|execution_error|setup_error", NULL },
	{ "error_message", "string?", NULL },
	{ "execution_id", "string?", "its id in the history" },
	{ "cause", "object?", "as of a result" },
	{ 0 },
};

static const struct schema_field status_only[] = {
	{ "status", "string", NULL },
	{ 0 },
};

static const struct schema_field ready[] = {
	{ "status", "string", NULL },
	{ "broker", "boolean", "sandboxes can be made" },
	{ "storage", "boolean", "results can be kept" },
	{ "draining", "boolean", "the daemon is ending" },
	{ 0 },
};

static const struct schema_field execute_call[] = {
	{ "generated_code", "string", "the program, also in Markdown fences" },
	{ "timeout", "number", "seconds; needed with generated_code" },
	{ "code", "string", "the program in PC-Agent-Claw's form" },
	{ "language", "string", "python when absent" },
	{ "std_input", "string", NULL },
	{ "max_output_characters", "integer", NULL },
	{ 0 },
};

static const struct schema_field execute_answer[] = {
	{ "process_status", "completed|error|timeout",
	  "for the NeMo Agent Toolkit: process_status, stdout and stderr" },
	{ "stdout", "string", NULL },
	{ "stderr", "string", NULL },
	{ "success", "boolean", "for PC-Agent-Claw, as the keys below" },
	{ "output", "string", "same as stdout" },
	{ "error", "string", "stderr, or the reason why nothing ran" },
	{ "exit_code", "integer", NULL },
	{ "time", "number", "seconds" },
	{ 0 },
};

static const struct schema shapes[] = {
	{ "Problem", "An API error (RFC 9457).", problem, "type title status code detail" },
	{ "ExecuteRequest", "A program to run.", execute_request, NULL },
	{ "StageRequest", "One of several programs in one sandbox.", stage_request, NULL },
	{ "Cause", "Reason for the end.", cause, "*" },
	{ "Usage", "Values of the kernel's counters.", usage, "*" },
	{ "Stage", "One step of a run.", stage, "name status exit_code duration" },
	{ "File", "A file that a program wrote.", file, "*" },
	{ "Change", "A change that a program made to its workspace.", change, "*-conflict" },
	{ "Files", "All files that a program wrote.", files, "*" },
	{ "Isolation", "Isolation layers that held the program.", isolation, "*" },
	{ "Result", "Result of an execution.", result,
	  "*-tests points value_type value_repr outputs host_calls session warnings changes "
	  "changes_omitted skipped applied apply_error" },
	{ "Execution", "A Result, or the state of a queued or running execution.", execution,
	  "id status" },
	{ "Accepted", "An accepted job.", accepted, "*" },
	{ "Batch", "Many jobs.", batch, "*" },
	{ "BatchItem", "An accepted or refused job of a batch.", batch_item, NULL },
	{ "BatchAccepted", "What became of the jobs of a batch.", batch_accepted, "*" },
	{ "ExecutionPage", "A page of the history.", page, "*" },
	{ "Cancelled", "Outcome of a cancel or delete.", cancelled, "id" },
	{ "Cleanup", "Counts of a cleanup.", cleanup, "*" },
	{ "Analysis", "Explanation of a failure.", analysis, "*" },
	{ "DebugReport", "The debug report of PC-Agent-Claw, with more keys.", debug_report,
	  "status exit_code execution_time timestamp language container_id output resource_usage "
	  "cause analysis limits denials" },
	{ "Diff", "Differences between two executions.", diff, "*" },
	{ "Languages", "Languages, versions and availability.", languages, "*" },
	{ "Policies", "Policies and the limits that hold under each.", policies, "*" },
	{ "LimitTable", "Every limit with bounds, default and ceiling.", limit_table, "*" },
	{ "Stats", "Counts, rates and latencies.", stats, "*" },
	{ "Doctor", "Isolation that this host can enforce.", doctor, "*" },
	{ "SessionRequest", "What a session is made with.", session_request, NULL },
	{ "Session", "A live interpreter.", session_fields,
	  "id language state created_at expires_at idle_timeout executions waiting limits labels "
	  "isolation forkable parent" },
	{ "Sessions", "The caller's sessions.", session_list, "*" },
	{ "ForkRequest", "How a session is copied.", fork_request, NULL },
	{ "TurnRequest", "One execution in a session.", turn_request, "code" },
	{ "Interrupted", "Outcome of an interrupt.", interrupted, "*" },
	{ "Logs", "Everything that was printed.", logs, "*" },
	{ "CallAnswer", "Answer to a host call: result or error.", call_answer, NULL },
	{ "SessionFiles", "Files of a work directory.", session_files, "*" },
	{ "ToolArguments", "Arguments of execute_code.", tool_arguments, "language code" },
	{ "ToolCall", "The envelope of Codomyrmex.", tool_call, "*" },
	{ "McpMessage", "A JSON-RPC message of the Model Context Protocol.", mcp_message,
	  "jsonrpc" },
	{ "ResourceMetadata", "OAuth's protected resource metadata.", resource_metadata, "*" },
	{ "ToolAnswer", "Answer of execute_code.", tool_answer, "*" },
	{ "Status", "One word.", status_only, "*" },
	{ "Ready", "Readiness, and the reason if the daemon is not ready.", ready, "*" },
	{ "ExecuteCall",
	  "Body of the NeMo Agent Toolkit; the body of PC-Agent-Claw has code and language.",
	  execute_call, NULL },
	{ "ExecuteAnswer", "Answer of the NeMo Agent Toolkit or PC-Agent-Claw.", execute_answer,
	  "stdout stderr" },
	{ 0 },
};

static const struct schema *const tables[] = { shapes, NULL };

const struct schema_book api_book = { .tables = tables, .place = "#/components/schemas/" };
