/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compile stage: a sandbox of its own, with the language's own limits. Its product is the files below
 * {build}. The product is cached by a hash of sources, words and toolchain, and shown to the program read-only
 * at /build. The compiler's output is part of the stage's entry. Only if the compiler fails, its output becomes
 * the run's output.
 */
#include "run/flow-kit.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/fiber.h"
#include "run/run.h"
#include "run/toolchain/kit.h"

#include <stdio.h>
#include <string.h>

#define KEEP FLOW_BUILD_DIR "/.keep" /* makes the directory exist */

/* Of all compile stages of a run: each may run with a kit first, and again without. */
static const int64_t built_bytes_max = 2LL * PLAN_BYTES_MAX;

bool flow_is_compiled(const struct local_run *run)
{
	return run->language && run->language->compile.argv[0] && run->source[0] &&
	       run->request->n_stages == 0;
}

static int take_product(struct local_run *run, const struct run_file *file);

/* Whether the request brings the file that makes its files a project of the language. */
static bool is_project(const struct local_run *run)
{
	const char *name = run->language->compile.project;

	for (size_t i = 0; name && i < run->n_files; i++)
		if (strcmp(run->files[i].base, SANDBOX_WORK) == 0 &&
		    strcmp(run->files[i].path, name) == 0)
			return true;
	return false;
}

/*
 * The language's words with the caller's compiler_args: in place of {compiler_args}, otherwise at the end, so
 * that the caller's flag comes last. NULL: no memory.
 */
static const char **compile_words(struct local_run *run, const struct word_context *c)
{
	static const char *const none[] = { NULL };
	const char *const *own = (const char *const *)(is_project(run)
							       ? run->language->compile.project_argv
							       : run->language->compile.argv);
	const char *const *more = run->request->compiler_args
					  ? (const char *const *)run->request->compiler_args
					  : none;
	size_t n_own = 0, n_more = 0, at = 0, rest;
	const char **words;

	while (own[n_own])
		n_own++;
	while (more[n_more])
		n_more++;
	while (own[at] && strcmp(own[at], "{compiler_args}") != 0)
		at++;
	words = flow_expand_all(run, own, c, n_more);
	if (!words)
		return NULL;
	rest = MIN(at + 1, n_own);
	memmove(words + at + n_more, words + rest, (n_own + 1 - rest) * sizeof(*words));
	memcpy(words + at, more, n_more * sizeof(*words));
	return words;
}

static int describe(struct local_run *run, struct sandbox_spec *ret, struct error *err)
{
	const char *build = SANDBOX_WORK "/" FLOW_BUILD_DIR;
	struct decision *d = arena_alloc(&run->memory, sizeof(*d));
	struct stage_spec *stage = arena_alloc(&run->memory, sizeof(*stage));
	struct build_file *files = arena_alloc(&run->memory, (run->n_files + 1) * sizeof(*files));
	struct word_context c;

	if (!d || !stage || !files)
		return error_oom(err);
	*d = run->decision;
	/* A build depends on the request only. */
	d->workspace = NULL;
	decision_stage_limits(&run->decision, &run->language->compile.limits,
			      run->language->compile.limits_set, &d->limits);
	d->tty = false;
	d->read_only = d->writable_root = false;
	if (d->network != NETWORK_OFF)
		d->network = NETWORK_NONE;
	if (run->n_files > 0)
		memcpy(files, run->files, run->n_files * sizeof(*files));
	files[run->n_files] = (struct build_file){
		.base = SANDBOX_WORK, .path = KEEP, .data = { "", 0 }, .mode = 0644
	};
	c = flow_words(run, build, &d->limits);
	*stage = (struct stage_spec){
		.name = "compile",
		.argv = compile_words(run, &c),
		.env = flow_expand_all(run, (const char *const *)run->language->env, &c, 0),
		.limits = &d->limits,
	};
	if (!stage->argv || !stage->env)
		return error_oom(err);
	*ret = (struct sandbox_spec){
		.decision = d,
		.stages = stage,
		.n_stages = 1,
		.files = files,
		.n_files = run->n_files + 1,
		.collect = true,
		.merge_stderr = run->request->merge_stderr,
		.take_file = take_product,
	};
	return 0;
}

