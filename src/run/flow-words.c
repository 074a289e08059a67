/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns words of a language file into words of a program. A word may hold {source}, {source_dir}, {work}, {build}, {class},
 * {stem}, {prelude}, {memory_mb}, {memory_90_mb}, {stack_kb} and {cpus}; words of a `warm` section also their runner's
 * placeholders, and variables of a zygote {usual}. Any other brace stands for itself. A word that begins with {unless TEXT} is left out if the caller's options for the
 * runtime hold that text; {unless TEXT|TEXT}: one of them.
 */
#include "run/run.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = REQUEST_WORD_MAX, NUMBER_MAX = 24, STEM_MAX = 256 };

/* Java takes no larger one for a thread. */
#define STACK_BYTES_MAX GiB

struct placeholder {
	const char *name;
	const char *value;
};

static const struct placeholder *match(const struct placeholder *table, const char *p)
{
	for (; table->name; table++) {
		if (table->value && strncmp(p, table->name, strlen(table->name)) == 0)
			return table;
	}
	return NULL;
}

/* "/sandbox/dir/main.ts" -> "main" */
static void stem_of(const char *path, char ret[STEM_MAX])
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	size_t n = dot && dot > name ? (size_t)(dot - name) : strlen(name);

	n = MIN(n, (size_t)STEM_MAX - 1);
	memcpy(ret, name, n);
	ret[n] = '\0';
}

const char *flow_expand(struct arena *arena, const char *word, const struct word_context *c)
{
	char memory_mb[NUMBER_MAX], memory_90_mb[NUMBER_MAX], stack_kb[NUMBER_MAX],
		cpus[NUMBER_MAX], stem[STEM_MAX], source_dir[PATH_MAX];
	const int64_t mib = MAX(c->limits->memory_bytes / (int64_t)MiB, (int64_t)1);
	const struct placeholder table[] = {
		{ "{source}", c->source },
		{ "{source_dir}", source_dir },
		{ "{work}", SANDBOX_WORK },
		{ "{build}", c->build },
		{ "{class}", c->class_name },
		{ "{stem}", stem },
		{ "{prelude}", SANDBOX_PRELUDE },
		{ "{memory_mb}", memory_mb },
		{ "{memory_90_mb}", memory_90_mb },
		{ "{stack_kb}", stack_kb },
		{ "{cpus}", cpus },
		{ "{runner}", c->runner },
		{ "{runner_text}", c->runner_text },
		{ "{runner_fd}", c->runner_fd },
		{ "{usual}", c->usual },
		{ NULL, NULL },
	};
	_cleanup_buf_ struct buf out = { 0 };

	if (!strchr(word, '{'))
		return word;
	stem_of(c->source, stem);
	(void)snprintf(source_dir, sizeof(source_dir), "%.*s",
		       (int)(strrchr(c->source, '/') ? strrchr(c->source, '/') - c->source : 0),
		       c->source);
	(void)snprintf(memory_mb, sizeof(memory_mb), "%" PRId64, mib);
	(void)snprintf(memory_90_mb, sizeof(memory_90_mb), "%" PRId64, mib * 9 / 10);
	(void)snprintf(stack_kb, sizeof(stack_kb), "%" PRId64,
		       (int64_t)(MIN(c->limits->stack_bytes, STACK_BYTES_MAX) / KiB));
	(void)snprintf(cpus, sizeof(cpus), "%" PRId64, plan_cpus(c->limits));
	buf_init(&out, WORD_MAX);
	while (*word) {
		const struct placeholder *p = *word == '{' ? match(table, word) : NULL;
		int r = p ? buf_puts(&out, p->value) : buf_append(&out, word, 1);

		if (r < 0)
			return NULL;
		word += p ? strlen(p->name) : 1;
	}
	return arena_strndup(arena, out.data ? out.data : "", out.len);
}

