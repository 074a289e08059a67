/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of the history: pages, states, analyses, reports, comparisons, counts (doc/http.md); see schema-table.h. */
#include "web/routes/schema-shapes.h"

#define ACTIVE(word)                                                                               \
	{ "id", "string", NULL }, { "status", "=" word, NULL }, { "language", "string?", NULL },   \
		{ "policy", "string?", NULL }, { "created_at", "time", NULL },                     \
		{ "stdout_bytes", "integer", "bytes so far" },                                     \
		{ "stderr_bytes", "integer", NULL },                                               \
	{                                                                                          \
		"labels", "{string}", NULL                                                         \
	}

static const struct schema_field queued[] = {
	ACTIVE("queued"),
	{ "started_at", "null", NULL },
	{ "usage", "null", NULL },
	{ 0 },
};

static const struct schema_field running[] = {
	ACTIVE("running"),
	{ "started_at", "time", NULL },
	{ "usage", "LiveUsage", "measured once a second" },
	{ 0 },
};

static const struct schema_field accepted[] = {
	{ "id", "string", NULL },
	{ "status", "queued|running|ended", "ended: an earlier job with the same key has ended" },
	{ 0 },
};

static const struct schema_field batch[] = {
	{ "executions", "[ExecuteRequest]", "1 to 100 jobs" },
	{ 0 },
};

static const struct schema_field refused_job[] = {
	{ "problem", "Problem", "why the job was refused" },
	{ 0 },
};

static const struct schema_field missing[] = {
	{ "id", "string", NULL },
	{ "problem", "Problem", "why there is nothing of it" },
	{ 0 },
};

static const struct schema_field batch_accepted[] = {
	{ "executions", "[Accepted or RefusedJob]", "in the order of the request" },
	{ 0 },
};

static const struct schema_field row[] = {
	{ "id", "string", NULL },
	{ "status", SCHEMA_STATE, NULL },
	{ "language", "string?", NULL },
	{ "policy", "string?", NULL },
	{ "exit_code", "integer?", NULL },
	{ "created_at", "time", NULL },
	{ "started_at", "time?", NULL },
	{ "ended_at", "time?", NULL },
	{ "duration", "number?", "seconds" },
	{ "cpu_time", "number?", "seconds" },
	{ "memory_peak", "integer?", "bytes" },
	{ "code_sha256", "string?", NULL },
	{ "labels", "{string}", NULL },
	{ "caller", "string", "only for operators" },
	{ 0 },
};

static const struct schema_field page[] = {
	{ "executions", "[ExecutionRow or Execution or MissingExecution]",
	  "newest first, without outputs; with ids, the results or states in their order" },
	{ "next", "string?", "cursor of the next page" },
	{ 0 },
};

static const struct schema_field files[] = {
	{ "id", "string", NULL },
	{ "files", "[File]", NULL },
	{ "truncated", "boolean", "more files were written than are kept" },
	{ 0 },
};

static const struct schema_field cleanup[] = {
	{ "cancelled", "integer", "executions that were queued or running" },
	{ "deleted", "integer", "ended executions that were removed" },
	{ "sessions", "integer", "sessions that were ended" },
	{ 0 },
};

static const struct schema_field repaired_file[] = {
	{ "file", "string", "name of the damaged database, which stays where it is" },
	{ "taken", "integer", "executions that were taken over" },
	{ "known", "integer", "executions that were there already" },
	{ "incomplete", "integer", "of those taken over: without their request or result" },
	{ "readable", "boolean", "anything of it can be read" },
	{ "whole", "boolean", "all of it can be read" },
	{ 0 },
};

static const struct schema_field repair[] = {
	{ "files", "[RepairedFile]", "those that were read now" },
	{ "taken", "integer", "executions that were taken over" },
	{ 0 },
};

static const struct schema_field cancelled[] = {
	{ "id", "string", NULL },
	{ "cancelled", "boolean", "the execution was queued or running; its result follows" },
	{ "deleted", "boolean", "the execution had ended and was removed" },
	{ 0 },
};