int flow_describe_build(struct local_run *run, struct sandbox_spec *ret, struct error *err)
{
	const char *kit;
	int r = describe(run, ret, err);

	if (r < 0)
		return r;
	kit = flow_kit(run);
	return kit && flow_use_kit(run, kit, ret) < 0 ? error_oom(err) : 0;
}

/* Takes files below {build}; ignores other files that the compiler left. */
static int take_product(struct local_run *run, const struct run_file *file)
{
	static const size_t prefix = sizeof(FLOW_BUILD_DIR "/") - 1;
	struct build_product *p = &run->product;
	_cleanup_free_ char *bytes = NULL;
	struct request_file *files;
	char *kept, *path;
	int r;

	if (strncmp(file->path, FLOW_BUILD_DIR "/", prefix) != 0 || strcmp(file->path, KEEP) == 0)
		return 0;
	if (p->n_files >= BUILDCACHE_FILES_MAX)
		return -E2BIG;
	if (file->size > built_bytes_max - run->built_bytes)
		return -EFBIG;
	r = flow_read_file(file->fd, file->size, &bytes);
	if (r < 0)
		return r;
	run->built_bytes += file->size;
	path = arena_strndup(&run->memory, file->path + prefix, strlen(file->path + prefix));
	kept = arena_alloc(&run->memory, (size_t)file->size + 1);
	files = reallocarray(p->files, p->n_files + 1, sizeof(*files));
	if (files)
		p->files = files;
	if (!path || !kept || !files)
		return -ENOMEM;
	memcpy(kept, bytes, (size_t)file->size);
	files[p->n_files++] = (struct request_file){
		.path = path,
		.data = { kept, (size_t)file->size },
		.mode = file->mode & 0111 ? 0755 : 0644,
	};
	return 0;
}

/* 0 with a key, or a negative errno: the build cannot be cached. */
static int cache_key(struct local_run *run, const struct stage_spec *stage, char ret[SHA256_HEX])
{
	_cleanup_free_ struct request_file *files = calloc(run->n_files + 1, sizeof(*files));
	const struct buildcache_input in = {
		.language = run->language,
		.image = run->request->image,
		.files = files,
		.n_files = run->n_files,
		.argv = stage->argv,
		.env = stage->env,
	};

	if (!files)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_files; i++)
		files[i] = (struct request_file){
			.path = run->files[i].path,
			.data = run->files[i].data,
			.mode = run->files[i].mode,
		};
	return buildcache_key(&in, ret);
}

static int add_stage(struct local_run *run, struct result_stage *stage)
{
	int r;

	if (run->stage > 0)
		(void)snprintf(stage->name, sizeof(stage->name), "compile:%.55s",
			       run->request->stages[run->stage - 1].name);
	r = flow_add_stage(run->result, stage);
	if (r >= 0)
		(void)flow_tell_stage(&run->observer, stage);
	return r;
}

static int from_cache(struct local_run *run, const char *key)
{
	struct result_stage stage = {
		.name = "compile",
		.verdict = { .cause = { .kind = CAUSE_EXIT,
					.limit = -1,
					.peak = -1,
					.suggest = -1,
					.detail = "taken from the build cache" } },
		.usage = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 },
	};
	int r = buildcache_load(atoll_cache(run->atoll), key, &run->product);

	if (r < 0)
		return r;
	run->result->cached_build = true;
	return add_stage(run, &stage);
}

static void show_compiler_output(const struct local_run *run, enum output_stream stream,
				 const struct result_stream *s)
{
	const struct run_event event = { .kind = RUN_OUTPUT,
					 .output = { stream, { s->text, s->len } } };

	/* The run is over, so the observer's return value does not matter. */
	if (s->len > 0)
		(void)run_observer_tell(&run->observer, &event);
}

