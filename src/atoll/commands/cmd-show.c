/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of the library: `atoll languages`, `atoll doctor` and, hidden, `atoll dump-seccomp`. Each is a table for people or, with --json,
 * the library's JSON. What is in order is folded into a list, unless -v asks for all rows.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "atoll/atoll.h"
#include "atoll/commands/remote.h"
#include "atoll/daemon/offline-repair.h"
#include "plan/filter.h"
#include "run/doctor.h"

enum { SHOW_COLUMNS = 80, EXIT_LACKING = 1, SECTION_COLUMNS = 18, LISTING_MAX = 1 << 20 };

struct report_options {
	bool json, verbose;
};

static const struct option show_rows[] = {
	OPTION_SWITCH("--json", 0, struct report_options, json, "print JSON"),
	OPTION_SWITCH("--verbose", 'v', struct report_options, verbose, "show every row"),
};
static const struct option_list show_list_options = { OPTION_ROWS(show_rows) };

/* Items behind a margin, in lines of at most 80 columns. */
struct show_list {
	struct page *out;
	const char *between;   /* "; " */
	size_t margin, column; /* column: how much is written on the line already */
};

static void show_list_add(struct show_list *list, const char *fmt, ...) _printf_(2, 3);
static void show_list_add(struct show_list *list, const char *fmt, ...)
{
	char item[400] = "";
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(item, sizeof(item), fmt, ap);
	va_end(ap);
	if (list->column <= list->margin) {
		page_add(list->out, "%*s", (int)(list->margin - list->column), "");
		list->column = list->margin;
	} else if (list->column + strlen(list->between) + strlen(item) < SHOW_COLUMNS) {
		page_add(list->out, "%s", list->between);
		list->column += strlen(list->between);
	} else {
		page_add(list->out, "%.*s\n%*s", (int)strcspn(list->between, " "), list->between,
			 (int)list->margin, "");
		list->column = list->margin;
	}
	page_add(list->out, "%s", item);
	list->column += strlen(item);
}

typedef int (*library_report_fn)(struct atoll *a, char **json, char **problem);

/* Asks the library, and prints the answer. *ret_ok: the report says that all is well; or NULL. */
static int show_report(const struct report_options *o, library_report_fn ask,
		       void (*print)(struct page *out, const json_t *report, bool verbose),
		       bool *ret_ok)
{
	_cleanup_page_ struct page out = PAGE_EMPTY;
	_cleanup_free_ char *json = NULL, *problem = NULL;
	struct atoll *atoll = NULL;
	json_t *report;
	int r = atoll_new(NULL, &atoll, &problem), code = EXIT_OURS;

	if (r == 0)
		r = ask(atoll, &json, &problem);
	report = r == 0 ? json_loads(json, 0, NULL) : NULL;
	if (r < 0) {
		say("%s", problem ?: strerror(-r));
	} else if (o->json) {
		code = print_json(json);
	} else {
		if (report)
			print(&out, report, o->verbose);
		else
			out.error = -EINVAL;
		code = print_page(&out, "the report");
	}
	if (ret_ok)
		*ret_ok = is_true_of(report, "ok");
	json_decref(report);
	(void)atoll_free(atoll);
	return code;
}

/* --- languages: the table, then their libraries and what is not installed --- */

/* "py python3" of ["py", "python3"]; before: "." for extensions. What does not fit is left out. */
static void add_words(struct table *t, const json_t *words, const char *before)
{
	_cleanup_buf_ struct buf text = { .max = 120 };
	const json_t *word;
	size_t i;

	json_array_foreach(words, i, word)
	{
		if (buf_printf(&text, "%s%s%s", i > 0 ? " " : "", before, json_string_value(word)) <
		    0)
			break;
	}
	table_add(t, text.data);
}

/* entry: a language, or one of its versions, which has no names of its own. */
static void add_language(struct table *t, const char *name, const json_t *entry)
{
	const char *version = text_of(entry, "version");

	table_add(t, name);
	table_add(t, !is_true_of(entry, "available") ? "not installed"
		     : *version			     ? version
						     : "version unknown");
	add_words(t, json_object_get(entry, "aliases"), "");
	add_words(t, json_object_get(entry, "extensions"), ".");
}

