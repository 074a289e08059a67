/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tests`: one build, then a fresh sandbox for each test, so that no test sees another's files. A test passes
 * if the program ended well and its output is accepted (compare.c, flow-checker.c), or its interactor says so
 * (flow-interact.c). Every test gets a verdict; for a test that was not begun, the verdict says why.
 *
 * Tests run side by side where places are free, each on a fiber of its own (a lane):
 *
 *   settle ──▶ the next test that may begin ──▶ lane: sandbox, judge ──▶ over ──▶ its entry ──▶ settle …
 *        └──▶ tests that are left out: skipped, also one that runs or has ended already
 *
 * settle() decides by the order of the list alone, so that the same tests are skipped however many run at once.
 *
 * Whole outputs are compared. All tests together keep as much output as one run, but at least the first and
 * last kilobyte of each; the first tests of the list keep most, so texts are held until all tests before are decided.
 */
#include "run/run.h"

#include "base/loop/fiber.h"
#include "run/compare.h"
#include "run/link/capture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	TEXTS_MIN = 2 << 20, /* of all together, if the limit of one stream is small */
	TEXT_SURE = 2 << 10, /* of each stream */
	MARKS = 128,	     /* more than the marks of omitted bytes in two streams */
	HELD_MAX = 16,	     /* tests whose texts are held */
};

struct held_texts {
	bool held;
	struct result_stream out, err;
};

static const struct usage usage_unknown = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };

/* A test that runs: the request's run with the test's own words, files and limits. */
struct lane {
	struct testing *testing;
	size_t index;
	struct local_run run;
	struct request request;
	struct run_control control;
	struct result_test entry;
	struct held_texts texts;
	int r; /* with err: its run failed */
	struct error err;
	bool over;
	bool dropped; /* its entry is not wanted any more */
};

struct testing {
	struct local_run *run;
	struct fiber *waiter; /* NULL: the loop runs until a lane is over */
	struct lane *lanes[REQUEST_TESTS_MAX];
	struct held_texts texts[REQUEST_TESTS_MAX];
	size_t n_running, n_held;
	int each;    /* sandboxes that a test has at once */
	int extra;   /* places beside the run's own */
	size_t left; /* bytes of texts that may still be kept */
	struct verdict cancelled;
	bool is_cancelled;
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

/* --- entries --- */

static void clear_entry(struct result_test *t)
{
	free(t->name);
	free(t->group);
	free(t->stdout_text);
	free(t->stderr_text);
	free(t->message);
	free(t->transcript);
	free(t->difference.expected);
	free(t->difference.got);
	json_decref(t->error);
	*t = (struct result_test){ 0 };
}

/* What is known of a test before it runs. Without memory, names are missing. */
static void begin_entry(struct result_test *t, const struct request_test *test)
{
	*t = (struct result_test){
		.name = test->name ? strdup(test->name) : NULL,
		.group = test->group_name ? strdup(test->group_name) : NULL,
		.worth = (double)test->points,
		.usage = usage_unknown,
	};
}

/* Of a test that does not run. */
static void fill_entry(struct result_test *t, const struct request_test *test,
		       const struct verdict *why, enum test_verdict verdict)
{
	clear_entry(t);
	begin_entry(t, test);
	t->verdict = verdict;
	t->run = *why;
	t->run.exit_code = -1;
	t->run.signal = 0;
	t->stdout_text = strdup("");
	t->stderr_text = strdup("");
}

static int make_entries(const struct request *req, struct result *res)
{
	if (!res->tests && req->n_tests > 0)
		res->tests = calloc(req->n_tests, sizeof(*res->tests));
	if (!res->tests)
		return req->n_tests > 0 ? -ENOMEM : 0;
	res->n_tests = req->n_tests;
	return 0;
}

int flow_tests_skip(const struct local_run *run, struct result *res, const struct verdict *why,
		    enum test_verdict verdict)
{
	const struct request *req = run->request;
	int r = req ? make_entries(req, res) : 0;

	if (why->status == STATUS_CANCELLED || verdict == TEST_UNDECIDED)
		verdict = verdict_of_end(why);
	for (size_t i = 0; r == 0 && i < res->n_tests; i++) {
		struct result_test *t = &res->tests[i];

		if (t->verdict != TEST_UNDECIDED)
			continue;
		fill_entry(t, &req->tests[i], why, verdict);
		t->error = json_incref(res->error);
	}
	return r;
}

/* --- points --- */

/* Which part of its points a test has earned, from 0 to 1. */
static double fraction_of(const struct result_test *t)
{
	if (t->worth > 0)
		return t->earned / t->worth;
	if (t->verdict == TEST_PASSED)
		return 1;
	return t->scored ? MIN(t->earned, 1.0) : 0;
}

static void score_group(const struct request *req, const struct result *res, size_t index,
			struct result_group *g)
{
	const struct request_group *group = &req->groups[index];
	double sum = 0, worth = 0, fractions = 0, worst = 1, whole;
	size_t n = 0;

	g->verdict = TEST_PASSED;
	g->code = "AC";
	for (size_t i = 0; i < res->n_tests; i++) {
		const struct result_test *t = &res->tests[i];
		double fraction = fraction_of(t);

		if (req->tests[i].group != index)
			continue;
		g->scored = g->scored || t->worth >= 0;
		worth += MAX(t->worth, 0.0);
		sum += t->worth >= 0 ? t->earned : 0;
		fractions += fraction;
		worst = MIN(worst, fraction);
		n++;
		/* A test that failed says more than one that was left out. */
		if (t->verdict != TEST_PASSED &&
		    (g->verdict == TEST_PASSED ||
		     (g->verdict == TEST_SKIPPED && t->verdict != TEST_SKIPPED))) {
			g->verdict = t->verdict;
			g->code = test_code(t);
		}
	}
	whole = group->points >= 0 ? (double)group->points : worth;
	g->scored = g->scored || group->points >= 0;
	g->worth = whole;
	switch (group->scoring) {
	case SCORING_ALL:
		g->earned = g->verdict == TEST_PASSED ? whole : 0;
		break;
	case SCORING_MIN:
		g->earned = whole * worst;
		break;
	default:
		g->earned = group->points >= 0 ? whole * fractions / (double)MAX(n, (size_t)1)
					       : sum;
	}
}

void flow_score_groups(const struct local_run *run, struct result *res)
{
	const struct request *req = run->request;

	if (!req || req->n_groups == 0 || res->n_tests != req->n_tests || res->groups)
		return;
	res->groups = calloc(req->n_groups, sizeof(*res->groups));
	for (size_t i = 0; res->groups && i < req->n_groups; i++) {
		struct result_group *g = &res->groups[res->n_groups++];

		g->name = strdup(req->groups[i].name);
		score_group(req, res, i, g);
	}
}

/* --- one test --- */

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

/* More will not be kept of a stream. */
static int bound_stream(const struct testing *t, struct result_stream *s)
{
	size_t max = MAX(t->left, (size_t)TEXT_SURE);

	return s->len > max ? shorten(s, max) : 0;
}

static int keep_stream(struct testing *t, struct result_stream *s)
{
	int r = bound_stream(t, s);

	t->left -= MIN(t->left, s->len);
	return r;
}

static void drop_texts(struct held_texts *texts)
{
	free(texts->out.text);
	free(texts->err.text);
	*texts = (struct held_texts){ 0 };
}

/* Moves texts into their entries, in the order of the list, up to the first test that is not decided. */
static int keep_texts(struct testing *t, bool all)
{
	struct result *res = t->run->result;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < res->n_tests; i++) {
		struct held_texts *texts = &t->texts[i];
		struct result_test *entry = &res->tests[i];

		if (entry->verdict == TEST_UNDECIDED && !all)
			break;
		if (!texts->held)
			continue;
		r = keep_stream(t, &texts->out);
		if (r >= 0)
			r = keep_stream(t, &texts->err);
		entry->stdout_text = TAKE_PTR(texts->out.text);
		entry->stderr_text = TAKE_PTR(texts->err.text);
		drop_texts(texts);
		t->n_held--;
	}
	return r;
}

/* What a program that judges says of a test. */
static void take_judgement(struct result_test *t, struct judgement *j)
{
	t->message = TAKE_PTR(j->message);
	t->verdict = j->verdict;
	if (j->verdict == TEST_CANCELLED)
		t->run = j->end;
	if (!j->has_points)
		return;
	/* A test without points is worth one to a program that gives some. */
	t->scored = true;
	t->earned = MIN(MAX(j->points, 0.0), t->worth >= 0 ? t->worth : 1);
	t->verdict = j->points >= (t->worth >= 0 ? t->worth : 1) ? TEST_PASSED : TEST_WRONG_ANSWER;
}

/* The program was ended because it had been rejected; that is no end of its own. */
static void excuse_end(struct verdict *v)
{
	*v = (struct verdict){
		.status = STATUS_ERROR,
		.exit_code = -1,
		.cause = { .kind = CAUSE_CANCELLED, .limit = -1, .peak = -1, .suggest = -1 },
	};
	(void)snprintf(v->cause.detail, sizeof(v->cause.detail),
		       "ended, because the interactor had judged it");
}

/* flow-interact.c says who decides. */
static void judge_talk(struct result_test *t, struct interaction *talk)
{
	struct judgement *j = &talk->judgement;
	bool failed = t->run.status != STATUS_SUCCESS;
	bool rejects = j->verdict != TEST_PASSED && !j->has_points;

	t->transcript = TAKE_PTR(talk->transcript);
	if (j->end.status != STATUS_SETUP_ERROR && failed && (!rejects || talk->program_first)) {
		t->verdict = verdict_of_end(&t->run);
		if (t->run.cause.kind == CAUSE_TIMEOUT &&
		    (j->end.status == STATUS_TIMEOUT || j->end.status == STATUS_LIMIT)) {
			t->verdict = TEST_CHECKER_ERROR;
			t->message = strdup(
				"the interactor did not end, and the program had waited "
				"for it");
		}
		return;
	}
	if (!failed && j->verdict == TEST_CHECKER_ERROR && j->missed_input) {
		free(j->message);
		j->message = strdup("the program ended before the interactor had finished");
		j->verdict = TEST_WRONG_ANSWER;
	}
	take_judgement(t, j);
	if (t->verdict != TEST_CANCELLED && failed && rejects)
		excuse_end(&t->run);
}

/* The entry of a test whose program has ended. On failure, too, *ret is to be freed. */
static int judge_test(struct lane *l, const struct sandbox_spec *in, struct job_outcome *o,
		      struct interaction *talk, struct error *err)
{
	const struct request_test *test = &l->run.request->tests[l->index];
	struct result_test *ret = &l->entry;
	struct result_stream out = { 0 }, errors = { 0 };
	struct result_stage stage;
	struct span printed, said;
	struct judgement j;
	int r;

	flow_stage(o, 0, in->stages, &stage);
	ret->duration_us = stage.duration_us;
	ret->usage = stage.usage;
	r = capture_text(&o->out, &out);
	if (r >= 0)
		r = capture_text(&o->err, &errors);
	if (r < 0)
		r = error_oom(err);
	printed = (struct span){ out.text, out.len };
	said = (struct span){ errors.text, errors.len };
	flow_refine_suggestion(&l->run, printed, said, &stage);
	ret->run = stage.verdict;
	if (r >= 0 && talk) {
		judge_talk(ret, talk);
	} else if (r >= 0 && stage.verdict.status != STATUS_SUCCESS) {
		ret->verdict = verdict_of_end(&ret->run);
	} else if (r >= 0 && test->checker.kind == CHECKER_PROGRAM) {
		r = flow_check(&l->run, test, printed, &j, err);
		if (r >= 0)
			take_judgement(ret, &j);
	} else if (r >= 0) {
		r = outputs_compare(&test->checker, printed, test->expected, &ret->difference);
		if (r < 0)
			r = error_oom(err);
		ret->verdict = ret->difference.line == 0 ? TEST_PASSED : TEST_WRONG_ANSWER;
	}
	if (l->request.merge_stderr && !talk)
		said = printed;
	ret->error = flow_error_in(&l->run, NULL, &ret->run, said, NULL);
	flow_hear(&l->run, said, ret);
	if (ret->verdict == TEST_PASSED && !ret->scored)
		ret->earned = MAX(ret->worth, 0.0);
	l->texts = (struct held_texts){ true, out, errors };
	if (r >= 0 && (bound_stream(l->testing, &l->texts.out) < 0 ||
		       bound_stream(l->testing, &l->texts.err) < 0))
		r = error_oom(err);
	return r;
}

/* The test's files beside the request's, or in the place of one. */
static int add_test_files(struct local_run *run, const struct request_test *test, struct error *err)
{
	int r = test->n_files > 0 ? flow_grow_files(run, test->n_files, err) : 0;

	for (size_t i = 0; r >= 0 && i < test->n_files; i++) {
		const struct request_file *f = &test->files[i];
		size_t at = 0;

		while (at < run->n_files && strcmp(run->files[at].path, f->path) != 0)
			at++;
		run->files[at] = (struct build_file){
			.base = SANDBOX_WORK, .path = f->path, .data = f->data, .mode = f->mode
		};
		run->n_files = MAX(run->n_files, at + 1);
	}
	return r;
}

static int describe_test(struct lane *l, struct sandbox_spec *ret, struct error *err)
{
	const struct local_run *all = l->testing->run;
	const struct request_test *test = &all->request->tests[l->index];
	int r;

	l->request = *all->request;
	l->run = *all;
	l->run.request = &l->request;
	l->run.decision.request = &l->request;
	l->run.control = &l->control;
	l->run.memory = (struct arena){ 0 };
	l->run.observer = (struct run_observer){ 0 };
	l->run.keeper = (struct run_keeper){ 0 };
	l->request.env = test->env;
	l->request.n_env = test->n_env;
	if (test->args) {
		l->request.args = test->args;
		for (l->request.n_args = 0; test->args[l->request.n_args];)
			l->request.n_args++;
	}
	decision_stage_limits(&all->decision, &test->limits, test->limits_set,
			      &l->run.decision.limits);
	/* A descriptor can be in a loop once, and this one is in it for each sandbox. */
	if (all->options.use_cancel_fd) {
		l->run.options.cancel_fd = fcntl(all->options.cancel_fd, F_DUPFD_CLOEXEC, 3);
		if (l->run.options.cancel_fd < 0)
			return error_set(err, ERROR_INTERNAL, errno, "cannot start a test: %s",
					 strerror(errno));
	}
	r = add_test_files(&l->run, test, err);
	if (r >= 0)
		r = flow_describe(&l->run, ret, err);
	if (r < 0)
		return r;
	ret->caller_input = ret->live = ret->collect = false;
	ret->stdin_data = test->stdin_data;
	return 0;
}

static int perform_test(struct lane *l, struct error *err)
{
	const struct request_test *test = &l->testing->run->request->tests[l->index];
	struct local_run *all = l->testing->run;
	struct interaction talk = { 0 };
	struct job_outcome *o;
	struct sandbox_spec in;
	struct job *job;
	int r = describe_test(l, &in, err);

	if (r < 0)
		return r;
	if (l->request.interactor)
		r = flow_interact(&l->run, &in, test, &talk, &job, err);
	else
		r = flow_execute(&l->run, &in, &job, err);
	if (r < 0)
		return r;
	o = job_outcome(job);
	r = flow_job_error(job, err);
	if (r >= 0 && (flow_take_changes(all->result, o) < 0 || flow_take_network(&l->run, o) < 0))
		r = error_oom(err);
	if (r >= 0) {
		flow_isolation(&l->run, &o->start);
		if (l->index == 0)
			all->result->start_us = (o->start.at_ns - all->accepted_ns) / 1000;
		r = judge_test(l, &in, o, l->request.interactor ? &talk : NULL, err);
	}
	free(talk.judgement.message);
	free(talk.transcript);
	job_free(job);
	return r;
}

/* --- many tests --- */

static void run_lane(void *data)
{
	struct lane *l = data;
	struct testing *t = l->testing;

	l->control.fiber = fiber_current();
	l->r = perform_test(l, &l->err);
	l->over = true;
	l->control.fiber = NULL;
	if (t->waiter)
		fiber_wake(t->waiter);
	else
		loop_stop(t->run->atoll->loop);
}

static void lane_free(struct lane *l)
{
	if (l->run.options.use_cancel_fd && l->run.options.cancel_fd >= 0)
		(void)close(l->run.options.cancel_fd);
	clear_entry(&l->entry);
	drop_texts(&l->texts);
	arena_done(&l->run.memory);
	free(l);
}

/* The run has a place for its first sandbox; a test beside others waits for no place. */
static bool take_places(struct testing *t)
{
	const struct local_run *run = t->run;
	bool must = t->n_running == 0;
	int n = must ? t->each - 1 : t->each;

	if (n == 0)
		return true;
	/* The changes of one test are the next one's files. */
	if (!must && run->decision.workspace)
		return false;
	if (run->places.take) {
		if (!run->places.take(run->places.data, n, must))
			return false;
	} else if (!must && 1 + t->extra + n > run->decision.facts->cores) {
		return false;
	}
	t->extra += n;
	return true;
}

static void give_places(struct testing *t)
{
	int wanted = t->n_running > 0 ? (int)t->n_running * t->each - 1 : 0;

	if (t->run->places.give && t->extra > wanted)
		t->run->places.give(t->run->places.data, t->extra - wanted);
	t->extra = MIN(t->extra, wanted);
}

static int start_lane(struct testing *t, size_t index, struct error *err)
{
	struct lane *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return error_oom(err);
	l->testing = t;
	l->index = index;
	begin_entry(&l->entry, &t->run->request->tests[index]);
	t->lanes[index] = l;
	t->n_running++;
	r = fiber_start(t->run->atoll->loop, run_lane, l);
	if (r >= 0)
		return 0;
	t->lanes[index] = NULL;
	t->n_running--;
	lane_free(l);
	return error_set(err, ERROR_INTERNAL, -r, "cannot start a test: %s", strerror(-r));
}

static void kill_lanes(struct testing *t, enum cause_kind cause)
{
	for (size_t i = 0; i < t->run->request->n_tests; i++)
		if (t->lanes[i])
			run_kill(&t->lanes[i]->control, cause);
}

/* Takes the entries of lanes that are over. The first failure is the run's. */
static int reap_lanes(struct testing *t, struct error *err)
{
	struct result *res = t->run->result;
	int failure = 0;

	for (size_t i = 0; i < res->n_tests; i++) {
		struct lane *l = t->lanes[i];

		if (!l || !l->over)
			continue;
		t->lanes[i] = NULL;
		t->n_running--;
		if (l->r < 0 && !l->dropped && failure == 0) {
			failure = l->r;
			*err = l->err;
		}
		if (!l->dropped && l->entry.verdict != TEST_UNDECIDED) {
			clear_entry(&res->tests[i]);
			res->tests[i] = l->entry;
			l->entry = (struct result_test){ 0 };
			t->texts[i] = l->texts;
			l->texts = (struct held_texts){ 0 };
			t->n_held += t->texts[i].held;
			if (res->tests[i].verdict == TEST_CANCELLED && !t->is_cancelled) {
				t->is_cancelled = true;
				t->cancelled = res->tests[i].run;
			}
		}
		lane_free(l);
	}
	give_places(t);
	if (keep_texts(t, false) < 0 && failure == 0)
		failure = error_oom(err);
	return failure;
}

static void skip_test(struct testing *t, size_t index, const char *why, const char *what)
{
	struct result_test *entry = &t->run->result->tests[index];
	struct verdict v = {
		.status = STATUS_CANCELLED,
		.cause = { .kind = CAUSE_CANCELLED, .limit = -1, .peak = -1, .suggest = -1 },
	};

	if (entry->verdict == TEST_SKIPPED)
		return;
	if (t->lanes[index]) {
		t->lanes[index]->dropped = true;
		run_kill(&t->lanes[index]->control, CAUSE_CANCELLED);
	}
	/* It ran beside the one that failed. */
	t->n_held -= t->texts[index].held;
	drop_texts(&t->texts[index]);
	(void)snprintf(v.cause.detail, sizeof(v.cause.detail), "%s%s", why, what);
	fill_entry(entry, &t->run->request->tests[index], &v, TEST_SKIPPED);
}

/* What the tests so far say of a group. */
struct group_state {
	bool failed; /* a test of it ran and failed */
	bool broken; /* or was left out */
	bool open;   /* a test of it is not decided */
};

/* The first group that a group needs and that is broken, or open; NULL: there is none. */
static const char *find_need(const struct request *req, size_t group,
			     const struct group_state *states, bool open)
{
	const char **needs = group < req->n_groups ? req->groups[group].needs : NULL;

	for (; needs && *needs; needs++)
		for (size_t g = 0; g < req->n_groups; g++)
			if (strcmp(req->groups[g].name, *needs) == 0 &&
			    (open ? states[g].open : states[g].broken))
				return *needs;
	return NULL;
}

/* Skips what is to be skipped, in the order of the list. Returns the next test that may begin; n_tests: none. */
static size_t settle(struct testing *t)
{
	const struct request *req = t->run->request;
	struct group_state states[REQUEST_TESTS_MAX + REQUEST_GROUPS_MAX + 1] = { 0 };
	size_t next = req->n_tests;
	bool failed = false;

	for (size_t i = 0; i < req->n_tests; i++) {
		const struct result_test *entry = &t->run->result->tests[i];
		size_t group = req->tests[i].group;
		const char *need = find_need(req, group, states, false);

		if (req->stop_at == STOP_FIRST && failed)
			skip_test(t, i, "a test before it failed", "");
		else if (req->stop_at == STOP_GROUP && states[group].failed)
			skip_test(t, i, "a test of its group failed", "");
		else if (need)
			skip_test(t, i, "it needs the group ", need);
		if (entry->verdict == TEST_UNDECIDED) {
			states[group].open = true;
			if (next == req->n_tests && !t->lanes[i] &&
			    !find_need(req, group, states, true))
				next = i;
		} else if (entry->verdict != TEST_PASSED) {
			states[group].broken = true;
			states[group].failed |= entry->verdict != TEST_SKIPPED;
			failed = failed || entry->verdict != TEST_SKIPPED;
		}
	}
	return next;
}

static int wait_for_lanes(struct testing *t)
{
	if (t->waiter) {
		fiber_wait();
		return 0;
	}
	for (size_t i = 0; i < t->run->request->n_tests; i++)
		if (t->lanes[i] && t->lanes[i]->over)
			return 0;
	return loop_run(t->run->atoll->loop);
}

static int run_all(struct testing *t, struct error *err)
{
	const struct run_control *c = t->run->control;
	size_t n = t->run->request->n_tests;
	int r = 0;

	for (;;) {
		struct error failure = { 0 };
		size_t next = settle(t);
		bool ends = r < 0 || t->is_cancelled || (c && c->killed);
		int e = 0;

		if (ends)
			kill_lanes(t, c && c->killed ? c->kill_cause : CAUSE_CANCELLED);
		while (!ends && e >= 0 && next < n && (t->n_running == 0 || t->n_held < HELD_MAX) &&
		       take_places(t)) {
			e = start_lane(t, next, &failure);
			next = settle(t);
		}
		if (e >= 0 && t->n_running > 0)
			e = wait_for_lanes(t);
		if (e < 0 && failure.code == ERROR_NONE)
			(void)error_set(&failure, ERROR_INTERNAL, -e, "the tests were lost: %s",
					strerror(-e));
		if (e >= 0)
			e = reap_lanes(t, &failure);
		if (e < 0 && r >= 0) {
			r = e;
			*err = failure;
		}
		if (t->n_running > 0 || (!ends && r >= 0 && settle(t) < n))
			continue;
		/* After a cancel, tests between them may be undecided. */
		e = keep_texts(t, true);
		return e < 0 && r >= 0 ? error_oom(err) : r;
	}
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

/*
 * The whole run is a success if all tests passed. Otherwise the first failed one gives the verdict, unless the
 * run was cancelled. A rejected output is a failure of the whole, though its program ended well.
 */
static void sum_up(struct result *res)
{
	const struct result_test *bad = NULL;
	size_t passed = 0;
	bool judged;

	res->usage = (struct usage){ 0 };
	for (size_t i = 0; i < res->n_tests; i++) {
		const struct result_test *t = &res->tests[i];

		if (t->verdict != TEST_SKIPPED) {
			add_usage(&res->usage, &t->usage);
			res->duration_us += t->duration_us;
		}
		passed += t->verdict == TEST_PASSED;
		if (t->verdict == TEST_PASSED || t->verdict == TEST_SKIPPED)
			continue;
		if (!bad || (t->verdict == TEST_CANCELLED && bad->verdict != TEST_CANCELLED))
			bad = t;
	}
	judged = bad &&
		 (bad->verdict == TEST_WRONG_ANSWER || bad->verdict == TEST_PRESENTATION_ERROR ||
		  bad->verdict == TEST_CHECKER_ERROR);
	res->verdict = bad ? bad->run : res->tests[0].run;
	if (judged) {
		res->verdict = (struct verdict){
			.status = STATUS_ERROR,
			.exit_code = 1,
			.cause = { .kind = CAUSE_EXIT, .limit = -1, .peak = -1, .suggest = -1 },
		};
	}
	if (!bad || judged)
		(void)snprintf(res->verdict.cause.detail, sizeof(res->verdict.cause.detail),
			       "%zu of %zu tests passed", passed, res->n_tests);
}

int flow_tests(struct local_run *run, struct error *err)
{
	struct testing t = { .run = run,
			     .waiter = fiber_current(),
			     .each = run->request->interactor ? 2 : 1 };
	int r = flow_build_checkers(run, err);

	if (r >= 0 && make_entries(run->request, run->result) < 0)
		r = error_oom(err);
	if (r < 0)
		return r;
	t.left = (size_t)MAX(2 * run->decision.limits.output_bytes, (int64_t)TEXTS_MIN) + MARKS;
	r = run_all(&t, err);
	if (r < 0)
		return r;
	if (t.is_cancelled)
		(void)!flow_tests_skip(run, run->result, &t.cancelled,
				       TEST_UNDECIDED); /* the list exists already */
	for (size_t i = 0; i < run->result->n_tests; i++)
		if (run->result->tests[i].verdict == TEST_UNDECIDED)
			return error_set(err, ERROR_INTERNAL, ECANCELED,
					 "the run was ended before all of its tests");
	sum_up(run->result);
	return 0;
}
