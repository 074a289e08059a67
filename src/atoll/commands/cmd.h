/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subcommand is one row: name, texts for the help, its options and a main function. `atoll help`, `--help`
 * and did-you-mean come from these rows. Each cmd-*.c defines one.
 */
#pragma once

#include "atoll/commands/options.h"

#include <stdbool.h>

/* Exit codes of Atoll itself; all others are the program's. doc/cli.md. */
enum {
	EXIT_TIMEOUT = 124,
	EXIT_OURS = 125,
	EXIT_REFUSED = 126,
	EXIT_NO_RUNTIME = 127,
	EXIT_SIGNAL = 128,
};

struct command {
	const char *name;
	const char *usage;   /* the text after "atoll NAME " */
	const char *summary; /* one line of `atoll help` */
	const char *details; /* further paragraphs of `atoll help NAME`, or NULL */
	const struct option_list *options;
	/* argv[0] is the command's name; returns the exit code. */
	int (*main)(const struct command *self, int argc, char **argv);
	/* Subcommands, instead of options and main or beside them; their names begin with this one's ("history list"). */
	const struct command *const *commands;
	bool hidden;
};

extern const struct command cmd_run, cmd_languages, cmd_doctor, cmd_dump_seccomp, cmd_pool,
	cmd_prepare, cmd_serve, cmd_history, cmd_debug, cmd_ps, cmd_cancel, cmd_cleanup,
	cmd_session, cmd_mcp, cmd_mcp_install, cmd_version, cmd_man, cmd_completion;
/* In the order of the help; ends with NULL. */
extern const struct command *const all_commands[];
/* --- variables.c --- */
enum { VARIABLE_MAX = 160 };
/* Prints a line on standard error for each unknown ATOLL_ variable. */
void variables_check(void);
/* A variable as the manual explains it. */
struct variable_text {
	char name[VARIABLE_MAX];
	const char *help;
	bool is_setting; /* of the daemon; these come after all others */
};
/* The i-th variable; false: there are no more. */
bool variables_describe(size_t i, struct variable_text *ret);

/* `atoll help NAME`, to standard output. 0, or EXIT_OURS if that fails. */
int help_command(const struct command *command);
