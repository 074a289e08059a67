/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See language.h. The YAML file becomes a tree, a table reads the tree, and the struct points into the tree.
 * Everything is checked when the file is read, so users of a language need no checks.
 */
#include "spec/language.h"

#include <stdio.h>
#include <string.h>

#include "spec/knob.h"
#include "spec/language-read.h"
#include "spec/request.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789+#._@-"

static bool is_name(const char *name)
{
	return *name && name[strspn(name, NAME_LETTERS)] == '\0';
}

static int read_name(const struct reader *r, const struct key_rule *rule, const json_t *value,
		     void *object)
{
	const struct language *lang = object;
	int e = read_text(r, rule, value, object);

	if (e < 0)
		return e;
	if (!is_name(lang->name))
		return reader_refuse(r,
				     "'%s' is not a language name (small letters, digits, "
				     "+ # . _ @ -)",
				     quote_text(lang->name).text);
	return 0;
}

static int read_source(const struct reader *r, const struct key_rule *rule, const json_t *value,
		       void *object)
{
	const struct language *lang = object;
	int e = read_text(r, rule, value, object);

	if (e < 0)
		return e;
	if (strchr(lang->source, '/') ||
	    request_check_path(lang->source, strlen(lang->source), NULL) < 0)
		return reader_refuse(r, "'%s' is not a plain file name",
				     quote_text(lang->source).text);
	return 0;
}

static int read_path(const struct reader *r, const struct key_rule *rule, const json_t *value,
		     void *object)
{
	int e = read_text(r, rule, value, object);

	if (e < 0)
		return e;
	if (json_string_value(value)[0] != '/')
		return reader_refuse(r, "%s is not an absolute path", quote_json(value).text);
	return 0;
}

static int read_paths(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object)
{
	int e = read_words(r, rule, value, object);

	for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
		const json_t *path = json_array_get(value, i);
		struct reader at = reader_index(r, i);

		if (json_string_value(path)[0] != '/')
			e = reader_refuse(&at, "%s is not an absolute path", quote_json(path).text);
	}
	return e;
}

static int read_etc(const struct reader *r, const struct key_rule *rule, const json_t *value,
		    void *object)
{
	int e = read_words(r, rule, value, object);

	for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
		const json_t *path = json_array_get(value, i);
		struct reader at = reader_index(r, i);

		if (request_check_path(json_string_value(path), json_string_length(path), NULL) < 0)
			e = reader_refuse(&at, "%s is not a name below /etc",
					  quote_json(path).text);
	}
	return e;
}

static int read_compile_limits(const struct reader *r, const struct key_rule *rule _unused_,
			       const json_t *value, void *object)
{
	struct language *lang = object;

	return limits_parse_at(r->field, value, &lang->compile_limits, &lang->compile_limits_set,
			       r->err);
}

static int read_class(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object)
{
	const struct language *lang = object;
	int e = read_text(r, rule, value, object);

	if (e < 0)
		return e;
	if (strcmp(lang->class_pattern, "java") != 0)
		return reader_refuse(r, "'%s' is not a known way to find a class (java is)",
				     quote_text(lang->class_pattern).text);
	return 0;
}

#define MEMBER(name) .offset = offsetof(struct language, name)
#define WORDS(name)  MEMBER(name), .max = TEXT_BYTES_MAX, .max_count = WORDS_COUNT_MAX

static const struct key_rule language_rules[] = {
	{ .key = "name", .read = read_name, MEMBER(name), .max = NAME_BYTES_MAX },
	{ .key = "title", .read = read_text, MEMBER(title), .max = NAME_BYTES_MAX },
	{ .key = "aliases", .read = read_words, WORDS(aliases) },
	{ .key = "extensions", .read = read_words, WORDS(extensions) },
	{ .key = "shebangs", .read = read_words, WORDS(shebangs) },
	{ .key = "source", .read = read_source, MEMBER(source), .max = NAME_BYTES_MAX },
	{ .key = "class", .read = read_class, MEMBER(class_pattern), .max = NAME_BYTES_MAX },
	{ .key = "runtime", .read = read_path, MEMBER(runtime), .max = TEXT_BYTES_MAX },
	{ .key = "package", .read = read_text, MEMBER(package), .max = TEXT_BYTES_MAX },
	{ .key = "needs", .read = read_paths, WORDS(needs) },
	{ .key = "version", .read = read_words, WORDS(version_argv) },
	{ .key = "version_prefix",
	  .read = read_text,
	  MEMBER(version_prefix),
	  .max = NAME_BYTES_MAX },
	{ .key = "compile", .read = read_words, WORDS(compile_argv) },
	{ .key = "project", .read = read_text, MEMBER(project), .max = NAME_BYTES_MAX },
	{ .key = "project_compile", .read = read_words, WORDS(project_argv) },
	{ .key = "compile_limits", .read = read_compile_limits },
	{ .key = "run", .read = read_words, WORDS(run_argv) },
	{ .key = "env", .read = language_read_env, WORDS(env) },
	{ .key = "options", .read = read_words, WORDS(options) },
	{ .key = "etc", .read = read_etc, WORDS(etc) },
	{ .key = "libraries", .read = read_words, WORDS(libraries) },
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
};

