/* SPDX-License-Identifier: Apache-2.0 */
/* The languages of the data directory, read once: names and aliases for POST /execute and filters, and the table of the tools. */
#include <string.h>
#include <strings.h>

#include "run/toolchain/registry.h"
#include "web/routes/api-private.h"

static int add_name(struct api *api, size_t at, const char *word, const char *name)
{
	api->languages[at] = strdup(word);
	api->language_names[at] = strdup(name);
	return api->languages[at] && api->language_names[at] ? 0 : -ENOMEM;
}

static int compare_names(const void *a, const void *b)
{
	const struct language *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* In the order in which languages are shown to users. */
static int take_names(struct api *api, const struct language **list, size_t n)
{
	size_t i, count = 0;
	int r = 0;

	qsort(list, n, sizeof(*list), compare_names);
	for (i = 0; i < n; i++) {
		count++;
		for (const char **alias = list[i]->aliases; *alias; alias++)
			count++;
	}
	api->languages = calloc(count + 1, sizeof(*api->languages));
	api->language_names = calloc(count + 1, sizeof(*api->language_names));
	if (!api->languages || !api->language_names)
		return -ENOMEM;
	for (i = count = 0; r == 0 && i < n; i++) {
		r = add_name(api, count++, list[i]->name, list[i]->name);
		for (const char **alias = list[i]->aliases; r == 0 && *alias; alias++)
			r = add_name(api, count++, *alias, list[i]->name);
	}
	return r;
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

static int take_tools(struct api *api, const struct language **list, size_t n)
{
	api->tools = calloc(n + 1, sizeof(*api->tools));
	if (!api->tools)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const char *dot = strrchr(list[i]->source, '.');

		api->tools[i] = (struct tool_language){
			.name = strdup(list[i]->name),
			.extension = strdup(dot ? dot + 1 : ""),
			.has_sessions = *list[i]->session,
			.names_files = list[i]->class_pattern,
		};
		if (!api->tools[i].name || !api->tools[i].extension)
			return -ENOMEM;
	}
	qsort(api->tools, n, sizeof(*api->tools), compare_ranks);
	return 0;
}

void languages_free(struct api *api)
{
	for (struct tool_language *l = api->tools; l && l->name; l++) {
		free((char *)(uintptr_t)l->name);
		free((char *)(uintptr_t)l->extension);
	}
	free(api->tools);
	for (char **name = api->languages; name && *name; name++)
		free(*name);
	for (char **name = api->language_names; name && *name; name++)
		free(*name);
	free(api->languages);
	free(api->language_names);
}

const char *language_called(const struct api *api, const char *word)
{
	for (size_t i = 0; word && api->languages[i]; i++)
		if (strcasecmp(api->languages[i], word) == 0)
			return api->language_names[i];
	return word;
}

int languages_load(struct api *api, struct error *err)
{
	_cleanup_(registry_cleanup) struct registry *registry = NULL;
	const struct language *const *list = NULL;
	_cleanup_free_ const struct language **sorted = NULL;
	size_t n = 0;
	int r = registry_new(api->options.data_dir, &registry, err);

	if (r == 0)
		r = registry_list(registry, "", &list, &n, err);
	if (r < 0)
		return r;
	sorted = malloc((n + 1) * sizeof(*sorted));
	if (sorted && n > 0)
		memcpy(sorted, list, n * sizeof(*sorted));
	r = sorted ? take_names(api, sorted, n) : -ENOMEM;
	if (r == 0)
		r = take_tools(api, sorted, n);
	return r == 0 ? 0 : error_oom(err);
}
