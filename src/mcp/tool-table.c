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
	{ "execute_code", "Run a program",
	  "Run a whole program once, in a fresh sandbox, and get its output, exit code and status. "
	  "Use it for a single run in any language. Limits: 256 MiB of memory, half a processor, "
	  "50 "
	  "processes, at most 300 seconds, no network; 100,000 characters of each stream (the "
	  "rest: "
	  "read_output). Image files that the program saves (PNG, JPEG) come back as images. For "
	  "several steps that build on each other, or for more memory, use create_session and "
	  "run_in_session.",
	  0, tool_execute_input, execute_output, tool_execute_code, tool_execute_recall },
	{ "create_session", "Start a session",
	  "Start a live interpreter (python, javascript, ruby or bash) that keeps variables, "
	  "imports "
	  "and files between runs, and get its session_id. Use it for work in several steps, for "
	  "data "
	  "analysis and charts, or when execute_code has too little memory. The session_id is "
	  "valid "
	  "until close_session, or until the session was idle for idle_timeout seconds.",
	  0, create_input, create_output, tool_create_session, NULL },
	{ "run_in_session", "Run code in a session",
	  "Run code in a session: it sees the variables and files of the runs before. Gives a "
	  "summary "
	  "of how it ended, what to do about a failure, the line of the error, the value of a last "
	  "expression, head and tail of the output, and charts (matplotlib) as images. Long output "
	  "is "
	  "shortened; read_output reads all of it.",
	  0, run_input, run_output, tool_run_in_session, tool_run_recall },
	{ "fork_session", "Copy a session",
	  "Copy a Python session with all its variables and files, in milliseconds. Use it to try "
	  "several changes from the same state, or to keep a state to come back to. Gives the "
	  "session_id of each copy; changes in a copy do not reach the others.",
	  0, fork_input, fork_output, tool_fork_session, NULL },
	{ "reset_session", "Begin a session anew",
	  "Give a session a new interpreter: its variables and written files are gone, the files "
	  "it "
	  "was made with are back. The session_id stays valid.",
	  MCP_DESTRUCTIVE | MCP_IDEMPOTENT, reset_input, reset_output, tool_reset_session, NULL },
	{ "close_session", "End a session",
	  "End a session and free its memory. Its executions and their output stay readable.",
	  MCP_DESTRUCTIVE, close_input, close_output, tool_close_session, NULL },
	{ "write_file", "Write a file of a session",
	  "Write a file into the work directory of a session (32 MiB at most); an old one is "
	  "replaced. "
	  "Give content for text, base64 for other bytes.",
	  MCP_DESTRUCTIVE | MCP_IDEMPOTENT, write_input, write_output, tool_write_file, NULL },
	{ "read_file", "Read a file",
	  "Read a file of a session, or one that an execution wrote: lines with their numbers, a "
	  "range "
	  "of them, or those that match grep. About 7 KiB a call; next_line is the start_line of "
	  "the "
	  "next page. Images come back as images.",
	  MCP_READ_ONLY, read_input, read_output, tool_read_file, NULL },
	{ "list_files", "List files",
	  "List the files of a session's work directory, or those that an execution wrote, with "
	  "sizes.",
	  MCP_READ_ONLY, list_input, list_output, tool_list_files, NULL },
	{ "get_execution", "Look up an execution",
	  "What became of an execution: summary, suggestion, error with its lines, head and tail "
	  "of the "
	  "output, files. Use it for an execution_id of an earlier run, or of one that still runs.",
	  MCP_READ_ONLY, get_input, get_output, tool_get_execution, NULL },
	{ "read_output", "Read what a program printed",
	  "Read all that a program printed, page by page, also logs of many megabytes: a range of "
	  "lines "
	  "(start_line -50 for the last 50), or only lines that match grep, with their numbers and "
	  "lines around them. About 7 KiB a call.",
	  MCP_READ_ONLY, output_input, output_output, tool_read_output, NULL },
	{ "search_history", "Search past executions",
	  "Find past executions by words in their code or output, status, language, label or time; "
	  "newest first, with the beginning of their code. Use it to find an execution_id.",
	  MCP_READ_ONLY, search_input, search_output, tool_search_history, NULL },
	{ "list_languages", "List languages",
	  "The languages of this host with versions, libraries of Python, and which ones have "
	  "sessions.",
	  MCP_READ_ONLY, languages_input, languages_output, tool_list_languages, NULL },
	{ "explain_policy", "Ask what is allowed",
	  "Whether a run with these limits, this network access or this policy would be allowed, "
	  "and "
	  "which rule decides each limit. Runs nothing. Use it before asking for more memory, time "
	  "or "
	  "network.",
	  MCP_READ_ONLY, explain_input, explain_output, tool_explain_policy, NULL },
	{ 0 },
};
