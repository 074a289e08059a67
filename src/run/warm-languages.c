/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See warm-languages.h. A zygote belongs to no request: its words know only the runner. It has one processor,
 * because a process with threads could not be forked from.
 */
#include "run/warm-languages.h"

#include "run/run.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether this is the last word about its variable. */
static bool is_last(const char *const *list, size_t n, size_t index)
{
	size_t len = strcspn(list[index], "=");

	for (size_t i = index + 1; i < n; i++)
		if (strncmp(list[i], list[index], len) == 0 && list[i][len] == '=')
			return false;
	return true;
}

/* Joins lists of variables, later ones override; each variable once. NULL: no memory. */
static const char *const *join_env(const char *const *const parts[], size_t n_parts,
				   const struct word_context *c, struct arena *memory)
{
	const char **list, **env;
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < n_parts; i++)
		for (const char *const *word = parts[i]; *word; word++)
			n++;
	list = arena_alloc(memory, (n + 1) * sizeof(*list));
	env = arena_alloc(memory, (n + 1) * sizeof(*env));
	if (!list || !env)
		return NULL;
	n = 0;
	for (size_t i = 0; i < n_parts; i++)
		for (const char *const *word = parts[i]; *word; word++) {
			list[n] = flow_expand(memory, *word, c);
			if (!list[n++])
				return NULL;
		}
	for (size_t i = 0; i < n; i++)
		if (is_last((const char *const *)list, n, i))
			env[kept++] = list[i];
	return (const char *const *)env;
}

/* {usual}: the variables of a request that names no variables or processors, a line each; NULL: no memory. */
static const char *usual_env(const struct language *lang, const struct word_context *c,
			     struct arena *memory)
{
	const char *const *const parts[] = { plan_base_env, (const char *const *)lang->env };
	const char *const *env = join_env(parts, ARRAY_SIZE(parts), c, memory);
	_cleanup_buf_ struct buf text = { 0 };
	int r = env ? 0 : -ENOMEM;

	buf_init(&text, REQUEST_WORD_MAX);
	for (; r == 0 && *env; env++)
		r = buf_printf(&text, "%s%s", text.len > 0 ? "\n" : "", *env);
	return r == 0 ? arena_strndup(memory, text.data ? text.data : "", text.len) : NULL;
}

static const char *const *zygote_env(const struct language *lang, const struct word_context *c,
				     struct arena *memory)
{
	static const char *const own[] = { "HOME=/nonexistent", "ATOLL_TEXT={source}", NULL };
	static const char *const one_thread[] = { "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
						  "MKL_NUM_THREADS=1", "NUMEXPR_NUM_THREADS=1",
						  NULL };
	const char *const *const parts[] = { plan_base_env, own, (const char *const *)lang->env,
					     one_thread, (const char *const *)lang->warm.env };

	return join_env(parts, ARRAY_SIZE(parts), c, memory);
}

static const char *const *zygote_argv(const struct language *lang, const struct word_context *c,
				      struct arena *memory)
{
	size_t n = 0;
	const char **argv;

	while (lang->warm.argv[n])
		n++;
	argv = arena_alloc(memory, (n + 1) * sizeof(*argv));
	for (size_t i = 0; argv && i < n; i++) {
		argv[i] = flow_expand(memory, lang->warm.argv[i], c);
		if (!argv[i])
			return NULL;
	}
	return (const char *const *)argv;
}

/* 1: added to the table; 0: the language does not fork, or its runtime is missing. */
static int add_runtime(const struct language *lang, const char *data_dir, struct arena *memory,
		       struct warm_runtime *ret)
{
	static const struct limits limits = { .cpus_milli = 1000, .memory_bytes = 512 * MiB };
	char path[PATH_MAX], source[PATH_MAX];
	struct word_context c = { .source = source,
				  .build = SANDBOX_BUILD,
				  .limits = &limits,
				  .class_name = "",
				  .runner = path };

	if (lang->warm.kind != WARMTH_FORK || language_available(lang, NULL, NULL) < 0 ||
	    snprintf(source, sizeof(source), SANDBOX_WORK "/%s", lang->source) >=
		    (int)sizeof(source) ||
	    snprintf(path, sizeof(path), "%s/runners/%s", data_dir,
		     lang->warm.runner ? lang->warm.runner : "") >= (int)sizeof(path) ||
	    access(path, R_OK) < 0)
		return 0;
	c.usual = usual_env(lang, &c, memory);
	if (!c.usual)
		return -ENOMEM;
	*ret = (struct warm_runtime){
		.name = arena_strndup(memory, lang->name, strlen(lang->name)),
		.argv = zygote_argv(lang, &c, memory),
		.env = zygote_env(lang, &c, memory),
		.tiers = (const char *const *const *)lang->warm.tiers,
	};
	return ret->name && ret->argv && ret->env ? 1 : -ENOMEM;
}

static const char *runners_dir(const char *data_dir, struct arena *memory)
{
	static const char below[] = "/runners";
	size_t n = strlen(data_dir);
	char *path = arena_alloc(memory, n + sizeof(below));

	if (path) {
		memcpy(path, data_dir, n);
		memcpy(path + n, below, sizeof(below));
	}
	return path;
}

int registry_warm_table(struct registry *reg, const char *data_dir, struct arena *memory,
			struct warm_table *ret, struct error *err)
{
	_cleanup_free_ char *absolute = realpath(data_dir, NULL);
	const struct language *const *languages;
	struct warm_runtime *runtimes;
	struct warm_table table = { 0 };
	size_t n;
	int r;

	if (!absolute)
		return error_set(err, ERROR_INTERNAL, errno, "cannot find '%.300s': %s", data_dir,
				 strerror(errno));
	r = registry_list(reg, "warm", &languages, &n, err);
	if (r < 0)
		return r;
	runtimes = arena_alloc(memory, n * sizeof(*runtimes));
	if (!runtimes)
		return error_oom(err);
	for (size_t i = 0; i < n; i++) {
		r = add_runtime(languages[i], absolute, memory, &runtimes[table.n_runtimes]);
		if (r < 0)
			return error_oom(err);
		table.n_runtimes += (size_t)r;
	}
	table.runtimes = runtimes;
	table.runners = runners_dir(absolute, memory);
	if (!table.runners)
		return error_oom(err);
	*ret = table;
	return 0;
}
