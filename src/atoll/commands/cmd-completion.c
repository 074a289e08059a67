/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll completion SHELL`, hidden: a completion script for bash, zsh or fish, from the tables of --help. Each
 * script finds the command that the words so far name ("history list"), and offers that command's subcommands and
 * options. Words that are no options are file names. The build installs the three scripts.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/commands/printer.h"
#include "atoll/commands/say.h"

enum { SCRIPT_MAX = 256 << 10 };

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
	int (*begin)(struct buf *out, const char *command);
	int (*put)(struct buf *out, const char *command, const struct completion *c);
	int (*end)(struct buf *out);
};

/* Appends text inside single quotes; escape stands for each quote in it. */
static int put_quoted(struct buf *out, const char *text, const char *escape)
{
	int r = 0;

	for (; r == 0 && *text; text++)
		r = *text == '\'' ? buf_puts(out, escape) : buf_append(out, text, 1);
	return r;
}

static int bash_begin(struct buf *out, const char *command)
{
	return buf_printf(out, "\t'%s') echo '", command);
}

static int bash_put(struct buf *out, const char *command _unused_, const struct completion *c)
{
	return c->letter ? buf_printf(out, "-%c %s ", c->letter, c->word)
			 : buf_printf(out, "%s ", c->word);
}

static int bash_end(struct buf *out)
{
	return buf_puts(out, "' ;;\n");
}

static int zsh_begin(struct buf *out, const char *command)
{
	return buf_printf(out, "\t'%s') rows=(", command);
}

static int zsh_row(struct buf *out, const char *word, const char *help)
{
	int r = buf_printf(out, " '%s:", word);

	if (r == 0)
		r = put_quoted(out, help, "'\\''");
	return r < 0 ? r : buf_puts(out, "'");
}

static int zsh_put(struct buf *out, const char *command _unused_, const struct completion *c)
{
	const char letter[] = { '-', c->letter, '\0' };
	int r = zsh_row(out, c->word, c->help);

	return r == 0 && c->letter ? zsh_row(out, letter, c->help) : r;
}

static int zsh_end(struct buf *out)
{
	return buf_puts(out, " ) ;;\n");
}

static int fish_begin(struct buf *out, const char *command)
{
	return buf_printf(out, "set -ga __atoll_commands '%s'\n", command);
}

static int fish_put(struct buf *out, const char *command, const struct completion *c)
{
	const bool is_option = c->word[0] == '-';
	int r = buf_printf(out, "complete -c atoll -n \"__atoll_at '%s'\" %s %s", command,
			   is_option ? "-l" : "-f -a", c->word + (is_option ? 2 : 0));

	if (r == 0 && c->letter)
		r = buf_printf(out, " -s %c", c->letter);
	if (r == 0)
		r = buf_printf(out, "%s -d '", c->takes_value ? " -r" : "");
	if (r == 0)
		r = put_quoted(out, c->help, "\\'");
	return r < 0 ? r : buf_puts(out, "'\n");
}

static int fish_end(struct buf *out _unused_)
{
	return 0;
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
	  .begin = bash_begin,
	  .put = bash_put,
	  .end = bash_end },
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
		  "atoll; "
		  "fi\n",
	  .begin = zsh_begin,
	  .put = zsh_put,
	  .end = zsh_end },
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
	  .begin = fish_begin,
	  .put = fish_put,
	  .end = fish_end },
};

static int put_option(const struct shell *shell, struct buf *out, const char *command,
		      const struct option_text *row)
{
	const size_t n = strcspn(row->left, " ");
	struct completion c = { .letter = row->letter,
				.takes_value = row->left[n] != '\0',
				.help = row->help };

	(void)snprintf(c.word, sizeof(c.word), "%.*s", (int)n, row->left);
	return shell->put(out, command, &c);
}

static int put_subcommands(const struct shell *shell, struct buf *out, const char *command,
			   const struct command *const *list)
{
	int r = 0;

	for (; r == 0 && *list; list++) {
		const char *space = strrchr((*list)->name, ' ');
		struct completion c = { .help = (*list)->summary };

		(void)snprintf(c.word, sizeof(c.word), "%s", space ? space + 1 : (*list)->name);
		if (!(*list)->hidden)
			r = shell->put(out, command, &c);
	}
	return r;
}

static const struct completion help_option = { .word = "--help",
					       .letter = 'h',
					       .help = "explain this command" };

static int put_command(const struct shell *shell, struct buf *out, const struct command *command)
{
	struct option_text row;
	int r;

	if (command->hidden)
		return 0;
	r = shell->begin(out, command->name);
	if (r == 0 && command->commands)
		r = put_subcommands(shell, out, command->name, command->commands);
	for (size_t i = 0; r == 0 && command->options; i++) {
		if (!options_describe(command->options, i, &row))
			break;
		r = put_option(shell, out, command->name, &row);
	}
	if (r == 0)
		r = shell->put(out, command->name, &help_option);
	if (r == 0)
		r = shell->end(out);
	for (const struct command *const *own = command->commands; r == 0 && own && *own; own++)
		r = put_command(shell, out, *own);
	return r;
}

/* What stands after `atoll` itself. */
static int put_top(const struct shell *shell, struct buf *out)
{
	static const struct completion words[] = {
		{ .word = "help", .help = "explain a command" },
		{ .word = "--version", .letter = 'V', .help = "print the version" },
	};
	int r = shell->begin(out, "");

	if (r == 0)
		r = put_subcommands(shell, out, "", all_commands);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(words); i++)
		r = shell->put(out, "", &words[i]);
	if (r == 0)
		r = shell->put(out, "", &help_option);
	return r < 0 ? r : shell->end(out);
}

static int put_script(const struct shell *shell, struct buf *out)
{
	int r = buf_puts(out, shell->head);

	if (r == 0)
		r = put_top(shell, out);
	for (const struct command *const *c = all_commands; r == 0 && *c; c++)
		r = put_command(shell, out, *c);
	return r < 0 ? r : buf_puts(out, shell->foot);
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

static int completion_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	_cleanup_buf_ struct buf script = { .max = SCRIPT_MAX };
	const struct shell *shell = NULL;
	struct error err = { 0 };
	int r = options_parse(self->options, &args, &shell, &err);

	if (r == 0 && !shell)
		r = error_set(&err, ERROR_INPUT, EINVAL,
			      "name the shell: atoll completion bash, zsh or fish");
	if (r < 0)
		return say_error(&err);
	if (r > 0)
		return help_command(self);
	r = put_script(shell, &script);
	if (r < 0) {
		say("cannot print the script: %s", strerror(-r));
		return EXIT_OURS;
	}
	return print_out(&script);
}

static const struct option_list completion_options = { .word = take_shell };

const struct command cmd_completion = {
	.name = "completion",
	.usage = "bash | zsh | fish",
	.summary = "print a completion script for a shell",
	.options = &completion_options,
	.main = completion_main,
	.hidden = true,
};
