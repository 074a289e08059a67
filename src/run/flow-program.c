/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own sandbox: described as a sandbox_spec, run, and turned into a result. If a request has
 * `stages`, they run in this sandbox instead (flow-stages.c).
 */
#include "run/run.h"

#include "run/analyse/analyse.h"
#include "run/retry.h"
#include "spec/knob.h"

#include <stdio.h>
#include <string.h>

/* The caller's files and the product of the compile stage, in one list. */
static int list_program_files(struct local_run *run, struct sandbox_spec *in, struct error *err)
{
	size_t n = run->n_files + run->product.n_files;
	struct build_file *files = arena_alloc(&run->memory, (n + 1) * sizeof(*files));

	if (!files)
		return error_oom(err);
	for (size_t i = 0; i < run->n_files; i++)
		files[i] = run->files[i];
	for (size_t i = 0; i < run->product.n_files; i++) {
		const struct request_file *f = &run->product.files[i];

		files[run->n_files + i] = (struct build_file){
			.base = SANDBOX_BUILD, .path = f->path, .data = f->data, .mode = f->mode
		};
	}
	in->files = files;
	in->n_files = n;
	return 0;
}

static int describe_language(struct local_run *run, struct sandbox_spec *in, struct error *err)
{
	const struct request *req = run->request;
	struct word_context c = flow_words(run, SANDBOX_BUILD, &run->decision.limits);
	struct stage_spec *stage = arena_alloc(&run->memory, sizeof(*stage));
	const char **argv = flow_run_words(run, &c, req->n_args);
	const char **env = flow_env(run, NULL, &c);
	size_t n = 0;

	if (!stage || !argv || !env)
		return error_oom(err);
	while (argv[n])
		n++;
	memcpy(argv + n, req->args, req->n_args * sizeof(char *));
	*stage = (struct stage_spec){
		.name = "run",
		.argv = argv,
		.env = env,
		.limits = &run->decision.limits,
		.judged = req->n_tests > 0,
	};
	in->stages = stage;
	in->n_stages = 1;
	in->warm = flow_warm(run, &c);
	return 0;
}

static int describe_prelude(struct local_run *run, struct sandbox_spec *in, struct error *err)
{
	const char *name = run->language ? run->language->prelude : NULL;
	struct word_context c = flow_words(run, SANDBOX_BUILD, &run->decision.limits);
	struct span text;
	int r;

	if (!name)
		return 0;
	r = registry_runner(run->atoll->registry, name, &text);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "runners/%s cannot be read: %s", name,
				 strerror(-r));
	in->prelude = flow_expand(&run->memory, text.data, &c);
	return in->prelude ? 0 : error_oom(err);
}

int flow_describe(struct local_run *run, struct sandbox_spec *ret, struct error *err)
{
	struct sandbox_spec in = {
		.decision = &run->decision,
		.stdin_data = run->request->stdin_data,
		.caller_input = true,
		.live = true,
		.collect = flow_wants_files(run),
		.merge_stderr = run->request->merge_stderr,
		.build_scratch = flow_is_compiled(run) && run->language->warm.kind != WARMTH_NONE,
		.take_file = flow_take_file,
	};
	int r = flow_add_stage_files(run, err);

	if (r >= 0 && run->request->eval)
		r = flow_put_runner(run, err);
	if (r >= 0)
		r = list_program_files(run, &in, err);
	if (r < 0)
		return r;
	if (run->request->n_stages > 0)
		r = flow_describe_stages(run, &in, err);
	else if (run->request->invoke_method)
		r = flow_describe_invoke(run, &in, err);
	else
		r = describe_language(run, &in, err);
	if (r >= 0)
		r = describe_prelude(run, &in, err);
	if (r >= 0)
		*ret = in;
	return r;
}