static const struct schema_field frame[] = {
	{ "function", "string?", NULL },
	{ "file", "string?", NULL },
	{ "line", "integer?", NULL },
	{ "column", "integer?", NULL },
	{ 0 },
};

static const struct schema_field analysis[] = {
	{ "is_error", "boolean", NULL },
	{ "error_type", "string", "none, timeout, memory, python_exception, compile_error, …" },
	{ "exception", "string?", NULL },
	{ "message", "string?", NULL },
	{ "file", "string?", NULL },
	{ "line", "integer?", NULL },
	{ "frames", "[Frame]", "innermost first" },
	{ "excerpt", "string?", "lines around the error" },
	{ "category", "string?", "name, syntax, import, …" },
	{ "suggestion", "string?", "proposed remedy" },
	{ 0 },
};

static const struct schema_field streams[] = {
	{ "stdout", "string", NULL },
	{ "stderr", "string", NULL },
	{ 0 },
};

static const struct schema_field resource_usage[] = {
	{ "memory_usage", "integer?", "bytes" },
	{ "cpu_percent", "number?", NULL },
	{ "cpu_time", "number?", "seconds" },
	{ "pids_peak", "integer?", NULL },
	{ "io_read", "integer?", "bytes" },
	{ "io_write", "integer?", "bytes" },
	{ 0 },
};

static const struct schema_field report_file[] = {
	{ "size", "integer", "bytes" },
	{ "sha256", "string", NULL },
	{ 0 },
};

static const struct schema_field limit_use[] = {
	{ "name", "string", NULL },  { "limit", "number?", NULL },
	{ "peak", "number?", NULL }, { "share", "number?", "peak / limit" },
	{ "hit", "boolean", NULL },  { 0 },
};

static const struct schema_field debug_report[] = {
	{ "status", "success|failure", NULL },
	{ "exit_code", "integer?", NULL },
	{ "execution_time", "number?", "seconds" },
	{ "timestamp", "time", "UTC" },
	{ "language", "string?", "language with the version of its runtime" },
	{ "container_id", "string", "the execution's id" },
	{ "output", "Streams", NULL },
	{ "resource_usage", "ResourceUsage", NULL },
	{ "error_type", "string", "only after a failure" },
	{ "error_message", "string?", "only after a failure" },
	{ "output_files", "{ReportFile}", "by path; absent without files" },
	{ "cause", "Cause", NULL },
	{ "analysis", "Analysis", NULL },
	{ "limits", "[LimitUse]", NULL },
	{ "denials", "[Denial]", NULL },
	{ 0 },
};

static const struct schema_field pair[] = {
	{ "a", "any", "of the first execution" },
	{ "b", "any", "of the second execution" },
	{ 0 },
};

static const struct schema_field stream_diff[] = {
	{ "same", "boolean", NULL },	   { "added", "integer", "lines" },
	{ "removed", "integer", "lines" }, { "diff", "string", "as `diff -u` shows it" },
	{ "truncated", "boolean", NULL },  { 0 },
};

static const struct schema_field file_diff[] = {
	{ "added", "[string]", "paths" },
	{ "removed", "[string]", "paths" },
	{ "changed", "[string]", "paths" },
	{ 0 },
};

static const struct schema_field usage_diff[] = {
	{ "a", "number?", NULL },
	{ "b", "number?", NULL },
	{ "delta", "number?", "b - a" },
	{ 0 },
};

static const struct schema_field diff[] = {
	{ "a", "string", "id of the first execution" },
	{ "b", "string", "id of the second execution" },
	{ "same", "boolean", "only usage differs" },
	{ "status", "Pair", NULL },
	{ "exit_code", "Pair", NULL },
	{ "signal", "Pair", NULL },
	{ "error", "Pair", NULL },
	{ "value", "Pair", NULL },
	{ "language", "Pair", NULL },
	{ "runtime", "Pair", NULL },
	{ "policy", "Pair", NULL },
	{ "stdout", "StreamDiff", NULL },
	{ "stderr", "StreamDiff", NULL },
	{ "files", "FileDiff", NULL },
	{ "request", "{Pair or StreamDiff}", "keys that differ" },
	{ "usage", "{UsageDiff}", NULL },
	{ 0 },
};

