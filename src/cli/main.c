/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll`: finds the subcommand in the table and hands over. */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cmd.h"
#include "cli/say.h"
#include "client/suggest.h"

enum { HELP_MAX = 64 << 10 };

/* In the order of the help. */
static const struct command *const commands[] = {
	&cmd_run, &cmd_languages, &cmd_doctor, &cmd_dump_seccomp, &cmd_pool, &cmd_prepare, NULL,
};

static int print(int fd, const struct buf *text)
{
	int r = fd_write_all(fd, text->data, text->len);

	if (r < 0) {
		say("cannot write to standard output: %s", strerror(-r));
		return EXIT_OURS;
	}
	return 0;
}

static int out_of_memory(void)
{
	say("out of memory");
	return EXIT_OURS;
}

static int help_all(int fd)
{
	_cleanup_buf_ struct buf text = { 0 };
	int r;

	buf_init(&text, HELP_MAX);
	r = buf_puts(&text, "atoll runs code that nobody trusts in a sandbox and says exactly what "
			    "happened.\n\nUsage: atoll COMMAND [OPTIONS]\n\nCommands:\n");
	for (const struct command *const *c = commands; r == 0 && *c; c++) {
		if (!(*c)->hidden)
			r = buf_printf(&text, "  %-11s %s\n", (*c)->name, (*c)->summary);
	}
	if (r == 0)
		r = buf_puts(&text,
			     "  help        explain a command\n"
			     "\n`atoll help COMMAND` lists its options; `atoll --version` prints "
			     "the version.\n");
	return r < 0 ? out_of_memory() : print(fd, &text);
}

int help_command(const struct command *command)
{
	_cleanup_buf_ struct buf text = { 0 };
	int r;

	buf_init(&text, HELP_MAX);
	r = buf_printf(&text, "Usage: atoll %s%s%s\n\n%s.\n", command->name,
		       *command->usage ? " " : "", command->usage, command->summary);
	if (r == 0 && command->details)
		r = buf_printf(&text, "\n%s", command->details);
	if (r == 0)
		r = options_print(command->options, &text);
	return r < 0 ? out_of_memory() : print(STDOUT_FILENO, &text);
}

static const struct command *find_command(const char *name)
{
	for (const struct command *const *c = commands; *c; c++) {
		if (strcmp((*c)->name, name) == 0)
			return *c;
	}
	return NULL;
}

static int unknown_command(const char *name)
{
	struct suggestion s = { 0 };

	for (const struct command *const *c = commands; *c; c++) {
		if (!(*c)->hidden)
			suggest_offer(&s, name, (*c)->name);
	}
	suggest_offer(&s, name, "help");
	if (s.best)
		say("unknown command '%.60s'; did you mean '%s'?", name, s.best);
	else
		say("unknown command '%.60s'; `atoll help` lists all", name);
	return EXIT_OURS;
}

static int help_main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2 || argv[1][0] == '-')
		return help_all(STDOUT_FILENO);
	command = find_command(argv[1]);
	return command ? help_command(command) : unknown_command(argv[1]);
}

static int version_main(void)
{
	_cleanup_buf_ struct buf text = { 0 };

	buf_init(&text, 64);
	return buf_printf(&text, "atoll %s\n", ATOLL_VERSION) < 0 ? out_of_memory()
								  : print(STDOUT_FILENO, &text);
}

/* Started without standard streams, the first files we open would take their numbers. */
static bool fill_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
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
		return version_main();
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help_all(STDOUT_FILENO);
	if (strcmp(argv[1], "help") == 0)
		return help_main(argc - 1, argv + 1);
	command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	return command->main(command, argc - 1, argv + 1);
}
