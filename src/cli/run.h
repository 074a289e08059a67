/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of `atoll run`. Options fill a struct and a tree of overrides; run_body() joins them
 * with --request, FILE and the program's words into one request body; cmd-run.c sends it through the
 * public library and streams; run_report() prints what the result
 * holds beyond the program's own output.
 */
#pragma once

#include "atoll/atoll.h"
#include "cli/options.h"

#include <jansson.h>
#include <stdbool.h>

struct run_options {
	json_t *overrides; /* what flags say, in the shape of a request body */
	const char *file;  /* FILE or "-"; NULL: none */
	const char *code;  /* of -c */
	const char *request_file;
	const char *tests_file;
	const char *invoke, *params;
	const char *output_dir;
	bool json, quiet, explain;
	bool stdin_is_code; /* standard input was read as the program */
};

extern const struct option_list run_option_list;

/* The whole request body; the caller owns it. words: what stood after "--", NULL-terminated. */
int run_body(struct run_options *options, struct atoll *atoll, char *const *words, json_t **ret,
	     struct error *err) _must_check_;

/* Reads a whole file; "-" is standard input. */
int host_file_read(const char *path, size_t max, struct buf *ret, struct error *err) _must_check_;
/* A text where the bytes are UTF-8 without NUL, else {"base64": …}. */
json_t *bytes_to_json(const char *data, size_t len);
/* Adds SRC, or every file below it, to files as DEST. */
int host_tree_add(json_t *files, const char *dest, const char *source,
		  struct error *err) _must_check_;

/* Prints the tests' verdicts or the invoked method's value; gives the exit code. */
int run_report(const char *json, int exit_code);

/* Our terminal in raw mode while a --tty run lasts. */
struct terminal {
	int fd; /* -EBADF: none */
	void *saved;
};
void terminal_raw(struct terminal *t, int fd);
void terminal_restore(struct terminal *t);
