/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll doctor`: the library's report as a table, one section after the other, and its last line. Exits
 * with 0 only when the default policy can be enforced in full, so that scripts can ask.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cmd-show.h"

enum { EXIT_LACKING = 1 };

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
	return (struct style){ strcmp(verdict, "untested") == 0 ? "?" : verdict, "", "" };
}

static const char *doctor_text_of(const json_t *object, const char *key)
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
			size_t n = strlen(doctor_text_of(check, "name"));

			width = MAX(width, n);
		}
	}
	return (int)width;
}

static int print_check(struct buf *out, const json_t *check, int width, bool colour)
{
	struct style style = style_of(doctor_text_of(check, "verdict"), colour);
	const char *fix = doctor_text_of(check, "fix");
	int r = buf_printf(out, "  %s%-7s%s  %-*s  %s\n", style.on, style.verdict, style.off, width,
			   doctor_text_of(check, "name"), doctor_text_of(check, "value"));

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
			r = buf_printf(out, "%s%s\n", i ? "\n" : "",
				       doctor_text_of(section, "name"));
		json_array_foreach(json_object_get(section, "checks"), k, check)
		{
			if (r == 0)
				r = print_check(out, check, width, colour);
		}
	}
	return r < 0 ? r : buf_printf(out, "\n%s\n", doctor_text_of(report, "summary"));
}

static int doctor_show(const json_t *report, struct buf *out)
{
	const char *no_colour = getenv("NO_COLOR");

	return doctor_table(report, out, isatty(STDOUT_FILENO) && !(no_colour && *no_colour));
}

static int doctor_exit_code(const json_t *report)
{
	return json_is_true(json_object_get(report, "ok")) ? 0 : EXIT_LACKING;
}

static int doctor_main(const struct command *self, int argc, char **argv)
{
	static const struct show show = { atoll_doctor, doctor_show, doctor_exit_code };

	return show_main(self, (struct arguments){ .argc = argc, .argv = argv }, &show);
}

const struct command cmd_doctor = {
	.name = "doctor",
	.usage = "[--json]",
	.summary = "show which isolation this host can enforce, and how to get the rest",
	.details = "Exits with 0 only when the default policy can be enforced in full.\n",
	.options = &show_options,
	.main = doctor_main,
};
