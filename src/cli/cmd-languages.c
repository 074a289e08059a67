/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll languages`: the library's JSON of languages as a table. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cmd-show.h"

static const char *language_text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static int print_libraries(struct buf *out, json_t *libraries)
{
	const char *name;
	json_t *version;
	int r = 0, n = 0;

	json_object_foreach(libraries, name, version)
	{
		if (r == 0)
			r = buf_printf(out, "%s%s %s", n++ ? ", " : "  libraries: ", name,
				       json_string_value(version));
	}
	return r == 0 && n > 0 ? buf_puts(out, "\n") : r;
}

/* The second column is the version, or what to do to get one. */
static int print_state(struct buf *out, const char *name, const json_t *entry)
{
	const char *version = language_text_of(entry, "version");

	if (!json_is_true(json_object_get(entry, "available")))
		return buf_printf(out, "%-11s not installed: apt install %s\n", name,
				  language_text_of(entry, "package"));
	return buf_printf(out, "%-11s %s\n", name, *version ? version : "version unknown");
}

static int print_language(struct buf *out, const json_t *language)
{
	const char *name = language_text_of(language, "name");
	int r = print_state(out, name, language);
	json_t *version;
	size_t i;

	if (r == 0)
		r = print_libraries(out, json_object_get(language, "libraries"));
	json_array_foreach(json_object_get(language, "versions"), i, version)
	{
		char full[80];

		(void)snprintf(full, sizeof(full), "%.32s@%.32s", name,
			       language_text_of(version, "name"));
		if (r == 0)
			r = print_state(out, full, version);
	}
	return r;
}

static int languages_table(const json_t *report, struct buf *out)
{
	json_t *language;
	size_t i;
	int r = 0;

	json_array_foreach(json_object_get(report, "languages"), i, language)
	{
		if (r == 0)
			r = print_language(out, language);
	}
	return r;
}

static int languages_main(const struct command *self, int argc, char **argv)
{
	static const struct show show = { .ask = atoll_languages, .table = languages_table };

	return show_main(self, (struct arguments){ .argc = argc, .argv = argv }, &show);
}

const struct command cmd_languages = {
	.name = "languages",
	.usage = "[--json]",
	.summary = "list the languages, their versions and missing runtimes",
	.options = &show_options,
	.main = languages_main,
};
