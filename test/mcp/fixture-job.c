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

static json_t *recall_job(struct mcp_work *w, struct error *err)
{
	json_auto_t *result = NULL;

	/* The answer has content of its own, so it is given here. */
	if (engine_get(w->app->engine, w->viewer, work_text(w, "execution_id"), &result, err) == 0)
		answer_result(TAKE_PTR(w->call), result);
	return NULL;
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
	{ .name = "greet",
	  .title = "Greet",
	  .description = "Says hello",
	  .input_schema = greet_input,
	  .call = call_greet },
	{ .name = "slow_compute",
	  .title = "Slow",
	  .description = "Sleeps",
	  .input_schema = slow_input,
	  .call = call_slow,
	  .recall = recall_job,
	  .is_long = true },
	{ .name = "failing_job",
	  .title = "Failing",
	  .description = "Fails",
	  .input_schema = fixture_no_input,
	  .call = call_failing,
	  .recall = recall_job,
	  .is_long = true },
	{ 0 },
};