struct word_context flow_words(struct local_run *run, const char *build,
			       const struct limits *limits)
{
	size_t size = sizeof(SANDBOX_WORK) + 1 + sizeof(run->source);
	char *source = arena_alloc(&run->memory, size);

	if (source)
		(void)snprintf(source, size, SANDBOX_WORK "/%s", run->source);
	return (struct word_context){
		.source = source ? source : "",
		.build = build,
		.limits = limits,
		.class_name = run->class_name,
	};
}

/* One of these texts, with | between them, is in the caller's options for the runtime. */
static bool has_option(const struct local_run *run, const char *texts, const char *end)
{
	while (texts < end) {
		size_t len = strcspn(texts, "|}");

		for (const char **name = run->language->options; *name; name++)
			for (size_t i = 0; i < run->request->n_env; i++) {
				const struct request_var *v = &run->request->env[i];

				if (strcmp(v->name, *name) == 0 &&
				    memmem(v->value, strlen(v->value), texts, len))
					return true;
			}
		texts += len + 1;
	}
	return false;
}

/* The word behind its condition, if it has one; NULL: it is left out. */
static const char *take_condition(const struct local_run *run, const char *word)
{
	static const char head[] = "{unless ";
	const char *text = word + sizeof(head) - 1;
	const char *end = strncmp(word, head, sizeof(head) - 1) == 0 ? strchr(text, '}') : NULL;

	if (!end)
		return word;
	return has_option(run, text, end) ? NULL : end + 1;
}

const char **flow_expand_all(struct local_run *run, const char *const *words,
			     const struct word_context *c, size_t spare)
{
	const char **list;
	size_t n = 0;

	while (words[n])
		n++;
	list = arena_alloc(&run->memory, (n + spare + 1) * sizeof(char *));
	if (!list)
		return NULL;
	for (n = 0; *words; words++) {
		const char *word = take_condition(run, *words);

		if (!word)
			continue;
		list[n] = flow_expand(&run->memory, word, c);
		if (!list[n++])
			return NULL;
	}
	return list;
}

static const char *variable(struct arena *memory, const struct request_var *v)
{
	size_t size = strlen(v->name) + 1 + strlen(v->value) + 1;
	char *word = arena_alloc(memory, size);

	if (word)
		(void)snprintf(word, size, "%s=%s", v->name, v->value);
	return word;
}

static size_t count_words(const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

static const char *const no_words[] = { NULL };

/* The additions of the language's section `workspace` to this run. */
static const struct language_workspace *in_workspace(const struct local_run *run)
{
	const struct language *lang = run->language;

	return lang && lang->workspace.words && run->request->workspace_cwd ? &lang->workspace
									    : NULL;
}

const char **flow_run_words(struct local_run *run, const struct word_context *c, size_t spare)
{
	const struct language_workspace *workspace = in_workspace(run);
	const char *const *own = (const char *const *)run->language->run_argv;
	const char *const *more = workspace ? (const char *const *)workspace->words : no_words;
	size_t n_more = count_words(more);
	const char **words = flow_expand_all(run, own, c, n_more + spare);

	if (!words)
		return NULL;
	memmove(words + 1 + n_more, words + 1,
		(count_words((const char *const *)words) - 1) * sizeof(*words));
	memcpy(words + 1, more, n_more * sizeof(*words));
	return words;
}

const char **flow_env(struct local_run *run, const struct request_stage *stage,
		      const struct word_context *c)
{
	const struct language_workspace *workspace = in_workspace(run);
	const char *const *base = run->language ? (const char *const *)run->language->env
						: no_words;
	const char *const *more = workspace ? (const char *const *)workspace->env : no_words;
	const struct request *req = run->request;
	size_t n_stage = stage ? stage->n_env : 0, n = count_words(base);
	const char **env = flow_expand_all(run, base, c, count_words(more) + req->n_env + n_stage);

	if (!env)
		return NULL;
	for (; *more; more++)
		env[n++] = *more;
	for (size_t i = 0; i < req->n_env + n_stage; i++) {
		const struct request_var *v = i < req->n_env ? &req->env[i]
							     : &stage->env[i - req->n_env];

		env[n] = variable(&run->memory, v);
		if (!env[n++])
			return NULL;
	}
	return env;
}