int flow_add_stage(struct result *res, const struct result_stage *stage)
{
	struct result_stage *stages = reallocarray(res->stages, res->n_stages + 1, sizeof(*stages));

	if (!stages)
		return -ENOMEM;
	res->stages = stages;
	stages[res->n_stages++] = *stage;
	return 0;
}

void flow_isolation(struct local_run *run, const struct record_started *start)
{
	static const char *const cgroups[_CGROUP_KIND_MAX] = { "none", "v1", "v2" };
	static const char *const fronts[_FRONT_KIND_MAX] = { "caller", "confined", "partly",
							     "open" };
	static const char *const nets[] = {
		[NETWORK_OFF] = "off", [NETWORK_NONE] = "none", [NETWORK_ALLOW] = "allow"
	};
	const struct host_facts *facts = run->decision.facts;
	struct isolation *iso = &run->result->isolation;
	uint32_t missing = run->decision.missing | start->missing;
	bool is_minimal = run->policy->isolation == ISOLATION_MINIMAL;
	size_t n = 0;

	*iso = (struct isolation){
		.tier = is_minimal ? "minimal"
			: missing  ? "reduced"
				   : "full",
		.user = start->copy	     ? "shared with parent"
			: start->user_unique ? "unique"
					     : "shared",
		.cgroup = start->cgroup < _CGROUP_KIND_MAX ? cgroups[start->cgroup] : "none",
		.landlock = start->landlock_abi,
		.proc = start->proc && !is_minimal ? "pid" : "none",
		.net = nets[run->decision.network],
		.broker = facts->broker_open ? "open" : "confined",
		.front = fronts[facts->front],
	};
	(void)snprintf(iso->seccomp, sizeof(iso->seccomp), "%s", start->seccomp);
	for (int layer = 0; layer < _LAYER_MAX && n + 1 < ARRAY_SIZE(iso->missing); layer++)
		if (missing & (1U << layer))
			iso->missing[n++] = layer_name((enum layer)layer);
}

void flow_refine_suggestion(const struct local_run *run, struct span out, struct span err,
			    struct result_stage *stage)
{
	struct cause *cause = &stage->verdict.cause;
	const struct knob *k = cause->limit_key ? knob_find(cause->limit_key) : NULL;

	if (k)
		retry_refine(cause, &(struct retry_view){
					    .ceiling = decision_ceiling(&run->decision, k),
					    .code = run->code,
					    .out = out,
					    .err = err,
					    .cpu_us = stage->usage.user_us + stage->usage.system_us,
					    .wall_us = stage->duration_us });
}

static int fill_stages(struct local_run *run, const struct sandbox_spec *in,
		       const struct job_outcome *o)
{
	struct result *res = run->result;
	size_t n = MAX(MIN(o->n_stages, in->n_stages), (size_t)1);

	for (size_t i = 0; i < n; i++) {
		struct result_stage stage;
		int r;

		flow_stage(o, i, &in->stages[i], &stage);
		flow_refine_suggestion(run, (struct span){ res->out.text, res->out.len },
				       (struct span){ res->err.text, res->err.len }, &stage);
		r = flow_add_stage(res, &stage);
		if (r < 0)
			return r;
		res->duration_us += stage.duration_us;
		res->verdict = stage.verdict;
	}
	return 0;
}

/* It failed by itself. An exit code after a kill is not the program's own. */
static bool failed_by_itself(const struct verdict *v)
{
	return v->status == STATUS_ERROR || (v->status == STATUS_LIMIT && v->signal == 0 &&
					     v->exit_code != 124 && v->exit_code != 137);
}

static struct error_input error_input(const struct local_run *run, const char *stage,
				      const struct verdict *v, struct span words)
{
	return (struct error_input){
		.request = run->request->root,
		.language = run->language ? run->language->name : "bash",
		.stage = stage,
		.detail = v->cause.detail,
		.signal = v->signal,
		.words = words.data,
		.words_len = words.data ? words.len : 0,
	};
}

