/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of sessions (doc/http.md); see schema-table.h. */
#include "web/routes/schema-shapes.h"

static const struct schema_field session_request[] = {
	{ "language", "string", "python, javascript, ruby or bash [python]" },
	{ "name", "string", "a name of the caller's own, once at a time" },
	{ "limits", "Limits", "of each execution; memory, pids and disk of the session" },
	{ "policy", "string", "a name of GET /v1/policies" },
	{ "files", "{string or FileContent}", "the content of each path below /sandbox" },
	{ "env", "{string}", "environment variables" },
	{ "network", "string", "as of an execution" },
	{ "preload", "[string]", "modules that the interpreter begins with" },
	{ "labels", "{string}", "labels" },
	{ "read_only", "boolean", "only /tmp is writable" },
	{ "host_functions", "[string or HostFunction]",
	  "functions of the client that every execution may call" },
	{ "rules", "{any}",
	  "of Python code: imports ({allow or deny: [modules]}), filesystem, subprocess "
	  "(booleans)" },
	{ "idle_timeout", "number", "seconds without use until the session ends [600]" },
	{ "forkable", "boolean",
	  "Python: POST …/fork can copy it [true, where the host and the policy permit it]" },
	{ 0 },
};

static const struct schema_field fork_request[] = {
	{ "count", "integer 1..32", "how many copies [1]" },
	{ 0 },
};

static const struct schema_field session_fields[] = {
	{ "id", "string", NULL },
	{ "name", "string", NULL },
	{ "language", "string", NULL },
	{ "state", "starting|idle|busy", NULL },
	{ "lost", "string?", "what was lost with an interpreter, until an execution has said so" },
	{ "created_at", "time", NULL },
	{ "expires_at", "time", "when it ends if it is not used" },
	{ "idle_timeout", "number", "seconds" },
	{ "executions", "integer", "how many have ended" },
	{ "waiting", "integer", "executions that wait or run" },
	{ "limits", "{number?}", "of an execution that names none" },
	{ "labels", "{string}", NULL },
	{ "isolation", "Isolation", "as of a result" },
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
	{ "stdin", "string", "standard input of this execution" },
	{ "host_functions", "[string or HostFunction]",
	  "functions of the client that this execution may call" },
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

static const struct schema_field call_error[] = {
	{ "type", "string", "of the exception, such as ValueError" },
	{ "message", "string", NULL },
	{ 0 },
};

static const struct schema_field call_answer[] = {
	{ "result", "any", "the function's result" },
	{ "error", "CallError or string", "an exception; a text is a RuntimeError" },
	{ 0 },
};

static const struct schema_field session_file[] = {
	{ "path", "string", NULL },
	{ "size", "integer", "bytes" },
	{ "type", "file|directory|link", NULL },
	{ "mtime", "number", "seconds since 1970" },
	{ 0 },
};

static const struct schema_field session_files[] = { { "files", "[SessionFile]", NULL }, { 0 } };

static const struct schema_field host_function[] = {
	{ "name", "string", NULL },
	{ "signature", "string", "such as (a: int, b=2) -> str; Python's help() shows it" },
	{ "doc", "string", "its docstring" },
	{ 0 },
};

const struct schema session_shapes[] = {
	{ "SessionRequest", "What a session is made with.", session_request, NULL },
	{ "Session", "A live interpreter.", session_fields, "*-name" },
	{ "Sessions", "The caller's sessions.", session_list, "*" },
	{ "ForkRequest", "How a session is copied.", fork_request, NULL },
	{ "HostFunction", "A function of the client.", host_function, "name" },
	{ "TurnRequest", "One execution in a session.", turn_request, "code" },
	{ "Interrupted", "Outcome of an interrupt.", interrupted, "*" },
	{ "Logs", "Everything that was printed.", logs, "*" },
	{ "CallError", "An exception in a host function.", call_error, "*" },
	{ "CallAnswer", "Answer to a host call: result or error.", call_answer, NULL },
	{ "SessionFile", "A file of a work directory.", session_file, "*" },
	{ "SessionFiles", "Files of a work directory.", session_files, "*" },
	{ 0 },
};
