/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of SPEC §3, §5 and §12 as tables; see schema.h. A test holds results against them. */
#include "api/schema.h"

#define STATUS "success|error|timeout|limit|cancelled|denied|setup_error|interrupted|internal_error"
#define STATE  "queued|running|" STATUS
#define CAUSE                                                                                      \
	"exit|signal|timeout|cpu_time|idle|memory|output|pids|disk|policy|cancelled|setup|"        \
	"interrupted|internal"

static const struct schema_field problem[] = {
	{ "type", "string", "about:blank" },
	{ "title", "string", "the status in words" },
	{ "status", "integer", "HTTP status" },
	{ "code", "string", "for programs: a stable word" },
	{ "detail", "string", "for people: one sentence that says what to do" },
	{ "field", "string", "the key of the request that is at fault" },
	{ 0 },
};

static const struct schema_field execute_request[] = {
	{ "language", "string",
	  "a name or alias of GET /v1/languages, or NAME@VERSION: python@3.11" },
	{ "code", "string", "the program" },
	{ "args", "[string]", "its arguments" },
	{ "stdin", "any", "what it reads: text, or {\"base64\": …}" },
	{ "env", "{string}", "variables" },
	{ "files", "{any}", "path below /sandbox: text, or {\"base64\": …}" },
	{ "limits", "Limits", NULL },
	{ "network", "string",
	  "none (loopback and nothing else), off (no sockets but AF_UNIX), allow:HOST:PORT,… or "
	  "host" },
	{ "policy", "string", "a name of GET /v1/policies" },
	{ "workspace", "any", "name of a directory that stays, at /workspace" },
	{ "commit", "string",
	  "when what was written there is applied: always (the default), on_success or never" },
	{ "read_only", "boolean", "only /tmp is writable" },
	{ "image", "string", "a root directory of the host, where the operator allows it" },
	{ "tty", "boolean", "the program gets a terminal" },
	{ "preload", "[string]", "modules that are loaded already when it begins" },
	{ "compiler_args", "[string]",
	  "further words for the compiler, behind the language's own" },
	{ "stages", "[StageRequest]",
	  "programs in one sandbox, in order, until the first that fails" },
	{ "tests", "[object]", "{\"stdin\", \"expected\"}: a fresh run and a verdict each" },
	{ "invoke", "object", "{\"class\", \"method\", \"params\"}: the answer is in value" },
	{ "archive", "string", "tar, tar.gz or zip in base64, unpacked into /sandbox" },
	{ "entry", "string",
	  "which of the files to run; with code: the name that the code is stored under "
	  "[main.<ext>]" },
	{ "labels", "{string}", "to find it again" },
	{ "collect", "[string]", "patterns of files to keep; without it: all" },
	{ "priority", "integer", "what is higher waits less; 0 when absent" },
	{ "callback_url", "string", "gets the result by POST, where the operator allows it" },
	{ 0 },
};

static const struct schema_field cause[] = {
	{ "kind", CAUSE, NULL },
	{ "detail", "string?", "one sentence" },
	{ "limit_key", "string?", "which limit" },
	{ "limit", "number?", "what it was" },
	{ "peak", "number?", "what was measured" },
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
	{ "limit_hits", "[string]", "limits that were hit though it ended with 0" },
	{ 0 },
};

static const struct schema_field stage_request[] = {
	{ "name", "string", "of its entry in the result's stages; stage-N when absent" },
	{ "code", "string",
	  "code of the request's language, in /sandbox/main-N.<ext>; a shell command where the "
	  "request "
	  "names no language, or bash" },
	{ "argv", "[string]",
	  "a command, whatever the language is; one of code and argv is given" },
	{ "stdin", "string", "what it reads" },
	{ "env", "{string}", "variables of this stage, over those of the request" },
	{ "limits", "Limits", "of this stage, over those of the request" },
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
	  "another run changed it meanwhile; this one, which ended later, won" },
	{ 0 },
};

