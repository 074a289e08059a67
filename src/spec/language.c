/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See language.h. The YAML file becomes a tree, a table reads the tree, and the struct points into the tree. Everything is checked when
 * the file is read, so users of a language need no checks. A version is the language's own tree with some keys replaced, and is read
 * like a language; so a version can have every key of a language.
 */
#include "spec/language.h"

#include <stdio.h>
#include <string.h>

#include "spec/read.h"
#include "spec/request.h"

enum {
	NAME_BYTES_MAX = 32,
	TEXT_BYTES_MAX = 1024,
	WORDS_COUNT_MAX = 256,
	WARM_WORDS_MAX = 48, /* with the base and the language's variables less than a plan takes */
	WORKSPACE_WORDS_MAX = 32,
	KIT_TEXT_MAX = 4096,
	KIT_WORDS_MAX = 32,
	VERSIONS_MAX = 32,
	VERSION_BYTES_MAX = 24,
};

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789+#._@-"
#define LETTERS	     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char *no_words[] = { NULL };

static int language_read_name(const struct reader *r, const struct schema_field *f,
			      const json_t *value, void *object)
{
	const struct language *lang = object;
	int e = read_text(r, f, value, object);

	if (e < 0)
		return e;
	if (!*lang->name || lang->name[strspn(lang->name, NAME_LETTERS)])
		return reader_refuse(r,
				     "'%s' is not a language name (small letters, digits, "
				     "+ # . _ @ -)",
				     quote_text(lang->name).text);
	return 0;
}

static int language_read_source(const struct reader *r, const struct schema_field *f,
				const json_t *value, void *object)
{
	const struct language *lang = object;
	int e = read_text(r, f, value, object);

	if (e < 0)
		return e;
	if (strchr(lang->source, '/') ||
	    request_check_path(lang->source, strlen(lang->source), NULL) < 0)
		return reader_refuse(r, "'%s' is not a plain file name",
				     quote_text(lang->source).text);
	return 0;
}

static int language_read_path(const struct reader *r, const struct schema_field *f,
			      const json_t *value, void *object)
{
	int e = read_text(r, f, value, object);

	if (e < 0)
		return e;
	if (json_string_value(value)[0] != '/')
		return reader_refuse(r, "%s is not an absolute path", quote_json(value).text);
	return 0;
}

static int language_read_class(const struct reader *r, const struct schema_field *f,
			       const json_t *value, void *object)
{
	const struct language *lang = object;
	int e = read_text(r, f, value, object);

	if (e < 0)
		return e;
	if (strcmp(lang->class_pattern, "java") != 0)
		return reader_refuse(r, "'%s' is not a known way to find a class (java is)",
				     quote_text(lang->class_pattern).text);
	return 0;
}

/* A map of names and texts, or a list of "K=V" words: both become words. */
static int language_read_env(const struct reader *r, const struct schema_field *f,
			     const json_t *value, void *object)
{
	const char *name, **words;
	const json_t *text;
	size_t n = 0;

	if (json_is_array(value))
		return read_words(r, f, value, object);
	if (!json_is_object(value))
		return reader_refuse(r, "%s is neither a map nor a list", quote_json(value).text);
	words = arena_alloc(r->arena, (json_object_size(value) + 1) * sizeof(*words));
	if (!words)
		return reader_no_memory(r);
	json_object_foreach((json_t *)(uintptr_t)value, name, text)
	{
		struct reader at = reader_at(r, name);
		const char *content;
		size_t size;
		char *word;
		int e = read_string(&at, text, f->max, &content);

		if (e < 0)
			return e;
		size = strlen(name) + strlen(content) + 2;
		word = arena_alloc(r->arena, size);
		if (!word)
			return reader_no_memory(r);
		(void)snprintf(word, size, "%s=%s", name, content);
		words[n++] = word;
	}
	*(const char ***)field_member(f, object) = words;
	return 0;
}

/* --- section warm --- */

