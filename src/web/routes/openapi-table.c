/* SPDX-License-Identifier: Apache-2.0 */
/* See openapi.h. */
#include "web/routes/openapi.h"

#include <stddef.h>

const struct api_tag api_tags[] = {
	{ "/v1/sessions", "Sessions",
	  "Live interpreters, which keep their state between executions." },
	{ "/v1/execut", "Executions", "Programs: to run, to watch, to look at." },
	{ "/v1/cleanup", "Executions", NULL },
	{ "/v1/history", "Executions", NULL },
	{ "/v1/stats", "Executions", NULL },
	{ "/v1/tools", "Tools", "The tool execute_code for agents." },
	{ "/mcp", "MCP", "The Model Context Protocol." },
	{ "/.well-known", "MCP", NULL },
	{ "/execute", "Tools", NULL },
	{ "/", "Host", "Languages, policies, limits, health." },
	{ 0 },
};

#define RUNS	"execute streamExecution executeInSession streamInSession"
#define JOBS	"createExecution createExecutions replayExecution"
#define OUTPUTS "getExecutionStdout getExecutionStderr"
#define RANGES	OUTPUTS " getExecutionFile readSessionFile"

const struct api_parameter api_parameters[] = {
	{ "listExecutions", "query", "id", "string",
	  "the beginning of an id, at least 7 characters" },
	{ "listExecutions", "query", "status", "[string]",
	  "queued, running, or a status of a result; repeatable, one must match" },
	{ "listExecutions getStats", "query", "language", "string",
	  "name or alias of the language" },
	{ "listExecutions", "query", "label", "[string]",
	  "NAME=VALUE; repeatable, all must match" },
	{ "listExecutions", "query", "text", "string", "words in code, output or message" },
	{ "listExecutions getStats", "query", "since", "string",
	  "RFC 3339, or seconds since 1970" },
	{ "listExecutions getStats", "query", "until", "string", "before this time" },
	{ "listExecutions", "query", "cursor", "string", "`next` of the previous page" },
	{ "listExecutions", "query", "limit", "integer 1..1000", "rows of the page [50]" },
	{ "listExecutions", "query", "ids", "string",
	  "at most 100 ids with commas between: their results or states; takes no filter" },
	{ "getStats", "query", "label", "string",
	  "NAME=VALUE: count only executions with this label; not together with language" },
	{ RUNS, "header", "Idempotency-Key", "string",
	  "a repeated request with the same key and body gets the first request's result" },
	{ JOBS, "header", "Idempotency-Key", "string",
	  "a repeated request with the same key and body gets the same execution" },
	{ "execute streamExecution createExecution replayExecution", "query", "interactive",
	  "boolean", "standard input stays open for /attach" },
	{ RUNS " executeTool callTool", "query", "disconnect", "keep|cancel",
	  "cancel: disconnecting stops the program; keep (the default): it goes on" },
	{ "getExecution", "query", "wait", "number 0..60",
	  "seconds to wait for the result, if there is none yet" },
	{ "deleteExecution", "query", "only", "cancel|delete",
	  "cancel: only if the execution has not ended, else 409; delete: only if it has ended, "
	  "else 409" },
	{ "streamExecutionEvents streamMcpMessages", "header", "Last-Event-ID", "string",
	  "id or seq of the last event received; the answer begins after it" },
	{ "streamExecutionEvents", "query", "after", "string",
	  "as Last-Event-ID, for clients that cannot send headers" },
	{ "attachToExecution", "query", "after", "string",
	  "id or seq of an event; frames begin after it" },
	{ "attachToExecution", "query", "output", "json|bytes",
	  "bytes: stdout and stderr are binary frames that begin with a byte 1 or 2" },
	{ RANGES, "header", "Range", "string", "bytes=FROM-TO" },
	{ "listExecutionFiles", "query", "format", "json|tar", "overrides Accept" },
	{ "unpackIntoSession", "query", "format", "=tar",
	  "needed; the body is a tar, tar.gz or zip" },
	{ "getExecutionDebugReport", "query", "format", "markdown|json", "overrides Accept" },
	{ "sendMcpMessage streamMcpMessages endMcpSession", "header", "MCP-Protocol-Version",
	  "string", "the revision; needed from 2026-07-28 on" },
	{ "sendMcpMessage streamMcpMessages endMcpSession", "header", "MCP-Session-Id", "string",
	  "of the answer to initialize; revisions before 2026-07-28" },
	{ 0 },
};

const struct api_body api_bodies[] = {
	{ "unpackIntoSession writeSessionFile", "application/octet-stream", "bytes" },
	{ 0 },
};

/* In words: generators would make one type of a request and of bytes. */
const struct api_note api_body_notes[] = {
	{ "execute streamExecution createExecution",
	  "A request as JSON. The program itself is taken as well (Content-Type: text/x-python, or "
	  "application/octet-stream with ?language=), and so is a form (multipart/form-data); the "
	  "other keys and limits of the request are then parameters of the query, or fields of the "
	  "form." },
	{ 0 },
};

