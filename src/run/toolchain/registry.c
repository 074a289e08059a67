/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Languages are loaded on demand. registry_find() opens languages/<name>.yaml. If there is no such file (an
 * alias), and for detection, the directory is read, and a file is parsed only if its text contains the word:
 * parsing all of them would cost a tenth of a cold run. A broken file makes its own language and the list fail,
 * but no run of another language.
 */
#include "run/toolchain/registry.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/suggest.h"
#include "run/toolchain/data.h"

enum { LANGUAGES_MAX = 256, NAME_LEN_MAX = 40, RUNNERS_MAX = 32 };

struct runner_file {
	char *name;
	char *text;
	size_t len;
	int r; /* negative: why there is no text */
};

struct registry {
	char *data_dir;
	struct language **languages;
	size_t n;
	bool complete; /* every file has been loaded, and they are sorted */
	struct runner_file runners[RUNNERS_MAX];
	size_t n_runners;
};

int registry_new(const char *data_dir, struct registry **ret, struct error *err)
{
	struct registry *reg = calloc(1, sizeof(*reg));

	if (reg) {
		reg->data_dir = strdup(data_dir);
		reg->languages = calloc(LANGUAGES_MAX, sizeof(struct language *));
	}
	if (!reg || !reg->data_dir || !reg->languages) {
		(void)registry_free(reg);
		return error_oom(err);
	}
	*ret = reg;
	return 0;
}

struct registry *registry_free(struct registry *reg)
{
	if (!reg)
		return NULL;
	for (size_t i = 0; i < reg->n; i++)
		(void)language_free(reg->languages[i]);
	for (size_t i = 0; i < reg->n_runners; i++) {
		free(reg->runners[i].name);
		free(reg->runners[i].text);
	}
	free(reg->languages);
	free(reg->data_dir);
	free(reg);
	return NULL;
}

/* As a whole word: "sh" is part of nearly every file. */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	if (n == 0)
		return text;
	for (const char *at = text; at && (at = strcasestr(at, word)); at++)
		if ((at == text || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[n]))
			return true;
	return false;
}

/*
 * Loads languages/<stem>.yaml unless it is loaded. With a needle, a file without it is skipped: 0 with *ret
 * NULL.
 */
static int load_language(struct registry *reg, const char *stem, const char *needle,
			 const struct language **ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { .max = DATA_FILE_MAX };
	char relative[NAME_LEN_MAX + 32];
	struct language *lang;
	struct document doc;
	int r;

	for (size_t i = 0; i < reg->n; i++)
		if (strcmp(reg->languages[i]->name, stem) == 0) {
			*ret = reg->languages[i];
			return 0;
		}
	*ret = NULL;
	if (reg->n == LANGUAGES_MAX)
		return error_set(err, ERROR_INTERNAL, E2BIG, "more than %d languages",
				 LANGUAGES_MAX);
	(void)snprintf(relative, sizeof(relative), "languages/%s.yaml", stem);
	r = data_read(reg->data_dir, relative, &text, err);
	if (r < 0)
		return r;
	if (needle && !has_word(text.data, needle))
		return 0;
	doc = (struct document){ .name = relative,
				 .text = text.data ? text.data : "",
				 .len = text.len };
	r = language_parse(&doc, &lang, err);
	if (r < 0)
		return r;
	if (strcmp(lang->name, stem) != 0) {
		r = error_set(err, ERROR_INTERNAL, EINVAL,
			      "%s: name is '%s', must be that of the file", relative, lang->name);
		(void)language_free(lang);
		return r;
	}
	assert(reg->n < LANGUAGES_MAX);
	reg->languages[reg->n++] = lang;
	*ret = lang;
	return 0;
}

/* A possible stem of a file name: lower case, short, nothing that leads to another directory. */
static bool is_stem(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > NAME_LEN_MAX || s[0] == '.')
		return false;
	return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789+-_.@#") == n;
}

/*
 * Loads every file of the directory, in the directory's order. With a needle a broken file is skipped: it is
 * reported when its own language or the whole list is asked for.
 */
static int load_all(struct registry *reg, const char *needle, struct error *err)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	(void)snprintf(path, sizeof(path), "%s/languages", reg->data_dir);
	dir = opendir(path);
	if (!dir)
		return error_set(err, ERROR_INTERNAL, errno, "cannot read '%s': %s", path,
				 strerror(errno));
	while (r >= 0 && (entry = readdir(dir))) {
		const struct language *lang;
		char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".yaml") != 0)
			continue;
		*dot = '\0';
		if (is_stem(entry->d_name))
			r = load_language(reg, entry->d_name, needle, &lang, err);
		if (needle && r == -EINVAL)
			r = 0;
	}
	(void)closedir(dir);
	return r;
}