static int warm_kind(const struct reader *r, const struct schema_field *f, const json_t *value,
		     void *object)
{
	static const char *const kinds[] = { [WARMTH_FORK] = "fork", [WARMTH_START] = "start" };
	struct language_warm *warm = object;
	const char *text;
	int e = read_string(r, value, f->max, &text);

	if (e < 0)
		return e;
	for (int i = WARMTH_FORK; i <= WARMTH_START; i++)
		if (strcmp(text, kinds[i]) == 0) {
			warm->kind = (enum warmth)i;
			return 0;
		}
	return reader_refuse(r, "'%s' is neither fork nor start", quote_text(text).text);
}

static int warm_runner(const struct reader *r, const struct schema_field *f, const json_t *value,
		       void *object)
{
	const struct language_warm *warm = object;
	int e = read_text(r, f, value, object);

	if (e < 0)
		return e;
	if (request_check_path(warm->runner, strlen(warm->runner), NULL) < 0)
		return reader_refuse(r, "'%s' is not a name below runners/",
				     quote_text(warm->runner).text);
	return 0;
}

static int warm_run(const struct reader *r, const struct schema_field *f, const json_t *value,
		    void *object)
{
	const struct language_warm *warm = object;
	int e = read_words(r, f, value, object);

	if (e < 0)
		return e;
	if (!warm->argv[0] || warm->argv[0][0] != '/')
		return reader_refuse(r, "its first word is not an absolute path");
	return 0;
}

static int warm_tiers(const struct reader *r, const struct schema_field *f, const json_t *value,
		      void *object)
{
	const struct schema_field tier_row = { .max = f->max, .max_count = f->max_count };
	struct language_warm *warm = object;
	size_t n = json_array_size(value);
	const char ***tiers;

	if (!json_is_array(value))
		return reader_refuse(r, "%s is not a list", quote_json(value).text);
	if (n > WARM_TIERS_MAX)
		return reader_refuse(r, "it has %zu entries, more than the %d allowed", n,
				     WARM_TIERS_MAX);
	tiers = arena_alloc(r->arena, (n + 1) * sizeof(*tiers));
	if (!tiers)
		return reader_no_memory(r);
	for (size_t i = 0; i < n; i++) {
		struct reader at = reader_index(r, i);
		int e = read_modules(&at, &tier_row, json_array_get(value, i), &tiers[i]);

		if (e < 0)
			return e;
		if (!tiers[i][0])
			return reader_refuse(&at, "it is empty; that tier is always there");
	}
	warm->tiers = tiers;
	return 0;
}

/* For a broker, light is a tier like others. */
static int warm_add_light(const struct reader *r, struct language_warm *warm)
{
	const char ***tiers;
	size_t n = 0;

	if (!warm->light[0])
		return 0;
	while (warm->tiers[n])
		n++;
	tiers = arena_alloc(r->arena, (n + 2) * sizeof(*tiers));
	if (!tiers)
		return reader_no_memory(r);
	memcpy(tiers, warm->tiers, n * sizeof(*tiers));
	tiers[n] = warm->light;
	warm->tiers = tiers;
	return 0;
}

/* "NAME", or "NAME*" for all names that begin so; "!NAME": it is none of these. */
static int warm_cold_env(const struct reader *r, const struct schema_field *f, const json_t *value,
			 void *object)
{
	const struct language_warm *warm = object;
	int e = read_words(r, f, value, object);

	for (size_t i = 0; e == 0 && warm->cold_env[i]; i++) {
		struct reader at = reader_index(r, i);
		const char *name = warm->cold_env[i] + (warm->cold_env[i][0] == '!');
		size_t n = strspn(name, LETTERS "_");

		if (n == 0 || (name[n] && strcmp(name + n, "*") != 0))
			e = reader_refuse(
				&at,
				"'%s' is not the name of a variable, with * at most at its end",
				quote_text(warm->cold_env[i]).text);
	}
	return e;
}