static const struct schema_field files[] = {
	{ "id", "string", NULL },
	{ "files", "[File]", NULL },
	{ "truncated", "boolean", "there were more than are kept" },
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
	  "confined, partly, open, or caller: the process that asked made the sandbox itself" },
	{ "missing", "[string]", "layers that this host does not have" },
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
	{ "stdout", "string", "head and tail when it is longer than limits.output" },
	{ "stderr", "string", NULL },
	{ "stdout_bytes", "integer", "all it wrote" },
	{ "stderr_bytes", "integer", NULL },
	{ "stdout_truncated", "boolean", NULL },
	{ "stderr_truncated", "boolean", NULL },
	{ "stdout_binary", "boolean", "bytes that are not UTF-8 are shown as U+FFFD" },
	{ "stderr_binary", "boolean", NULL },
	{ "value", "any", "of invoke" },
	{ "outputs", "[object]", NULL },
	{ "files", "[File]", "written in the work directory" },
	{ "files_truncated", "boolean", NULL },
	{ "duration", "number?", "seconds" },
	{ "cpu_time", "number?", "seconds" },
	{ "memory_peak", "integer?", "bytes" },
	{ "usage", "Usage", NULL },
	{ "stages", "[Stage]", NULL },
	{ "tests", "[object]", "of each of the request's: its verdict and what it printed" },
	{ "error", "object?", "{\"type\", \"message\", \"file\", \"line\"}" },
	{ "denials", "[object]", NULL },
	{ "isolation", "Isolation", NULL },
	{ "network", "[object]", NULL },
	{ "changes", "[Change]", "what was written to the workspace; absent without one" },
	{ "changes_omitted", "integer", "how many more there were than are listed" },
	{ "skipped", "[object]",
	  "{\"path\", \"reason\"}: what cannot be kept in a workspace, as pipes and links that "
	  "leave it" },
	{ "applied", "boolean", "whether the changes were applied, all of them or none" },
	{ "apply_error", "string", "why not, where it was wanted" },
	{ "host_calls", "[object]", NULL },
	{ "timeout_chosen", "any", "of timeout \"adaptive\": value and reason" },
	{ "labels", "{string}", NULL },
	{ "runtime", "string?", NULL },
	{ "policy", "string?", NULL },
	{ "cached_build", "boolean", NULL },
	{ "created_at", "string", "UTC" },
	{ "node", "string", NULL },
	{ 0 },
};

static const struct schema_field execution[] = {
	{ "id", "string", NULL },
	{ "status", STATE, "queued and running: what follows is all there is yet" },
	{ "language", "string?", NULL },
	{ "policy", "string?", NULL },
	{ "created_at", "string", "UTC" },
	{ "started_at", "string?", "UTC; not of one that has ended" },
	{ "stdout_bytes", "integer", "so far" },
	{ "stderr_bytes", "integer", NULL },
	{ "usage", "object?", "measured once a second while it runs" },
	{ "labels", "{string}", NULL },
	{ 0 },
};

static const struct schema_field accepted[] = {
	{ "id", "string", NULL },
	{ "status", STATE "|ended", "ended: a job of the same key, which is over" },
	{ 0 },
};

static const struct schema_field page[] = {
	{ "executions", "[object]", "newest first, without outputs" },
	{ "next", "string?", "the cursor of the next page" },
	{ 0 },
};

static const struct schema_field cleanup[] = {
	{ "cancelled", "integer", "executions that were queued or running" },
	{ "deleted", "integer", "ended ones that were removed" },
	{ 0 },
};

static const struct schema_field cancelled[] = {
	{ "id", "string", NULL },
	{ "cancelled", "boolean", "it had not ended; its result comes" },
	{ "deleted", "boolean", "it had ended and is gone" },
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
	{ "excerpt", "any", "lines around the place" },
	{ "category", "any", NULL },
	{ "suggestion", "any", "what to do about it" },
	{ 0 },
};

static const struct schema_field debug_report[] = {
	{ "status", "success|failure", NULL },
	{ "exit_code", "integer?", NULL },
	{ "execution_time", "number?", "seconds" },
	{ "timestamp", "string", "UTC" },
	{ "language", "string?", "with its runtime's version" },
	{ "container_id", "string", "the execution's id" },
	{ "output", "object", "{\"stdout\", \"stderr\"}" },
	{ "resource_usage", "object", NULL },
	{ "error_type", "string", "of a failure" },
	{ "error_message", "string?", "of a failure" },
	{ "output_files", "object", "path: {\"size\", \"sha256\"}, where there are any" },
	{ "cause", "Cause", NULL },
	{ "analysis", "Analysis", NULL },
	{ "limits", "[object]", "{\"name\", \"limit\", \"peak\", \"share\", \"hit\"}" },
	{ "denials", "[object]", NULL },
	{ 0 },
};

