/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll languages`: a table of what can be run here, from the library's JSON. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/atoll.h"
#include "base/buf.h"
#include "base/fd.h"
#include "cli/cmd.h"
#include "cli/say.h"

enum { TABLE_MAX = 256 << 10 };

struct languages_options {
	bool json;
};

static const char *text_of(const json_t *object, const char *key)
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
static int print_language(struct buf *out, const json_t *language)
{
	bool available = json_is_true(json_object_get(language, "available"));
	const char *version = text_of(language, "version");
	int r;

	if (!available)
		r = buf_printf(out, "%-11s not installed: apt install %s\n",
			       text_of(language, "name"), text_of(language, "package"));
	else
		r = buf_printf(out, "%-11s %s\n", text_of(language, "name"),
			       *version ? version : "version unknown");
	return r < 0 ? r : print_libraries(out, json_object_get(language, "libraries"));
}

static int languages_table(const char *json, struct buf *out)
{
	json_t *root = json_loads(json, 0, NULL), *language;
	size_t i;
	int r = root ? 0 : -EINVAL;

	json_array_foreach(json_object_get(root, "languages"), i, language)
	{
		if (r == 0)
			r = print_language(out, language);
	}
	json_decref(root);
	return r;
}

static int languages_print(const struct languages_options *options, const char *json)
{
	_cleanup_buf_ struct buf out = { 0 };
	int r;

	buf_init(&out, TABLE_MAX);
	r = options->json ? buf_printf(&out, "%s\n", json) : languages_table(json, &out);
	if (r == 0 && out.len > 0)
		r = fd_write_all(STDOUT_FILENO, out.data, out.len);
	if (r < 0)
		say("cannot print the languages: %s", strerror(-r));
	return r < 0 ? EXIT_OURS : 0;
}

static int languages_main(const struct command *self, int argc, char **argv)
{
	struct languages_options options = { 0 };
	struct arguments args = { .argc = argc, .argv = argv };
	_cleanup_free_ char *json = NULL, *problem = NULL;
	struct error err = { 0 };
	struct atoll *atoll = NULL;
	int r = options_parse(self->options, &args, &options, &err);

	if (r < 0)
		return say_error(&err);
	if (r > 0)
		return help_command(self);
	r = atoll_new(NULL, &atoll, &problem);
	if (r == 0)
		r = atoll_languages(atoll, &json, &problem);
	if (r == 0)
		r = languages_print(&options, json);
	else
		say("%s", problem ? problem : strerror(-r));
	(void)atoll_free(atoll);
	return r < 0 ? EXIT_OURS : r;
}

static const struct option languages_rows[] = {
	{ .flag = "--json",
	  .help = "print JSON",
	  .apply = option_set_true,
	  .offset = offsetof(struct languages_options, json) },
};

static const struct option_list languages_list = { .rows = languages_rows,
						   .n = ARRAY_SIZE(languages_rows) };

const struct command cmd_languages = {
	.name = "languages",
	.usage = "[--json]",
	.summary = "list the languages, their versions and what is missing",
	.options = &languages_list,
	.main = languages_main,
};
