/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to a result: see run.h for the order. Everything that can be refused is checked before
 * anything is started: request, language, runtime, policy, output directory.
 */
#include "run/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/worker.h"
#include "base/suggest.h"
#include "base/sys/probe.h"
#include "run/executor.h"
#include "run/toolchain/data.h"
#include "spec/knob.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
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
	if (deep.namespaces.user)
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
			/* The program ran, but its files could not be stored: an internal failure that keeps the output. */
			res->refusal = (enum error_code)err->code;
			res->verdict.status = STATUS_INTERNAL_ERROR;
			res->verdict.cause = (struct cause){
				.kind = CAUSE_INTERNAL, .limit = -1, .peak = -1, .suggest = -1
			};
			(void)snprintf(res->verdict.cause.detail, sizeof(res->verdict.cause.detail),
				       "%s", err->text);
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

/* --- the policy of a run --- */

/*
 * Finds the policy of a run. A policy is a name below policies/, or a file if it looks like a path and paths
 * are allowed. An executor has a directory of its own that comes first, and limits of the administrator: they
 * replace those of `default` and cap the ceilings of every other policy.
 */

enum { POLICIES_MAX = 256, POLICY_NAME_MAX = 64 };

#define SUFFIX ".yaml"

static bool is_path(const char *policy)
{
	return strchr(policy, '/') || strstr(policy, SUFFIX);
}

static int is_policy_file(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name), suffix = sizeof(SUFFIX) - 1;

	return n > suffix && n <= POLICY_NAME_MAX + suffix && entry->d_name[0] != '.' &&
	       strcmp(entry->d_name + n - suffix, SUFFIX) == 0;
}

/* Adds new names only, so the first directory wins. */
static int add_names(json_t *names, const char *dir)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, is_policy_file, alphasort);

	for (int i = 0; i < n; i++) {
		char name[POLICY_NAME_MAX + 1];

		(void)snprintf(name, sizeof(name), "%.*s",
			       (int)(strlen(entries[i]->d_name) - (sizeof(SUFFIX) - 1)),
			       entries[i]->d_name);
		if (!json_object_get(names, name) && json_object_size(names) < POLICIES_MAX)
			(void)json_object_set_new(names, name, json_null());
		free(entries[i]);
	}
	free(entries);
	return n < 0 ? -errno : 0;
}

/* {NAME: null} of all policies; NULL: no memory. *r: whether those that are shipped could be listed. */
static json_t *policy_names(const struct atoll *a, int *r)
{
	json_t *names = json_object();
	char shipped[PATH_MAX];

	(void)snprintf(shipped, sizeof(shipped), "%s/policies", a->data_dir);
	if (names && a->rules.dir)
		(void)add_names(names, a->rules.dir);
	*r = names ? add_names(names, shipped) : -ENOMEM;
	return names;
}

static int no_such(const struct atoll *a, const char *name, struct error *err)
{
	struct suggestion s = { 0 };
	const char *other;
	json_t *unused;
	int r;
	json_t *names = policy_names(a, &r);

	json_object_foreach(names, other, unused) suggest_offer(&s, name, other);
	if (s.best)
		r = error_field(err, "policy",
				"policy: there is none named '%.64s'; did you mean '%s'?", name,
				s.best);
	else if (a->rules.named)
		r = error_field(err, "policy",
				"policy: there is none named '%.64s'; GET /v1/policies lists them",
				name);
	else
		r = error_field(err, "policy",
				"policy: there is none named '%.64s'; give the name of a file of "
				"%.200s/policies, or a path",
				name, a->data_dir);
	json_decref(names);
	return r;
}

/* A name may be in the executor's own directory. */
static int name_file(const struct atoll *a, const char *name, char *ret, size_t size)
{
	struct tool_id file;

	if (is_path(name))
		return snprintf(ret, size, "%s", name) >= (int)size ? -ENAMETOOLONG : 0;
	if (a->rules.dir) {
		if (snprintf(ret, size, "%s/%s" SUFFIX, a->rules.dir, name) >= (int)size)
			return -ENAMETOOLONG;
		if (tool_identify(NULL, ret, &file) == 0)
			return 0;
	}
	return snprintf(ret, size, "%s/policies/%s" SUFFIX, a->data_dir, name) >= (int)size
		       ? -ENAMETOOLONG
		       : 0;
}

static int read_policy(const struct atoll *a, const char *name, const char *path, struct buf *text,
		       struct error *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int r = fd < 0 ? -errno : buf_read_fd(text, fd);

	if (r == -ENOENT && !is_path(name))
		return no_such(a, name, err);
	if (r < 0)
		return error_set(err, ERROR_INPUT, -r, "cannot read the policy '%.300s': %s", name,
				 strerror(-r));
	return 0;
}

