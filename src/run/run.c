/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to a result: see run.h for the order. Everything that can be refused is checked before
 * anything is started: request, language, runtime, policy, output directory.
 */
#include "run/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/worker.h"
#include "base/sys/probe.h"
#include "run/executor.h"

#include <stdio.h>
#include <string.h>

static int find_language(struct local_run *run, struct error *err)
{
	int r;

	if (!run->request->language)
		return 0;
	r = registry_find(run->atoll->registry, run->request->language, &run->language, err);
	if (r >= 0)
		r = atoll_resolve_version(run->atoll, run->request->language, run->request->image,
					  &run->language, err);
	if (r < 0)
		return r;
	return language_available(run->language, run->request->image, err);
}

static const struct span *entry_data(const struct request *req)
{
	for (size_t i = 0; i < req->n_files; i++)
		if (strcmp(req->files[i].path, req->entry) == 0)
			return &req->files[i].data;
	return NULL;
}

/* The program's path below the work directory, and its class (Java). */
static int name_source(struct local_run *run, struct error *err)
{
	const struct request *req = run->request;
	const struct language *lang = run->language;
	const struct span *code = &req->code;

	if (!lang || (!req->code.data && !req->entry))
		return 0;
	if (req->code.data) {
		language_source_name(lang, &(struct program_text){ req->code, req->entry },
				     run->source, sizeof(run->source));
	} else {
		code = entry_data(req);
		if (!code)
			return error_field(err, "entry", "entry: '%.200s' is not among the files",
					   req->entry);
		(void)snprintf(run->source, sizeof(run->source), "%s", req->entry);
	}
	run->code = *code;
	if (lang->class_pattern)
		language_main_class(code->data, code->len, run->class_name,
				    sizeof(run->class_name));
	return 0;
}

static int check_private(const char *path, const char *field, struct error *err)
{
	if (strncmp(path, FLOW_PRIVATE, sizeof(FLOW_PRIVATE) - 1) == 0)
		return error_field(err, field,
				   "%s: '%.200s': names that begin with " FLOW_PRIVATE
				   " are reserved",
				   field, path);
	return 0;
}

static int list_run_files(struct local_run *run, struct error *err)
{
	const struct request *req = run->request;
	int r = check_private(run->source, "entry", err);

	if (r < 0)
		return r;
	run->files = arena_alloc(&run->memory, (req->n_files + 1) * sizeof(*run->files));
	if (!run->files)
		return error_oom(err);
	if (run->source[0] && req->code.data)
		run->files[run->n_files++] = (struct build_file){
			.base = SANDBOX_WORK, .path = run->source, .data = req->code, .mode = 0644
		};
	for (size_t i = 0; i < req->n_files; i++) {
		const struct request_file *f = &req->files[i];

		r = check_private(f->path, "files", err);
		if (r < 0)
			return r;
		run->files[run->n_files++] = (struct build_file){
			.base = SANDBOX_WORK, .path = f->path, .data = f->data, .mode = f->mode
		};
	}
	for (size_t i = 0; r >= 0 && i < req->n_tests; i++) {
		char field[48];

		(void)snprintf(field, sizeof(field), "tests[%zu].files", i);
		for (size_t k = 0; r >= 0 && k < req->tests[i].n_files; k++)
			r = check_private(req->tests[i].files[k].path, field, err);
	}
	return r;
}

/* Like the administrator's other defaults, presets apply only under the policy `default`. */
static void take_preset(struct local_run *run)
{
	const struct presets *all = run->atoll->rules.presets;
	/* "python@3.10": a preset of that version comes before one of the language. */
	const char *asked = run->request->language ? strchr(run->request->language, '@') : NULL;

	if (!all || !run->language || strcmp(run->policy->name, "default") != 0)
		return;
	for (size_t i = 0; i < all->n; i++) {
		const struct preset *p = &all->list[i];
		bool fits = *p->version ? asked && language_version_fits(asked + 1, p->version)
					: !run->decision.presets;

		if (!fits || strcmp(p->language, run->language->name) != 0)
			continue;
		run->decision.presets = &p->limits;
		run->decision.presets_set = p->set;
	}
}

struct request_parsing {
	json_t *root;
	struct request *request;
	struct error *err;
	int r;
};

static void parse_request(void *data)
{
	struct request_parsing *p = data;

	p->r = request_parse(p->root, &p->request, p->err);
}