/* The compiler failed: its output is the run's output, and its end is the run's end. */
static int compile_failed(struct local_run *run, const struct result_stage *stage,
			  const struct job_outcome *o)
{
	struct result *res = run->result;
	int r = capture_text(&o->out, &res->out);

	if (r >= 0)
		r = capture_text(&o->err, &res->err);
	if (r < 0)
		return r;
	res->verdict = stage->verdict;
	res->duration_us = stage->duration_us;
	res->usage = o->done.usage;
	if (res->verdict.status == STATUS_SUCCESS) {
		res->verdict.status = STATUS_SETUP_ERROR;
		res->verdict.exit_code = 1;
		res->verdict.cause.kind = CAUSE_SETUP;
		(void)snprintf(
			res->verdict.cause.detail, sizeof(res->verdict.cause.detail),
			"the code compiles, but holds no program; define where it begins, such as "
			"a class or function `main`");
	}
	show_compiler_output(run, OUTPUT_STDOUT, &res->out);
	show_compiler_output(run, OUTPUT_STDERR, &res->err);
	return 0;
}

static int keep_texts(const struct job_outcome *o, struct result_stage *stage)
{
	struct result_stream out, err;
	int r = capture_text(&o->out, &out);

	if (r < 0)
		return r;
	stage->stdout_text = out.text;
	r = capture_text(&o->err, &err);
	if (r < 0)
		return r;
	stage->stderr_text = err.text;
	return 0;
}

/* With a kit if there is one; if the kit may be the reason for the outcome, again without it. */
static int execute(struct local_run *run, const struct sandbox_spec *in, struct job **ret,
		   struct error *err)
{
	const char *kit = flow_kit(run);
	struct sandbox_spec with = *in;
	struct job *job;
	int r;

	if (!kit || flow_use_kit(run, kit, &with) < 0)
		return flow_execute(run, in, ret, err);
	r = flow_execute(run, &with, &job, err);
	if (r >= 0 && flow_kit_stands(run, &with, job_outcome(job))) {
		*ret = job;
		return 0;
	}
	if (r >= 0)
		job_free(job);
	build_product_done(&run->product);
	*err = (struct error){ 0 };
	return flow_execute(run, in, ret, err);
}

/*
 * 1: there is a product; 0: the compiler failed, which is the run's result. *ret_whole: no file of the product
 * is missing.
 */
static int on_slow_compile(void *data, uint32_t events _unused_)
{
	const struct atoll_run_options *o = data;

	o->on_compiling(o->data);
	return 0;
}

/* Executes the stage, and tells a caller at a terminal when that takes long. */
static int execute_told(struct local_run *run, const struct sandbox_spec *in, struct job **ret,
			struct error *err)
{
	const struct handler slow = { on_slow_compile, &run->options };
	struct source *timer = NULL;
	int r;

	/* Without the timer the run goes on in silence. */
	if (run->options.on_compiling &&
	    loop_add_timer(run->atoll->loop, clock_now_ns() + NS_PER_SEC, slow, &timer) < 0)
		timer = NULL;
	r = execute(run, in, ret, err);
	(void)source_free(timer);
	return r;
}

static int compile(struct local_run *run, const struct sandbox_spec *in, bool *ret_whole,
		   struct error *err)
{
	struct result_stage stage = { 0 };
	struct job_outcome *o;
	struct job *job;
	bool good;
	int r = execute_told(run, in, &job, err);

	if (r < 0)
		return r;
	o = job_outcome(job);
	if (o->error.code != ERROR_NONE) {
		*err = o->error;
		r = -o->error.errnum;
		goto out;
	}
	flow_isolation(run, &o->start);
	flow_stage(o, 0, in->stages, &stage);
	*ret_whole = !o->done.files_truncated;
	good = stage.verdict.status == STATUS_SUCCESS && run->product.n_files > 0;
	r = good ? 0 : compile_failed(run, &stage, o);
	if (r >= 0)
		r = keep_texts(o, &stage);
	if (r >= 0)
		r = add_stage(run, &stage);
	if (r < 0) {
		free(stage.stdout_text);
		free(stage.stderr_text);
		r = error_oom(err);
		goto out;
	}
	if (!good)
		flow_find_error(run, run->result->stages[run->result->n_stages - 1].name);
	r = good;
out:
	job_free(job);
	return r;
}

static int compile_and_keep(struct local_run *run, const struct sandbox_spec *in, const char *key,
			    struct error *err)
{
	bool whole = false;
	int r = compile(run, in, &whole, err);

