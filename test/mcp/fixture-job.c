/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of the conformance suite that become tasks. Each is a program in a sandbox, as every task is. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "engine/engine.h"

struct job_work {
	struct mcp_call *call;
	struct execution *execution;
};

static void job_cancel(void *data)
{
	struct job_work *w = data;

	(void)execution_cancel(w->execution);
}

static void job_free(void *data)
{
	struct job_work *w = data;

	execution_forget(w->execution);
	(void)execution_unref(w->execution);
	free(w);
}

static void answer_result(struct mcp_call *call, const json_t *result)
{
	const char *status = json_string_value(json_object_get(result, "status"));
	const char *out = json_string_value(json_object_get(result, "stdout"));

	mcp_call_answer(call, (struct mcp_answer){
				      .content = json_pack("[o]", mcp_text(out ? out : "",
									   out ? strlen(out) : 0)),
				      .is_error = !status || strcmp(status, "success") != 0 });
}

static void on_job_end(void *data, struct execution *x)
{
	struct job_work *w = data;

	answer_result(w->call, execution_result(x));
}

static int run_python(struct mcp_call *call, json_t *code)
{
	static const struct mcp_call_ops ops = { job_cancel, job_free };
	json_t *request = json_pack("{s:s, s:o}", "language", "python", "code", code);
	struct job_work *w = calloc(1, sizeof(*w));
	struct submission in = { .caller = mcp_call_caller(call),
				 .request = request,
				 .mode = SUBMIT_ANNOUNCED,
				 .data = w,
				 .on_end = on_job_end };
	struct submitted submitted = { 0 };
	struct error err = { 0 };
	int r = w && request ? engine_submit(mcp_call_app(call)->engine, &in, &submitted, &err)
			     : -ENOMEM;

	json_decref(request);
	if (r < 0) {
		free(w);
		if (err.code == ERROR_NONE)
			return r;
		mcp_call_refuse(call, &err);
		return 0;
	}
	*w = (struct job_work){ call, submitted.execution };
	mcp_call_set(call, w, &ops);
	mcp_call_works_on(call, execution_id(w->execution));
	return 0;
}

static int recall_job(struct mcp_call *call, const char *id)
{
	struct error err = { 0 };
	char *text = NULL;
	json_t *result;

	if (engine_get_text(mcp_call_app(call)->engine, mcp_call_viewer(call), id, &text, &err) <
	    0) {
		mcp_call_error(call, &err);
		return 0;
	}
	result = json_loads(text, JSON_ALLOW_NUL, NULL);
	free(text);
	answer_result(call, result);
	json_decref(result);
	return 0;
}

static int call_slow(struct mcp_call *call, const json_t *arguments)
{
	double seconds = json_number_value(json_object_get(arguments, "seconds"));

	return run_python(
		call, json_sprintf("import time\ntime.sleep(%g)\nprint('computed')\n", seconds));
}

static int call_failing(struct mcp_call *call, const json_t *arguments _unused_)
{
	return run_python(call, json_string("import time, sys\ntime.sleep(0.2)\nprint('failed')\n"
					    "sys.exit(1)\n"));
}

static int call_greet(struct mcp_call *call, const json_t *arguments)
{
	const char *name = json_string_value(json_object_get(arguments, "name"));
	json_t *text = json_sprintf("Hello, %s!", name ? name : "");

	(void)fixture_say(call, json_string_value(text));
	json_decref(text);
	return 0;
}

static json_t *slow_input(const struct mcp_options *app _unused_)
{
	return fixture_schema("{\"type\": \"object\", \"properties\": {\"seconds\": {\"type\": "
			      "\"number\"}, \"label\": {\"type\": \"string\"}}}");
}

static json_t *greet_input(const struct mcp_options *app _unused_)
{
	return fixture_schema("{\"type\": \"object\", \"properties\": {\"name\": {\"type\": "
			      "\"string\"}}}");
}

const struct mcp_tool fixture_job_tools[] = {
	{ "greet", "Greet", "Says hello", 0, greet_input, NULL, call_greet, NULL, false },
	{ "slow_compute", "Slow", "Sleeps", 0, slow_input, NULL, call_slow, recall_job, true },
	{ "failing_job", "Failing", "Fails", 0, fixture_no_input, NULL, call_failing, recall_job,
	  true },
	{ 0 },
};
