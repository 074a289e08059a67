/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of the caller's that judge tests: checkers, and the interactor. Each is a run of its own: built once, before the first
 * test, and for each test run in a fresh sandbox that has the test's input, the expected output and, for a checker, the program's
 * output as files. The judged program never meets a checker.
 *
 * They speak by their exit codes, as testlib's do. A crash (a signal, a limit, an exception that nothing caught) is no judgement.
 */
#include "run/run.h"

#include "run/link/capture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_MAX = 1000, EXIT_POINTS = 7 };

struct checker {
	struct checker *next;
	struct local_run run; /* its request is the test's */
	bool broken;	      /* it could not be built: its result says why */
};

static struct checker *checker_of(const struct local_run *run, const struct request *program)
{
	struct checker *c = run->checkers;

	while (c && c->run.request != program)
		c = c->next;
	return c;
}

static int open_checker(struct local_run *run, struct request *program, struct error *err)
{
	struct checker *c = calloc(1, sizeof(*c));
	struct local_run *own;

	if (!c)
		return error_oom(err);
	c->next = run->checkers;
	run->checkers = c;
	own = &c->run;
	*own = (struct local_run){
		.atoll = run->atoll,
		.control = run->control,
		.options = { .use_cancel_fd = run->options.use_cancel_fd,
			     .cancel_fd = run->options.cancel_fd },
		.request = program,
		.output_fd = -EBADF,
		.result = result_new(),
	};
	program->policy = run->request->policy;
	return own->result ? flow_open_request(own, err) : error_oom(err);
}

static int open_program(struct local_run *run, struct request *program, const char *field,
			struct error *err)
{
	char inner[sizeof(err->field)];
	int r;

	if (!program || checker_of(run, program))
		return 0;
	r = open_checker(run, program, err);
	if (r >= 0)
		return 0;
	(void)snprintf(inner, sizeof(inner), "%s.%.27s", field, err->field);
	if (err->field[0])
		memcpy(err->field, inner, sizeof(inner));
	return error_wrap(err, r, "%s", field);
}

int flow_open_checkers(struct local_run *run, struct error *err)
{
	int r = open_program(run, run->request->interactor, "interactor", err);

	for (size_t i = 0; r >= 0 && i < run->request->n_tests; i++) {
		char field[48];

		(void)snprintf(field, sizeof(field), "tests[%zu].checker", i);
		r = open_program(run, run->request->tests[i].checker.program, field, err);
	}
	return r;
}

int flow_build_checkers(struct local_run *run, struct error *err)
{
	for (struct checker *c = run->checkers; c; c = c->next) {
		int r = flow_is_compiled(&c->run) ? flow_build(&c->run, err) : 1;

		if (r < 0)
			return r;
		c->broken = r == 0;
	}
	return 0;
}

void flow_close_checkers(struct local_run *run)
{
	while (run->checkers) {
		struct checker *c = run->checkers;

		run->checkers = c->next;
		c->run.request = NULL;
		flow_close(&c->run);
		free(c);
	}
}

/* The first words of both streams; NULL: none, or no memory. */
static char *first_words(const struct result_stream *out, const struct result_stream *err)
{
	char *text = NULL;

	if (out->len + err->len == 0 ||
	    asprintf(&text, "%.*s%.*s", (int)MIN(out->len, (size_t)MESSAGE_MAX), out->text,
		     (int)(MESSAGE_MAX - MIN(out->len, (size_t)MESSAGE_MAX)),
		     err->text ? err->text : "") < 0)
		return NULL;
	return text;
}

int flow_describe_judge(const struct local_run *test_run, const struct request *program,
			const struct request_test *test, struct span output,
			struct judge_run *judge, struct judgement *ret, struct error *err)
{
	const struct checker *c = checker_of(test_run, program);
	const struct span empty = { "", 0 };
	const struct span data[_CHECKER_FILE_MAX] = { [CHECKER_INPUT] = test->stdin_data,
						      [CHECKER_OUTPUT] = output,
						      [CHECKER_EXPECTED] = test->expected };
	struct local_run *own = &judge->run;
	int r;

	*ret = (struct judgement){ .verdict = TEST_CHECKER_ERROR,
				   .end.status = STATUS_SETUP_ERROR };
	if (c->broken) {
		ret->message = first_words(&c->run.result->out, &c->run.result->err);
		return 0;
	}
	*own = c->run;
	own->memory = (struct arena){ 0 };
	own->control = test_run->control;
	own->options.cancel_fd = test_run->options.cancel_fd;
	r = flow_grow_files(own, _CHECKER_FILE_MAX, err);
	for (size_t i = 0; r >= 0 && i < _CHECKER_FILE_MAX; i++)
		/* An interactor makes its output itself. */
		if (i != CHECKER_OUTPUT || output.data)
			own->files[own->n_files++] = (struct build_file){
				.base = SANDBOX_WORK,
				.path = checker_files[i],
				.data = data[i].data ? data[i] : empty,
				.mode = 0644,
			};
	if (r >= 0)
		r = flow_describe(own, &judge->in, err);
	if (r < 0) {
		arena_done(&own->memory);
		return r;
	}
	judge->in.caller_input = judge->in.live = judge->in.collect = false;
	return 1;
}

