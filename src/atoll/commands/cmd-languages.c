/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll languages`: the library's JSON of languages as a table, then their libraries and what is not installed. */
#include <stdio.h>
#include <string.h>

#include "atoll/commands/cmd-show.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"

static const struct column columns[] = {
	{ .title = "NAME" },
	{ .title = "RUNTIME" },
	{ .title = "OTHER NAMES" },
	{ .title = "FILES" },
};

/* "py python3" of ["py", "python3"]; before: "." for extensions. What does not fit is left out. */
static int add_words(struct table *t, const json_t *words, const char *before)
{
	_cleanup_buf_ struct buf text = { .max = 120 };
	const json_t *word;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)words, i, word)
	{
		if (buf_printf(&text, "%s%s%s", i > 0 ? " " : "", before, json_string_value(word)) <
		    0)
			break;
	}
	return table_add(t, text.data);
}

/* entry: a language, or one of its versions, which has no names of its own. */
static int add_language(struct table *t, const char *name, const json_t *entry)
{
	const char *version = text_of(entry, "version");
	bool there = json_is_true(json_object_get(entry, "available"));
	int r = table_add(t, name);

	if (r == 0)
		r = table_add(t, !there ? "not installed" : *version ? version : "version unknown");
	if (r == 0)
		r = add_words(t, json_object_get(entry, "aliases"), "");
	return r < 0 ? r : add_words(t, json_object_get(entry, "extensions"), ".");
}

static int add_versions(struct table *t, const json_t *language, bool all)
{
	json_t *version;
	size_t i;
	int r = 0;

	json_array_foreach(json_object_get(language, "versions"), i, version)
	{
		char name[80];

		if (!all && !json_is_true(json_object_get(version, "available")))
			continue;
		(void)snprintf(name, sizeof(name), "%.32s@%.32s", text_of(language, "name"),
			       text_of(version, "name"));
		if (r == 0)
			r = add_language(t, name, version);
	}
	return r;
}

static int print_libraries(struct buf *out, const json_t *language)
{
	struct show_list list = { .out = out, .between = ", ", .margin = 2, .column = 0 };
	json_t *libraries = json_object_get(language, "libraries"), *version;
	const char *name;
	int r = 0;

	if (json_object_size(libraries) > 0)
		r = buf_printf(out, "\nLibraries of %s:\n", text_of(language, "name"));
	json_object_foreach(libraries, name, version)
	{
		if (r == 0)
			r = show_list_add(&list, "%s %s", name, json_string_value(version));
	}
	return r == 0 && list.column > 0 ? buf_puts(out, "\n") : r;
}

/* One command installs what is missing of the rows. */
static int print_missing(struct buf *out, const json_t *languages, bool all)
{
	_cleanup_buf_ struct buf packages = { .max = 4096 };
	json_t *language, *version;
	size_t i, k;
	int r = 0;

	json_array_foreach((json_t *)(uintptr_t)languages, i, language)
	{
		if (r == 0 && !json_is_true(json_object_get(language, "available")))
			r = buf_printf(&packages, " %s", text_of(language, "package"));
		json_array_foreach(json_object_get(language, "versions"), k, version)
		{
			if (r == 0 && all && !json_is_true(json_object_get(version, "available")))
				r = buf_printf(&packages, " %s", text_of(version, "package"));
		}
	}
	if (r < 0 || packages.len == 0)
		return r;
	return buf_printf(out, "\nWhat is not installed comes with:\n  apt install%s\n",
			  packages.data);
}

static int languages_table(const json_t *report, bool verbose, struct buf *out)
{
	json_t *languages = json_object_get(report, "languages"), *language;
	_cleanup_table_ struct table t = { 0 };
	size_t i;
	int r = 0;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach(languages, i, language)
	{
		if (r == 0)
			r = add_language(&t, text_of(language, "name"), language);
		if (r == 0)
			r = add_versions(&t, language, verbose);
	}
	if (r == 0)
		r = table_print(&t, out);
	json_array_foreach(languages, i, language)
	{
		if (r == 0)
			r = print_libraries(out, language);
	}
	return r < 0 ? r : print_missing(out, languages, verbose);
}

static int languages_main(const struct command *self, int argc, char **argv)
{
	static const struct show show = { .ask = atoll_languages, .table = languages_table };

	return show_main(self, (struct arguments){ .argc = argc, .argv = argv }, &show);
}

const struct command cmd_languages = {
	.name = "languages",
	.usage = "[-v | --json]",
	.summary = "list the languages, their versions, names and libraries",
	.details =
		"`atoll run -l` takes each of the names; without -l the ending of the file counts. "
		"With -v,\n"
		"also other versions that could be installed.\n",
	.options = &show_options,
	.main = languages_main,
};
