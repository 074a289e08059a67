/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before something is lost: --dry-run, --yes, and the question that is asked where a person sits, at standard input and standard error.
 * A pipe is never asked.
 */
#pragma once

#include "atoll/commands/options.h"

#include <stdbool.h>

struct confirm {
	bool yes, dry_run;
};
/* Two rows of a command whose struct has a struct confirm at this member. */
#define CONFIRM_ROWS(type, member)                                                                 \
	{ .flag = "--yes",                                                                         \
	  .letter = 'y',                                                                           \
	  .help = "do not ask",                                                                    \
	  .apply = option_set_true,                                                                \
	  .offset = offsetof(type, member.yes) },                                                  \
	{                                                                                          \
		.flag = "--dry-run", .help = "print what would be removed, remove nothing",        \
		.apply = option_set_true, .offset = offsetof(type, member.dry_run)                 \
	}

/* Whether an answer is needed: the caller may have to find out what to ask about. */
bool confirm_is_needed(const struct confirm *c);
/* Prints the question, which is one sentence, and reads the answer; no is the answer of an empty line. */
bool confirm_ask(const char *question);
