/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The languages of the data directory, read once: names and aliases for POST /execute and filters, and the table of the tools. All texts are
 * the registry's.
 */
#include <string.h>
#include <strings.h>

#include "run/toolchain/registry.h"
#include "web/routes/api-private.h"

static int compare_names(const void *a, const void *b)
{
	const struct language *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* The tool `execute_code` lists its document's three languages first. */
static int tool_rank(const char *name)
{
	static const char *const first[] = { "python", "javascript", "bash" };
	int rank = 0;

	while (rank < (int)ARRAY_SIZE(first) && strcmp(first[rank], name) != 0)
		rank++;
	return rank;
}

static int compare_ranks(const void *a, const void *b)
{
	const struct tool_language *x = a, *y = b;
	int order = tool_rank(x->name) - tool_rank(y->name);

	return order ? order : strcmp(x->name, y->name);
}

void languages_free(struct api *api)
{
	api->registry = registry_free(api->registry);
	free(api->tools);
	free(api->sorted);
	free(api->languages);
}

const char *language_called(const struct api *api, const char *word)
{
	for (const struct language *const *l = api->sorted; word && *l; l++) {
		if (strcasecmp((*l)->name, word) == 0)
			return (*l)->name;
		for (const char *const *alias = (const char *const *)(*l)->aliases; *alias; alias++)
			if (strcasecmp(*alias, word) == 0)
				return (*l)->name;
	}
	return word;
}

int languages_load(struct api *api, struct error *err)
{
	const struct language *const *list = NULL;
	size_t n = 0, names = 0, at = 0;
	int r = registry_new(api->options.data_dir, &api->registry, err);

	if (r == 0)
		r = registry_list(api->registry, "", &list, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++, names++)
		for (const char **alias = list[i]->aliases; *alias; alias++)
			names++;
	api->sorted = calloc(n + 1, sizeof(*api->sorted));
	api->languages = calloc(names + 1, sizeof(*api->languages));
	api->tools = calloc(n + 1, sizeof(*api->tools));
	if (!api->sorted || !api->languages || !api->tools)
		return error_oom(err);
	/* In the order in which languages are shown to users. */
	for (size_t i = 0; i < n; i++)
		api->sorted[i] = list[i];
	qsort(api->sorted, n, sizeof(*api->sorted), compare_names);
	for (size_t i = 0; i < n; i++) {
		const struct language *l = api->sorted[i];
		const char *dot = strrchr(l->source, '.');

		api->languages[at++] = l->name;
		for (const char **alias = l->aliases; *alias; alias++)
			api->languages[at++] = *alias;
		api->tools[i] = (struct tool_language){ .name = l->name,
							.extension = dot ? dot + 1 : "",
							.has_sessions = *l->session,
							.names_files = l->class_pattern };
	}
	qsort(api->tools, n, sizeof(*api->tools), compare_ranks);
	return 0;
}
