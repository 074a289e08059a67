/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product's tools, in the order of tools/list. A description is read by a model that has to choose: when to use the tool, what it
 * gives, and its limits.
 */
#include "mcp/prompt.h"
#include "mcp/resource.h"
#include "mcp/tool-shapes.h"

static json_t *execute_output(const struct mcp_options *app _unused_)
{
	return tool_answer_types("ExecuteAnswer");
}

const struct mcp_tool mcp_product_tools[] = {
	{
		.name = "execute_code",
		.title = "Run a program",
		.description = "Run a whole program once, in a fresh sandbox: output, exit code, "
			       "status. Unless the operator has set others: 256 MiB of memory, "
			       "half a processor, 50 processes, 300 seconds at most, no network; "
			       "100,000 characters of each stream (the rest: read_output). Image "
			       "files that it saves come back as images. For steps that build on "
			       "each other, or more memory: create_session and run_in_session.",
		.input_schema = tool_execute_input,
		.output_schema = execute_output,
		.run = run_execute_code,
		.recall = run_execute_recall,
	},
	{
		.name = "create_session",
		.title = "Start a session",
		.description = "Start a live interpreter (python, javascript, ruby or bash) that "
			       "keeps variables, imports and files between runs. Use it for "
			       "several steps, for data analysis and charts, or when execute_code "
			       "has too little memory. Its session_id is valid until "
			       "close_session, or idle_timeout seconds without use.",
		.shape = "CreateArguments",
		.run = run_create_session,
	},
	{
		.name = "run_in_session",
		.title = "Run code in a session",
		.description = "Run code in a session: it sees the variables and files of the runs "
			       "before. Gives how it ended, what to do about a failure, the value "
			       "of a last expression, head and tail of the output (read_output "
			       "reads all of it), and charts (matplotlib) as images.",
		.shape = "RunArguments",
		.run = run_in_session,
		.recall = run_run_recall,
	},
	{
		.name = "fork_session",
		.title = "Copy a session",
		.description = "Copy a Python session with its variables and files, in "
			       "milliseconds: to try several changes from one state, or to keep a "
			       "state to come back to. Changes in a copy do not reach the others.",
		.shape = "ForkArguments",
		.run = run_fork_session,
	},
	{
		.name = "reset_session",
		.title = "Begin a session anew",
		.description = "Give a session a new interpreter: variables and written files are "
			       "gone, the files it was made with are back. The session_id stays.",
		.hints = MCP_DESTRUCTIVE | MCP_IDEMPOTENT,
		.shape = "SessionArguments",
		.run = run_reset_session,
	},
	{
		.name = "close_session",
		.title = "End a session",
		.description = "End a session and free its memory. Its executions and their output "
			       "stay readable.",
		.hints = MCP_DESTRUCTIVE,
		.shape = "SessionArguments",
		.run = run_close_session,
	},
	{
		.name = "write_file",
		.title = "Write a file of a session",
		.description = "Write a file into the work directory of a session (32 MiB at "
			       "most), or replace it: content for text, base64 for other bytes.",
		.hints = MCP_DESTRUCTIVE | MCP_IDEMPOTENT,
		.shape = "WriteArguments",
		.run = run_write_file,
	},
	{
		.name = "read_file",
		.title = "Read a file",
		.description = "Read a file of a session, or one that an execution wrote: numbered "
			       "lines, or those that match grep; about 7 KiB a call, next_line "
			       "begins the next page. Images come back as images.",
		.hints = MCP_READ_ONLY,
		.shape = "ReadArguments",
		.run = run_read_file,
	},
	{
		.name = "list_files",
		.title = "List files",
		.description = "List the files of a session's work directory, or those that an "
			       "execution wrote, with sizes.",
		.hints = MCP_READ_ONLY,
		.shape = "ListArguments",
		.run = run_list_files,
	},
	{
		.name = "get_execution",
		.title = "Look up an execution",
		.description = "What became of an execution, also of one that still runs: summary, "
			       "suggestion, error, head and tail of the output, files.",
		.hints = MCP_READ_ONLY,
		.shape = "GetArguments",
		.run = run_get_execution,
	},
	{
		.name = "read_output",
		.title = "Read what a program printed",
		.description = "Read all that a program printed, page by page: lines (start_line "
			       "-50: the last 50), or only those that match grep, with their "
			       "numbers; about 7 KiB a call.",
		.hints = MCP_READ_ONLY,
		.shape = "OutputArguments",
		.run = run_read_output,
	},
	{
		.name = "search_history",
		.title = "Search past executions",
		.description = "Find past executions by words in code or output, status, language, "
			       "label or time; newest first. Gives their execution_id.",
		.hints = MCP_READ_ONLY,
		.shape = "SearchArguments",
		.run = run_search_history,
	},
	{
		.name = "list_languages",
		.title = "List languages",
		.description = "The languages of this host: versions, libraries of Python, which "
			       "ones have sessions.",
		.hints = MCP_READ_ONLY,
		.shape = "NoArguments",
		.run = run_list_languages,
	},
	{
		.name = "explain_policy",
		.title = "Ask what is allowed",
		.description = "Whether a run with these limits, this network access or this "
			       "policy would be allowed, and by which rule. Runs nothing. Use it "
			       "before you ask for more memory, time or network.",
		.hints = MCP_READ_ONLY,
		.shape = "ExplainArguments",
		.run = run_explain_policy,
	},
	{ 0 },
};

const struct mcp_tables mcp_product_tables = {
	.tools = mcp_product_tools,
	.resources = mcp_product_resources,
	.prompts = mcp_product_prompts,
};