static void print_libraries(struct page *out, const json_t *language)
{
	struct show_list list = { .out = out, .between = ", ", .margin = 2 };
	json_t *libraries = json_object_get(language, "libraries"), *version;
	const char *name;

	if (json_object_size(libraries) == 0)
		return;
	page_add(out, "\nLibraries of %s:\n", text_of(language, "name"));
	json_object_foreach(libraries, name, version)
		show_list_add(&list, "%s %s", name, json_string_value(version));
	page_add(out, "\n");
}

static void print_languages(struct page *out, const json_t *report, bool verbose)
{
	static const struct column columns[] = { { .title = "NAME" },
						 { .title = "RUNTIME" },
						 { .title = "OTHER NAMES" },
						 { .title = "FILES" } };
	const json_t *languages = json_object_get(report, "languages"), *language, *version;
	/* One command installs what is missing of the rows. */
	_cleanup_page_ struct page packages = PAGE_EMPTY;
	_cleanup_table_ struct table t = { 0 };
	size_t i, k;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach(languages, i, language)
	{
		add_language(&t, text_of(language, "name"), language);
		if (!is_true_of(language, "available"))
			page_add(&packages, " %s", text_of(language, "package"));
		json_array_foreach(json_object_get(language, "versions"), k, version)
		{
			const bool available = is_true_of(version, "available");
			char name[80];

			if (!verbose && !available)
				continue;
			(void)snprintf(name, sizeof(name), "%.32s@%.32s", text_of(language, "name"),
				       text_of(version, "name"));
			add_language(&t, name, version);
			if (!available)
				page_add(&packages, " %s", text_of(version, "package"));
		}
	}
	table_print(&t, out);
	json_array_foreach(languages, i, language) print_libraries(out, language);
	if (packages.text.len > 0)
		page_add(out, "\nWhat is not installed comes with:\n  apt install%s\n",
			 packages.text.data);
}

static int languages_main(struct invocation *in)
{
	return show_report(in->data, atoll_languages, print_languages, NULL);
}

const struct command cmd_languages = {
	.name = "languages",
	.usage = "[-v | --json]",
	.summary = "list the languages, their versions, names and libraries",
	.details = "`atoll run -l` takes each of the names; without -l the ending of the file "
		   "counts. With -v,\n"
		   "also other versions that could be installed.\n",
	.options = &show_list_options,
	.size = sizeof(struct report_options),
	.main = languages_main,
};

/* --- doctor: the library's verdict, then its report section by section --- */

static bool has_verdict(const json_t *check, const char *verdict)
{
	return strcmp(text_of(check, "verdict"), verdict) == 0;
}

static void print_check(struct page *out, const json_t *check, size_t width)
{
	const char *verdict = text_of(check, "verdict");
	const char *why = text_of(check, "why"), *fix = text_of(check, "fix");
	const char *style = has_verdict(check, "ok")	    ? STYLE_GREEN
			    : has_verdict(check, "warn")    ? STYLE_YELLOW
			    : has_verdict(check, "missing") ? STYLE_RED
							    : "";

	page_add(out, "  %s%-7s" STYLE_END "  %-*s  %s", style,
		 has_verdict(check, "untested") ? "?" : verdict, (int)width, text_of(check, "name"),
		 text_of(check, "value"));
	if (has_verdict(check, "warn"))
		page_add(out, "%s",
			 is_true_of(check, "weakens") ? " (weakens Atoll)"
						      : " (does not weaken Atoll)");
	if (*why)
		page_add(out, "\n           %s", why);
	if (*fix)
		page_add(out, "\n           ↳ %s", fix);
	page_add(out, "\n");
}

