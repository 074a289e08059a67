/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tests`: one build, then a fresh sandbox for each test, so that no test sees another's files. A test passes
 * if the program ended well and its checker accepts what it printed (compare.c, flow-checker.c). Every test gets a verdict; for a test that was never begun,
 * the verdict says why. Whole outputs are compared. All tests together keep as much output as one run, but at
 * least the first and last kilobyte of each.
 */
#include "client/run.h"

#include "client/compare.h"
#include "link/capture.h"

#include <stdio.h>
#include <string.h>

enum {
	TEXTS_MIN = 2 << 20, /* of all together, if the limit of one stream is small */
	TEXT_SURE = 2 << 10, /* of each stream */
	MARKS = 128,	     /* more than the marks of omitted bytes in two streams */
};

static const struct usage usage_unknown = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };

struct testing {
	struct run *run;
	struct sandbox_spec in;
	size_t left; /* bytes that may still be kept */
};

/* Of a program whose output is not judged. */
static enum test_verdict verdict_of_end(const struct verdict *v)
{
	switch (v->status) {
	case STATUS_TIMEOUT:
		return TEST_TIMEOUT;
	case STATUS_LIMIT:
		return TEST_LIMIT;
	case STATUS_CANCELLED:
		return TEST_CANCELLED;
	default:
		return TEST_ERROR;
	}
}

int flow_tests_skip(const struct run *run, struct result *res, const struct verdict *why,
		    enum test_verdict verdict)
{
	size_t n = run->request ? run->request->n_tests : 0;

	if (res->n_tests >= n)
		return 0;
	if (!res->tests)
		res->tests = calloc(n, sizeof(*res->tests));
	if (!res->tests)
		return -ENOMEM;
	while (res->n_tests < n) {
		struct result_test *t = &res->tests[res->n_tests++];

		t->run = *why;
		t->run.exit_code = -1;
		t->verdict = verdict && why->status != STATUS_CANCELLED ? verdict
									: verdict_of_end(why);
		t->stdout_text = strdup("");
		t->stderr_text = strdup("");
		t->worth = (double)run->request->tests[res->n_tests - 1].points;
		t->usage = usage_unknown;
		t->error = json_incref(res->error);
	}
	return 0;
}

/* Counters of all tests: sums, or the maximum of peaks. */
static void add_usage(struct usage *sum, const struct usage *u)
{
	sum->user_us += MAX(u->user_us, 0);
	sum->system_us += MAX(u->system_us, 0);
	sum->io_read_bytes += MAX(u->io_read_bytes, 0);
	sum->io_write_bytes += MAX(u->io_write_bytes, 0);
	sum->oom_kills += MAX(u->oom_kills, 0);
	sum->pids_refused += MAX(u->pids_refused, 0);
	sum->memory_peak_bytes = MAX(sum->memory_peak_bytes, u->memory_peak_bytes);
	sum->pids_peak = MAX(sum->pids_peak, u->pids_peak);
	sum->disk_free_bytes = u->disk_free_bytes;
	sum->disk_free_files = u->disk_free_files;
}

/* Keeps head and tail, as if the limit had been max. */
static int shorten(struct result_stream *s, size_t max)
{
	struct result_stream cut = { 0 };
	struct capture c;
	int r;

	/* If its own limit was reached, the mark in the middle is dropped with the rest. */
	capture_init(&c, (int64_t)(s->truncated ? MIN(max, s->len - MARKS) : max));
	r = capture_add(&c, s->text, s->len);
	c.bytes = s->bytes;
	if (r >= 0)
		r = capture_text(&c, &cut);
	capture_done(&c);
	if (r < 0)
		return r;
	free(s->text);
	*s = cut;
	return 0;
}

static int keep_stream(struct testing *t, struct result_stream *s)
{
	size_t max = MAX(t->left, (size_t)TEXT_SURE);
	int r = s->len > max ? shorten(s, max) : 0;

	t->left -= MIN(t->left, s->len);
	return r;
}

/* What a checker's end says about the test. */
static void take_checker(struct result_test *t, const struct checker_verdict *v)
{
	t->message = v->message;
	t->verdict = v->end.status == STATUS_SUCCESS ? TEST_PASSED : TEST_WRONG_ANSWER;
	if (v->end.status == STATUS_CANCELLED) {
		t->run = v->end;
		t->verdict = TEST_CANCELLED;
	} else if (v->end.status != STATUS_SUCCESS &&
		   (v->end.status != STATUS_ERROR || v->end.signal > 0)) {
		t->verdict = TEST_CHECKER_ERROR;
		/* A program that said nothing is told by its end. Without memory, no message. */
		if (!t->message && v->end.cause.detail[0])
			t->message = strdup(v->end.cause.detail);
	}
}

/* Judges the output of a program that ended well. */
static int judge_output(struct testing *t, const struct request_test *test, struct span output,
			struct result_test *ret, struct error *err)
{
	struct checker_verdict v;
	int r;

	if (test->checker.kind != CHECKER_PROGRAM) {
		r = outputs_compare(&test->checker, output, test->expected, &ret->difference);
		ret->verdict = ret->difference.line == 0 ? TEST_PASSED : TEST_WRONG_ANSWER;
		return r < 0 ? error_oom(err) : 0;
	}
	r = flow_check(t->run, test, output, &v, err);
	if (r == 0)
		take_checker(ret, &v);
	return r;
}

static int take_texts(struct testing *t, struct result_stream *out, struct result_stream *err,
		      struct result_test *ret)
{
	int r = keep_stream(t, out);

	if (r >= 0)
		r = keep_stream(t, err);
	ret->stdout_text = out->text;
	ret->stderr_text = err->text;
	return r;
}

/* On failure, too, *ret is the result's to free. */
static int judge_test(struct testing *t, const struct job_outcome *o,
		      const struct request_test *test, struct result_test *ret, struct error *err)
{
	struct result *res = t->run->result;
	struct result_stream out = { 0 }, errors = { 0 };
	struct result_stage stage;
	struct span printed, said;
	int r;

	flow_stage(o, 0, t->in.stages, &stage);
	*ret = (struct result_test){
		.worth = (double)test->points,
		.duration_us = stage.duration_us,
		.usage = stage.usage,
	};
	res->n_tests++;
	r = capture_text(&o->out, &out);
	if (r >= 0)
		r = capture_text(&o->err, &errors);
	printed = (struct span){ out.text, out.len };
	said = (struct span){ errors.text, errors.len };
	flow_refine_suggestion(t->run, printed, said, &stage);
	ret->run = stage.verdict;
	if (r < 0)
		r = error_oom(err);
	else if (stage.verdict.status == STATUS_SUCCESS)
		r = judge_output(t, test, printed, ret, err);
	else
		ret->error = flow_error_in(t->run, NULL, &ret->run,
					   t->run->request->merge_stderr ? printed : said);
	if (r < 0)
		ret->verdict = TEST_CHECKER_ERROR;
	else if (ret->verdict == TEST_UNDECIDED)
		ret->verdict = verdict_of_end(&ret->run);
	flow_hear(t->run, t->run->request->merge_stderr ? printed : said, ret);
	if (ret->verdict == TEST_PASSED)
		ret->earned = MAX(ret->worth, 0.0);
	if (take_texts(t, &out, &errors, ret) < 0 && r >= 0)
		r = error_oom(err);
	add_usage(&res->usage, &o->done.usage);
	res->duration_us += stage.duration_us;
	return r;
}

static int run_test(struct testing *t, size_t index, struct error *err)
{
	struct run *run = t->run;
	const struct request_test *test = &run->request->tests[index];
	struct result *res = run->result;
	struct job_outcome *o;
	struct job *job;
	int r;

	t->in.stdin_data = test->stdin_data;
	r = flow_execute(run, &t->in, &job, err);
	if (r < 0)
		return r;
	o = job_outcome(job);
	r = flow_job_error(job, err);
	if (r >= 0 && (flow_take_changes(res, o) < 0 || flow_take_network(run, o) < 0))
		r = error_oom(err);
	if (r >= 0) {
		flow_isolation(run, &o->start);
		if (index == 0)
			res->start_us = (o->start.at_ns - run->accepted_ns) / 1000;
		r = judge_test(t, o, test, &res->tests[res->n_tests], err);
	}
	job_free(job);
	return r;
}

/*
 * The whole run is a success if all tests passed. Otherwise the first failed one gives the verdict, unless the
 * run was cancelled.
 */
static void sum_up(struct result *res, size_t n_asked)
{
	const struct result_test *bad = NULL;
	size_t failed = 0;

	for (size_t i = 0; i < res->n_tests; i++) {
		if (res->tests[i].verdict == TEST_PASSED)
			continue;
		failed++;
		if (!bad || (res->tests[i].run.status == STATUS_CANCELLED &&
			     bad->run.status != STATUS_CANCELLED))
			bad = &res->tests[i];
	}
	res->verdict = bad ? bad->run : res->tests[0].run;
	if (bad && bad->run.status == STATUS_SUCCESS) {
		res->verdict.status = STATUS_ERROR;
		res->verdict.exit_code = 1;
	}
	if (!bad || bad->run.status == STATUS_SUCCESS)
		(void)snprintf(res->verdict.cause.detail, sizeof(res->verdict.cause.detail),
			       "%zu of %zu tests passed", res->n_tests - failed, n_asked);
}

int flow_tests(struct run *run, struct error *err)
{
	struct result *res = run->result;
	size_t n = run->request->n_tests;
	struct testing t = { .run = run };
	int r = flow_describe(run, &t.in, err);

	if (r < 0)
		return r;
	t.in.caller_input = false;
	t.in.live = false;
	t.in.collect = false;
	t.left = (size_t)MAX(2 * t.in.decision->limits.output_bytes, (int64_t)TEXTS_MIN) + MARKS;
	res->usage = (struct usage){ 0 };
	res->tests = calloc(n, sizeof(*res->tests));
	if (!res->tests)
		return error_oom(err);
	while (res->n_tests < n) {
		const struct verdict *last;

		r = run_test(&t, res->n_tests, err);
		if (r < 0)
			return r;
		last = &res->tests[res->n_tests - 1].run;
		if (last->status == STATUS_CANCELLED)
			(void)!flow_tests_skip(run, res, last,
					       TEST_UNDECIDED); /* the list exists already */
	}
	sum_up(res, n);
	return 0;
}
