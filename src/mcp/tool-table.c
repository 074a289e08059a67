/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product's tools, in the order of tools/list. A description is read by a model that has to choose: when to use the tool, what it
 * gives, and its limits.
 */
#include "mcp/tool-shapes.h"
#include "mcp/tools.h"

/* inputSchema and outputSchema are functions, because a row has no data of its own. */
#define SHAPE(name, shape)                                                                         \
	static json_t *name(const struct mcp_options *app _unused_)                                \
	{                                                                                          \
		return tool_schema(shape);                                                         \
	}

SHAPE(execute_output, "ExecuteAnswer")
SHAPE(languages_input, "NoArguments")
SHAPE(languages_output, "Languages")
SHAPE(create_input, "CreateArguments")
SHAPE(create_output, "SessionInfo")
SHAPE(run_input, "RunArguments")
SHAPE(run_output, "RunResult")
SHAPE(fork_input, "ForkArguments")
SHAPE(fork_output, "SessionInfos")
SHAPE(reset_input, "SessionArguments")
SHAPE(reset_output, "SessionInfo")
SHAPE(close_input, "SessionArguments")
SHAPE(close_output, "Closed")
SHAPE(write_input, "WriteArguments")
SHAPE(write_output, "Written")
SHAPE(read_input, "ReadArguments")
SHAPE(read_output, "TextPage")
SHAPE(list_input, "ListArguments")
SHAPE(list_output, "FileInfos")
SHAPE(get_input, "GetArguments")
SHAPE(get_output, "RunResult")
SHAPE(output_input, "OutputArguments")
SHAPE(output_output, "TextPage")
SHAPE(search_input, "SearchArguments")
SHAPE(search_output, "Executions")
SHAPE(explain_input, "ExplainArguments")
SHAPE(explain_output, "PolicyDecision")

const struct mcp_tool mcp_product_tools[] = {
	{
		.name = "execute_code",
		.title = "Run a program",
		.description =
			"Run a whole program once, in a fresh sandbox, and get its output, exit "
			"code and status. Use it for a single run in any language. Limits, unless "
			"the operator has set others: 256 MiB of memory, half a processor, 50 "
			"processes, at most 300 seconds, no network; 100,000 characters of each "
			"stream (the rest: read_output). Image files that the program saves (PNG, "
			"JPEG) come back as images. For several steps that build on each other, or "
			"for more memory, use create_session and run_in_session.",
		.input_schema = tool_execute_input,
		.output_schema = execute_output,
		.call = tool_execute_code,
		.recall = tool_execute_recall,
	},
	{
		.name = "create_session",
		.title = "Start a session",
		.description =
			"Start a live interpreter (python, javascript, ruby or bash) that keeps "
			"variables, imports and files between runs, and get its session_id. Use it "
			"for work in several steps, for data analysis and charts, or when "
			"execute_code has too little memory. The session_id is valid until "
			"close_session, or until the session was idle for idle_timeout seconds.",
		.input_schema = create_input,
		.output_schema = create_output,
		.call = tool_create_session,
	},
	{
		.name = "run_in_session",
		.title = "Run code in a session",
		.description = "Run code in a session: it sees the variables and files of the runs "
			       "before. Gives a summary of how it ended, what to do about a "
			       "failure, the line of the error, the value of a last expression, "
			       "head and tail of the output, and charts (matplotlib) as images. "
			       "Long output is shortened; read_output reads all of it.",
		.input_schema = run_input,
		.output_schema = run_output,
		.call = tool_run_in_session,
		.recall = tool_run_recall,
	},
	{
		.name = "fork_session",
		.title = "Copy a session",
		.description = "Copy a Python session with all its variables and files, in "
			       "milliseconds. Use it to try several changes from the same state, "
			       "or to keep a state to come back to. Gives the session_id of each "
			       "copy; changes in a copy do not reach the others.",
		.input_schema = fork_input,
		.output_schema = fork_output,
		.call = tool_fork_session,
	},
	{
		.name = "reset_session",
		.title = "Begin a session anew",
		.description =
			"Give a session a new interpreter: its variables and written files are "
			"gone, the files it was made with are back. The session_id stays valid.",
		.hints = MCP_DESTRUCTIVE | MCP_IDEMPOTENT,
		.input_schema = reset_input,
		.output_schema = reset_output,
		.call = tool_reset_session,
	},
	{
		.name = "close_session",
		.title = "End a session",
		.description = "End a session and free its memory. Its executions and their output "
			       "stay readable.",
		.hints = MCP_DESTRUCTIVE,
		.input_schema = close_input,
		.output_schema = close_output,
		.call = tool_close_session,
	},
	{
		.name = "write_file",
		.title = "Write a file of a session",
		.description =
			"Write a file into the work directory of a session (32 MiB at most); an "
			"old one is replaced. Give content for text, base64 for other bytes.",
		.hints = MCP_DESTRUCTIVE | MCP_IDEMPOTENT,
		.input_schema = write_input,
		.output_schema = write_output,
		.call = tool_write_file,
	},
	{
		.name = "read_file",
		.title = "Read a file",
		.description = "Read a file of a session, or one that an execution wrote: lines "
			       "with their numbers, a range of them, or those that match grep. "
			       "About 7 KiB a call; next_line is the start_line of the next page. "
			       "Images come back as images.",
		.hints = MCP_READ_ONLY,
		.input_schema = read_input,
		.output_schema = read_output,
		.call = tool_read_file,
	},
	{
		.name = "list_files",
		.title = "List files",
		.description = "List the files of a session's work directory, or those that an "
			       "execution wrote, with sizes.",
		.hints = MCP_READ_ONLY,
		.input_schema = list_input,
		.output_schema = list_output,
		.call = tool_list_files,
	},
	{
		.name = "get_execution",
		.title = "Look up an execution",
		.description = "What became of an execution: summary, suggestion, error with its "
			       "lines, head and tail of the output, files. Use it for an "
			       "execution_id of an earlier run, or of one that still runs.",
		.hints = MCP_READ_ONLY,
		.input_schema = get_input,
		.output_schema = get_output,
		.call = tool_get_execution,
	},
	{
		.name = "read_output",
		.title = "Read what a program printed",
		.description = "Read all that a program printed, page by page, also logs of many "
			       "megabytes: a range of lines (start_line -50 for the last 50), or "
			       "only lines that match grep, with their numbers and lines around "
			       "them. About 7 KiB a call.",
		.hints = MCP_READ_ONLY,
		.input_schema = output_input,
		.output_schema = output_output,
		.call = tool_read_output,
	},
	{
		.name = "search_history",
		.title = "Search past executions",
		.description = "Find past executions by words in their code or output, status, "
			       "language, label or time; newest first, with the beginning of their "
			       "code. Use it to find an execution_id.",
		.hints = MCP_READ_ONLY,
		.input_schema = search_input,
		.output_schema = search_output,
		.call = tool_search_history,
	},
	{
		.name = "list_languages",
		.title = "List languages",
		.description = "The languages of this host with versions, libraries of Python, and "
			       "which ones have sessions.",
		.hints = MCP_READ_ONLY,
		.input_schema = languages_input,
		.output_schema = languages_output,
		.call = tool_list_languages,
	},
	{
		.name = "explain_policy",
		.title = "Ask what is allowed",
		.description = "Whether a run with these limits, this network access or this "
			       "policy would be allowed, and which rule decides each limit. Runs "
			       "nothing. Use it before asking for more memory, time or network.",
		.hints = MCP_READ_ONLY,
		.input_schema = explain_input,
		.output_schema = explain_output,
		.call = tool_explain_policy,
	},
	{ 0 },
};
