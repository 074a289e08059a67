/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stages`: several programs in one sandbox, in order. A stage with `argv` is a command. A stage with `code` is
 * a program of the request's language, in a file of its own (main-2.py), or a shell command if there is no
 * language or the language is a shell. Stages of a compiled language are all built before the first one runs,
 * each as if it were the only program; the product of the second is in /build/2.
 */
#include "run/run.h"

#include <stdio.h>
#include <string.h>

enum { NAME_ROOM = 256 };

/* Whether the code of a stage is in a file. */
static bool is_program(const struct local_run *run, size_t index)
{
	return run->language && !run->language->command[0] && run->request->stages[index].code;
}

static bool is_built(const struct local_run *run, size_t index)
{
	return is_program(run, index) && run->language->compile_argv[0];
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