static const struct schema_field latency[] = {
	{ "mean", "number?", NULL }, { "p50", "number?", NULL }, { "p90", "number?", NULL },
	{ "p99", "number?", NULL },  { "max", "number?", NULL }, { 0 },
};

#define COUNTS                                                                                     \
	{ "total", "integer", "executions that ended" }, { "by_status", "{integer}", NULL },       \
		{ "success_rate", "number?", "0 to 1" },                                           \
		{ "failure_rate", "number?", "share of all other endings, 0 to 1" },               \
		{ "timeout_rate", "number?",                                                       \
		  "share of timeouts, 0 to 1; they count as failures too" },                       \
	{                                                                                          \
		"latency", "Latency", "seconds"                                                    \
	}

static const struct schema_field counts[] = { COUNTS, { 0 } };

static const struct schema_field load[] = {
	{ "queued", "integer", NULL },
	{ "running", "integer", NULL },
	{ "running_max", "integer", NULL },
	{ "queue_max", "integer", NULL },
	{ "uptime", "number", "seconds" },
	{ "pool_hits", "integer", "runs that began warm" },
	{ "pool_misses", "integer", "runs that began cold" },
	{ "storage_ok", "boolean", NULL },
	{ 0 },
};

static const struct schema_field stats[] = {
	COUNTS,
	{ "by_language", "{Counts}", NULL },
	{ "by_label", "{Counts}", "by NAME=VALUE" },
	{ "since", "time?", NULL },
	{ "until", "time?", NULL },
	{ "now", "Load", "at this moment" },
	{ 0 },
};

const struct schema history_shapes[] = {
	{ "QueuedExecution", "An execution that waits.", queued, "*-labels" },
	{ "RunningExecution", "An execution that runs.", running, "*-labels" },
	{ "Accepted", "An accepted job.", accepted, "*" },
	{ "Batch", "Many jobs.", batch, "*" },
	{ "RefusedJob", "A refused job of a batch.", refused_job, "*" },
	{ "BatchAccepted", "What became of the jobs of a batch.", batch_accepted, "*" },
	{ "MissingExecution", "An id of which there is no execution.", missing, "*" },
	{ "ExecutionRow", "An execution in the history, without its outputs.", row, "*-caller" },
	{ "ExecutionPage", "A page of the history.", page, "*" },
	{ "Files", "All files that a program wrote.", files, "*" },
	{ "Cancelled", "Outcome of a cancel or delete.", cancelled, "*" },
	{ "Cleanup", "Counts of a cleanup.", cleanup, "*" },
	{ "RepairedFile", "A damaged history.", repaired_file, "*" },
	{ "Repair", "What became of damaged histories.", repair, "*" },
	{ "Frame", "A place in a traceback.", frame, "*" },
	{ "Analysis", "Explanation of a failure.", analysis, "*" },
	{ "Streams", "What a program printed.", streams, "*" },
	{ "ResourceUsage", "What a program used.", resource_usage, "*" },
	{ "ReportFile", "A file that a program wrote.", report_file, "*" },
	{ "LimitUse", "A limit, and how much of it was used.", limit_use, "*" },
	{ "DebugReport", "The debug report of PC-Agent-Claw, with more keys.", debug_report,
	  "*-error_type error_message output_files" },
	{ "Pair", "The values of two executions.", pair, "*" },
	{ "StreamDiff", "What two programs printed, compared by lines.", stream_diff, "*" },
	{ "FileDiff", "Files that two programs wrote.", file_diff, "*" },
	{ "UsageDiff", "One counter of two executions.", usage_diff, "*" },
	{ "Diff", "Differences between two executions.", diff, "*" },
	{ "Latency", "Seconds that executions took.", latency, "*" },
	{ "Counts", "Counts, rates and latencies of some executions.", counts, "*" },
	{ "Load", "Queue, pool and storage.", load, "*" },
	{ "Stats", "Counts, rates and latencies.", stats, "*" },
	{ 0 },
};
