/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll doctor`: the library's verdict, then its report section by section. What is in order is folded into a list, unless
 * all rows are asked for. Exits with 0 only when the default policy can be enforced in full, so that scripts can ask.
 */
#include <stdio.h>
#include <string.h>

#include "atoll/commands/cmd-show.h"
#include "atoll/commands/remote.h"
#include "atoll/daemon/offline-repair.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"
#include "run/doctor.h"

enum { EXIT_LACKING = 1, SECTION_COLUMNS = 18 };

/* The mark of a verdict on a terminal. */
static const char *style_of(const char *verdict)
{
	static const struct {
		const char *verdict, *style;
	} table[] = {
		{ "ok", STYLE_GREEN },
		{ "warn", STYLE_YELLOW },
		{ "missing", STYLE_RED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i].verdict, verdict) == 0)
			return table[i].style;
	return "";
}

static bool has_verdict(const json_t *check, const char *verdict)
{
	return strcmp(text_of(check, "verdict"), verdict) == 0;
}

/* The longest name among the checks that are shown as rows: all sections share their columns. */
static size_t name_width(const json_t *sections, bool verbose)
{
	json_t *section, *check;
	size_t i, k, width = 0;

	json_array_foreach((json_t *)(uintptr_t)sections, i, section)
	{
		json_array_foreach(json_object_get(section, "checks"), k, check)
		{
			if (verbose || !has_verdict(check, "ok"))
				width = MAX(width, strlen(text_of(check, "name")));
		}
	}
	return width;
}

static int print_check(struct buf *out, const json_t *check, size_t width)
{
	const char *verdict = text_of(check, "verdict");
	const char *why = text_of(check, "why"), *fix = text_of(check, "fix");
	bool weakens = json_is_true(json_object_get(check, "weakens"));
	int r = buf_printf(out, "  %s%-7s" STYLE_END "  %-*s  %s", style_of(verdict),
			   strcmp(verdict, "untested") == 0 ? "?" : verdict, (int)width,
			   text_of(check, "name"), text_of(check, "value"));

	if (r == 0 && has_verdict(check, "warn"))
		r = buf_puts(out, weakens ? " (weakens Atoll)" : " (does not weaken Atoll)");
	if (r == 0 && *why)
		r = buf_printf(out, "\n           %s", why);
	if (r == 0 && *fix)
		r = buf_printf(out, "\n           ↳ %s", fix);
	return r < 0 ? r : buf_puts(out, "\n");
}

/* "Namespaces        userns; mntns; …": what is in order, with its values where they say more than yes. */
static int print_folded(struct buf *out, const json_t *section)
{
	struct show_list list = { out, "; ", SECTION_COLUMNS, strlen(text_of(section, "name")) };
	int r = buf_puts(out, text_of(section, "name"));
	json_t *check;
	size_t i;

	json_array_foreach(json_object_get(section, "checks"), i, check)
	{
		const char *value = text_of(check, "value");
		bool plain = strcmp(value, "yes") == 0;

		if (r < 0 || !has_verdict(check, "ok") || strcmp(value, "not on this kernel") == 0)
			continue;
		r = show_list_add(&list, "%s%s%s", text_of(check, "name"), plain ? "" : " ",
				  plain ? "" : value);
	}
	return r < 0 ? r : buf_puts(out, "\n");
}

static int print_section(struct buf *out, const json_t *section, bool verbose, size_t width)
{
	json_t *check;
	size_t i;
	int r = verbose ? buf_printf(out, "\n%s\n", text_of(section, "name"))
			: print_folded(out, section);

	json_array_foreach(json_object_get(section, "checks"), i, check)
	{
		if (r == 0 && (verbose || !has_verdict(check, "ok")))
			r = print_check(out, check, width);
	}
	return r;
}

/* How many warnings there are, and how many of them weaken Atoll. */
static int print_count(struct buf *out, const json_t *sections)
{
	json_t *section, *check;
	size_t i, k, all = 0, weak = 0;

	json_array_foreach((json_t *)(uintptr_t)sections, i, section)
	{
		json_array_foreach(json_object_get(section, "checks"), k, check)
		{
			all += has_verdict(check, "warn");
			weak += has_verdict(check, "warn") &&
				json_is_true(json_object_get(check, "weakens"));
		}
	}
	if (all == 0)
		return 0;
	if (weak == 0)
		return buf_printf(out, "Warnings: %zu, none of which weakens Atoll.\n", all);
	return buf_printf(out, "Warnings: %zu, of which %zu weaken%s Atoll.\n", all, weak,
			  weak == 1 ? "s" : "");
}

static int doctor_table(const json_t *report, bool verbose, struct buf *out)
{
	json_t *sections = json_object_get(report, "sections"), *section;
	const char *style = json_is_true(json_object_get(report, "ok")) ? STYLE_GREEN : STYLE_RED;
	size_t width = name_width(sections, verbose), i;
	int r = buf_printf(out, "%s%s" STYLE_END "\n", style, text_of(report, "summary"));

	if (r == 0)
		r = print_count(out, sections);
	if (r == 0 && !verbose)
		r = buf_puts(out, "\n");
	json_array_foreach(sections, i, section)
	{
		if (r == 0)
			r = print_section(out, section, verbose, width);
	}
	return r;
}

static int doctor_exit_code(const json_t *report)
{
	return json_is_true(json_object_get(report, "ok")) ? 0 : EXIT_LACKING;
}

/* Of the daemon that answers; otherwise those that the settings' state directory shows. */
static int64_t count_damaged(void)
{
	static const struct http_call call = { .method = HTTP_GET, .target = "/readyz" };
	struct remote remote;
	struct error err = { 0 };
	json_t *ready = NULL;
	int64_t n;

	if (remote_find(NULL, &remote, &err) < 0 || remote_json(&remote, &call, &ready, &err) < 0)
		return offline_repair_wanted();
	n = json_integer_value(json_object_get(ready, "damaged"));
	json_decref(ready);
	return n;
}

/* The library knows the host; damage of a history is a daemon's. */
static int ask_doctor(struct atoll *a, char **json, char **problem)
{
	char *text = NULL;
	int r = atoll_doctor(a, &text, problem);
	json_t *report = r < 0 ? NULL : json_loads(text, 0, NULL);

	if (r == 0 && report && doctor_add_history(report, count_damaged()) == 0)
		*json = json_dumps(report, 0);
	json_decref(report);
	free(text);
	return r < 0 ? r : *json ? 0 : -ENOMEM;
}

static int doctor_main(const struct command *self, int argc, char **argv)
{
	static const struct show show = { ask_doctor, doctor_table, doctor_exit_code };

	return show_main(self, (struct arguments){ .argc = argc, .argv = argv }, &show);
}

const struct command cmd_doctor = {
	.name = "doctor",
	.usage = "[-v | --json]",
	.summary = "show which isolation this host can enforce, and how to get the rest",
	.details = "What is in order is folded; -v shows every check. Exits with 0 only when the "
		   "default policy\n"
		   "can be enforced in full.\n",
	.options = &show_options,
	.main = doctor_main,
};