static const struct schema_field diff[] = {
	{ "a", "string", "the first one's id" },
	{ "b", "string", "the other's" },
	{ "same", "boolean", "nothing differs but what they used" },
	{ "status", "object", "{\"a\", \"b\"}, like all of one value" },
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
	{ "failure_rate", "number?", "all others" },
	{ "timeout_rate", "number?", "of all; failures, too" },
	{ "latency", "{any}", "seconds: mean, p50, p90, p99, max" },
	{ "by_language", "{object}", "the same of each" },
	{ "by_label", "{object}", "the same of each NAME=VALUE" },
	{ "since", "string?", "UTC" },
	{ "until", "string?", "UTC" },
	{ "now", "object", "queue, pool and storage at this moment" },
	{ 0 },
};

static const struct schema_field doctor[] = {
	{ "ok", "boolean", "the default policy can be enforced in full" },
	{ "summary", "string", NULL },
	{ "fix", "string?", "one command" },
	{ "missing", "[string]", "layers" },
	{ "cgroup", "string?", NULL },
	{ "landlock", "integer", "the ABI in force" },
	{ "rootless", "boolean", NULL },
	{ "sections", "[object]", "checks by subject" },
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
	{ "draining", "boolean", "it is about to end" },
	{ 0 },
};

static const struct schema_field execute_call[] = {
	{ "generated_code", "string", "the program, also in Markdown fences" },
	{ "timeout", "number", "seconds; needed with generated_code" },
	{ "code", "string", "the program in document 001's form" },
	{ "language", "string", "python when absent" },
	{ "std_input", "string", NULL },
	{ "max_output_characters", "integer", NULL },
	{ 0 },
};

static const struct schema_field execute_answer[] = {
	{ "process_status", "completed|error|timeout", "document 002: this, stdout and stderr" },
	{ "stdout", "string", NULL },
	{ "stderr", "string", NULL },
	{ "success", "boolean", "document 001, like all that follow" },
	{ "output", "string", "what stdout is" },
	{ "error", "string", "stderr, or why it did not run" },
	{ "exit_code", "integer", NULL },
	{ "time", "number", "seconds" },
	{ 0 },
};

const struct schema api_schemas[] = {
	{ "Problem", "An error of ours (RFC 9457).", problem, "type title status code detail" },
	{ "ExecuteRequest", "What to run.", execute_request, NULL },
	{ "StageRequest", "One of several programs in one sandbox.", stage_request, NULL },
	{ "Cause", "Why it ended.", cause, "*" },
	{ "Usage", "The kernel's counters.", usage, "*" },
	{ "Stage", "One step of a run.", stage, "name status exit_code duration" },
	{ "File", "A file that a program left.", file, "*" },
	{ "Change", "What a program changed in its workspace.", change, "*-conflict" },
	{ "Files", "All of them.", files, "*" },
	{ "Isolation", "What held the program.", isolation, "*" },
	{ "Result", "What happened.", result,
	  "*-tests changes changes_omitted skipped applied apply_error" },
	{ "Execution", "A Result, or the state of one that is queued or running.", execution,
	  "id status" },
	{ "Accepted", "It will run.", accepted, "*" },
	{ "ExecutionPage", "A page of the history.", page, "*" },
	{ "Cancelled", "What became of it.", cancelled, "id" },
	{ "Cleanup", "What was removed.", cleanup, "*" },
	{ "Analysis", "What went wrong, and what to do about it.", analysis, "*" },
	{ "DebugReport", "Document 001's report and more.", debug_report,
	  "status exit_code execution_time timestamp language container_id output resource_usage "
	  "cause analysis limits denials" },
	{ "Diff", "What differs between two executions.", diff, "*" },
	{ "Languages", "Languages, versions and whether they are there.", languages, "*" },
	{ "Policies", "Policies and the limits that hold under each.", policies, "*" },
	{ "LimitTable", "Every limit with bounds, default and ceiling.", limit_table, "*" },
	{ "Stats", "Counts, rates and latencies.", stats, "*" },
	{ "Doctor", "What this host can enforce.", doctor, "*" },
	{ "Status", "One word.", status_only, "*" },
	{ "Ready", "Whether it takes work, and if not, why.", ready, "*" },
	{ "ExecuteCall", "Document 002's body; document 001's has code and language.", execute_call,
	  NULL },
	{ "ExecuteAnswer", "Document 002's answer, or document 001's.", execute_answer,
	  "stdout stderr" },
	{ 0 },
};