static int by_name(const void *a, const void *b)
{
	const struct language *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int complete(struct registry *reg, struct error *err)
{
	int r;

	if (reg->complete)
		return 0;
	r = load_all(reg, NULL, err);
	if (r < 0)
		return r;
	qsort(reg->languages, reg->n, sizeof(struct language *), by_name);
	reg->complete = true;
	return 0;
}

/* "unknown language 'pyhton'; did you mean 'python'?", or the languages that are known. */
static int unknown(struct registry *reg, const char *name, struct error *err)
{
	_cleanup_buf_ struct buf known = { .max = 280 }; /* names that do not fit are left out */
	struct suggestion s = { 0 };
	int r = complete(reg, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < reg->n; i++) {
		const struct language *lang = reg->languages[i];

		if (buf_printf(&known, "%s%s", known.len ? ", " : "", lang->name) < 0)
			break;
		suggest_offer(&s, name, lang->name);
		for (const char **alias = lang->known.aliases; *alias; alias++)
			suggest_offer(&s, name, *alias);
	}
	if (s.best)
		r = error_set(err, ERROR_RUNTIME, ENOPKG,
			      "unknown language '%.40s'; did you mean '%s'?", name, s.best);
	else
		r = error_set(err, ERROR_RUNTIME, ENOPKG, "unknown language '%.40s'; known: %s",
			      name, known.data ? known.data : "none");
	if (err)
		(void)snprintf(err->field, sizeof(err->field), "language");
	return r;
}

/* A name without a version: 0, or -ENOENT. */
static int find_plain(struct registry *reg, const char *stem, const struct language **ret,
		      struct error *err)
{
	const struct language *lang = NULL;
	int r = is_stem(stem) ? load_language(reg, stem, NULL, &lang, err) : -ENOENT;

	if (r == 0)
		*ret = lang;
	if (r != -ENOENT)
		return r;
	r = load_all(reg, stem, err);
	for (size_t i = 0; r == 0 && i < reg->n; i++) {
		if (language_matches(reg->languages[i], stem)) {
			*ret = reg->languages[i];
			return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}

/*
 * "py@3.12": a file of that name, a version that python's file defines, a file python@3.12, or python itself.
 */
static int find_version(struct registry *reg, const char *stem, const struct language **ret,
			struct error *err)
{
	const char *at = strchr(stem, '@');
	char name[2 * NAME_LEN_MAX];
	const struct language *lang;
	int r = is_stem(stem) ? load_language(reg, stem, NULL, ret, err) : -ENOENT;

	if (r != -ENOENT)
		return r;
	(void)snprintf(name, sizeof(name), "%.*s", (int)(at - stem), stem);
	r = at[1] ? find_plain(reg, name, &lang, err) : -ENOENT;
	if (r < 0)
		return r;
	*ret = language_find_version(lang, at + 1);
	if (*ret)
		return 0;
	(void)snprintf(name, sizeof(name), "%s%s", lang->name, at);
	r = is_stem(name) && !language_matches(lang, stem)
		    ? load_language(reg, name, NULL, ret, err)
		    : -ENOENT;
	if (r == -ENOENT)
		*ret = lang;
	return r == -ENOENT ? 0 : r;
}

int registry_find(struct registry *reg, const char *name, const struct language **ret,
		  struct error *err)
{
	const struct language *lang = NULL;
	char stem[NAME_LEN_MAX + 1];
	size_t n = strlen(name);
	int r;

	if (n == 0 || n > NAME_LEN_MAX)
		return unknown(reg, name, err);
	for (size_t i = 0; i <= n; i++)
		stem[i] = (char)tolower((unsigned char)name[i]);
	r = strchr(stem, '@') ? find_version(reg, stem, &lang, err)
			      : find_plain(reg, stem, &lang, err);
	if (r == -ENOENT)
		return unknown(reg, name, err);
	if (r == 0)
		*ret = lang;
	return r;
}

const char *registry_open_version(const struct language *found, const char *asked)
{
	const char *at = strchr(asked, '@');

	return !at || strchr(found->id, '@') || language_matches(found, asked) ? NULL : at + 1;
}

int registry_detect(struct registry *reg, const struct registry_sample *sample,
		    const struct language **ret, struct error *err)
{
	const char *slash = sample->path ? strrchr(sample->path, '/') : NULL;
	const char *base = slash ? slash + 1 : sample->path;
	const char *dot = base ? strrchr(base, '.') : NULL;
	const char *head = sample->head;
	int r;

	if (dot && dot != base && dot[1] != '\0' && strlen(dot + 1) <= NAME_LEN_MAX) {
		r = load_all(reg, dot + 1, err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < reg->n; i++)
			if (language_has_extension(reg->languages[i], dot + 1)) {
				*ret = reg->languages[i];
				return 0;
			}
	}
	if (head && sample->head_len >= 3 && head[0] == '#' && head[1] == '!') {
		const char *end = memchr(head, '\n', sample->head_len);
		size_t n = end ? (size_t)(end - head) : sample->head_len;

		r = load_all(reg, "shebangs", err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < reg->n; i++)
			if (language_has_shebang(reg->languages[i], head, n)) {
				*ret = reg->languages[i];
				return 0;
			}
	}
	if (sample->path && sample->head_len > 4 && memcmp(sample->head, "\177ELF", 4) == 0)
		return error_set(
			err, ERROR_RUNTIME, ENOPKG,
			"'%.150s' is a compiled program, and Atoll runs source code; to run it: "
			"atoll run -l bash --file program=%.150s -c ./program",
			sample->path, sample->path);
	return error_set(err, ERROR_RUNTIME, ENOPKG,
			 "cannot tell the language of '%.200s' from its name or a #! line; name it "
			 "with -l",
			 sample->path ? sample->path : "standard input");
}

int registry_list(struct registry *reg, const char *word, const struct language *const **ret,
		  size_t *n, struct error *err)
{
	int r = load_all(reg, word, err);

	if (r < 0)
		return r;
	*ret = (const struct language *const *)reg->languages;
	*n = reg->n;
	return 0;
}

int registry_runner(struct registry *reg, const char *name, struct span *ret)
{
	struct runner_file *runner = reg->runners, *end = reg->runners + reg->n_runners;

	while (runner < end && strcmp(runner->name, name) != 0)
		runner++;
	if (runner == end) {
		_cleanup_buf_ struct buf text = { .max = DATA_FILE_MAX };
		char relative[PATH_MAX];

		if (reg->n_runners == RUNNERS_MAX)
			return -E2BIG;
		*runner = (struct runner_file){ .name = strdup(name) };
		if (!runner->name)
			return -ENOMEM;
		if (snprintf(relative, sizeof(relative), "runners/%s", name) >=
		    (int)sizeof(relative))
			runner->r = -ENAMETOOLONG;
		else
			runner->r = data_read(reg->data_dir, relative, &text, NULL);
		runner->len = text.len;
		runner->text = buf_take(&text);
		reg->n_runners++;
	}
	if (runner->r < 0)
		return runner->r;
	*ret = (struct span){ runner->text ? runner->text : "", runner->len };
	return 0;
}

static json_t *words_to_json(const char *const *words)
{
	json_t *array = json_array();

	for (; *words; words++)
		(void)json_array_append_new(array, json_string(*words));
	return array;
}

/* Fields of a language and of each of its versions. */
static int add_state(json_t *object, const struct language *lang, const struct prober *p)
{
	struct error problem = { 0 };
	bool available = language_available(lang, p->image, &problem) == 0;
	_cleanup_free_ char *version = NULL;

	if (available && language_version(lang, p, &version) < 0)
		version = NULL;
	return json_object_update_new(object, json_pack("{s:b, s:s, s:s?, s:s?}", "available",
							available, "package", lang->runtime.package,
							"version", version, "problem",
							available ? NULL : problem.text));
}

static json_t *language_to_json(const struct language *lang, const struct prober *p)
{
	json_t *versions = json_array();
	json_t *object = json_pack(
		"{s:s, s:s, s:o, s:o, s:b}", "name", lang->name, "title", lang->title, "aliases",
		words_to_json((const char *const *)lang->known.aliases), "extensions",
		words_to_json((const char *const *)lang->known.extensions), "compiled",
		lang->compile.argv[0] != NULL);

	if (add_state(object, lang, p) < 0) {
		json_decref(versions);
		json_decref(object);
		return NULL;
	}
	for (size_t i = 0; i < lang->n_versions; i++) {
		json_t *entry = json_pack("{s:s}", "name", lang->versions[i]->version_name);

		if (add_state(entry, lang->versions[i], p) == 0)
			(void)json_array_append(versions, entry);
		json_decref(entry);
	}
	(void)json_object_set_new(object, "versions", versions);
	if (lang->runtime.libraries[0]) {
		bool available = json_is_true(json_object_get(object, "available"));
		const char *const *names = (const char *const *)lang->runtime.libraries;
		json_t *libraries = available ? language_libraries(lang, names, p) : NULL;

		(void)json_object_set_new(object, "libraries",
					  libraries ? libraries : json_object());
	}
	return object;
}

int registry_to_json(struct registry *reg, const struct prober *p, json_t **ret, struct error *err)
{
	json_t *list = json_array(), *root;
	int r = complete(reg, err);

	for (size_t i = 0; r == 0 && i < reg->n; i++) {
		if (json_array_append_new(list, language_to_json(reg->languages[i], p)) < 0)
			r = error_oom(err);
	}
	if (r < 0) {
		json_decref(list);
		return r;
	}
	root = json_pack("{s:o}", "languages", list);
	if (!root)
		return error_oom(err);
	*ret = root;
	return 0;
}
