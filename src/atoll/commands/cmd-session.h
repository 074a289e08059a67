/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of `atoll session`, and the parts that they share. A session is named by its id, by the name that it was made with, or by
 * `last`, the newest one.
 */
#pragma once

#include "atoll/commands/cmd-run.h"
#include "atoll/commands/cmd.h"
#include "atoll/commands/remote.h"

extern const struct command cmd_session_exec, cmd_session_repl, cmd_session_attach;

/* A table of sessions, for people. */
void session_table(struct page *out, const json_t *sessions);

/* What a session is made with: the flags of `session new`. */
struct session_options {
	struct run_options run; /* first: the rows of `atoll run` use its offset */
	struct ask ask;
	const char *language, *name, *idle;
	bool no_fork;
};
/* Rows of `atoll run` that a session takes; for option_list.more. */
const struct option *session_run_row(size_t i);
/* The flags that only sessions have; the last one is --json. */
enum { SESSION_ROWS = 6 };
extern const struct option session_rows[SESSION_ROWS];
/* Makes one; *ret is the daemon's answer. */
int session_make(const struct session_options *o, json_t **ret, struct error *err) _must_check_;

/* --- cmd-session-exec.c --- */
/* A rich output as text: its text/plain, or the names of its types. */
int session_show_output(const json_t *output);
/* The value of a result on a line, as its language prints it. last: the output before it, which may show it already; or NULL. */
int session_show_value(const json_t *result, const json_t *last);

/* --- repl.c: the loop of `atoll session repl` and `attach` --- */
/* Until its end; the exit code. is_new: the session ends with it, which the greeting says. */
int repl_run(const struct remote *remote, const json_t *session, bool is_new);
