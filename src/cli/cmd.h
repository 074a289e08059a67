/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subcommand is one row: name, words for the help, its options and a main function. `atoll help`,
 * `--help` and did-you-mean are all made from these rows. Each cmd-*.c defines one.
 */
#pragma once

#include "cli/options.h"

#include <stdbool.h>

/* Exit codes of our own; everything else is the program's. SPEC §4. */
enum {
	EXIT_TIMEOUT = 124,
	EXIT_OURS = 125,
	EXIT_REFUSED = 126,
	EXIT_NO_RUNTIME = 127,
	EXIT_SIGNAL = 128,
};

struct command {
	const char *name;
	const char *usage;   /* what follows "atoll NAME " */
	const char *summary; /* one line of `atoll help` */
	const char *details; /* further paragraphs of `atoll help NAME`, or NULL */
	const struct option_list *options;
	/* argv[0] is the command's name; returns the exit code. */
	int (*main)(const struct command *self, int argc, char **argv);
	/* Commands of its own, instead of options and main; their names begin with this one's ("history list"). */
	const struct command *const *commands;
	bool hidden;
};

extern const struct command cmd_run, cmd_languages, cmd_doctor, cmd_dump_seccomp, cmd_pool,
	cmd_prepare, cmd_serve, cmd_history, cmd_debug, cmd_ps, cmd_cancel, cmd_cleanup, cmd_man;
/* All of them, in the order of the help; ends with NULL. */
extern const struct command *const all_commands[];
/* variables.c: a line on standard error for each ATOLL_ variable that nothing reads. */
void variables_check(void);

/* `atoll help NAME`, to standard output. 0, or EXIT_OURS when that fails. */
int help_command(const struct command *command);