static int check_whole(const struct reader *r, const struct language *lang)
{
	const struct {
		const char *key;
		bool there;
	} needed[] = {
		{ "name", lang->name },	      { "title", lang->title },
		{ "source", lang->source },   { "runtime", lang->runtime },
		{ "package", lang->package }, { "run", lang->run_argv[0] },
	};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		struct reader at = reader_at(r, needed[i].key);

		if (!needed[i].there)
			return reader_refuse(&at, "it is missing");
	}
	if (!lang->project != !lang->project_argv[0]) {
		struct reader at = reader_at(r, "project");

		return reader_refuse(&at, "project and project_compile need each other");
	}
	if (strstr(lang->source, "{class}") && !lang->class_pattern) {
		struct reader at = reader_at(r, "source");

		return reader_refuse(&at, "{class} needs the key class");
	}
	return 0;
}

/* Lists are never NULL: each begins as the one empty list. */
static int init_lists(const struct reader *r, struct language *lang)
{
	const char **empty = arena_alloc(r->arena, sizeof(*empty));

	if (!empty)
		return reader_no_memory(r);
	for (size_t i = 0; i < ARRAY_SIZE(language_rules); i++)
		if (language_rules[i].max_count > 0)
			*(const char ***)((char *)lang + language_rules[i].offset) = empty;
	return 0;
}

int language_read_tree(const struct reader *r, json_t *root, struct language **ret)
{
	_cleanup_(language_cleanup) struct language *lang = calloc(1, sizeof(*lang));
	struct reader own = *r;
	int e;

	if (!lang) {
		json_decref(root);
		return reader_no_memory(r);
	}
	lang->root = root;
	own.arena = &lang->memory;
	e = init_lists(&own, lang);
	if (e == 0)
		e = read_object(&own, lang->root, KEY_TABLE(language_rules), lang);
	if (e == 0)
		e = check_whole(&own, lang);
	if (e < 0)
		return e;
	lang->id = lang->name;
	*ret = TAKE_PTR(lang);
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

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* strcasecmp() would depend on the locale. */
static bool equal_folded(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return lower(*a) == lower(*b);
}

static bool holds_folded(const char *const *words, const char *word)
{
	for (; *words; words++)
		if (equal_folded(*words, word))
			return true;
	return false;
}

bool language_matches(const struct language *lang, const char *name)
{
	return equal_folded(lang->name, name) || holds_folded(lang->aliases, name);
}

const struct language *language_find_version(const struct language *lang, const char *name)
{
	for (size_t i = 0; i < lang->n_versions; i++)
		if (equal_folded(lang->versions[i]->version_name, name))
			return lang->versions[i];
	return NULL;
}

bool language_has_extension(const struct language *lang, const char *extension)
{
	return holds_folded(lang->extensions, extension);
}

static bool holds_span(const char *const *words, struct span word)
{
	for (; *words; words++)
		if (strlen(*words) == word.len && memcmp(*words, word.data, word.len) == 0)
			return true;
	return false;
}

/* The next word of a #! line, without its directories; len 0 at the end. */
static struct span next_program(const char **p, const char *end)
{
	struct span word;

	while (*p < end && (**p == ' ' || **p == '\t'))
		(*p)++;
	word.data = *p;
	while (*p < end && !strchr(" \t\r\n", **p)) {
		if (**p == '/')
			word.data = *p + 1;
		(*p)++;
	}
	word.len = (size_t)(*p - word.data);
	return word;
}

bool language_has_shebang(const struct language *lang, const char *line, size_t len)
{
	const char *newline = memchr(line, '\n', len), *end = newline ? newline : line + len;
	const char *p = line + 2;
	struct span word;

	if (end - line < 2 || memcmp(line, "#!", 2) != 0)
		return false;
	word = next_program(&p, end);
	if (word.len == 3 && memcmp(word.data, "env", 3) == 0)
		do /* env's own options and assignments come before the program */
			word = next_program(&p, end);
		while (word.len > 0 && (word.data[0] == '-' || memchr(word.data, '=', word.len)));
	if (word.len == 0)
		return false;
	if (holds_span(lang->shebangs, word))
		return true;
	/* python3.11 is python */
	while (word.len > 1 && strchr("0123456789.", word.data[word.len - 1]))
		word.len--;
	return holds_span(lang->shebangs, word);
}

/* Compilers recognise a file by its extension, and Java by the class; an interpreter takes any name. */
static bool keeps_name(const struct language *lang, const char *name)
{
	const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');

	if (lang->class_pattern)
		return false;
	return !lang->compile_argv[0] || (dot && language_has_extension(lang, dot + 1));
}

void language_source_name(const struct language *lang, const struct program_text *program,
			  char *ret, size_t size)
{
	static const char mark[] = "{class}";
	const char *at = strstr(lang->source, mark);
	char name[192];

	if (!at) {
		bool kept = program->name && keeps_name(lang, program->name);

		(void)snprintf(ret, size, "%s", kept ? program->name : lang->source);
		return;
	}
	language_class_name(program->code.data, program->code.len, name, sizeof(name));
	(void)snprintf(ret, size, "%.*s%s%s", (int)(at - lang->source), lang->source, name,
		       at + strlen(mark));
}

void language_stage_source(const struct language *lang, size_t stage, const char *code, char *ret,
			   size_t size)
{
	const char *dot = strrchr(lang->source, '.');
	size_t n = dot ? (size_t)(dot - lang->source) : strlen(lang->source);

	if (lang->class_pattern)
		language_source_name(lang, &(struct program_text){ { code, strlen(code) }, NULL },
				     ret, size);
	else
		(void)snprintf(ret, size, "%.*s-%zu%s", (int)n, lang->source, stage + 1,
			       dot ? dot : "");
}