#define WARM_MEMBER(name) .offset = offsetof(struct language_warm, name)
#define WARM_MODULES	  .max = MODULE_BYTES_MAX, .max_count = WARM_MODULES_MAX
#define WARM_WORDS(name)  WARM_MEMBER(name), .max = TEXT_BYTES_MAX, .max_count = WARM_WORDS_MAX

static const struct schema_field warm_rules[] = {
	{ .key = "kind", .read = warm_kind, .max = NAME_BYTES_MAX },
	{ .key = "runner", .read = warm_runner, WARM_MEMBER(runner), .max = TEXT_BYTES_MAX },
	{ .key = "run", .read = warm_run, WARM_WORDS(argv) },
	{ .key = "env", .read = language_read_env, WARM_WORDS(env) },
	{ .key = "tiers", .read = warm_tiers, WARM_MODULES },
	{ .key = "light", .read = read_modules, WARM_MEMBER(light), WARM_MODULES },
	{ .key = "cold_env", .read = warm_cold_env, WARM_WORDS(cold_env) },
	{ 0 },
};

/* If the agent itself knows when to fork, there is no runner. */
static bool warm_names_runner(const struct language_warm *warm)
{
	for (const char **word = warm->argv; *word; word++)
		if (strstr(*word, "{runner"))
			return true;
	return false;
}

