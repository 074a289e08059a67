/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an interpreter runs by itself before the program (section `startup` of a language): the files go to a folder of their
 * own, which comes first in the variable that names folders. They take it out again, so that a program sees the caller's
 * value. They are shown and not sent: plans stay small, and sandboxes made ahead have them. A data directory that sandboxes
 * cannot read means doing without.
 */
#include "client/run.h"

#include <stdio.h>
#include <string.h>

static int no_memory(struct error *err)
{
	return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
}

/* The value of the last word that sets the variable, or NULL. */
static const char *value_of(const char *const *env, const char *name)
{
	const char *value = NULL;
	size_t n = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			value = *env + n + 1;
	return value;
}

/* The variables and one more behind them, which counts. */
static const char **with_folder(struct run *run, const char *const *env)
{
	const char *name = run->language->startup.path, *value = value_of(env, name);
	size_t n = 0,
	       size = strlen(name) + sizeof("=" SANDBOX_START ":") + (value ? strlen(value) : 0);
	const char **list;
	char *word = arena_alloc(&run->memory, size);

	while (env[n])
		n++;
	list = arena_alloc(&run->memory, (n + 2) * sizeof(*list));
	if (!list || !word)
		return NULL;
	(void)snprintf(word, size, "%s=" SANDBOX_START "%s%s", name, value ? ":" : "",
		       value ? value : "");
	memcpy(list, env, n * sizeof(*list));
	list[n] = word;
	return list;
}

/* 1: all are there. */
static int list_files(struct run *run, struct execution *in, struct error *err)
{
	const char **words = run->language->startup.files;
	struct build_show *files;
	size_t n = 0;

	while (words[n])
		n++;
	files = arena_alloc(&run->memory, (n + 1) * sizeof(*files));
	if (!files)
		return no_memory(err);
	for (size_t i = 0; i < n; i++) {
		const char *equals = strchr(words[i], '=');

		files[i] = (struct build_show){
			.source = registry_runner_path(run->atoll->registry, equals + 1),
			.path = arena_strndup(&run->memory, words[i], (size_t)(equals - words[i])),
		};
		if (!files[i].path)
			return no_memory(err);
		if (!files[i].source)
			return 0;
	}
	in->startup = files;
	in->n_startup = n;
	return 1;
}

int flow_add_startup(struct run *run, struct execution *in, struct error *err)
{
	struct stage_spec *stage;
	const char *value;
	int r;

	if (!run->language || !run->language->startup.path)
		return 0;
	/* An empty value, which means none, could not be told from none afterwards. */
	value = value_of(in->stages[0].env, run->language->startup.path);
	if (value && !*value)
		return 0;
	r = list_files(run, in, err);
	if (r <= 0)
		return r;
	stage = arena_alloc(&run->memory, sizeof(*stage));
	if (!stage)
		return no_memory(err);
	*stage = in->stages[0];
	stage->env = (const char *const *)with_folder(run, in->stages[0].env);
	if (!stage->env)
		return no_memory(err);
	in->stages = stage;
	return 0;
}
