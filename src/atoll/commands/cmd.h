/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subcommand is one row: name, texts for the help, options, and what it does. `atoll help`, `--help`, the manual, completions and
 * did-you-mean come from these rows. main.c parses the options, finds the daemon for commands that ask one, and calls main; a row
 * without main is one request and a page that shows the answer.
 */
#pragma once

#include "atoll/commands/options.h"
#include "atoll/commands/printer.h"
#include "atoll/remote/http-client.h"

#include <jansson.h>
#include <stdbool.h>

/* Exit codes of Atoll itself; all others are the program's. doc/cli.md lists them. */
enum {
	EXIT_TIMEOUT = 124,
	EXIT_OURS = 125,
	EXIT_REFUSED = 126,
	EXIT_NO_RUNTIME = 127,
	EXIT_SIGNAL = 128,
};

struct remote {
	struct http_address address;
	bool named;	 /* by the user: when it does not answer, nothing takes its place */
	char token[520]; /* "": none */
};

/* In the options of every command that asks a daemon. */
struct ask {
	const char *url;
	bool json, yes, dry_run;
	struct remote remote; /* found before main is called */
};
/* Its rows; a command's own struct begins with it, or has it at an offset. */
#define ASK_URL_AT(at)                                                                             \
	{                                                                                          \
		"--url", 0, "URL", "the daemon's socket or http://ADDRESS:PORT [$ATOLL_URL]",      \
			option_set_text, (at) + offsetof(struct ask, url)                          \
	}
#define ASK_ROWS OPTION_SWITCH("--json", 0, struct ask, json, "print JSON"), ASK_URL_AT(0)
/* Of a command that removes: without these two it may ask, by confirm_ask(). */
#define ASK_CONFIRM                                                                                \
	OPTION_SWITCH("--yes", 'y', struct ask, yes, "do not ask"),                                \
		OPTION_SWITCH("--dry-run", 0, struct ask, dry_run,                                 \
			      "print what would be removed, remove nothing")
/* The options of a command that has no other ones, without and with ids. */
extern const struct option_list ask_options, ask_options_ids, ask_options_remove, options_none;

enum command_ids { IDS_ANY, IDS_SOME, IDS_ONE, IDS_TWO };
enum command_object { OBJECT_NONE, OBJECT_EXECUTION, OBJECT_SESSION };

/* A command line, parsed. */
struct invocation {
	const struct command *command;
	struct arguments args;
	void *data;	 /* the command's struct, as its options have filled it */
	struct ask *ask; /* in data; of a command that asks */
};

struct command {
	const char *name;
	const char *usage;   /* the text after "atoll NAME " */
	const char *summary; /* one line of `atoll help` */
	const char *details; /* further paragraphs of `atoll help NAME`, or NULL */
	const struct option_list *options;
	size_t size; /* of the struct that the options fill; 0: that of struct ask */
	int (*main)(struct invocation *in); /* returns the exit code */
	/* Subcommands, instead of options and main or beside them; their names begin with this one's ("history list"). */
	const struct command *const *commands;
	bool hidden;
	bool parses; /* main parses the options itself */

	/* Commands that ask a daemon */
	bool asks;
	bool finds; /* main finds the daemon itself */
	size_t ask; /* offset of the struct ask */
	enum command_ids ids;
	/* The request of a command without main, about the object that the one id names … */
	enum command_object of;
	enum http_method method; /* 0: GET */
	const char *path;	 /* after the id */
	/* … and its answer without --json; NULL: nothing is printed. */
	void (*print)(struct page *out, const json_t *answer);
};

extern const struct command cmd_run, cmd_languages, cmd_doctor, cmd_dump_seccomp, cmd_pool,
	cmd_prepare, cmd_serve, cmd_history, cmd_debug, cmd_ps, cmd_cancel, cmd_cleanup,
	cmd_session, cmd_mcp, cmd_mcp_install, cmd_version, cmd_man, cmd_completion;
/* In the order of the help; ends with NULL. */
extern const struct command *const all_commands[];
/* `atoll help NAME`, to standard output. 0, or EXIT_OURS if that fails. */
int help_command(const struct command *command);
/* The last word of its name. */
const char *command_word(const struct command *command);

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

/* --- cmd-pool.c: the pool that serves the commands of this user --- */
/* With ATOLL_POOL=auto: returns when a pool listens. If none can be started, the run has a broker of its own. */
void own_pool_start(void);
/* {"pid", "socket"} of the pool that runs would find; NULL: none listens. */
json_t *own_pool_describe(void);
/* Ends the pool that listens at socket (NULL: where runs would look for it). Returns the exit code. */
int own_pool_stop(const char *socket);