/* A refused limit is reported with this caller's bounds. */
static void restate(struct local_run *run, const json_t *root, struct error *err)
{
	const char *policy = json_string_value(json_object_get(root, "policy"));
	struct error unknown = { 0 };

	if (!err || !strstr(err->field, "limits.") || flow_load_policy(run, policy, &unknown) < 0)
		return;
	decide_restate(
		&(struct decision){ .policy = run->policy, .facts = atoll_facts(run->atoll) }, root,
		err);
}

/*
 * Without user namespaces nothing else can be repaired (in a chroot, cgroups lack as well), but the quick probe does
 * not try them: so before a missing layer is told, they are tried. The daemon's front must not fork.
 */
static void name_deeper_cause(struct local_run *run, struct error *err)
{
	struct host_facts deep;
	char fix[300];

	if (run->atoll->front != FRONT_CALLER || run->policy->isolation == ISOLATION_MINIMAL ||
	    !(layers_missing(run->decision.facts) & run->policy->required))
		return;
	host_probe_deep(&deep);
	if (deep.userns)
		return;
	layer_fix(LAYER_USERNS, &deep, fix, sizeof(fix));
	(void)error_set(err, ERROR_POLICY, EPERM, "%s", fix);
}

int flow_open_request(struct local_run *run, struct error *err)
{
	int r = find_language(run, err);

	if (r >= 0)
		r = flow_load_policy(run, run->request->policy, err);
	if (r < 0)
		return r;
	run->decision = (struct decision){
		.request = run->request,
		.policy = run->policy,
		.language = run->language,
		.facts = atoll_facts(run->atoll),
	};
	take_preset(run);
	r = decide(&run->decision, err);
	if (r < 0 && err->code == ERROR_POLICY)
		name_deeper_cause(run, err);
	if (r >= 0)
		r = name_source(run, err);
	if (r >= 0)
		r = list_run_files(run, err);
	return r;
}

int flow_open(struct local_run *run, json_t *root, struct error *err)
{
	struct request_parsing p = { .root = root, .err = err };
	int r;

	/* In an executor only large requests come here on a fiber: they may hold base64. */
	worker_call(WORKER_ALWAYS, parse_request, &p);
	run->request = p.request;
	r = p.r;
	if (r < 0)
		restate(run, root, err);
	if (r >= 0)
		r = flow_open_request(run, err);
	if (r >= 0)
		r = flow_open_checkers(run, err);
	if (r >= 0)
		r = flow_open_output(run, err);
	return r;
}

void flow_close(struct local_run *run)
{
	flow_close_checkers(run);
	build_product_done(&run->product);
	run->output_fd = fd_close(run->output_fd);
	run->result = result_free(run->result);
	run->request = request_free(run->request);
	memo_release(TAKE_PTR(run->held));
	arena_done(&run->memory);
}

int flow_perform(struct local_run *run, struct error *err)
{
	if (flow_is_compiled(run)) {
		int r = flow_build(run, err);

		if (r == 0 && flow_tests_skip(run, run->result, &run->result->verdict,
					      TEST_COMPILE_ERROR) < 0)
			r = error_oom(err);
		if (r <= 0)
			return r;
	}
	return run->request->n_tests > 0 ? flow_tests(run, err) : flow_program(run, err);
}

/* The kind of broker behind this handle. */
static const char *via_of(struct atoll *a)
{
	if (a->front != FRONT_CALLER)
		return "daemon";
	return a->link && link_is_shared(a->link) ? "pool" : "direct";
}

struct result *flow_refusal(struct local_run *run, const struct error *err)
{
	struct result *res = result_from_error(err);

	if (!res)
		return NULL;
	run_make_id(res->id, sizeof(res->id));
	res->created_realtime_ns = clock_realtime_ns();
	res->via = via_of(run->atoll);
	(void)snprintf(res->node, sizeof(res->node), "%s", atoll_facts(run->atoll)->node);
	return res;
}

