/* SPDX-License-Identifier: Apache-2.0 */
/* The product's prompts: common jobs, as a user would ask a model that has these tools. */
#include "base/buf.h"
#include "engine/engine.h"
#include "mcp/prompt.h"
#include "mcp/text-scan.h"
#include "mcp/work.h"
#include "spec/utf8-json.h"

#include <string.h>

enum { PROMPT_BYTES_MAX = 4 << 20, REPORT_COST = 12 << 10 };

/* "" where there is none. */
static const char *prompt_argument(const json_t *arguments, const char *key)
{
	const char *text = json_string_value(json_object_get(arguments, key));

	return text ? text : "";
}

static int put_fenced(struct buf *out, const char *language, const char *text)
{
	size_t n = 3;
	int r = buf_puts(out, "\n\n");

	/* More backticks than any row of them in the text, so that the fence holds. */
	for (const char *at = strchr(text, '`'); at; at = strchr(at + strspn(at, "`"), '`'))
		n = MAX(n, strspn(at, "`") + 1);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = buf_puts(out, "`");
	if (r == 0)
		r = buf_printf(out, "%s\n%s\n", language, text);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = buf_puts(out, "`");
	return r == 0 ? buf_puts(out, "\n\n") : r;
}

/* Takes over text. */
static int answer_prompt(struct mcp_call *call, const char *description, json_t *text)
{
	mcp_call_result(call, json_pack("{s:s, s:[{s:s, s:{s:s, s:o}}]}", "description",
					description, "messages", "role", "user", "content", "type",
					"text", "text", text));
	return 0;
}

/* --- explain_failure --- */

static json_t *embedded_report(const char *id, const char *markdown)
{
	struct span text = span_of(markdown);
	json_t *uri = json_sprintf("atoll://executions/%s/report", id);

	text.len = text_head(text, REPORT_COST);
	return json_pack("{s:s, s:{s:s, s:{s:o, s:s, s:o}}}", "role", "user", "content", "type",
			 "resource", "resource", "uri", uri, "mimeType", "text/markdown", "text",
			 utf8_to_json(text.data, text.len, NULL));
}

static json_t *run_explain_failure(struct mcp_work *w, struct error *err)
{
	const char *id = work_text(w, "execution_id");
	_cleanup_free_ char *markdown = NULL;
	json_auto_t *report = NULL, *text = NULL;

	if (engine_debug_report(w->app->engine, w->viewer, id, &report, err) < 0)
		return NULL;
	markdown = engine_report_markdown(report);
	text = json_sprintf(
		"Explain why the execution %.60s failed, and how to fix it. Its debug report "
		"follows. Say first what went wrong in one sentence, then where (file and "
		"line), then what to change. If the report is not enough, read more with "
		"get_execution and read_output. If you are sure of a fix, run it and show "
		"that it works.",
		id);
	if (!markdown || !text)
		return NULL;
	return json_pack("{s:s, s:[{s:s, s:{s:s, s:O}}, o]}", "description",
			 "Why an execution failed", "messages", "role", "user", "content", "type",
			 "text", "text", text, embedded_report(id, markdown));
}

static int get_explain_failure(struct mcp_call *call, const json_t *arguments)
{
	return work_begin(call, arguments, run_explain_failure);
}

/* --- the others are texts --- */

static int get_run_tests(struct mcp_call *call, const json_t *arguments)
{
	const char *language = prompt_argument(arguments, "language");
	_cleanup_buf_ struct buf text = { 0 };
	int r;

	buf_init(&text, PROMPT_BYTES_MAX);
	r = buf_printf(&text, "Test this %s code:", language);
	if (r == 0)
		r = put_fenced(&text, language, prompt_argument(arguments, "code"));
	if (r == 0)
		r = buf_puts(&text, "with these tests:");
	if (r == 0)
		r = put_fenced(&text, language, prompt_argument(arguments, "tests"));
	if (r == 0)
		r = buf_puts(
			&text,
			"Run them with execute_code: the code and the tests as files, or one after "
			"the other in one program. Tell how many passed and which ones failed, "
			"with "
			"the message of each. For each failure say whether the code or the test is "
			"wrong, fix the code where it is, and run all tests again until they "
			"pass.");
	return r < 0 ? -ENOMEM
		     : answer_prompt(call, "Run tests and fix what fails",
				     json_stringn(text.data, text.len));
}

static int get_plot_file(struct mcp_call *call, const json_t *arguments)
{
	const char *id = prompt_argument(arguments, "session_id");

	return answer_prompt(
		call, "Plot a data file",
		json_sprintf("Plot the data in the file %s%s%s. %sLook at its first lines with "
			     "read_file, load it in run_in_session (pandas), choose a chart that "
			     "fits the columns, and show it with matplotlib: plt.show() gives it "
			     "back as an image. Then say in two sentences what it shows.",
			     prompt_argument(arguments, "path"), *id ? " of the session " : "", id,
			     *id ? ""
				 : "If it is not in a session yet, make one with create_session "
				   "and put it there with write_file. "));
}

static int get_try_fixes(struct mcp_call *call, const json_t *arguments)
{
	return answer_prompt(
		call, "Try several fixes from one state",
		json_sprintf(
			"In the session %s something does not work: %s\n\nThink of three "
			"different fixes. Copy the session with fork_session (count 3), try "
			"one fix in each copy with run_in_session, and compare what comes out. "
			"Close the copies, repeat the best fix in the first session, and say "
			"why it is the best.",
			prompt_argument(arguments, "session_id"),
			prompt_argument(arguments, "goal")));
}

const struct mcp_prompt mcp_product_prompts[] = {
	{ "explain_failure",
	  "Explain a failure",
	  "Why an execution failed, and how to fix it",
	  { { "execution_id", "the execution that failed: ex_…", true, complete_executions } },
	  get_explain_failure },
	{ "run_tests",
	  "Run tests",
	  "Run tests against code, and fix what fails",
	  { { "language", "language of both", true, complete_languages },
	    { "code", "the code to test", true, NULL },
	    { "tests", "the tests", true, NULL } },
	  get_run_tests },
	{ "plot_file",
	  "Plot a file",
	  "A chart of the data in a file",
	  { { "path", "the file, such as data.csv", true, NULL },
	    { "session_id", "the session that has it", false, complete_sessions } },
	  get_plot_file },
	{ "try_fixes",
	  "Try several fixes",
	  "Copy a session and try a fix in each copy",
	  { { "session_id", "the session", true, complete_sessions },
	    { "goal", "what should work and does not", true, NULL } },
	  get_try_fixes },
	{ 0 },
};