	/* An incomplete product, and one that must leave nothing behind, is used for this run only. */
	if (r > 0 && whole && key[0] && !run->request->no_history && atoll_cache(run->atoll) >= 0) {
		/* If the cache is full or gone, the next caller compiles again. */
		int stored = buildcache_store(atoll_cache(run->atoll), key, &run->product,
					      BUILDCACHE_BYTES_MAX);

		(void)stored;
	}
	return r;
}

int flow_build(struct local_run *run, struct error *err)
{
	const struct patience patience = { run->control ? &run->control->killed : NULL, INT64_MAX };
	struct single_flight **flights = &run->atoll->flights, flight;
	struct sandbox_spec in;
	char key[SHA256_HEX] = "";
	bool leads;
	int r = describe(run, &in, err);

	if (r < 0)
		return r;
	if (cache_key(run, in.stages, key) < 0)
		return compile_and_keep(run, &in, "", err);
	if (from_cache(run, key) >= 0)
		return 1;
	leads = single_flight_join(flights, &flight, key, &patience);
	/* Another run was compiling the same, and may have stored it. */
	if (!leads && fiber_current() && from_cache(run, key) >= 0)
		return 1;
	r = compile_and_keep(run, &in, key, err);
	if (leads)
		single_flight_leave(flights, &flight);
	return r;
}

/* --- kits --- */

/*
 * If there is a kit for a compile stage, the stage uses it. A kit only makes a compile faster: if the outcome
 * may depend on the kit, the compile is repeated without it. So a kit that is damaged, vanishes or does not fit
 * costs time and nothing else.
 */

/* A source that mentions the kit's path could detect the kit. */
static bool is_mentioned(const struct local_run *run)
{
	for (size_t i = 0; i < run->n_files; i++) {
		const struct span *data = &run->files[i].data;

		if (data->len > 0 &&
		    memmem(data->data, data->len, SANDBOX_KIT, sizeof(SANDBOX_KIT) - 1))
			return true;
	}
	for (const char **arg = run->request->compiler_args; arg && *arg; arg++)
		if (strstr(*arg, SANDBOX_KIT))
			return true;
	return false;
}

/* A kit with words of its own was made for the language's own flags. */
static bool has_other_flags(const struct local_run *run)
{
	const char **args = run->request->compiler_args;

	return args && args[0] && run->language->kit.words[0];
}

const char *flow_kit(struct local_run *run)
{
	_cleanup_close_ int place_fd = -EBADF;
	char key[SHA256_HEX], path[PLAN_PATH_MAX];

	/* An image has a toolchain of its own. */
	if (!language_has_kit(run->language) || run->request->image || has_other_flags(run) ||
	    is_mentioned(run))
		return NULL;
	place_fd = kit_place_open(atoll_cache(run->atoll));
	if (place_fd < 0 || kit_key(run->language, run->policy, key) < 0 ||
	    kit_find(place_fd, key, path, sizeof(path)) < 0)
		return NULL;
	return arena_strndup(&run->memory, path, strlen(path));
}

