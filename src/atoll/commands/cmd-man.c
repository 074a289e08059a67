/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made of the tables of --help, hidden: `atoll man` is atoll(1) as roff, and `atoll completion SHELL` a completion script for bash,
 * zsh or fish. The build installs all four. A script finds the command that the words so far name ("history list"), and offers that
 * command's subcommands and options; words that are no options are file names.
 */
#include <stdio.h>
#include <string.h>

#include "atoll/commands/cmd.h"
#include "atoll/daemon/config.h"

enum { LINE_WIDTH = 76, WORD_MAX_BYTES = 256 };

/* --- completion --- */

/* A word that completes a command line. */
struct completion {
	char word[64]; /* "list", "--memory" */
	char letter;   /* of an option, or 0 */
	bool takes_value;
	const char *help;
};

/* How one shell writes the table. command: "", "run", "history list". */
struct shell {
	const char *name, *head, *foot;
	const char *begin, *end; /* of a command's words; begin takes its name */
	void (*put)(struct page *out, const char *command, const struct completion *c);
};

/* Appends text inside single quotes; escape stands for each quote in it. */
static void put_quoted(struct page *out, const char *text, const char *escape)
{
	for (; *text; text++)
		page_add(out, "%.*s", *text == '\'' ? 4 : 1, *text == '\'' ? escape : text);
}

static void bash_put(struct page *out, const char *command _unused_, const struct completion *c)
{
	if (c->letter)
		page_add(out, "-%c ", c->letter);
	page_add(out, "%s ", c->word);
}

static void zsh_row(struct page *out, const char *word, const char *help)
{
	page_add(out, " '%s:", word);
	put_quoted(out, help, "'\\''");
	page_add(out, "'");
}

static void zsh_put(struct page *out, const char *command _unused_, const struct completion *c)
{
	const char letter[] = { '-', c->letter, '\0' };

	zsh_row(out, c->word, c->help);
	if (c->letter)
		zsh_row(out, letter, c->help);
}

static void fish_put(struct page *out, const char *command, const struct completion *c)
{
	const bool is_option = c->word[0] == '-';

	page_add(out, "complete -c atoll -n \"__atoll_at '%s'\" %s %s", command,
		 is_option ? "-l" : "-f -a", c->word + (is_option ? 2 : 0));
	if (c->letter)
		page_add(out, " -s %c", c->letter);
	page_add(out, "%s -d '", c->takes_value ? " -r" : "");
	put_quoted(out, c->help, "\\'");
	page_add(out, "'\n");
}

static const struct shell shells[] = {
	{ .name = "bash",
	  .head = "# Completes atoll in bash; made by `atoll completion bash`.\n"
		  "_atoll_words() {\n\tcase $1 in\n",
	  .foot = "\t*) return 1 ;;\n\tesac\n}\n"
		  "_atoll() {\n"
		  "\tlocal cur=${COMP_WORDS[COMP_CWORD]} at='' next word\n"
		  "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
		  "\t\t[ \"$word\" != -- ] || return 0\n"
		  "\t\tnext=${at:+$at }$word\n"
		  "\t\t_atoll_words \"$next\" >/dev/null && at=$next\n"
		  "\tdone\n"
		  "\tword=$(_atoll_words \"$at\")\n"
		  "\t# A word that is no option is a subcommand, or a file, which bash completes.\n"
		  "\t[[ $cur == -* ]] || word=$(printf '%s\\n' $word | grep -v ^-)\n"
		  "\tmapfile -t COMPREPLY < <(compgen -W \"$word\" -- \"$cur\")\n"
		  "}\n"
		  "complete -o bashdefault -o default -F _atoll atoll\n",
	  .begin = "\t'%s') echo '",
	  .put = bash_put,
	  .end = "' ;;\n" },
	{ .name = "zsh",
	  .head = "#compdef atoll\n"
		  "# Completes atoll in zsh; made by `atoll completion zsh`.\n"
		  "_atoll_rows() {\n\tcase $1 in\n",
	  .foot = "\t*) return 1 ;;\n\tesac\n}\n"
		  "_atoll() {\n"
		  "\tlocal at='' next word\n"
		  "\tlocal -a rows commands flags\n"
		  "\tfor word in ${words[2,CURRENT-1]}; do\n"
		  "\t\tif [[ $word == -- ]]; then _files; return; fi\n"
		  "\t\tnext=${at:+$at }$word\n"
		  "\t\t_atoll_rows \"$next\" && at=$next\n"
		  "\tdone\n"
		  "\t_atoll_rows \"$at\"\n"
		  "\tcommands=(${rows:#-*}) flags=(${(M)rows:#-*})\n"
		  "\tif [[ $PREFIX == -* ]]; then\n\t\t_describe option flags\n"
		  "\telif (( $#commands )); then\n\t\t_describe command commands\n"
		  "\telse\n\t\t_files\n\tfi\n"
		  "}\n"
		  "if [[ $funcstack[1] == _atoll ]]; then _atoll \"$@\"; else compdef _atoll "
		  "atoll; fi\n",
	  .begin = "\t'%s') rows=(",
	  .put = zsh_put,
	  .end = " ) ;;\n" },
	{ .name = "fish",
	  .head = "# Completes atoll in fish; made by `atoll completion fish`.\n"
		  "function __atoll_at\n"
		  "\tset -l at ''\n"
		  "\tfor word in (commandline -opc)[2..-1]\n"
		  "\t\tset -l next (string trim -- \"$at $word\")\n"
		  "\t\tcontains -- $next $__atoll_commands; and set at $next\n"
		  "\tend\n"
		  "\ttest \"$at\" = \"$argv[1]\"\n"
		  "end\n"
		  "set -g __atoll_commands\n",
	  .foot = "",
	  .begin = "set -ga __atoll_commands '%s'\n",
	  .put = fish_put,
	  .end = "" },
};