const struct api_answer api_answers[] = {
	{ "createExecution replayExecution", 202, "application/json", "Accepted", NULL },
	{ "createExecutions", 202, "application/json", "BatchAccepted", NULL },
	{ "createSession", 201, "application/json", "Session", NULL },
	{ "forkSession", 201, "application/json", "Sessions", NULL },
	{ RANGES, 200, "application/octet-stream", "bytes", NULL },
	{ "getExecutionValue", 200, "application/json", "any", NULL },
	{ "getExecutionValue", 206, "application/json", "bytes", "The bytes that Range names" },
	{ RANGES, 206, "application/octet-stream", "bytes", "The bytes that Range names" },
	{ "listExecutionFiles", 200, "application/json", "Files", NULL },
	{ "listExecutionFiles", 200, "application/x-tar", "bytes", NULL },
	{ "getExecutionDebugReport", 200, "application/json", "DebugReport", NULL },
	{ "getExecutionDebugReport", 200, "text/markdown", "string", NULL },
	{ "streamExecutionEvents", 204, NULL, NULL,
	  "Last-Event-ID names the result: no event follows, do not connect again "
	  "(text/event-stream)" },
	{ "deleteSession answerHostCall unpackIntoSession writeSessionFile deleteSessionFile "
	  "endMcpSession",
	  204, NULL, NULL, "Done" },
	{ "speakRunner", 101, NULL, NULL, "Packets from here on: doc/runner-protocol.md" },
	{ "attachToExecution attachToSession", 101, NULL, NULL,
	  "A WebSocket: each text frame is an Event" },
	{ "getMetrics", 200, "text/plain", "string", NULL },
	{ "getOpenapi", 200, "application/json", "{any}", NULL },
	{ "getReadiness", 200, "application/json", "Ready", NULL },
	{ "getReadiness", 503, "application/json", "Ready", "New work is refused now" },
	{ "runGeneratedCode", 200, "application/json", "ExecuteAnswer", NULL },
	{ "runGeneratedCode", 400, "application/json", "ExecuteAnswer",
	  "The request is wrong; stderr or error has the reason" },
	{ "runGeneratedCode", 429, "application/json", "ExecuteAnswer",
	  "The queue is full; try again after Retry-After" },
	{ "runGeneratedCode", 503, "application/json", "ExecuteAnswer",
	  "No storage, no broker yet, or the daemon is ending" },
	{ "runGeneratedCode", 0, "application/json", "ExecuteAnswer", "Any other refusal" },
	{ "runGeneratedCode", 0, "application/problem+json", "Problem", NULL },
	{ "sendMcpMessage", 200, "application/json", "McpMessage", NULL },
	{ "sendMcpMessage", 200, "text/event-stream", "McpMessage", NULL },
	{ "sendMcpMessage", 202, NULL, NULL, "The message needs no answer" },
	{ "sendMcpMessage", 400, "application/json", "McpMessage", "The message is wrong" },
	{ "sendMcpMessage", 404, "application/json", "McpMessage",
	  "There is no such session or method" },
	{ "streamMcpMessages", 200, "text/event-stream", "McpMessage", NULL },
	{ 0 },
};

const struct api_refusal api_refusals[] = {
	{ 400, "BadRequest", "The request is wrong; `field` names the key", REFUSED_ALL, NULL },
	{ 401, "Unauthorized", "There is no token, or it is unknown", REFUSED_GUARDED, NULL },
	{ 403, "Forbidden", "A policy, the Origin or the user does not permit it", REFUSED_ALL,
	  NULL },
	{ 404, "NotFound", "It does not exist, or belongs to another caller", REFUSED_NAMED, NULL },
	{ 409, "Conflict",
	  "Not in this state: not ended yet, ended already, or a name that is taken",
	  REFUSED_LISTED,
	  RUNS " " JOBS " " RANGES
	       " deleteExecution listExecutionFiles getExecutionAnalysis getExecutionDebugReport "
	       "compareExecutions createSession forkSession resetSession answerHostCall "
	       "readSessionFile writeSessionFile deleteSessionFile unpackIntoSession "
	       "listSessionFiles" },
	{ 413, "TooLarge", "The body is too large", REFUSED_WITH_BODY, NULL },
	{ 415, "UnsupportedMediaType", "The body has a type or encoding that is not taken",
	  REFUSED_WITH_BODY, NULL },
	{ 416, "RangeNotSatisfiable", "The Range lies outside", REFUSED_LISTED,
	  RANGES " getExecutionValue" },
	{ 422, "KeyReused", "The Idempotency-Key was used for another body", REFUSED_LISTED,
	  RUNS " " JOBS },
	{ 426, "UpgradeRequired", "The request is no handshake of the path's protocol",
	  REFUSED_LISTED, "attachToExecution attachToSession speakRunner" },
	{ 429, "Busy", "The queue is full; try again after Retry-After", REFUSED_LISTED,
	  RUNS " " JOBS " createSession forkSession resetSession executeTool callTool" },
	{ 503, "Unavailable",
	  "No storage, no broker yet, too much at once, or the daemon is ending", REFUSED_ALL,
	  NULL },
	{ 0, "Refused", "Any other refusal, or a failure of the server", REFUSED_ALL, NULL },
	{ 0 },
};
