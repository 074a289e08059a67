/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll man`, hidden: atoll(1) as roff, from the tables of --help. The build installs its output. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/commands/printer.h"
#include "atoll/commands/say.h"
#include "atoll/daemon/config.h"

enum { PAGE_MAX = 256 << 10, LINE_WIDTH = 76, WORD_MAX_BYTES = 256 };

/* The day on which the words of this file were last changed. */
#define PAGE_DATE "2026-11-19"

struct man_entry {
	const char *name, *text;
};

static const struct man_entry statuses[] = {
	{ "0", "The program ended with 0; the command did what was asked." },
	{ "1 to 123", "The exit code of the program; 1: also `history diff` of two that differ, "
		      "and `serve --check` of wrong "
		      "settings." },
	{ "124", "The program reached its timeout." },
	{ "125", "Atoll failed, or did not understand what was asked; standard error says why." },
	{ "126", "The policy refused the run." },
	{ "127", "The language is unknown, or its runtime is not installed." },
	{ "128+n", "The program was ended by signal n; 137: also by its memory limit." },
};

static const struct man_entry places[] = {
	{ CONFIG_SYSTEM_FILE, "settings of the daemon; doc/atoll.yaml.example explains each" },
	{ "$XDG_CONFIG_HOME/atoll/atoll.yaml", "the same of a user; they win" },
	{ "/run/atoll/atoll.sock", "the socket of root's daemon; of a user's: "
				   "$XDG_RUNTIME_DIR/atoll/atoll.sock" },
	{ "/run/atoll/pool.sock", "the socket of root's pool; of a user's: "
				  "$XDG_RUNTIME_DIR/atoll/pool.sock" },
	{ "/var/lib/atoll", "history, outputs and workspaces of root's daemon; of a user's: "
			    "$XDG_STATE_HOME/atoll" },
	{ "/var/cache/atoll", "what `atoll prepare` makes" },
	{ "$XDG_CACHE_HOME/atoll", "compiled programs of a user" },
};

static const struct man_entry examples[] = {
	{ "atoll run script.py -- a b", "Run a file with two arguments." },
	{ "atoll run -l bash -c 'echo hi'", "Run a piece of code." },
	{ "atoll run --timeout 5s -m 256m --network off app/",
	  "Run a directory, with less than the usual limits." },
	{ "atoll run --json main.c | jq .usage",
	  "What a program used, from the kernel's counters." },
	{ "atoll serve --check && atoll serve", "Start the daemon if its settings are in order." },
	{ "atoll history list --status timeout --since 2h", "What ran out of time lately." },
	{ "atoll debug -1", "Why the last execution failed, and what to do about it." },
	{ "atoll session repl", "Type code into a live interpreter." },
};

/* Escapes characters that roff would read as instructions. */
static int put_man_text(struct buf *out, const char *text)
{
	bool begins = true;
	int r = 0;

	for (; r == 0 && *text; text++) {
		if (*text == '\\')
			r = buf_puts(out, "\\e");
		else if (*text == '-')
			r = buf_puts(out, "\\-");
		else if (begins && (*text == '.' || *text == '\''))
			r = buf_printf(out, "\\&%c", *text);
		else
			r = buf_append(out, text, 1);
		begins = *text == '\n';
	}
	return r;
}

/* Running text, broken into lines as roff's own readers like them. */
static int put_lines(struct buf *out, const char *text)
{
	size_t column = 0;
	int r = 0;

	for (; r == 0 && *text; text += strspn(text, " ")) {
		size_t n = strcspn(text, " ");
		bool fits = column + n < LINE_WIDTH;
		char word[WORD_MAX_BYTES];

		if (column > 0)
			r = buf_puts(out, fits ? " " : "\n");
		column = fits ? column + 1 + n : n;
		(void)snprintf(word, sizeof(word), "%.*s", (int)n, text);
		if (r == 0)
			r = put_man_text(out, word);
		text += n;
	}
	return r < 0 ? r : buf_puts(out, "\n");
}

/* Writes before (a macro, or an escape), the text, and behind. */
static int put_between(struct buf *out, const char *before, const char *text, const char *behind)
{
	int r = buf_puts(out, before);

	if (r == 0)
		r = put_man_text(out, text);
	return r < 0 ? r : buf_puts(out, behind);
}

static int put_options(struct buf *out, const struct option_list *list)
{
	struct option_text row;
	bool limits = false;
	int r = 0;

	for (size_t i = 0; r == 0 && options_describe(list, i, &row); i++) {
		const char letter[] = { '-', row.letter, '\0' };

		if (row.is_limit && !limits)
			r = buf_puts(out, ".PP\n" OPTIONS_LIMITS ":\n");
		limits = row.is_limit;
		if (r == 0)
			r = buf_puts(out, ".TP\n");
		if (r == 0 && row.letter)
			r = put_between(out, "\\fB", letter, "\\fR, ");
		if (r == 0)
			r = put_between(out, "\\fB", row.left, "\\fR\n");
		if (r == 0)
			r = put_lines(out, row.help);
	}
	return r;
}

/* Help paragraphs are already laid out: their lines stay. */
static int put_details(struct buf *out, const char *details)
{
	int r = buf_puts(out, ".PP\n.nf\n");

	if (r == 0)
		r = put_man_text(out, details);
	return r < 0 ? r : buf_puts(out, ".fi\n");
}

static int put_command(struct buf *out, const struct command *c)
{
	int r;

	if (c->hidden)
		return 0;
	r = put_between(out, ".SS \"atoll ", c->name, "\"\n");
	if (r == 0)
		r = put_between(out, "\\fBatoll ", c->name, "\\fR ");
	if (r == 0)
		r = put_between(out, "\\fI", c->usage, "\\fR\n");
	if (r == 0)
		r = put_between(out, ".PP\n", c->summary, ".\n");
	if (r == 0 && c->details)
		r = put_details(out, c->details);
	if (r == 0 && c->options)
		r = put_options(out, c->options);
	for (const struct command *const *own = c->commands; r == 0 && own && *own; own++)
		r = put_command(out, *own);
	return r;
}

static int put_entries(struct buf *out, const char *title, const struct man_entry *list, size_t n)
{
	int r = buf_printf(out, ".SH %s\n", title);

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = put_between(out, ".TP\n\\fB", list[i].name, "\\fR\n");
		if (r == 0)
			r = put_lines(out, list[i].text);
	}
	return r;
}

static int put_variables(struct buf *out)
{
	struct variable_text v;
	bool settings_begun = false;
	int r = buf_puts(out, ".SH ENVIRONMENT\n");

	for (size_t i = 0; r == 0 && variables_describe(i, &v); i++) {
		if (v.is_setting && !settings_begun)
			r = buf_puts(out, ".PP\nSettings of the daemon; each wins over the files "
					  "and loses to a flag.\nLimits are\n"
					  "ATOLL_LIMITS_DEFAULTS_TIMEOUT,\n"
					  "ATOLL_LIMITS_CEILINGS_MEMORY\nand so on.\n");
		settings_begun = v.is_setting;
		if (r == 0)
			r = put_between(out, ".TP\n\\fB", v.name, "\\fR\n");
		if (r == 0)
			r = put_lines(out, v.help);
	}
	return r;
}

static int put_page(struct buf *out)
{
	int r = buf_puts(
		out,
		".TH ATOLL 1 \"" PAGE_DATE "\" \"atoll " ATOLL_VERSION "\" \"Atoll\"\n"
		/* Flags and paths are long words: lines that are filled to the margin would have holes. */
		".ad l\n"
		".SH NAME\natoll \\- run untrusted code in a sandbox\n"
		".SH SYNOPSIS\n\\fBatoll\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
		".SH DESCRIPTION\n"
		"atoll runs untrusted code in a sandbox and reports exactly what "
		"happened.\n"
		".SH COMMANDS\n");

	for (const struct command *const *c = all_commands; r == 0 && *c; c++)
		r = put_command(out, *c);
	if (r == 0)
		r = put_entries(out, "EXIT STATUS", statuses, ARRAY_SIZE(statuses));
	if (r == 0)
		r = put_variables(out);
	if (r == 0)
		r = put_entries(out, "FILES", places, ARRAY_SIZE(places));
	return r < 0 ? r : put_entries(out, "EXAMPLES", examples, ARRAY_SIZE(examples));
}

static int man_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	_cleanup_buf_ struct buf page = { .max = PAGE_MAX };
	struct error err = { 0 };
	int r = options_parse(self->options, &args, NULL, &err);

	if (r < 0)
		return say_error(&err);
	if (r > 0)
		return help_command(self);
	r = put_page(&page);
	if (r < 0) {
		say("cannot print the manual: %s", strerror(-r));
		return EXIT_OURS;
	}
	return print_out(&page);
}

static const struct option_list man_options = { .n = 0 };

const struct command cmd_man = {
	.name = "man",
	.usage = "",
	.summary = "print the manual page, atoll(1)",
	.options = &man_options,
	.main = man_main,
	.hidden = true,
};