static size_t count_kit_words(const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* a[0] … a[first-1], all of b, the rest of a. */
static const char **join(struct local_run *run, const char *const *a, size_t first,
			 const char *const *b)
{
	size_t n_a = count_kit_words(a), n_b = count_kit_words(b);
	const char **list = arena_alloc(&run->memory, (n_a + n_b + 1) * sizeof(char *));

	if (!list)
		return NULL;
	memcpy(list, a, first * sizeof(char *));
	memcpy(list + first, b, n_b * sizeof(char *));
	memcpy(list + first + n_b, a + first, (n_a - first) * sizeof(char *));
	return list;
}

int flow_use_kit(struct local_run *run, const char *kit, struct sandbox_spec *in)
{
	const struct language_kit *k = &run->language->kit;
	struct stage_spec *stage = arena_alloc(&run->memory, sizeof(*stage));

	if (!stage)
		return -ENOMEM;
	*stage = in->stages[0];
	stage->argv = join(run, stage->argv, 1, (const char *const *)k->words);
	stage->env = join(run, stage->env, count_kit_words(stage->env),
			  (const char *const *)k->env);
	if (!stage->argv || !stage->env)
		return -ENOMEM;
	in->stages = stage;
	in->kit = kit;
	return 0;
}

static bool says(const struct result_stream *s, const char *word)
{
	return s->len > 0 && memmem(s->text, s->len, word, strlen(word));
}

static bool is_doubtful(const struct language_kit *k, const struct result_stream *s)
{
	if (s->truncated || says(s, SANDBOX_KIT))
		return true;
	for (const char **word = k->doubt; *word; word++)
		if (says(s, *word))
			return true;
	return false;
}

/* The messages might differ without the kit. */
static bool words_differ(const struct local_run *run, const struct job_outcome *o)
{
	const struct language_kit *k = &run->language->kit;
	struct result_stream out = { 0 }, err = { 0 };
	bool differ = true;

	if (capture_text(&o->out, &out) >= 0 && capture_text(&o->err, &err) >= 0)
		differ = is_doubtful(k, &out) || is_doubtful(k, &err);
	free(out.text);
	free(err.text);
	return differ;
}

bool flow_kit_stands(const struct local_run *run, const struct sandbox_spec *in,
		     const struct job_outcome *o)
{
	struct result_stage stage;

	if (o->error.code != ERROR_NONE)
		return false;
	flow_stage(o, 0, in->stages, &stage);
	switch (stage.verdict.cause.kind) {
	case CAUSE_EXIT:
		return (stage.verdict.status != STATUS_SUCCESS || run->product.n_files > 0) &&
		       !words_differ(run, o);
	case CAUSE_TIMEOUT:
	case CAUSE_CPU_TIME:
	case CAUSE_IDLE:
		/* Without a kit it would take longer, not shorter. */
	case CAUSE_CANCELLED:
	case CAUSE_INTERRUPTED:
		return true;
	default:
		return false;
	}
}

/* --- the caller's stages --- */

/*
 * `stages`: several programs in one sandbox, in order. A stage with `argv` is a command. A stage with `code` is
 * a program of the request's language, in a file of its own (main-2.py), or a shell command if there is no
 * language or the language is a shell. Stages of a compiled language are all built before the first one runs,
 * each as if it were the only program; the product of the second is in /build/2.
 */

enum { NAME_ROOM = 256 };

/* Whether the code of a stage is in a file. */
static bool is_program(const struct local_run *run, size_t index)
{
	return run->language && !run->language->command[0] && run->request->stages[index].code;
}

static bool is_built(const struct local_run *run, size_t index)
{
	return is_program(run, index) && run->language->compile.argv[0];
}

/* The file of a stage's code, for the work directory. */
static int stage_file(struct local_run *run, size_t index, struct build_file *ret,
		      struct error *err)
{
	const char *code = run->request->stages[index].code;
	char name[NAME_ROOM];

	language_stage_source(run->language, index, code, name, sizeof(name));
	*ret = (struct build_file){
		.base = SANDBOX_WORK,
		.path = arena_strndup(&run->memory, name, strlen(name)),
		.data = { code, strlen(code) },
		.mode = 0644,
	};
	return ret->path ? 0 : error_oom(err);
}

int flow_grow_files(struct local_run *run, size_t more, struct error *err)
{
	struct build_file *files = arena_alloc(&run->memory,
					       (run->n_files + more + 1) * sizeof(*files));

	if (!files)
		return error_oom(err);
	if (run->n_files > 0)
		memcpy(files, run->files, run->n_files * sizeof(*files));
	run->files = files;
	return 0;
}

int flow_add_stage_files(struct local_run *run, struct error *err)
{
	size_t n = run->request->n_stages;
	int r = n > 0 ? flow_grow_files(run, n, err) : 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		/* Two Java sources may have the same name; a built stage needs no source. */
		if (!is_program(run, i) || is_built(run, i))
			continue;
		r = stage_file(run, i, &run->files[run->n_files], err);
		if (r >= 0)
			run->n_files++;
	}
	return r;
}

/* --- words --- */