/* The administrator's limits override those of the file. */
static void apply_rules(const struct policy_rules *rules, struct policy *policy)
{
	bool is_default = strcmp(policy->name, "default") == 0;

	policy->network_barred = rules->no_network;
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		int64_t ceiling = knob_get(k, &policy->ceilings);
		int64_t preset = knob_get(k, &policy->defaults);

		if (rules->ceilings_set & knob_bit(k)) {
			int64_t set = knob_get(k, &rules->ceilings);

			ceiling = is_default ? set : MIN(ceiling, set);
		}
		if (is_default && rules->defaults_set & knob_bit(k))
			preset = knob_get(k, &rules->defaults);
		knob_set(k, &policy->ceilings, ceiling);
		knob_set(k, &policy->defaults, MIN(preset, ceiling));
	}
}

static int parse_policy(struct atoll *a, const char *name, const char *path, struct policy **ret,
			struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	json_t *root = NULL;
	int r;

	buf_init(&text, YAML_BYTES_MAX);
	r = read_policy(a, name, path, &text, err);
	if (r < 0)
		return r;
	r = yaml_parse(&(struct document){ name, text.data ? text.data : "", text.len }, &root,
		       err);
	/* As late as possible: the broker may still be probing. */
	if (r >= 0)
		r = policy_build(root, name, atoll_facts(a), ret, err);
	json_decref(root);
	if (r >= 0)
		apply_rules(&a->rules, *ret);
	return r;
}

int flow_load_policy(struct local_run *run, const char *name, struct error *err)
{
	struct atoll *a = run->atoll;
	struct policy *policy = NULL;
	struct tool_id file = { 0 };
	char path[PATH_MAX];
	bool known;
	int r;

	if (!name)
		name = "default";
	if (a->rules.named && (is_path(name) || strlen(name) > POLICY_NAME_MAX))
		return no_such(a, name, err);
	r = name_file(a, name, path, sizeof(path));
	if (r < 0)
		return error_field(err, "policy", "policy: the name is too long");
	/* Before it is read: if it changes meanwhile, the next run reads it again. A pipe has no size. */
	known = tool_identify(NULL, path, &file) == 0 && file.size > 0;
	if (known)
		run->held = memo_policy(&a->memo, name, &file);
	if (!run->held) {
		r = parse_policy(a, name, path, &policy, err);
		if (r < 0)
			return r;
		run->held = memo_keep_policy(&a->memo, name, &file, policy);
	}
	if (!run->held) {
		(void)policy_free(policy);
		return error_oom(err);
	}
	run->policy = run->held->policy;
	return 0;
}

/* The content of the file, and the limits in force. */
static json_t *describe(struct atoll *a, const char *name)
{
	struct policy *policy = NULL;
	struct error err = { 0 };
	char path[PATH_MAX];
	json_t *tree;

	if (name_file(a, name, path, sizeof(path)) < 0 ||
	    parse_policy(a, name, path, &policy, &err) < 0)
		return json_pack("{s:s, s:s}", "name", name, "error", err.text);
	tree = json_pack("{s:s, s:O, s:{s:o, s:o}}", "name", name, "policy", policy->root, "limits",
			 "defaults", limits_to_json(&policy->defaults), "ceilings",
			 limits_to_json(&policy->ceilings));
	(void)policy_free(policy);
	return tree;
}

int policies_to_json(struct atoll *a, json_t **ret, struct error *err)
{
	json_t *list = json_array(), *unused;
	const char *name;
	int r;
	json_t *names = policy_names(a, &r);

	if (!list)
		r = -ENOMEM;
	json_object_foreach(names, name, unused)(void)
		json_array_append_new(list, describe(a, name));
	json_decref(names);
	if (r < 0) {
		json_decref(list);
		return error_set(err, ERROR_INTERNAL, -r, "the policies cannot be listed: %s",
				 strerror(-r));
	}
	*ret = list;
	return 0;
}

int policy_rules_take(struct policy_rules *rules, const struct executor_options *o)
{
	rules->named = true;
	rules->no_network = !o->network;
	if (o->defaults) {
		rules->defaults = *o->defaults;
		rules->defaults_set = o->defaults_set;
	}
	if (o->ceilings) {
		rules->ceilings = *o->ceilings;
		rules->ceilings_set = o->ceilings_set;
	}
	if (!o->policies_dir)
		return 0;
	rules->dir = strdup(o->policies_dir);
	return rules->dir ? 0 : -ENOMEM;
}

int executor_check_policies(const struct executor_options *o, json_t **ret, struct error *err)
{
	const struct atoll_options options = { .size = sizeof(options),
					       .data_dir = o->data_dir,
					       .pool = "" };
	_cleanup_free_ char *problem = NULL;
	struct atoll *a;
	int r = atoll_new(&options, &a, &problem);

	if (r < 0)
		return error_set(err, ERROR_INPUT, -r, "%s", problem ? problem : strerror(-r));
	r = policy_rules_take(&a->rules, o) < 0 ? error_oom(err) : policies_to_json(a, ret, err);
	(void)atoll_free(a);
	return r;
}
