/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll man`, hidden: atoll(1) as roff, from the tables of --help. The build installs its output. */
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cmd.h"
#include "cli/say.h"

enum { PAGE_MAX = 256 << 10 };

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
			r = put_between(out, "", row.help, "\n");
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

static int put_page(struct buf *out)
{
	int r = buf_puts(out, ".TH ATOLL 1 \"\" \"atoll " ATOLL_VERSION "\" \"Atoll\"\n"
			      ".SH NAME\natoll \\- run untrusted code in a sandbox\n"
			      ".SH SYNOPSIS\n\\fBatoll\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
			      ".SH DESCRIPTION\n"
			      "atoll runs untrusted code in a sandbox and reports exactly what "
			      "happened.\n"
			      ".SH COMMANDS\n");

	for (const struct command *const *c = all_commands; r == 0 && *c; c++)
		r = put_command(out, *c);
	return r;
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
	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, page.data, page.len);
	if (r < 0)
		say("cannot print the manual: %s", strerror(-r));
	return r < 0 ? EXIT_OURS : 0;
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
