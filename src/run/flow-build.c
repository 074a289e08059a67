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

#include <stdio.h>
#include <string.h>

#define KEEP FLOW_BUILD_DIR "/.keep" /* makes the directory exist */

/* Of all compile stages of a run: each may run with a kit first, and again without. */
static const int64_t built_bytes_max = 2LL * PLAN_BYTES_MAX;

bool flow_is_compiled(const struct local_run *run)
{
	return run->language && run->language->compile_argv[0] && run->source[0] &&
	       run->request->n_stages == 0;
}

static int take_product(struct local_run *run, const struct run_file *file);

/* Whether the request brings the file that makes its files a project of the language. */
static bool is_project(const struct local_run *run)
{
	const char *name = run->language->project;

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
							       ? run->language->project_argv
							       : run->language->compile_argv);
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
	decision_stage_limits(&run->decision, &run->language->compile_limits,
			      run->language->compile_limits_set, &d->limits);
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
