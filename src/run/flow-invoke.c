/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `invoke`: the language's runner is the program, and the caller's code is beside it as the tool. The answer
 * comes in a file, so that the tool's prints stay plain output. The program can write that file: it is parsed
 * as untrusted JSON and can only set the value or the error of its own run.
 */
#include "run/run.h"

#include "run/analyse/analyse.h"
#include "run/toolchain/data.h"

#include <stdio.h>
#include <string.h>

#define PARAMS ".atoll-params.json"
#define RUNNER ".atoll-runner"

static int read_runner(struct local_run *run, struct span *ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	char relative[256];
	int r;

	buf_init(&text, DATA_FILE_MAX);
	if (snprintf(relative, sizeof(relative), "runners/%s", run->language->runner) >=
	    (int)sizeof(relative))
		return error_set(err, ERROR_INTERNAL, ENAMETOOLONG,
				 "the runner's name is too long");
	r = data_read(run->atoll->data_dir, relative, &text, err);
	if (r == -ENOENT)
		return error_set(err, ERROR_INTERNAL, ENOENT, "%.300s/%s is missing",
				 run->atoll->data_dir, relative);
	if (r < 0)
		return r;
	ret->data = arena_strndup(&run->memory, text.data, text.len);
	ret->len = text.len;
	return ret->data ? 0 : error_oom(err);
}

/* Adds the runner and the parameters to the list of files. */
static int add_invoke_files(struct local_run *run, const char *runner_path, struct sandbox_spec *in,
			    struct error *err)
{
	const json_t *params = run->request->invoke_params;
	_cleanup_free_ char *text = params ? json_dumps(params, JSON_COMPACT) : strdup("{}");
	struct build_file *files = arena_alloc(&run->memory, (in->n_files + 2) * sizeof(*files));
	struct span runner, kept = { 0 };
	int r = read_runner(run, &runner, err);

	if (r < 0)
		return r;
	if (text)
		kept = (struct span){ arena_strndup(&run->memory, text, strlen(text)),
				      strlen(text) };
	if (!files || !kept.data)
		return error_oom(err);
	memcpy(files, in->files, in->n_files * sizeof(*files));
	files[in->n_files] = (struct build_file){ SANDBOX_WORK, runner_path, runner, 0644 };
	files[in->n_files + 1] = (struct build_file){ SANDBOX_WORK, PARAMS, kept, 0644 };
	in->files = files;
	in->n_files += 2;
	return 0;
}

int flow_describe_invoke(struct local_run *run, struct sandbox_spec *ret, struct error *err)
{
	const struct request *req = run->request;
	const char *dot = strrchr(run->language->runner, '.');
	struct word_context c = flow_words(run, SANDBOX_BUILD, &run->decision.limits);
	struct stage_spec *stage = arena_alloc(&run->memory, sizeof(*stage));
	char *runner = arena_alloc(&run->memory, PLAN_PATH_MAX);
	const char **argv, *tool;
	size_t n = 0;
	int r;

	if (run->decision.read_only)
		return error_field(err, "invoke",
				   "invoke needs a writable work directory; leave out read_only");
	if (!stage || !runner)
		return error_oom(err);
	(void)snprintf(runner, PLAN_PATH_MAX, SANDBOX_WORK "/" RUNNER "%.32s", dot ? dot : "");
	r = add_invoke_files(run, runner + sizeof(SANDBOX_WORK), ret, err);
	if (r < 0)
		return r;
	stage->name = "run";
	stage->limits = &run->decision.limits;
	stage->env = flow_env(run, NULL, &c);
	tool = c.source;
	c.source = runner;
	argv = flow_expand_all(run, (const char *const *)run->language->run_argv, &c, 3);
	if (!argv || !stage->env)
		return error_oom(err);
	while (argv[n])
		n++;
	argv[n] = tool;
	argv[n + 1] = req->invoke_class ? req->invoke_class : "";
	argv[n + 2] = req->invoke_method;
	stage->argv = argv;
	ret->stages = stage;
	ret->n_stages = 1;
	return 0;
}

static json_t *trace_error(const struct local_run *run, const char *trace)
{
	const struct error_input in = { .language = run->language->name,
					.words = trace,
					.words_len = strlen(trace) };

	return analysis_error(&in, NULL);
}

/* The tool's own exception, with the place in the caller's code if its traceback has one. */
static json_t *answer_error(const struct local_run *run, const json_t *answer)
{
	json_t *message = json_object_get(answer, "error");
	json_t *type = json_object_get(answer, "type");
	const char *trace = json_string_value(json_object_get(answer, "traceback"));
	json_t *error = trace ? trace_error(run, trace) : NULL;

	if (!error)
		error = json_pack("{s:n, s:n, s:n, s:n}", "type", "message", "file", "line");
	if (!error)
		return NULL;
	if (json_is_string(type))
		(void)json_object_set_new(error, "type", json_incref(type));
	(void)json_object_set_new(error, "message",
				  json_is_string(message) ? json_incref(message) : json_null());
	(void)json_object_set_new(error, "traceback", trace ? json_string(trace) : json_null());
	return error;
}

void flow_invoke_answer(struct local_run *run, const char *text, size_t len)
{
	const struct document doc = { "the answer of the invoked method", text, len };
	struct result *res = run->result;
	json_t *answer = NULL, *value;

	if (json_parse(&doc, &answer, NULL) < 0)
		return;
	value = json_object_get(answer, "result");
	if (json_is_object(answer) && !json_is_null(json_object_get(answer, "error")))
		res->error = answer_error(run, answer);
	if (value && !json_is_null(value))
		res->value = json_incref(value);
	json_decref(answer);
}