/* Fields of every result. */
static void sign(struct local_run *run, struct result *res, const json_t *root)
{
	const json_t *language = json_object_get(root, "language");
	const char *name = run->language ? run->language->name : json_string_value(language);
	const char *policy = run->policy ? run->policy->name : NULL;

	res->language = name ? strdup(name) : NULL;
	res->policy = policy ? strdup(policy) : NULL;
	if (run->request && run->request->labels)
		res->labels = json_deep_copy(run->request->labels);
	res->via = via_of(run->atoll);
	res->no_history = json_is_false(json_object_get(root, "history"));
	(void)snprintf(res->node, sizeof(res->node), "%s", atoll_facts(run->atoll)->node);
	/* If the version cannot be found out, the run does not fail. */
	if (run->full && run->language && res->refusal == ERROR_NONE &&
	    flow_version(run, &res->runtime) < 0)
		res->runtime = NULL;
	if (run->full || run->options.notice)
		flow_warn_modules(run, res);
}

/* After a failure the result keeps what there was before: output, stages, tests, isolation. */
static struct result *failed_result(struct local_run *run, const struct error *err)
{
	struct result *res = result_from_error(err), *old = run->result;

	if (!res)
		return NULL;
	res->out = old->out;
	res->err = old->err;
	res->stages = TAKE_PTR(old->stages);
	res->n_stages = old->n_stages;
	res->tests = TAKE_PTR(old->tests);
	res->n_tests = old->n_tests;
	res->isolation = old->isolation;
	res->created_realtime_ns = old->created_realtime_ns;
	memcpy(res->id, old->id, sizeof(res->id));
	old->out = old->err = (struct result_stream){ 0 };
	old->n_stages = old->n_tests = 0;
	return res;
}

/* The program ran, but its files could not be stored: an internal failure that keeps the output. */
static void not_delivered(struct result *res, const struct error *err)
{
	res->refusal = (enum error_code)err->code;
	res->verdict.status = STATUS_INTERNAL_ERROR;
	res->verdict.cause =
		(struct cause){ .kind = CAUSE_INTERNAL, .limit = -1, .peak = -1, .suggest = -1 };
	(void)snprintf(res->verdict.cause.detail, sizeof(res->verdict.cause.detail), "%s",
		       err->text);
}

/* Killed before a job existed: the result has the requested end, not a failure. */
static void was_killed(struct local_run *run, struct result *res)
{
	enum cause_kind kind = run->control->kill_cause;
	struct verdict *v = &res->verdict;

	res->refusal = ERROR_NONE;
	v->cause.kind = kind;
	v->status = kind == CAUSE_INTERRUPTED ? STATUS_INTERRUPTED : STATUS_CANCELLED;
	if (kind == CAUSE_TIMEOUT) {
		v->status = STATUS_TIMEOUT;
		(void)snprintf(v->cause.detail, sizeof(v->cause.detail),
			       "its time was over before it began");
	}
}

static int begin_run(struct local_run *run, struct error *err)
{
	run->result = result_new();
	if (!run->result)
		return error_oom(err);
	if (!run->id[0])
		run_make_id(run->id, sizeof(run->id));
	memcpy(run->result->id, run->id, sizeof(run->result->id));
	run->result->created_realtime_ns = clock_realtime_ns();
	return 0;
}

/* r is the outcome of opening or performing it. */
static int finish_run(struct local_run *run, const json_t *root, int r, struct result **ret,
		      struct error *err)
{
	struct result *res;

	if (r < 0) {
		res = failed_result(run, err);
		if (res && r == -ECANCELED && run->control && run->control->killed) {
			was_killed(run, res);
			*err = (struct error){ 0 };
			r = 0;
		}
	} else {
		res = TAKE_PTR(run->result);
		if (run->output_error.code != ERROR_NONE) {
			*err = run->output_error;
			r = -err->errnum;
			not_delivered(res, err);
		}
	}
	if (res) {
		/* For tests that were not reached; without memory they are left out. */
		(void)!flow_tests_skip(run, res, &res->verdict, TEST_UNDECIDED);
		flow_score_groups(run, res);
		sign(run, res, root);
	}
	*ret = res;
	return r < 0 ? r : 0;
}

int flow_run_open(struct local_run *run, struct result **ret, struct error *err)
{
	int r = begin_run(run, err);

	return r < 0 ? r : finish_run(run, run->request->root, flow_perform(run, err), ret, err);
}

int flow_run(struct local_run *run, json_t *root, struct result **ret, struct error *err)
{
	int r = begin_run(run, err);

	if (r < 0)
		return r;
	r = flow_open(run, root, err);
	if (r >= 0)
		r = flow_perform(run, err);
	return finish_run(run, root, r, ret, err);
}