/* "points 12.5 …" at the start of a line. */
static bool find_points(const char *text, double *ret)
{
	static const char word[] = "points ";

	for (const char *at = text; at; at = strchr(at, '\n')) {
		char *end;

		at += *at == '\n';
		if (strncmp(at, word, sizeof(word) - 1) != 0)
			continue;
		*ret = strtod(at + sizeof(word) - 1, &end);
		if (end != at + sizeof(word) - 1 && isfinite(*ret))
			return true;
	}
	return false;
}

/* An exception that nothing caught ends many runtimes with 1, which would say that the answer is wrong. */
static json_t *find_exception(const struct local_run *own, const struct verdict *end,
			      const struct result_stream *err)
{
	json_t *error = end->exit_code == 0
				? NULL
				: flow_error_in(own, NULL, end,
						(struct span){ err->text, err->len }, NULL);

	/* Words without a place may be the checker's own; R's errors often have none, and a last line. */
	if (json_is_integer(json_object_get(error, "line")) ||
	    (error && err->text && strstr(err->text, "Execution halted")))
		return error;
	json_decref(error);
	return NULL;
}

static void judge_by_exit(const struct local_run *own, const struct result_stream *err,
			  struct judgement *ret)
{
	static const struct {
		int code;
		enum test_verdict verdict;
	} codes[] = {
		{ 0, TEST_PASSED },
		{ 1, TEST_WRONG_ANSWER },
		{ 2, TEST_PRESENTATION_ERROR },
		{ 3, TEST_CHECKER_ERROR },
		{ 4, TEST_PRESENTATION_ERROR }, /* more output than was wanted */
		{ 8, TEST_PRESENTATION_ERROR }, /* less of it */
	};
	const struct verdict *end = &ret->end;
	json_t *exception;
	const char *type;

	if (end->status == STATUS_CANCELLED) {
		ret->verdict = TEST_CANCELLED;
		return;
	}
	if (end->signal > 0 || end->cause.kind != CAUSE_EXIT)
		return;
	exception = find_exception(own, end, err);
	if (exception) {
		type = json_string_value(json_object_get(exception, "type"));
		ret->missed_input = type && strcmp(type, "EOFError") == 0;
		json_decref(exception);
		return;
	}
	if (end->exit_code == EXIT_POINTS) {
		ret->has_points = find_points(ret->message, &ret->points);
		return;
	}
	ret->verdict = TEST_WRONG_ANSWER;
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].code == end->exit_code)
			ret->verdict = codes[i].verdict;
}

int flow_read_judgement(const struct judge_run *judge, struct job *job, struct judgement *ret,
			struct error *err)
{
	const struct job_outcome *o = job_outcome(job);
	struct result_stream out = { 0 }, errors = { 0 };
	struct result_stage stage;
	int r = flow_job_error(job, err);

	*ret = (struct judgement){ .verdict = TEST_CHECKER_ERROR };
	if (r < 0)
		return r;
	flow_stage(o, 0, judge->in.stages, &stage);
	ret->end = stage.verdict;
	if (capture_text(&o->out, &out) < 0 || capture_text(&o->err, &errors) < 0) {
		r = error_oom(err);
	} else {
		ret->message = first_words(&out, &errors);
		judge_by_exit(&judge->run, &errors, ret);
	}
	/* One that said nothing is told by its end. Without memory, no message. */
	if (ret->verdict == TEST_CHECKER_ERROR && !ret->has_points && !ret->message &&
	    ret->end.cause.detail[0])
		ret->message = strdup(ret->end.cause.detail);
	free(out.text);
	free(errors.text);
	return r;
}

int flow_check(const struct local_run *test_run, const struct request_test *test,
	       struct span output, struct judgement *ret, struct error *err)
{
	struct judge_run judge;
	struct job *job;
	int r = flow_describe_judge(test_run, test->checker.program, test,
				    output.data ? output : (struct span){ "", 0 }, &judge, ret,
				    err);

	if (r <= 0)
		return r;
	r = flow_execute(&judge.run, &judge.in, &job, err);
	if (r >= 0) {
		r = flow_read_judgement(&judge, job, ret, err);
		job_free(job);
	}
	arena_done(&judge.run.memory);
	return r;
}