/* env looks up a word without a slash in PATH; a relative one is below the work directory. */
static const char **command_argv(struct local_run *run, const struct request_stage *s)
{
	static const char *const shell[] = { "/bin/sh", "-c", NULL };
	static const char *const search[] = { "/usr/bin/env", "--", NULL }, *const none[] = {
		NULL
	};
	const char *code[] = { s->code, NULL };
	const char *const *rest = s->code ? code : s->argv, *const *first = none;
	size_t n_first = 0, n_rest = 0;
	const char **argv;

	if (s->code)
		first = run->language ? (const char *const *)run->language->command : shell;
	else if (!strchr(s->argv[0], '/'))
		first = search;
	while (first[n_first])
		n_first++;
	while (rest[n_rest])
		n_rest++;
	argv = arena_alloc(&run->memory, (n_first + n_rest + 1) * sizeof(char *));
	if (!argv)
		return NULL;
	memcpy(argv, first, n_first * sizeof(char *));
	memcpy(argv + n_first, rest, n_rest * sizeof(char *));
	if (n_first == 0 && argv[0][0] != '/') {
		size_t size = sizeof(SANDBOX_WORK "/") + strlen(argv[0]);
		char *path = arena_alloc(&run->memory, size);

		if (!path)
			return NULL;
		(void)snprintf(path, size, SANDBOX_WORK "/%s", argv[0]);
		argv[0] = path;
	}
	return argv;
}

/* As the language runs a program; *c becomes the stage's own. */
static const char **program_argv(struct local_run *run, size_t index, struct word_context *c)
{
	const struct request *req = run->request;
	const char *code = req->stages[index].code;
	char name[NAME_ROOM], class_name[sizeof(run->class_name)] = "", text[2 * NAME_ROOM];
	const char **argv;
	size_t n = 0;

	language_stage_source(run->language, index, code, name, sizeof(name));
	if (run->language->class_pattern)
		language_main_class(code, strlen(code), class_name, sizeof(class_name));
	(void)snprintf(text, sizeof(text), SANDBOX_WORK "/%s", name);
	c->source = arena_strndup(&run->memory, text, strlen(text));
	c->class_name = arena_strndup(&run->memory, class_name, strlen(class_name));
	(void)snprintf(text, sizeof(text), SANDBOX_BUILD "/%zu", index + 1);
	c->build = arena_strndup(&run->memory, text, strlen(text));
	if (!c->source || !c->class_name || !c->build)
		return NULL;
	argv = flow_run_words(run, c, req->n_args);
	if (!argv)
		return NULL;
	while (argv[n])
		n++;
	memcpy(argv + n, req->args, req->n_args * sizeof(char *));
	return argv;
}

static int describe_stage(struct local_run *run, size_t index, struct stage_spec *ret,
			  struct error *err)
{
	const struct request_stage *s = &run->request->stages[index];
	struct limits *limits = arena_alloc(&run->memory, sizeof(*limits));
	struct word_context c;

	if (!limits)
		return error_oom(err);
	decision_stage_limits(&run->decision, &s->limits, s->limits_set, limits);
	c = flow_words(run, SANDBOX_BUILD, limits);
	*ret = (struct stage_spec){
		.name = s->name,
		.argv = is_program(run, index) ? program_argv(run, index, &c)
					       : command_argv(run, s),
		.stdin_data = s->stdin_data,
		.limits = limits,
	};
	ret->env = flow_env(run, s, &c);
	return ret->argv && ret->env ? 0 : error_oom(err);
}

int flow_describe_stages(struct local_run *run, struct sandbox_spec *in, struct error *err)
{
	size_t n = run->request->n_stages;
	struct stage_spec *stages = arena_alloc(&run->memory, n * sizeof(*stages));

	if (!stages)
		return error_oom(err);
	for (size_t i = 0; i < n; i++) {
		int r = describe_stage(run, i, &stages[i], err);

		if (r < 0)
			return r;
	}
	in->stages = stages;
	in->n_stages = n;
	return 0;
}

/* --- builds --- */

/* A run's fields about its program, saved while the code of a stage takes their place. */
struct staged_program {
	char source[sizeof(((struct local_run *)NULL)->source)];
	char class_name[sizeof(((struct local_run *)NULL)->class_name)];
	struct build_file *files;
	size_t n_files;
};

static int enter_stage(struct local_run *run, size_t index, struct staged_program *ret_left,
		       struct error *err)
{
	const char *code = run->request->stages[index].code;
	int r;