static const struct completion help_option = { .word = "--help",
					       .letter = 'h',
					       .help = "explain this command" };

/* The words that may stand after a command, and then those after its own commands. command NULL: `atoll` itself. */
static void put_words(const struct shell *shell, struct page *out, const struct command *command)
{
	static const struct completion top[] = {
		{ .word = "help", .help = "explain a command" },
		{ .word = "--version", .letter = 'V', .help = "print the version" },
	};
	const struct command *const *commands = command ? command->commands : all_commands;
	const char *name = command ? command->name : "";
	const char *begin = shell->begin, *at = strstr(begin, "%s");
	struct option_text row;

	if (command && command->hidden)
		return;
	page_add(out, "%.*s%s%s", (int)(at - begin), begin, name, at + 2);
	for (const struct command *const *own = commands; own && *own; own++) {
		struct completion c = { .help = (*own)->summary };

		(void)snprintf(c.word, sizeof(c.word), "%s", command_word(*own));
		if (!(*own)->hidden)
			shell->put(out, name, &c);
	}
	for (size_t i = 0; !command && i < ARRAY_SIZE(top); i++)
		shell->put(out, name, &top[i]);
	for (size_t i = 0;
	     command && command->options && options_describe(command->options, i, &row); i++) {
		const size_t n = strcspn(row.left, " ");
		struct completion c = { .letter = row.letter,
					.takes_value = row.left[n] != '\0',
					.help = row.help };

		(void)snprintf(c.word, sizeof(c.word), "%.*s", (int)n, row.left);
		shell->put(out, name, &c);
	}
	shell->put(out, name, &help_option);
	page_add(out, "%s", shell->end);
	for (const struct command *const *own = commands; own && *own; own++)
		put_words(shell, out, *own);
}

static int take_shell(void *data, const char *word, struct error *err)
{
	const struct shell **shell = data;

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (strcmp(shells[i].name, word) == 0) {
			*shell = &shells[i];
			return 0;
		}
	return error_set(err, ERROR_INPUT, EINVAL,
			 "there is no completion for '%.60s'; choose bash, zsh or fish", word);
}

static int completion_main(struct invocation *in)
{
	const struct shell *shell = *(const struct shell **)in->data;
	_cleanup_page_ struct page script = PAGE_EMPTY;

	if (!shell) {
		say("name the shell: atoll completion bash, zsh or fish");
		return EXIT_OURS;
	}
	page_add(&script, "%s", shell->head);
	put_words(shell, &script, NULL);
	page_add(&script, "%s", shell->foot);
	return print_page(&script, "the script");
}

static const struct option_list completion_options = { .word = take_shell };

const struct command cmd_completion = {
	.name = "completion",
	.usage = "bash | zsh | fish",
	.summary = "print a completion script for a shell",
	.options = &completion_options,
	.size = sizeof(struct shell *),
	.main = completion_main,
	.hidden = true,
};

/* --- man --- */

/* The day on which the words of this file were last changed. */
#define PAGE_DATE "2026-11-19"

struct man_entry {
	const char *name, *text;
};

static const struct man_entry statuses[] = {
	{ "0", "The program ended with 0; the command did what was asked." },
	{ "1 to 123", "The exit code of the program; 1: also `history diff` of two that differ, "
		      "and `serve --check` of wrong settings." },
	{ "124", "The program reached its timeout." },
	{ "125", "Atoll failed, or did not understand what was asked; standard error says why." },
	{ "126", "The policy refused the run." },
	{ "127", "The language is unknown, or its runtime is not installed." },
	{ "128+n", "The program was ended by signal n; 137: also by its memory limit." },
};

