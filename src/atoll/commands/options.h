/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options from tables. A row says how an option is written, explained and applied; limit flags
 * come from limit_knobs[]. Long options take "--flag value" or "--flag=value", letters "-l value" or "-lvalue";
 * "--" ends them. Letters without a value may stand in one word (-qt). Flags cannot be abbreviated; the message about an unknown flag names the nearest known one.
 */
#pragma once

#include "atoll/remote/remote-text.h"
#include "base/error.h"
#include "spec/knob.h"

#include <stdbool.h>

struct option {
	const char *flag;     /* "--json" */
	char letter;	      /* 'q', or 0 */
	const char *argument; /* "DIR", or NULL: takes none */
	const char *help;     /* NULL: the help does not list it */
	/* data is the command's own struct; value is NULL when there is no argument. */
	int (*apply)(void *data, const struct option *self, const char *value, struct error *err);
	size_t offset; /* offset of the member in data, for the shared functions below */
};

struct option_list {
	const struct option *rows;
	size_t n;
	/* Rows from another table, by number; NULL after the last. NULL itself: none. */
	const struct option *(*more)(size_t i);
	/* Applies a limit flag; NULL: the command has none. */
	int (*limit)(void *data, const struct knob *knob, const char *value, struct error *err);
	bool turn_limits; /* of the limits, only those of an execution in a session */
	/* A word that is no option; NULL: the command takes none. */
	int (*word)(void *data, const char *word, struct error *err);
	const char
		*words; /* without that function: words are collected, which are called so: "ids" */
	bool has_program; /* words after -- are for the program */
};

/* Shared apply functions: a bool becomes true; a const char * points to the value. */
int option_set_true(void *data, const struct option *self, const char *value, struct error *err);
int option_set_text(void *data, const struct option *self, const char *value, struct error *err);

/* Rows of these two kinds, for a member of a command's own struct. */
#define OPTION_SWITCH(flag, letter, type, member, help)                                            \
	{                                                                                          \
		flag, letter, NULL, help, option_set_true, offsetof(type, member)                  \
	}
#define OPTION_TEXT(flag, letter, argument, type, member, help)                                    \
	{                                                                                          \
		flag, letter, argument, help, option_set_text, offsetof(type, member)              \
	}
/* The rows of an option_list. */
#define OPTION_ROWS(table) .rows = (table), .n = ARRAY_SIZE(table)

enum { WORDS_COLLECTED_MAX = 1000 };
struct arguments {
	int argc;
	char **argv; /* argv[0] is the command's name */
	int rest;    /* first word after "--"; argc when there is none */
	/* The words that were collected; they lie in argv, in front of words that are parsed already. */
	char **words;
	size_t n_words;
};

/* 0; 1: --help was given (nothing after it was applied); negative with a message. */
int options_parse(const struct option_list *list, struct arguments *args, void *data,
		  struct error *err) _must_check_;
/* An option as the help shows it, from either table. */
struct option_text {
	char letter;	/* or 0 */
	char left[64];	/* "--output-dir DIR" */
	char help[200]; /* with the default, if it is a limit */
	bool is_limit;	/* limits come after all others */
};
#define OPTIONS_LIMITS "Limits (sizes like 512m, times like 500ms, 10s or 2m; defaults in brackets)"
/* The i-th option; false: there are no more. */
bool options_describe(const struct option_list *list, size_t i, struct option_text *ret);
/* The two-column list of options for the help. */
void options_print(const struct option_list *list, struct page *out);
