/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to a result: see run.h for the order. Nothing is started before everything that can be
 * refused has been looked at: request, language, runtime, policy, output directory.
 */
#include "client/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "client/data.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* 128 random bits as 26 digits of base 32. */
static void make_id(char *ret, size_t size)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char bits[17] = { 0 };
	char text[27] = { 0 };

	while (getrandom(bits, 16, 0) != 16)
		;
	for (size_t i = 0; i < 26; i++) {
		size_t at = i * 5;
		unsigned pair = (unsigned)bits[at / 8] << 8 | bits[at / 8 + 1];

		text[i] = digits[pair >> (11 - at % 8) & 31];
	}
	(void)snprintf(ret, size, "ex_%s", text);
}

static bool is_path(const char *policy)
{
	return strchr(policy, '/') || strstr(policy, ".yaml");
}

/* What its file is now; a name that is no file's is told about when it is read. */
static int identify_policy(const struct run *run, const char *name, struct tool_id *ret)
{
	char path[PATH_MAX];

	if (is_path(name))
		return tool_identify(NULL, name, ret);
	if (snprintf(path, sizeof(path), "%s/policies/%s.yaml", run->atoll->data_dir, name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	return tool_identify(NULL, path, ret);
}

/* A policy is a name below policies/, or a file when it looks like a path. */
static int read_policy(const struct run *run, const char *name, struct buf *text, struct error *err)
{
	char relative[256];
	int r;

	if (is_path(name)) {
		_cleanup_close_ int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);

		r = fd < 0 ? -errno : buf_read_fd(text, fd);
		if (r < 0)
			return error_set(err, ERROR_INPUT, -r,
					 "cannot read the policy '%.300s': %s", name, strerror(-r));
		return 0;
	}
	if (snprintf(relative, sizeof(relative), "policies/%s.yaml", name) >= (int)sizeof(relative))
		return error_field(err, "policy", "policy: the name is too long");
	r = data_read(run->atoll->data_dir, relative, text, err);
	if (r == -ENOENT)
		return error_field(
			err, "policy",
			"policy: there is none named '%.64s'; give the name of a file of "
			"%.200s/policies, or a path",
			name, run->atoll->data_dir);
	return r;
}

static int parse_policy(struct run *run, const char *name, struct policy **ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	json_t *root = NULL;
	int r;

	buf_init(&text, YAML_BYTES_MAX);
	r = read_policy(run, name, &text, err);
	if (r < 0)
		return r;
	r = yaml_parse(&(struct document){ name, text.data ? text.data : "", text.len }, &root,
		       err);
	/* As late as can be: the broker may still be finding out. */
	if (r >= 0)
		r = policy_build(root, name, atoll_facts(run->atoll), ret, err);
	json_decref(root);
	return r;
}

static int load_policy(struct run *run, struct error *err)
{
	const char *name = run->request->policy ? run->request->policy : "default";
	struct memo *memo = &run->atoll->memo;
	struct policy *policy = NULL;
	struct tool_id file = { 0 };
	/* Before it is read: should it change in between, it is read again the next time. A pipe has no size. */
	bool known = identify_policy(run, name, &file) == 0 && file.size > 0;
	int r;

	if (known)
		run->policy = memo_policy(memo, name, &file);
	if (run->policy)
		return 0;
	r = parse_policy(run, name, &policy, err);
	if (r < 0)
		return r;
	if (memo_keep_policy(memo, name, &file, policy) < 0) {
		(void)policy_free(policy);
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	}
	run->policy = policy;
	return 0;
}

static int find_language(struct run *run, struct error *err)
{
	int r;

	if (!run->request->language)
		return 0;
	r = registry_find(run->atoll->registry, run->request->language, &run->language, err);
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

/* Where the program lies below the work directory, and the class it is (Java). */
static int name_source(struct run *run, struct error *err)
{
	const struct request *req = run->request;
	const struct language *lang = run->language;
	const struct span *code = &req->code;

	if (!lang || (!req->code.data && !req->entry))
		return 0;
	if (req->entry) {
		code = entry_data(req);
		if (!code)
			return error_field(err, "entry", "entry: '%.200s' is not among the files",
					   req->entry);
		(void)snprintf(run->source, sizeof(run->source), "%s", req->entry);
	} else {
		language_source_name(lang, code->data, code->len, run->source, sizeof(run->source));
	}
	run->code = *code;
	if (lang->class_pattern)
		language_main_class(code->data, code->len, run->class_name,
				    sizeof(run->class_name));
	return 0;
}

static int list_files(struct run *run, struct error *err)
{
	const struct request *req = run->request;

	run->files = arena_alloc(&run->memory, (req->n_files + 1) * sizeof(*run->files));
	if (!run->files)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	if (run->source[0] && req->code.data)
		run->files[run->n_files++] = (struct build_file){
			.base = SANDBOX_WORK, .path = run->source, .data = req->code, .mode = 0644
		};
	for (size_t i = 0; i < req->n_files; i++) {
		const struct request_file *f = &req->files[i];

		if (strncmp(f->path, FLOW_PRIVATE, sizeof(FLOW_PRIVATE) - 1) == 0)
			return error_field(err, "files",
					   "files: '%.200s': names that begin with " FLOW_PRIVATE
					   " are reserved",
					   f->path);
		run->files[run->n_files++] = (struct build_file){
			.base = SANDBOX_WORK, .path = f->path, .data = f->data, .mode = f->mode
		};
	}
	return 0;
}

int flow_open(struct run *run, json_t *root, struct error *err)
{
	int r;

	run->output_fd = -EBADF;
	r = request_parse(root, &run->request, err);
	if (r >= 0)
		r = find_language(run, err);
	if (r >= 0)
		r = load_policy(run, err);
	if (r < 0)
		return r;
	run->decision = (struct decision){
		.request = run->request,
		.policy = run->policy,
		.language = run->language,
		.facts = atoll_facts(run->atoll),
	};
	r = decide(&run->decision, err);
	if (r >= 0)
		r = name_source(run, err);
	if (r >= 0)
		r = list_files(run, err);
	if (r >= 0)
		r = flow_open_output(run, err);
	return r;
}

void flow_close(struct run *run)
{
	build_product_done(&run->product);
	run->output_fd = fd_close(run->output_fd);
	run->result = result_free(run->result);
	run->request = request_free(run->request);
	arena_done(&run->memory);
}

int flow_perform(struct run *run, struct error *err)
{
	if (flow_is_compiled(run)) {
		int r = flow_build(run, err);

		if (r <= 0)
			return r;
	}
	return run->request->n_tests > 0 ? flow_tests(run, err) : flow_program(run, err);
}

struct result *flow_refusal(struct run *run, const struct error *err)
{
	struct result *res = result_from_error(err);

	if (!res)
		return NULL;
	make_id(res->id, sizeof(res->id));
	res->created_realtime_ns = clock_realtime_ns();
	(void)snprintf(res->node, sizeof(res->node), "%s", atoll_facts(run->atoll)->node);
	return res;
}

/* What every result carries, whatever became of the request. */
static void sign(struct run *run, struct result *res, json_t *root)
{
	const json_t *language = json_object_get(root, "language");
	const char *name = run->language ? run->language->name : json_string_value(language);
	const char *policy = run->policy ? run->policy->name : NULL;

	res->language = name ? strdup(name) : NULL;
	res->policy = policy ? strdup(policy) : NULL;
	if (run->request && run->request->labels)
		res->labels = json_deep_copy(run->request->labels);
	(void)snprintf(res->node, sizeof(res->node), "%s", atoll_facts(run->atoll)->node);
	if (run->full && run->language && res->refusal == ERROR_NONE) {
		struct prober prober = atoll_prober(run->atoll, run->request->image);

		/* A version that cannot be learnt is no reason to fail a run that went well. */
		if (memo_version(&run->atoll->memo, run->language, &prober, &res->runtime) < 0)
			res->runtime = NULL;
	}
}

/* A failure keeps what was seen before it: output, stages, isolation. */
static struct result *failed_result(struct run *run, const struct error *err)
{
	struct result *res = result_from_error(err), *old = run->result;

	if (!res)
		return NULL;
	res->out = old->out;
	res->err = old->err;
	res->stages = TAKE_PTR(old->stages);
	res->n_stages = old->n_stages;
	res->isolation = old->isolation;
	res->created_realtime_ns = old->created_realtime_ns;
	memcpy(res->id, old->id, sizeof(res->id));
	old->out = old->err = (struct result_stream){ 0 };
	old->n_stages = 0;
	return res;
}

/* The program ran, yet its files are not where they were asked for: our failure, its output kept. */
static void not_delivered(struct result *res, const struct error *err)
{
	res->refusal = (enum error_code)err->code;
	res->verdict.status = STATUS_INTERNAL_ERROR;
	res->verdict.cause =
		(struct cause){ .kind = CAUSE_INTERNAL, .limit = -1, .peak = -1, .suggest = -1 };
	(void)snprintf(res->verdict.cause.detail, sizeof(res->verdict.cause.detail), "%s",
		       err->text);
}

int flow_run(struct run *run, json_t *root, struct result **ret, struct error *err)
{
	struct result *res;
	int r;

	run->result = result_new();
	if (!run->result)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	make_id(run->result->id, sizeof(run->result->id));
	run->result->created_realtime_ns = clock_realtime_ns();
	r = flow_open(run, root, err);
	if (r >= 0)
		r = flow_perform(run, err);
	if (r < 0) {
		res = failed_result(run, err);
	} else {
		res = TAKE_PTR(run->result);
		if (run->output_error.code != ERROR_NONE) {
			*err = run->output_error;
			r = -err->errnum;
			not_delivered(res, err);
		}
	}
	if (res)
		sign(run, res, root);
	*ret = res;
	return r < 0 ? r : 0;
}