static const struct man_entry places[] = {
	{ CONFIG_SYSTEM_FILE, "settings of the daemon; doc/atoll.yaml.example explains each" },
	{ "$XDG_CONFIG_HOME/atoll/atoll.yaml", "the same of a user; they win" },
	{ "/run/atoll/atoll.sock",
	  "the socket of root's daemon; of a user's: $XDG_RUNTIME_DIR/atoll/atoll.sock" },
	{ "/run/atoll/pool.sock",
	  "the socket of root's pool; of a user's: $XDG_RUNTIME_DIR/atoll/pool.sock" },
	{ "/var/lib/atoll",
	  "history, outputs and workspaces of root's daemon; of a user's: $XDG_STATE_HOME/atoll" },
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
static void put_man_text(struct page *out, const char *text)
{
	bool begins = true;

	for (; *text; text++) {
		if (*text == '\\')
			page_add(out, "\\e");
		else if (*text == '-')
			page_add(out, "\\-");
		else if (begins && (*text == '.' || *text == '\''))
			page_add(out, "\\&%c", *text);
		else
			page_bytes(out, text, 1);
		begins = *text == '\n';
	}
}

/* Running text, broken into lines as roff's own readers like them. */
static void put_lines(struct page *out, const char *text)
{
	size_t column = 0;

	for (; *text; text += strspn(text, " ")) {
		size_t n = strcspn(text, " ");
		bool fits = column + n < LINE_WIDTH;
		char word[WORD_MAX_BYTES];

		if (column > 0)
			page_add(out, "%s", fits ? " " : "\n");
		column = fits ? column + 1 + n : n;
		(void)snprintf(word, sizeof(word), "%.*s", (int)n, text);
		put_man_text(out, word);
		text += n;
	}
	page_add(out, "\n");
}

/* Writes before (a macro, or an escape), the text, and behind. */
static void put_between(struct page *out, const char *before, const char *text, const char *behind)
{
	page_add(out, "%s", before);
	put_man_text(out, text);
	page_add(out, "%s", behind);
}

static void put_options(struct page *out, const struct option_list *list)
{
	struct option_text row;
	bool limits = false;

	for (size_t i = 0; options_describe(list, i, &row); i++) {
		const char letter[] = { '-', row.letter, '\0' };

		if (row.is_limit && !limits)
			page_add(out, ".PP\n" OPTIONS_LIMITS ":\n");
		limits = row.is_limit;
		page_add(out, ".TP\n");
		if (row.letter)
			put_between(out, "\\fB", letter, "\\fR, ");
		put_between(out, "\\fB", row.left, "\\fR\n");
		put_lines(out, row.help);
	}
}

static void put_command(struct page *out, const struct command *c)
{
	if (c->hidden)
		return;
	put_between(out, ".SS \"atoll ", c->name, "\"\n");
	put_between(out, "\\fBatoll ", c->name, "\\fR ");
	put_between(out, "\\fI", c->usage, "\\fR\n");
	put_between(out, ".PP\n", c->summary, ".\n");
	/* Help paragraphs are already laid out: their lines stay. */
	if (c->details)
		put_between(out, ".PP\n.nf\n", c->details, ".fi\n");
	if (c->options)
		put_options(out, c->options);
	for (const struct command *const *own = c->commands; own && *own; own++)
		put_command(out, *own);
}

static void put_entries(struct page *out, const char *title, const struct man_entry *list, size_t n)
{
	page_add(out, ".SH %s\n", title);
	for (size_t i = 0; i < n; i++) {
		put_between(out, ".TP\n\\fB", list[i].name, "\\fR\n");
		put_lines(out, list[i].text);
	}
}

static int man_main(struct invocation *in _unused_)
{
	_cleanup_page_ struct page out = PAGE_EMPTY;
	bool settings_begun = false;
	struct variable_text v;

	page_add(
		&out,
		".TH ATOLL 1 \"" PAGE_DATE "\" \"atoll " ATOLL_VERSION "\" \"Atoll\"\n"
		/* Flags and paths are long words: lines that are filled to the margin would have holes. */
		".ad l\n"
		".SH NAME\natoll \\- run untrusted code in a sandbox\n"
		".SH SYNOPSIS\n\\fBatoll\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
		".SH DESCRIPTION\n"
		"atoll runs untrusted code in a sandbox and reports exactly what happened.\n"
		".SH COMMANDS\n");
	for (const struct command *const *c = all_commands; *c; c++)
		put_command(&out, *c);
	put_entries(&out, "EXIT STATUS", statuses, ARRAY_SIZE(statuses));
	page_add(&out, ".SH ENVIRONMENT\n");
	for (size_t i = 0; variables_describe(i, &v); i++) {
		if (v.is_setting && !settings_begun)
			page_add(&out, ".PP\nSettings of the daemon; each wins over the files and "
				       "loses to a flag.\nLimits are\n"
				       "ATOLL_LIMITS_DEFAULTS_TIMEOUT,\n"
				       "ATOLL_LIMITS_CEILINGS_MEMORY\nand so on.\n");
		settings_begun = v.is_setting;
		put_between(&out, ".TP\n\\fB", v.name, "\\fR\n");
		put_lines(&out, v.help);
	}
	put_entries(&out, "FILES", places, ARRAY_SIZE(places));
	put_entries(&out, "EXAMPLES", examples, ARRAY_SIZE(examples));
	return print_page(&out, "the manual");
}

const struct command cmd_man = {
	.name = "man",
	.usage = "",
	.summary = "print the manual page, atoll(1)",
	.options = &options_none,
	.main = man_main,
	.hidden = true,
};