json_t *flow_error_in(const struct local_run *run, const char *stage, const struct verdict *v,
		      struct span words, char **suggestion)
{
	const struct error_input in = error_input(run, stage, v, words);

	return failed_by_itself(v) ? analysis_error(&in, suggestion) : NULL;
}

void flow_hear(struct local_run *run, struct span words, struct result_test *test)
{
	const struct error_input in = error_input(run, NULL, &test->run, words);
	struct result_stage stage = { .duration_us = test->duration_us, .usage = test->usage };

	if (test->verdict != TEST_ERROR && test->verdict != TEST_WRONG_ANSWER)
		return;
	switch (analysis_meaning(&in)) {
	case WORDS_NO_PROGRAM:
		test->verdict = TEST_COMPILE_ERROR;
		break;
	case WORDS_NO_MEMORY:
		test->verdict = TEST_LIMIT;
		verdict_no_memory(&test->run, &test->usage, &run->decision.limits);
		stage.verdict = test->run;
		flow_refine_suggestion(run, words, words, &stage);
		test->run = stage.verdict;
		break;
	case WORDS_PLAIN:
		break;
	}
}

void flow_find_error(struct local_run *run, const char *stage)
{
	struct result *res = run->result;
	const struct result_stream *s = &res->err;

	if (res->error)
		return;
	/* Some compilers print errors on standard output; a merged stream is there, too. */
	if (s->len == 0 && ((stage && strncmp(stage, "compile", strlen("compile")) == 0) ||
			    run->request->merge_stderr))
		s = &res->out;
	/* After a limit, its cause says what to do. */
	res->error = flow_error_in(run, stage, &res->verdict, (struct span){ s->text, s->len },
				   res->verdict.status == STATUS_ERROR ? &res->suggestion : NULL);
}

static int fill_result(struct local_run *run, const struct sandbox_spec *in,
		       const struct job_outcome *o)
{
	struct result *res = run->result;
	int r = capture_text(&o->out, &res->out);

	if (r >= 0)
		r = capture_text(&o->err, &res->err);
	if (r < 0)
		return r;
	if (o->started) {
		flow_isolation(run, &o->start);
		res->start_us = (o->start.at_ns - run->accepted_ns) / 1000;
	}
	if (o->error.code != ERROR_NONE)
		return 0;
	res->usage = o->done.usage;
	res->files_truncated = o->done.files_truncated;
	r = flow_take_changes(res, o);
	if (r >= 0)
		r = flow_take_network(run, o);
	if (r >= 0)
		r = flow_take_attempts(run);
	if (r >= 0)
		r = fill_stages(run, in, o);
	if (r >= 0 && res->verdict.status == STATUS_SUCCESS &&
	    o->done.commit.result == COMMIT_OVER_QUOTA)
		res->verdict.limit_hits |= UINT32_C(1) << CAUSE_DISK;
	if (r >= 0)
		flow_find_error(run, run->request->n_stages > 0
					     ? res->stages[res->n_stages - 1].name
					     : NULL);
	return r;
}

int flow_program(struct local_run *run, struct error *err)
{
	struct sandbox_spec in;
	struct job_outcome *o;
	struct job *job;
	_cleanup_(flow_eval_end) struct flow_eval eval = { 0 };
	int r = flow_build_stages(run, err);

	if (r <= 0)
		return r;
	/* A session has its channel already. */
	if (run->request->eval && run->channel_fd == 0)
		r = flow_eval_begin(&eval, run, err);
	if (r >= 0)
		r = flow_describe(run, &in, err);
	if (r >= 0)
		r = flow_execute(run, &in, &job, err);
	if (r < 0)
		return r;
	o = job_outcome(job);
	if (eval.run)
		evaluation_fill(&eval.answer, run->result);
	r = fill_result(run, &in, o);
	r = r < 0 ? error_oom(err) : flow_job_error(job, err);
	job_free(job);
	return r;
}