static int warm_check(const struct reader *r, const struct language_warm *warm)
{
	const struct {
		const char *key, *fault;
	} faults[] = {
		{ "kind", warm->kind != WARMTH_NONE ? NULL : "it is missing" },
		{ "runner", warm->runner || !warm_names_runner(warm) ? NULL : "it is missing" },
		{ "run", warm->argv[0] ? NULL : "it is missing" },
		{ "tiers", warm->kind == WARMTH_FORK || !warm->tiers[0]
				   ? NULL
				   : "only what is forked can have modules loaded" },
		{ "light", warm->kind == WARMTH_FORK || !warm->light[0]
				   ? NULL
				   : "only what is forked can have modules loaded" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct reader at = reader_at(r, faults[i].key);

		if (faults[i].fault)
			return reader_refuse(&at, "%s", faults[i].fault);
	}
	return 0;
}

static int language_read_warm(const struct reader *r, const struct schema_field *f _unused_,
			      const json_t *value, void *object)
{
	static const char **no_tiers[] = { NULL };
	struct language_warm warm = { .argv = no_words,
				      .env = no_words,
				      .tiers = no_tiers,
				      .light = no_words,
				      .cold_env = no_words };
	struct language *lang = object;
	int e = read_object(r, value, SHAPE_OF(warm_rules), &warm);

	if (e == 0)
		e = warm_check(r, &warm);
	if (e == 0)
		e = warm_add_light(r, &warm);
	if (e == 0)
		lang->warm = warm;
	return e;
}

/* --- sections workspace and kit --- */

#define SECTION_WORDS(section, name, size, count)                                                  \
	.offset = offsetof(struct section, name), .max = (size), .max_count = (count)

static int language_read_workspace(const struct reader *r, const struct schema_field *f _unused_,
				   const json_t *value, void *object)
{
#define WORKSPACE_WORDS(name)                                                                      \
	SECTION_WORDS(language_workspace, name, TEXT_BYTES_MAX, WORKSPACE_WORDS_MAX)
	static const struct schema_field rules[] = {
		{ .key = "words", .read = read_words, WORKSPACE_WORDS(words) },
		{ .key = "env", .read = language_read_env, WORKSPACE_WORDS(env) },
		{ 0 },
	};
	struct language *lang = object;

	lang->workspace = (struct language_workspace){ no_words, no_words };
	return read_object(r, value, SHAPE_OF(rules), &lang->workspace);
}

static int language_read_kit(const struct reader *r, const struct schema_field *f _unused_,
			     const json_t *value, void *object)
{
#define KIT_WORDS(name) SECTION_WORDS(language_kit, name, KIT_TEXT_MAX, KIT_WORDS_MAX)
	static const struct schema_field rules[] = {
		{ .key = "make", .read = read_words, KIT_WORDS(make) },
		{ .key = "words", .read = read_words, KIT_WORDS(words) },
		{ .key = "env", .read = language_read_env, KIT_WORDS(env) },
		{ .key = "doubt", .read = read_words, KIT_WORDS(doubt) },
		{ 0 },
	};
	struct language *lang = object;
	struct language_kit *kit = &lang->kit;
	struct reader at = reader_at(r, "make");
	int e;

	*kit = (struct language_kit){ no_words, no_words, no_words, no_words };
	e = read_object(r, value, SHAPE_OF(rules), kit);
	if (e < 0 || (kit->make[0] && kit->make[0][0] == '/'))
		return e;
	return reader_refuse(&at, "its first word is not an absolute path");
}

/* --- section versions: checked here, made when the language is whole --- */

/* Names, files and warm runtimes lead to the language itself, so versions do not have these keys. */
static const char *const not_of_versions[] = { "aliases",  "extensions", "name",
					       "shebangs", "versions",	 "warm" };

static int version_check(const struct reader *r, const char *name, const json_t *keys)
{
	size_t n = strlen(name);

	if (n == 0 || n > VERSION_BYTES_MAX || strspn(name, LETTERS "._+-") != n)
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

static int language_read_versions(const struct reader *r, const struct schema_field *f _unused_,
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
		int e = version_check(&at, name, keys);

		if (e < 0)
			return e;
	}
	return 0;
}

/* --- the language --- */

#define MEMBER(name) .offset = offsetof(struct language, name)
#define WORDS(name)  MEMBER(name), .max = TEXT_BYTES_MAX, .max_count = WORDS_COUNT_MAX

static const struct schema_field language_rules[] = {
	{ .key = "name", .read = language_read_name, MEMBER(name), .max = NAME_BYTES_MAX },
	{ .key = "title", .read = read_text, MEMBER(title), .max = NAME_BYTES_MAX },
	{ .key = "aliases", .read = read_words, WORDS(known.aliases) },
	{ .key = "extensions", .read = read_words, WORDS(known.extensions) },
	{ .key = "shebangs", .read = read_words, WORDS(known.shebangs) },
	{ .key = "source", .read = language_read_source, MEMBER(source), .max = NAME_BYTES_MAX },
	{ .key = "class",
	  .read = language_read_class,
	  MEMBER(class_pattern),
	  .max = NAME_BYTES_MAX },
	{ .key = "runtime",
	  .read = language_read_path,
	  MEMBER(runtime.path),
	  .max = TEXT_BYTES_MAX },
	{ .key = "package", .read = read_text, MEMBER(runtime.package), .max = TEXT_BYTES_MAX },
	{ .key = "needs", .read = read_paths, WORDS(runtime.needs) },
	{ .key = "version", .read = read_words, WORDS(runtime.version_argv) },
	{ .key = "version_prefix",
	  .read = read_text,
	  MEMBER(runtime.version_prefix),
	  .max = NAME_BYTES_MAX },
	{ .key = "compile", .read = read_words, WORDS(compile.argv) },
	{ .key = "project", .read = read_text, MEMBER(compile.project), .max = NAME_BYTES_MAX },
	{ .key = "project_compile", .read = read_words, WORDS(compile.project_argv) },
	{ .key = "compile_limits",
	  .read = read_limits,
	  MEMBER(compile.limits),
	  .beside = offsetof(struct language, compile.limits_set) },
	{ .key = "run", .read = read_words, WORDS(run_argv) },
	{ .key = "env", .read = language_read_env, WORDS(env) },
	{ .key = "options", .read = read_words, WORDS(options) },
	{ .key = "etc", .read = read_etc, WORDS(etc) },
	{ .key = "libraries", .read = read_words, WORDS(runtime.libraries) },
	{ .key = "runner", .read = read_text, MEMBER(runner), .max = TEXT_BYTES_MAX },
	{ .key = "prelude", .read = read_text, MEMBER(prelude), .max = TEXT_BYTES_MAX },
	{ .key = "session",
	  .read = read_words,
	  MEMBER(session),
	  .max = TEXT_BYTES_MAX,
	  .max_count = 4 },
	{ .key = "warm", .read = language_read_warm },
	{ .key = "kit", .read = language_read_kit },
	{ .key = "workspace", .read = language_read_workspace },
	{ .key = "command", .read = read_words, WORDS(command) },
	{ .key = "versions", .read = language_read_versions },
	{ 0 },
};

static int language_check(const struct reader *r, const struct language *lang)
{
	const struct {
		const char *key;
		bool there;
	} needed[] = {
		{ "name", lang->name },
		{ "title", lang->title },
		{ "source", lang->source },
		{ "runtime", lang->runtime.path },
		{ "package", lang->runtime.package },
		{ "run", lang->run_argv[0] },
	};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		struct reader at = reader_at(r, needed[i].key);

		if (!needed[i].there)
			return reader_refuse(&at, "it is missing");
	}
	if (!lang->compile.project != !lang->compile.project_argv[0]) {
		struct reader at = reader_at(r, "project");

		return reader_refuse(&at, "project and project_compile need each other");
	}
	if (strstr(lang->source, "{class}") && !lang->class_pattern) {
		struct reader at = reader_at(r, "source");

		return reader_refuse(&at, "{class} needs the key class");
	}
	return 0;
}

