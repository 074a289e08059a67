/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of the interfaces that other products define (doc/http.md): POST /execute, execute_code, MCP; see schema-table.h. */
#include "web/routes/schema-shapes.h"

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
	  "the NeMo Agent Toolkit: process_status, stdout and stderr" },
	{ "stdout", "string", NULL },
	{ "stderr", "string", NULL },
	{ "success", "boolean", "PC-Agent-Claw, as the keys below" },
	{ "output", "string", "same as stdout" },
	{ "error", "string", "stderr, or the reason why nothing ran" },
	{ "exit_code", "integer", NULL },
	{ "time", "number", "seconds" },
	{ 0 },
};

static const struct schema_field tool_arguments[] = {
	{ "language", "string", "a name of GET /v1/languages, with case" },
	{ "code", "string", "the program" },
	{ "stdin", "string?", "standard input" },
	{ "timeout", "number?", "seconds, clamped to 1 to 300 [30]" },
	{ "session_id", "string?",
	  "keeps the state between calls; letters, digits, _ and -, at most 64" },
	{ "files", "{string or FileContent}", "the content of each path below /sandbox" },
	{ "args", "[string]", "arguments of the program" },
	{ "env", "{string}", "environment variables" },
	{ 0 },
};

static const struct schema_field tool_call[] = {
	{ "tool_name", "string", "execute_code" },
	{ "arguments", "ToolArguments", NULL },
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
	{ "cause", "Cause?", "as of a result" },
	{ 0 },
};

static const struct schema_field mcp_message[] = {
	{ "jsonrpc", "=2.0", NULL },
	{ "id", "string or integer?", "of a request and its answer" },
	{ "method", "string", "of a request or a notification" },
	{ "params", "{any}", NULL },
	{ "result", "{any}", NULL },
	{ "error", "{any}", "code, message, data" },
	{ 0 },
};

static const struct schema_field resource_metadata[] = {
	{ "resource", "string", "the URL of /mcp" },
	{ "authorization_servers", "[string]", NULL },
	{ "bearer_methods_supported", "[string]", NULL },
	{ "resource_name", "string", NULL },
	{ 0 },
};

const struct schema compat_shapes[] = {
	{ "ExecuteCall",
	  "Body of the NeMo Agent Toolkit; the body of PC-Agent-Claw has code and language.",
	  execute_call, NULL },
	{ "ExecuteAnswer", "Answer of the NeMo Agent Toolkit or PC-Agent-Claw.", execute_answer,
	  "stdout stderr" },
	{ "ToolArguments", "Arguments of execute_code.", tool_arguments, "language code" },
	{ "ToolCall", "The envelope of Codomyrmex.", tool_call, "*" },
	{ "ToolAnswer", "Answer of execute_code.", tool_answer, "*" },
	{ "McpMessage", "A JSON-RPC message of the Model Context Protocol.", mcp_message,
	  "jsonrpc" },
	{ "ResourceMetadata", "OAuth's protected resource metadata.", resource_metadata, "*" },
	{ 0 },
};
