/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section `versions` of a language file (see language.h). A version is the language's own tree with some
 * keys replaced, and is read like a language; so a version can have every key of a language.
 */
#include <stdio.h>
#include <string.h>

#include "spec/language-read.h"

#define VERSION_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-"

enum { VERSIONS_MAX = 32, VERSION_BYTES_MAX = 24 };

/* Names, files and warm runtimes lead to the language itself, so versions do not have these keys. */
static const char *const not_of_versions[] = { "aliases",  "extensions", "name",
					       "shebangs", "versions",	 "warm" };

static int check_version(const struct reader *r, const char *name, const json_t *keys)
{
	size_t n = strlen(name);

	if (n == 0 || n > VERSION_BYTES_MAX || strspn(name, VERSION_LETTERS) != n)
		return reader_refuse(r, "'%s' is not a version (letters, digits, . _ + -)",
				     quote_text(name).text);
	if (!json_is_object(keys))
		return reader_refuse(r, "%s is not a map of keys", quote_json(keys).text);
	for (size_t i = 0; i < ARRAY_SIZE(not_of_versions); i++)
		if (json_object_get(keys, not_of_versions[i]))
			return reader_refuse(r, "%s cannot be another for a version",
					     not_of_versions[i]);
	return 0;
}

int language_read_versions(const struct reader *r, const struct key_rule *rule _unused_,
			   const json_t *value, void *object _unused_)
{
	const char *name;
	const json_t *keys;

	if (!json_is_object(value))
		return reader_refuse(r, "%s is not a map of versions", quote_json(value).text);
	if (json_object_size(value) > VERSIONS_MAX)
		return reader_refuse(r, "there are %zu versions, more than the %d allowed",
				     json_object_size(value), VERSIONS_MAX);
	json_object_foreach((json_t *)(uintptr_t)value, name, keys)
	{
		struct reader at = reader_at(r, name);
		int e = check_version(&at, name, keys);

		if (e < 0)
			return e;
	}
	return 0;
}

/* The language's keys, overridden by the version's; NULL: no memory. A null removes a key. */
static json_t *make_tree(const struct language *lang, const char *name, const json_t *keys)
{
	json_t *tree = json_copy(lang->root);
	int r = tree ? 0 : -1;

	for (size_t i = 0; i < ARRAY_SIZE(not_of_versions); i++)
		if (strcmp(not_of_versions[i], "name") != 0)
			(void)json_object_del(tree, not_of_versions[i]);
	if (r == 0)
		r = json_object_set_new(tree, "title", json_sprintf("%s %s", lang->title, name));
	if (r == 0)
		r = json_object_update(tree, (json_t *)(uintptr_t)keys);
	if (r == 0)
		return tree;
	json_decref(tree);
	return NULL;
}

static int make_version(const struct reader *r, const struct language *lang, const char *name,
			const json_t *keys, struct language **ret)
{
	json_t *tree = make_tree(lang, name, keys);
	struct language *version;
	char id[2 * NAME_BYTES_MAX];
	int n, e;

	if (!tree)
		return reader_no_memory(r);
	e = language_read_tree(r, tree, &version);
	if (e < 0)
		return e;
	n = snprintf(id, sizeof(id), "%s@%s", lang->name, name);
	version->version_name = arena_strndup(&version->memory, name, strlen(name));
	version->id = arena_strndup(&version->memory, id, (size_t)MAX(n, 0));
	if (!version->version_name || !version->id) {
		(void)language_free(version);
		return reader_no_memory(r);
	}
	*ret = version;
	return 0;
}

int language_make_versions(const struct reader *r, struct language *lang)
{
	const json_t *versions = json_object_get(lang->root, "versions"), *keys;
	struct reader below = reader_at(r, "versions");
	const char *name;

	if (!json_is_object(versions))
		return 0;
	lang->versions = arena_alloc(r->arena,
				     (json_object_size(versions) + 1) * sizeof(struct language *));
	if (!lang->versions)
		return reader_no_memory(r);
	json_object_foreach((json_t *)(uintptr_t)versions, name, keys)
	{
		struct reader at = reader_at(&below, name);
		int e = make_version(&at, lang, name, keys, &lang->versions[lang->n_versions]);

		if (e < 0)
			return e;
		lang->n_versions++;
	}
	return 0;
}

bool language_version_fits(const char *have, const char *wanted)
{
	size_t n = strlen(wanted);

	if (n == 0 || strncmp(have, wanted, n) != 0)
		return false;
	/* "3.1" is not the beginning of 3.11, but "3.1.2" is that of 3.1.2p20. */
	return have[n] < '0' || have[n] > '9';
}
