/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of the caller's that judge tests. Each is a run of its own: built once, and for each test run in a fresh sandbox
 * that has the test's input, the program's output and the expected output as files. The judged program never meets it.
 */
#include "client/run.h"

#include "link/capture.h"

#include <stdio.h>
#include <string.h>

enum { MESSAGE_MAX = 1000 };

struct checker {
	struct checker *next;
	struct run run; /* its request is the test's */
	bool built;	/* or never will be: its result says why */
	bool broken;
};

static struct checker *checker_of(const struct run *run, const struct request *program)
{
	struct checker *c = run->checkers;

	while (c && c->run.request != program)
		c = c->next;
	return c;
}

static int open_checker(struct run *run, struct request *program, struct error *err)
{
	struct checker *c = calloc(1, sizeof(*c));
	struct run *own;
	int r;

	if (!c)
		return error_oom(err);
	c->next = run->checkers;
	run->checkers = c;
	own = &c->run;
	*own = (struct run){
		.atoll = run->atoll,
		.control = run->control,
		.options = { .use_cancel_fd = run->options.use_cancel_fd,
			     .cancel_fd = run->options.cancel_fd },
		.request = program,
		.output_fd = -EBADF,
		.result = result_new(),
	};
	program->policy = run->request->policy;
	program->merge_stderr = true;
	r = own->result ? flow_open_request(own, err) : error_oom(err);
	if (r >= 0)
		r = flow_grow_files(own, _CHECKER_FILE_MAX, err);
	return r;
}

int flow_open_checkers(struct run *run, struct error *err)
{
	for (size_t i = 0; i < run->request->n_tests; i++) {
		struct request *program = run->request->tests[i].checker.program;
		char field[sizeof(err->field)];
		int r;

		if (!program || checker_of(run, program))
			continue;
		r = open_checker(run, program, err);
		if (r < 0) {
			(void)snprintf(field, sizeof(field), "tests[%zu].checker.%.27s", i,
				       err->field);
			if (err->field[0])
				memcpy(err->field, field, sizeof(field));
			return error_wrap(err, r, "tests[%zu].checker", i);
		}
	}
	return 0;
}

void flow_close_checkers(struct run *run)
{
	while (run->checkers) {
		struct checker *c = run->checkers;

		run->checkers = c->next;
		c->run.request = NULL;
		flow_close(&c->run);
		free(c);
	}
}

/* Its first words; without memory, none. */
static char *first_words(const struct result_stream *words)
{
	return words->len > 0 ? strndup(words->text, MESSAGE_MAX) : NULL;
}

static int build_checker(struct checker *c, struct error *err)
{
	int r = flow_is_compiled(&c->run) ? flow_build(&c->run, err) : 1;

	if (r < 0)
		return r;
	c->built = true;
	c->broken = r == 0;
	return 0;
}

/* The files that it is given stand behind its own. */
static void give_files(struct run *own, const struct request_test *test, struct span output)
{
	const struct span empty = { "", 0 };
	const struct span data[_CHECKER_FILE_MAX] = { [CHECKER_INPUT] = test->stdin_data,
						      [CHECKER_OUTPUT] = output,
						      [CHECKER_EXPECTED] = test->expected };

	for (size_t i = 0; i < _CHECKER_FILE_MAX; i++)
		own->files[own->n_files + i] = (struct build_file){
			.base = SANDBOX_WORK,
			.path = checker_files[i],
			.data = data[i].data ? data[i] : empty,
			.mode = 0644,
		};
}

static int describe_checker(struct run *own, struct sandbox_spec *ret, struct error *err)
{
	int r;

	own->n_files += _CHECKER_FILE_MAX;
	r = flow_describe(own, ret, err);
	own->n_files -= _CHECKER_FILE_MAX;
	ret->caller_input = ret->live = ret->collect = false;
	return r;
}

int flow_check(struct run *run, const struct request_test *test, struct span output,
	       struct checker_verdict *ret, struct error *err)
{
	struct checker *c = checker_of(run, test->checker.program);
	struct result_stream words = { 0 };
	struct result_stage stage;
	struct sandbox_spec in;
	struct job *job;
	int r = c->built ? 0 : build_checker(c, err);

	if (r < 0)
		return r;
	*ret = (struct checker_verdict){ .end.status = STATUS_SETUP_ERROR };
	if (c->broken) {
		ret->message = first_words(&c->run.result->out);
		return 0;
	}
	give_files(&c->run, test, output);
	r = describe_checker(&c->run, &in, err);
	if (r >= 0)
		r = flow_execute(&c->run, &in, &job, err);
	if (r < 0)
		return r;
	r = flow_job_error(job, err);
	if (r >= 0) {
		flow_stage(job_outcome(job), 0, in.stages, &stage);
		ret->end = stage.verdict;
		if (capture_text(&job_outcome(job)->out, &words) == 0)
			ret->message = first_words(&words);
		free(words.text);
	}
	job_free(job);
	return r;
}
