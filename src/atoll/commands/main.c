/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll`: finds the subcommand in the table, parses its options, and calls it. */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/commands/remote.h"
#include "base/fd.h"
#include "base/suggest.h"

const struct command *const all_commands[] = {
	&cmd_run,     &cmd_serve,   &cmd_pool,	       &cmd_ps,	 &cmd_cancel,	  &cmd_session,
	&cmd_history, &cmd_debug,   &cmd_cleanup,      &cmd_mcp, &cmd_languages,  &cmd_prepare,
	&cmd_doctor,  &cmd_version, &cmd_dump_seccomp, &cmd_man, &cmd_completion, NULL,
};

/* A refusal on the terminal's error output; anything else that was asked for goes to standard output. */
static int print_help(int fd, const struct page *text)
{
	int r = text->error ? text->error
			    : print_text(fd, (struct span){ text->text.data, text->text.len });

	if (r < 0)
		say("cannot write to standard output: %s", strerror(-r));
	return r < 0 ? EXIT_OURS : 0;
}

const char *command_word(const struct command *command)
{
	const char *space = strrchr(command->name, ' ');

	return space ? space + 1 : command->name;
}

static void list_commands(struct page *text, const struct command *const *list)
{
	page_add(text, "\nCommands:\n");
	for (; *list; list++)
		if (!(*list)->hidden)
			page_add(text, "  %-11s %s\n", command_word(*list), (*list)->summary);
}

static int help_all(int fd)
{
	_cleanup_page_ struct page text = PAGE_EMPTY;

	page_add(&text, "atoll runs untrusted code in a sandbox and reports exactly what "
			"happened.\n\nUsage: atoll COMMAND [OPTIONS]\n");
	list_commands(&text, all_commands);
	page_add(&text, "  help        explain a command\n"
			"\n`atoll help COMMAND` lists its options.\n");
	return print_help(fd, &text);
}

int help_command(const struct command *command)
{
	_cleanup_page_ struct page text = PAGE_EMPTY;

	page_add(&text, "Usage: atoll %s%s%s\n\n%s.\n", command->name, *command->usage ? " " : "",
		 command->usage, command->summary);
	if (command->details)
		page_add(&text, "\n%s", command->details);
	if (command->commands) {
		list_commands(&text, command->commands);
		page_add(&text, "\n`atoll help %s COMMAND` lists its options.\n", command->name);
	}
	if (command->options)
		options_print(command->options, &text);
	return print_help(STDOUT_FILENO, &text);
}

static const struct command *find_command(const struct command *const *list, const char *word)
{
	for (; *list; list++)
		if (strcmp(command_word(*list), word) == 0)
			return *list;
	return NULL;
}

/* parent: the command whose subcommand was looked for, or NULL. */
static int unknown_command(const struct command *parent, const char *word)
{
	const char *name = parent ? parent->name : "", *space = parent ? " " : "";
	struct suggestion s = { 0 };

	for (const struct command *const *c = parent ? parent->commands : all_commands; *c; c++)
		if (!(*c)->hidden)
			suggest_offer(&s, word, command_word(*c));
	if (!parent)
		suggest_offer(&s, word, "help");
	if (s.best)
		say("unknown command '%s%s%.60s'; did you mean '%s'?", name, space, word, s.best);
	else if (!parent && word[0] == '-')
		say("unknown option '%.60s'; options follow a command: `atoll help` lists all",
		    word);
	else if (!parent && access(word, F_OK) == 0)
		say("unknown command '%.60s'; to run that file: atoll run %.60s", word, word);
	else
		say("unknown command '%s%s%.60s'; `atoll help%s%s` lists all", name, space, word,
		    space, name);
	return EXIT_OURS;
}

static int help_main(int argc, char **argv)
{
	const struct command *command = NULL;

	if (argc < 2 || argv[1][0] == '-')
		return help_all(STDOUT_FILENO);
	for (int i = 1; i < argc && (!command || command->commands); i++) {
		const struct command *next = find_command(
			command ? command->commands : all_commands, argv[i]);

		if (!next)
			return unknown_command(command, argv[i]);
		command = next;
	}
	return help_command(command);
}

/* Parses the options, finds the daemon if the command asks one, and calls the command. */
static int command_invoke(const struct command *command, int argc, char **argv)
{
	size_t size = MAX(command->size, command->asks ? sizeof(struct ask) : 1);
	_cleanup_free_ char *data = calloc(1, size);
	struct invocation in = { .command = command,
				 .args = { .argc = argc, .argv = argv },
				 .data = data };
	struct error err = { 0 };
	int r;

	if (command->parses)
		return command->main(&in);
	r = data ? options_parse(command->options, &in.args, data, &err) : error_oom(&err);
	if (r > 0)
		return help_command(command);
	if (command->asks) {
		/* A closed reader must be an error of write(). */
		(void)signal(SIGPIPE, SIG_IGN);
		in.ask = (struct ask *)(void *)(data + command->ask);
		if (r == 0 && !command->finds)
			r = remote_locate(&in, &err);
	}
	if (r < 0)
		return say_error(&err);
	if (!remote_has_ids(&in))
		return EXIT_OURS;
	/* A command that is one request has the words for it. */
	assert(command->main || (command->asks && command->path));
	return command->main ? command->main(&in) : remote_answer(&in);
}

/*
 * Calls the command that the words name, descending through commands that have subcommands. A command with subcommands and a main of
 * its own runs that when no subcommand is named.
 */
static int run_command(const struct command *command, int argc, char **argv)
{
	while (command->commands) {
		const struct command *next;

		if (command->options && (argc < 2 || argv[1][0] == '-'))
			break;
		if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
			return help_command(command);
		if (argc < 2) {
			say("'%s' needs a command; `atoll help %s` lists all", command->name,
			    command->name);
			return EXIT_OURS;
		}
		next = find_command(command->commands, argv[1]);
		if (!next)
			return unknown_command(command, argv[1]);
		command = next;
		argc--;
		argv++;
	}
	return command_invoke(command, argc, argv);
}

static int version_main(struct invocation *in _unused_)
{
	_cleanup_page_ struct page text = PAGE_EMPTY;

	page_add(&text, "atoll %s\n", ATOLL_VERSION);
	return print_help(STDOUT_FILENO, &text);
}

const struct command cmd_version = {
	.name = "version",
	.usage = "",
	.summary = "print the version",
	.options = &options_none,
	.main = version_main,
};

/*
 * If the process is started without standard streams, the first opened files would get their numbers. What cannot be written must not
 * seem written: the place of a closed stream can only be read.
 */
static bool fill_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	(void)fd_close(fd);
	return fd >= 0;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (!fill_standard_streams()) {
		say("cannot open /dev/null: %s", strerror(errno));
		return EXIT_OURS;
	}
	if (argc < 2) {
		(void)help_all(STDERR_FILENO);
		return EXIT_OURS;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		return version_main(NULL);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help_all(STDOUT_FILENO);
	if (strcmp(argv[1], "help") == 0)
		return help_main(argc - 1, argv + 1);
	command = find_command(all_commands, argv[1]);
	if (!command)
		return unknown_command(NULL, argv[1]);
	variables_check();
	return run_command(command, argc - 1, argv + 1);
}
