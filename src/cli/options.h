/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options from tables. A row says how an option is written, explained and applied; limit
 * flags come from limit_knobs[]. Long options take "--flag value" or "--flag=value", letters "-l value"
 * or "-lvalue"; "--" ends them. Nothing is abbreviated, and an unknown flag is answered with the
 * nearest known one.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "spec/knob.h"

#include <stdbool.h>

struct option {
	const char *flag;     /* "--json" */
	char letter;	      /* 'q', or 0 */
	const char *argument; /* "DIR", or NULL: takes none */
	const char *help;
	/* data is the command's own struct; value is NULL when there is no argument. */
	int (*apply)(void *data, const struct option *self, const char *value, struct error *err);
	size_t offset; /* for the shared functions below: of the member in data */
};

struct option_list {
	const struct option *rows;
	size_t n;
	/* Rows that follow from another table, by number; NULL behind the last. Itself NULL: there are none. */
	const struct option *(*more)(size_t i);
	/* Applies a limit flag; NULL: the command has none. */
	int (*limit)(void *data, const struct knob *knob, const char *value, struct error *err);
	/* A word that is no option; NULL: the command takes none. */
	int (*word)(void *data, const char *word, struct error *err);
};

/* Shared apply functions: a bool becomes true; a const char * points to the value. */
int option_set_true(void *data, const struct option *self, const char *value, struct error *err);
int option_set_text(void *data, const struct option *self, const char *value, struct error *err);

struct arguments {
	int argc;
	char **argv; /* argv[0] is the command's name */
	int rest;    /* first word after "--"; argc when there is none */
};

/* 0; 1 when --help was among them (nothing further was applied); negative with a message. */
int options_parse(const struct option_list *list, struct arguments *args, void *data,
		  struct error *err) _must_check_;
/* An option as help shows it, whichever table it comes from. */
struct option_text {
	char letter;	/* or 0 */
	char left[64];	/* "--output-dir DIR" */
	char help[200]; /* with the default, where it is a limit's */
	bool is_limit;	/* these come behind all others */
};
#define OPTIONS_LIMITS "Limits (sizes like 512m, times like 500ms, 10s or 2m; defaults in brackets)"
/* The i-th; false: there are no more. */
bool options_describe(const struct option_list *list, size_t i, struct option_text *ret);
/* The two-column list of options for the help. */
int options_print(const struct option_list *list, struct buf *out) _must_check_;
