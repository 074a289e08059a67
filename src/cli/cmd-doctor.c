/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll doctor`: the library's report as a table, one section after the other, and its last line. Exits
 * with 0 only when the default policy can be enforced in full, so that scripts can ask.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/atoll.h"
#include "base/buf.h"
#include "base/fd.h"
#include "cli/cmd.h"
#include "cli/say.h"

enum { REPORT_MAX = 256 << 10, EXIT_LACKING = 1 };

struct doctor_options {
	bool json;
};

/* A verdict and how a terminal shows it. */
struct style {
	const char *verdict, *on, *off;
};

static struct style style_of(const char *verdict, bool colour)
{
	static const struct style table[] = {
		{ "ok", "\033[32m", "\033[0m" },
		{ "warn", "\033[33m", "\033[0m" },
		{ "missing", "\033[31m", "\033[0m" },
	};

	for (size_t i = 0; colour && i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i].verdict, verdict) == 0)
			return table[i];
	return (struct style){ verdict, "", "" };
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* The longest name of all sections: they share their columns. */
static int name_width(json_t *sections)
{
	json_t *section, *check;
	size_t i, k, width = 0;

	json_array_foreach(sections, i, section)
	{
		json_array_foreach(json_object_get(section, "checks"), k, check)
		{
			size_t n = strlen(text_of(check, "name"));

			width = MAX(width, n);
		}
	}
	return (int)width;
}

static int print_check(struct buf *out, const json_t *check, int width, bool colour)
{
	struct style style = style_of(text_of(check, "verdict"), colour);
	const char *fix = text_of(check, "fix");
	int r = buf_printf(out, "  %s%-7s%s  %-*s  %s\n", style.on, style.verdict, style.off, width,
			   text_of(check, "name"), text_of(check, "value"));

	if (r == 0 && *fix)
		r = buf_printf(out, "           ↳ %s\n", fix);
	return r;
}

static int doctor_table(const json_t *report, struct buf *out, bool colour)
{
	json_t *sections = json_object_get(report, "sections"), *section, *check;
	int width = name_width(sections), r = 0;
	size_t i, k;

	json_array_foreach(sections, i, section)
	{
		if (r == 0)
			r = buf_printf(out, "%s%s\n", i ? "\n" : "", text_of(section, "name"));
		json_array_foreach(json_object_get(section, "checks"), k, check)
		{
			if (r == 0)
				r = print_check(out, check, width, colour);
		}
	}
	return r < 0 ? r : buf_printf(out, "\n%s\n", text_of(report, "summary"));
}

static int doctor_print(const struct doctor_options *options, const char *json)
{
	const char *no_colour = getenv("NO_COLOR");
	bool colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
	json_t *report = json_loads(json, 0, NULL);
	bool ok = json_is_true(json_object_get(report, "ok"));
	_cleanup_buf_ struct buf out = { 0 };
	int r = report ? 0 : -EINVAL;

	buf_init(&out, REPORT_MAX);
	if (r == 0)
		r = options->json ? buf_printf(&out, "%s\n", json)
				  : doctor_table(report, &out, colour);
	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, out.data, out.len);
	json_decref(report);
	if (r < 0) {
		say("cannot print the report: %s", strerror(-r));
		return EXIT_OURS;
	}
	return ok ? 0 : EXIT_LACKING;
}

static int doctor_main(const struct command *self, int argc, char **argv)
{
	struct doctor_options options = { 0 };
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
		r = atoll_doctor(atoll, &json, &problem);
	if (r == 0)
		r = doctor_print(&options, json);
	else
		say("%s", problem ? problem : strerror(-r));
	(void)atoll_free(atoll);
	return r < 0 ? EXIT_OURS : r;
}

static const struct option doctor_rows[] = {
	{ .flag = "--json",
	  .help = "print JSON",
	  .apply = option_set_true,
	  .offset = offsetof(struct doctor_options, json) },
};

static const struct option_list doctor_list = { .rows = doctor_rows, .n = ARRAY_SIZE(doctor_rows) };

const struct command cmd_doctor = {
	.name = "doctor",
	.usage = "[--json]",
	.summary = "say what this host can enforce, what is missing and how to fix it",
	.details = "Exits with 0 only when the default policy can be enforced in full.\n",
	.options = &doctor_list,
	.main = doctor_main,
};
