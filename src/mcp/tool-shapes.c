/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See tool-shapes.h. The help of an argument is read by a model that has to fill it in, and each list of tools costs every conversation
 * its length: help says only what the key does not. The help of an answer is for the reader of this file; models get the answer itself.
 */
#include "mcp/tool-shapes.h"

#include "spec/result.h"

/* --- arguments --- */

#define PAGE_FIELDS                                                                                \
	{ "start_line", "integer", "negative: from the end" },                                     \
		{ "max_lines", "integer 1..2000", "default 200" },                                 \
		{ "grep", "string", "only lines that this PCRE matches" },                         \
		{ "ignore_case", "boolean" },                                                      \
	{                                                                                          \
		"context", "integer 0..10", "lines around each match"                              \
	}

/* --- answers --- */

static const struct schema shapes[] = {
	/* Codomyrmex: no bounds here, because what is out of range is clamped or answered (mcp/execute/execute-004.h). */
	{ "ExecuteArguments", NULL,
	  FIELDS({ "language", "string" }, /* its help names the languages of this host */
		 { "code", "string", "the whole program" }, { "stdin", "string" },
		 { "timeout", "integer", "seconds; default 30, clamped to 1 to 300" },
		 { "session_id", "string",
		   "any name (letters, digits, _ and -): calls with the same name share variables "
		   "and "
		   "files; for python, javascript, ruby and bash" },
		 { "files", "object",
		   "{\"data/in.csv\": \"a,b\\n1,2\", \"logo.png\": {\"base64\": \"…\"}}" },
		 { "args", "[string]" }, { "env", "{string}" }),
	  "language code" },
	{ "NoArguments", NULL, NO_FIELDS, NULL },
	{ "CreateArguments", NULL,
	  FIELDS({ "language", "string", "python (default), javascript, ruby or bash" },
		 { "name", "string" },
		 { "files", "object", "path: text, or path: {\"base64\": \"…\"}" },
		 { "env", "{string}" },
		 { "limits", "Limits",
		   "such as {\"memory\": \"2g\"}; timeout is that of each run" },
		 { "idle_timeout", "number 1..86400", "seconds; default 600" },
		 { "policy", "string" },
		 { "preload", "[string]", "Python modules, such as numpy" }),
	  NULL },
	{ "RunArguments", NULL,
	  FIELDS({ "session_id", "string" },
		 { "code", "string", "code to run; the value of a last expression comes back" },
		 { "timeout", "number 1..86400", "seconds" }, { "limits", "RunLimits" },
		 { "globals", "object", "variables to set before, as JSON" }),
	  "session_id code" },
	{ "RunLimits", NULL,
	  FIELDS({ "cpu_time", "any" },
		 { "output_total", "any", "bytes kept of each stream, such as \"64m\"" }),
	  NULL },
	{ "ForkArguments", NULL,
	  FIELDS({ "session_id", "string" }, { "count", "integer 1..32", "default 1" }),
	  "session_id" },
	{ "SessionArguments", NULL, FIELDS({ "session_id", "string" }), "session_id" },
	{ "WriteArguments", NULL,
	  FIELDS({ "session_id", "string" },
		 { "path", "string", "such as src/app.py; folders are made" },
		 { "content", "string", "text" }, { "base64", "string" }),
	  "session_id path" },
	{ "ReadArguments", NULL,
	  FIELDS({ "session_id", "string", "this or execution_id" }, { "execution_id", "string" },
		 { "path", "string" }, PAGE_FIELDS),
	  "path" },
	{ "ListArguments", NULL,
	  FIELDS({ "session_id", "string", "this or execution_id" }, { "execution_id", "string" },
		 { "after", "string", "next of the page before" }),
	  NULL },
	{ "GetArguments", NULL, FIELDS({ "execution_id", "string" }), "execution_id" },
	{ "OutputArguments", NULL,
	  FIELDS({ "execution_id", "string", "also of one that still runs" },
		 { "stream", "stdout|stderr", "default stdout" }, PAGE_FIELDS,
		 { "offset", "integer",
		   "read bytes from here, for very long lines; negative: from the end" }),
	  "execution_id" },
	{ "SearchArguments", NULL,
	  FIELDS({ "text", "string", "words in the code or the output" },
		 { "status", "queued|running|" RESULT_STATUSES }, { "language", "string" },
		 { "label", "string", "NAME=VALUE" },
		 { "since", "string", "such as 2026-11-15T10:00:00Z" }, { "until", "string" },
		 { "limit", "integer 1..20", "default 10" },
		 { "cursor", "string", "next of the page before" }),
	  NULL },
	{ "ExplainArguments", NULL,
	  FIELDS({ "policy", "string" }, { "language", "string", "default python" },
		 { "limits", "Limits" }, { "network", "string", "such as allow:example.com:443" },
		 { "workspace", "string" }, { "preload", "[string]" }),
	  NULL },
	{ "ExecuteAnswer", NULL,
	  FIELDS({ "stdout", "string", "at most 100,000 characters" },
		 { "stderr", "string", "at most 100,000 characters" },
		 { "exit_code", "integer", "-1: the code did not run to its end" },
		 { "execution_time", "number", "seconds" },
		 { "status", "success|timeout|execution_error|setup_error" },
		 { "error_message", "string?" },
		 { "execution_id", "string?", "for get_execution, read_output and read_file" },
		 { "cause", "Cause?", "why it ended" }),
	  "*" },
	{ "Cause", NULL,
	  FIELDS({ "kind", "string" }, { "detail", "string?", "one sentence" },
		 { "limit_key", "string?", "the limit that was hit" },
		 { "limit", "number?", "its value" }, { "peak", "number?", "what was measured" },
		 { "retryable", "boolean" },
		 { "suggest", "number?", "a limit worth retrying with" }),
	  "*" },
	{ "Language", NULL,
	  FIELDS({ "name", "string" }, { "title", "string" },
		 { "aliases", "[string]", "other names; execute_code takes the name only" },
		 { "available", "boolean" }, { "version", "string?" }, { "compiled", "boolean" },
		 { "sessions", "boolean", "create_session takes it" },
		 { "libraries", "{string}", "libraries that are there, with their versions" },
		 { "install", "string?", "what provides it, if it is not available" }),
	  "*" },
	{ "Languages", NULL, FIELDS({ "languages", "[Language]" }), "*" },
	{ "SessionInfo", NULL,
	  FIELDS({ "session_id", "string",
		   "give it to run_in_session and the other tools of sessions" },
		 { "name", "string?" }, { "language", "string" }, { "state", "starting|idle|busy" },
		 { "executions", "integer", "how many have ended" },
		 { "expires_at", "string", "when it ends if it is not used" },
		 { "idle_timeout", "number", "seconds" },
		 { "forkable", "boolean", "fork_session can copy it" },
		 { "parent", "string?", "the session it was forked from" }),
	  "*" },
	{ "SessionInfos", NULL, FIELDS({ "sessions", "[SessionInfo]" }), "*" },
	{ "Closed", NULL, FIELDS({ "session_id", "string" }, { "closed", "boolean" }), "*" },
	{ "Printed", NULL,
	  FIELDS({ "text", "string",
		   "all, or head and tail; where something is left out, how to read it" },
		 { "bytes", "integer?", "bytes that the program wrote" },
		 { "truncated", "boolean" }),
	  "*" },
	{ "Failure", NULL,
	  FIELDS({ "type", "string?" }, { "message", "string?" }, { "file", "string?" },
		 { "line", "integer?" }, { "excerpt", "string?", "the lines around it" }),
	  "*" },
	{ "FileInfo", NULL, FIELDS({ "path", "string" }, { "size", "integer", "bytes" }), "*" },
	{ "RunResult", NULL,
	  FIELDS({ "execution_id", "string", "for get_execution, read_output and read_file" },
		 { "status", "queued|running|" RESULT_STATUSES },
		 { "summary", "string", "how it ended, in one sentence" },
		 { "suggestion", "string?", "what to do about it" }, { "exit_code", "integer?" },
		 { "error", "Failure?" }, { "value", "string?", "of the last expression" },
		 { "stdout", "Printed" }, { "stderr", "Printed" },
		 { "files", "[FileInfo]", "files that the program wrote" },
		 { "files_total", "integer", "how many there are, also those that are not listed" },
		 { "displayed", "[string]", "tables and other rich output, as text" },
		 { "denials", "[string]", "what the sandbox refused" },
		 { "images", "integer", "charts that follow as images" },
		 { "session_id", "string?" },
		 { "session_state", "string?", "kept, or lost: the session's variables are gone" },
		 { "duration", "number?", "seconds" }, { "memory_peak", "integer?", "bytes" }),
	  "*" },
	{ "TextPage", NULL,
	  FIELDS({ "text", "string",
		   "lines with their numbers; with grep, \"-\" marks lines around a match" },
		 { "first_line", "integer?", "the first line shown" },
		 { "last_line", "integer?", "the last line shown" },
		 { "total_lines", "integer?", "of the whole text; null: not all of it was read" },
		 { "matches", "integer?",
		   "lines that grep matches, also those that are not shown" },
		 { "next_line", "integer?",
		   "give it as start_line for the next page; null: this is the last" },
		 { "next_offset", "integer?", "the same for offset" },
		 { "size", "integer", "bytes of the whole text" },
		 { "complete", "boolean",
		   "false: the program still runs, or some bytes could not be kept" },
		 { "binary", "boolean", "some bytes are no text; they are shown as U+FFFD" },
		 { "note", "string?" }),
	  "*" },
	{ "Written", NULL, FIELDS({ "path", "string" }, { "size", "integer", "bytes" }), "*" },
	{ "FileInfos", NULL,
	  FIELDS({ "files", "[FileInfo]", "sorted by path" }, { "total", "integer" },
		 { "next", "string?", "give it as after for the next page" }),
	  "*" },
	{ "Found", NULL,
	  FIELDS({ "execution_id", "string" }, { "status", "string" }, { "language", "string?" },
		 { "exit_code", "integer?" }, { "created_at", "string" },
		 { "duration", "number?", "seconds" }, { "labels", "{string}" },
		 { "code", "string?", "its beginning" }),
	  "*" },
	{ "Executions", NULL,
	  FIELDS({ "executions", "[Found]", "newest first" },
		 { "next", "string?", "give it as cursor for the next page" }),
	  "*" },
	{ "Rule", NULL,
	  FIELDS({ "field", "string" }, { "value", "any" },
		 { "rule", "string", "what decided it" }),
	  "*" },
	{ "PolicyDecision", NULL,
	  FIELDS({ "allowed", "boolean" }, { "refusal", "string?", "why not, and what to do" },
		 { "field", "string?", "the argument that is refused" },
		 { "rules", "[Rule]", "each field of the decision" },
		 { "policies", "[string]", "the policies there are" }),
	  "*" },
	{ 0 },
};

/* The limits that a model has a use for; all others keep the policy's defaults. */
static const char *const few_limits[] = { "timeout", "cpu_time", "memory", "cpus",
					  "pids",    "disk",	 NULL };

static const struct schema *const tables[] = { shapes, NULL };

const struct schema_book tool_book = {
	.tables = tables,
	.limits = few_limits,
	.closed = true,
};

json_t *tool_schema(const char *shape)
{
	return schema_type(&tool_book, shape);
}

/* A property without its help and its inner parts; one that may be null has two types. */
static json_t *type_only(const json_t *property)
{
	json_t *one = json_array_get(json_object_get(property, "anyOf"), 0);

	return one ? json_pack("{s:[O, s]}", "type", json_object_get(one, "type"), "null")
		   : json_pack("{s:O*}", "type", json_object_get(property, "type"));
}

json_t *tool_answer_types(const char *shape)
{
	json_t *made = tool_schema(shape), *properties = json_object_get(made, "properties"),
	       *property;
	const char *key;

	json_object_foreach(properties, key, property)
	{
		/* A new value for a key that is there: the iteration stays valid. */
		(void)json_object_set_new(properties, key, type_only(property));
	}
	return made;
}