/* A whole language; takes over root. The reader only gives the place in the file and its error. */
static int language_read_tree(const struct reader *r, json_t *root, struct language **ret)
{
	_cleanup_(language_cleanup) struct language *lang = calloc(1, sizeof(*lang));
	struct reader own = *r;
	const char **empty;
	int e;

	if (!lang) {
		json_decref(root);
		return reader_no_memory(r);
	}
	lang->root = root;
	own.arena = &lang->memory;
	empty = arena_alloc(own.arena, sizeof(*empty));
	if (!empty)
		return reader_no_memory(r);
	/* Lists are never NULL: each begins as the one empty list. */
	for (const struct schema_field *f = language_rules; f->key; f++)
		if (f->max_count > 0)
			*(const char ***)field_member(f, lang) = empty;
	e = read_object(&own, lang->root, SHAPE_OF(language_rules), lang);
	if (e == 0)
		e = language_check(&own, lang);
	if (e < 0)
		return e;
	lang->id = lang->name;
	*ret = TAKE_PTR(lang);
	return 0;
}

/* The language's keys, overridden by the version's; NULL: no memory. A null removes a key. */
static json_t *version_make_tree(const struct language *lang, const char *name, const json_t *keys)
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

static int version_make(const struct reader *r, const struct language *lang, const char *name,
			const json_t *keys, struct language **ret)
{
	json_t *tree = version_make_tree(lang, name, keys);
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

static int language_make_versions(const struct reader *r, struct language *lang)
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
		int e = version_make(&at, lang, name, keys, &lang->versions[lang->n_versions]);

		if (e < 0)
			return e;
		lang->n_versions++;
	}
	return 0;
}

int language_parse(const struct document *doc, struct language **ret, struct error *err)
{
	_cleanup_(language_cleanup) struct language *lang = NULL;
	struct reader r = { .err = err };
	json_t *root;
	int e = yaml_parse(doc, &root, err);

	if (e < 0)
		return e;
	e = language_read_tree(&r, root, &lang);
	if (e == 0) {
		r.arena = &lang->memory;
		e = language_make_versions(&r, lang);
	}
	if (e < 0)
		return error_wrap(err, e, "%s", doc->name);
	*ret = TAKE_PTR(lang);
	return 0;
}

struct language *language_free(struct language *lang)
{
	if (!lang)
		return NULL;
	for (size_t i = 0; i < lang->n_versions; i++)
		(void)language_free(lang->versions[i]);
	json_decref(lang->root);
	arena_done(&lang->memory);
	free(lang);
	return NULL;
}