/* "Namespaces        userns; mntns; …": what is in order, with its values where they say more than yes. */
static void print_folded(struct page *out, const json_t *section)
{
	struct show_list list = { out, "; ", SECTION_COLUMNS, strlen(text_of(section, "name")) };
	const json_t *check;
	size_t i;

	page_add(out, "%s", text_of(section, "name"));
	json_array_foreach(json_object_get(section, "checks"), i, check)
	{
		const char *value = text_of(check, "value");
		bool plain = strcmp(value, "yes") == 0;

		if (has_verdict(check, "ok") && strcmp(value, "not on this kernel") != 0)
			show_list_add(&list, "%s%s%s", text_of(check, "name"), plain ? "" : " ",
				      plain ? "" : value);
	}
	page_add(out, "\n");
}

static void print_doctor(struct page *out, const json_t *report, bool verbose)
{
	const json_t *sections = json_object_get(report, "sections"), *section, *check;
	size_t i, k, width = 0, warnings = 0, weakening = 0;

	/* The longest name among the checks that are shown as rows: all sections share their columns. */
	json_array_foreach(sections, i, section)
		json_array_foreach(json_object_get(section, "checks"), k, check)
	{
		if (verbose || !has_verdict(check, "ok"))
			width = MAX(width, strlen(text_of(check, "name")));
		warnings += has_verdict(check, "warn");
		weakening += has_verdict(check, "warn") && is_true_of(check, "weakens");
	}
	page_add(out, "%s%s" STYLE_END "\n", is_true_of(report, "ok") ? STYLE_GREEN : STYLE_RED,
		 text_of(report, "summary"));
	if (weakening > 0)
		page_add(out, "Warnings: %zu, of which %zu weaken%s Atoll.\n", warnings, weakening,
			 weakening == 1 ? "s" : "");
	else if (warnings > 0)
		page_add(out, "Warnings: %zu, none of which weakens Atoll.\n", warnings);
	if (!verbose)
		page_add(out, "\n");
	json_array_foreach(sections, i, section)
	{
		if (verbose)
			page_add(out, "\n%s\n", text_of(section, "name"));
		else
			print_folded(out, section);
		json_array_foreach(json_object_get(section, "checks"), k,
				   check) if (verbose || !has_verdict(check, "ok"))
			print_check(out, check, width);
	}
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

/* So that scripts can ask, it exits with 0 only when the default policy can be enforced in full. */
static int doctor_main(struct invocation *in)
{
	bool ok = false;
	int code = show_report(in->data, ask_doctor, print_doctor, &ok);

	return code == 0 && !ok ? EXIT_LACKING : code;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.usage = "[-v | --json]",
	.summary = "show which isolation this host can enforce, and how to get the rest",
	.details = "What is in order is folded; -v shows every check. Exits with 0 only when the "
		   "default policy\n"
		   "can be enforced in full.\n",
	.options = &show_list_options,
	.size = sizeof(struct report_options),
	.main = doctor_main,
};

/* --- dump-seccomp: the system call filter as table and program, for reviewers --- */

/* Without a word: the filter of sandboxes. */
static int set_profile(void *data, const char *word, struct error *err)
{
	enum filter_profile *profile = data;

	for (int i = 0; i < _FILTER_MAX; i++)
		if (strcmp(word, filter_profile_name((enum filter_profile)i)) == 0) {
			*profile = (enum filter_profile)i;
			return 0;
		}
	return error_set(err, ERROR_INPUT, EINVAL,
			 "there is no filter %.40s; name default, off or minimal", word);
}

static int dump_main(struct invocation *in)
{
	const enum filter_profile *profile = in->data;
	_cleanup_page_ struct page out = PAGE_EMPTY;

	out.error = filter_print(*profile, &out.text);
	return print_page(&out, "the filter");
}

static const struct option_list dump_options = { .word = set_profile };

const struct command cmd_dump_seccomp = {
	.name = "dump-seccomp",
	.usage = "[default|off]",
	.summary = "print the system call filter",
	.options = &dump_options,
	.size = sizeof(enum filter_profile),
	.main = dump_main,
	.hidden = true,
};