	memcpy(ret_left->source, run->source, sizeof(run->source));
	memcpy(ret_left->class_name, run->class_name, sizeof(run->class_name));
	ret_left->files = run->files;
	ret_left->n_files = run->n_files;
	r = flow_grow_files(run, 1, err);
	if (r >= 0)
		r = stage_file(run, index, &run->files[run->n_files], err);
	if (r < 0)
		return r;
	(void)snprintf(run->source, sizeof(run->source), "%s", run->files[run->n_files++].path);
	if (run->language->class_pattern)
		language_main_class(code, strlen(code), run->class_name, sizeof(run->class_name));
	run->stage = index + 1;
	return 0;
}

static void leave(struct local_run *run, const struct staged_program *left)
{
	memcpy(run->source, left->source, sizeof(run->source));
	memcpy(run->class_name, left->class_name, sizeof(run->class_name));
	run->files = left->files;
	run->n_files = left->n_files;
	run->stage = 0;
}

int flow_for_builds(struct local_run *run,
		    int (*fn)(struct local_run *run, void *data, struct error *err), void *data,
		    struct error *err)
{
	int r = 1;

	for (size_t i = 0; r > 0 && i < run->request->n_stages; i++) {
		struct staged_program left;

		if (!is_built(run, i))
			continue;
		r = enter_stage(run, i, &left, err);
		if (r >= 0)
			r = fn(run, data, err);
		leave(run, &left);
	}
	return r;
}

/* The product of the built stage, as files of the later sandbox. */
static int keep_product(struct local_run *run, struct build_file *ret)
{
	for (size_t i = 0; i < run->product.n_files; i++) {
		const struct request_file *f = &run->product.files[i];
		size_t size = strlen(f->path) + sizeof("00/");
		char *path = arena_alloc(&run->memory, size);
		struct span data = f->data;

		/*
		 * A product from the cache is in a block of its own, which is freed with it; a built one is in
		 * run.memory.
		 */
		if (run->product.bytes)
			data.data = arena_strndup(&run->memory, f->data.data, f->data.len);
		if (!path || !data.data)
			return -ENOMEM;
		(void)snprintf(path, size, "%zu/%s", run->stage, f->path);
		ret[i] = (struct build_file){
			.base = SANDBOX_BUILD, .path = path, .data = data, .mode = f->mode
		};
	}
	return 0;
}

struct built {
	struct build_file *files;
	size_t n, bytes;
};

/* All products are in memory until the run is over, so products that no plan could hold are refused early. */
static int count_product(const struct build_product *product, struct built *b, struct error *err)
{
	for (size_t i = 0; i < product->n_files; i++)
		b->bytes += product->files[i].data.len;
	if (b->bytes <= PLAN_BYTES_MAX)
		return 0;
	(void)error_field(err, "stages", "stages: what they are built to may hold %d MiB together",
			  PLAN_BYTES_MAX >> 20);
	err->errnum = EFBIG;
	return -EFBIG;
}

static int build_stage(struct local_run *run, void *data, struct error *err)
{
	struct built *b = data;
	struct build_file *files;
	int r = flow_build(run, err);

	if (r <= 0)
		return r;
	r = count_product(&run->product, b, err);
	if (r < 0)
		return r;
	files = arena_alloc(&run->memory, (b->n + run->product.n_files + 1) * sizeof(*files));
	if (!files)
		return error_oom(err);
	if (b->n > 0)
		memcpy(files, b->files, b->n * sizeof(*files));
	r = keep_product(run, files + b->n);
	b->files = files;
	b->n += run->product.n_files;
	build_product_done(&run->product);
	return r < 0 ? error_oom(err) : 1;
}

int flow_build_stages(struct local_run *run, struct error *err)
{
	struct built b = { 0 };
	int r = flow_for_builds(run, build_stage, &b, err);

	if (r <= 0 || b.n == 0)
		return r;
	r = flow_grow_files(run, b.n, err);
	if (r < 0)
		return r;
	memcpy(run->files + run->n_files, b.files, b.n * sizeof(*b.files));
	run->n_files += b.n;
	return 1;
}
