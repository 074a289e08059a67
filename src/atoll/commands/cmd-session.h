/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of `atoll session`, and the parts that they share. A session is named by its id, by the name that it was made with, or by
 * `last`, the newest one.
 */
#pragma once

#include "atoll/commands/cmd-run.h"
#include "atoll/commands/cmd.h"
#include "atoll/commands/remote.h"

extern const struct command cmd_session_new, cmd_session_exec, cmd_session_repl, cmd_session_attach,
	cmd_session_logs, cmd_session_files, cmd_session_ls, cmd_session_put, cmd_session_get;

struct session_target {
	char id[64];
	char text[4096]; /* "/v1/sessions/ID" and what follows */
};
/* rest follows the id; it is encoded already. */
int session_target(const struct remote *remote, const char *word, const char *rest,
		   struct session_target *ret, struct error *err) _must_check_;
/* As remote_json(), for /v1/sessions/ID and what follows; a daemon that does not know the session has its own words. */
struct session_call {
	const char *word; /* the session, as typed */
	enum http_method method;
	const char *rest;
	struct span body; /* data NULL: none */
};
int session_json(const struct remote *remote, const struct session_call *call, json_t **ret,
		 struct error *err) _must_check_;
/* The words about a session that there is not. Always negative. */
int session_missing(const char *word, struct error *err);

/* A table of sessions, for people. */
int session_table(const json_t *sessions, struct buf *out) _must_check_;

/* --- cmd-session-new.c --- */
/* What a session is made with: the flags of `session new`. */
struct session_options {
	struct run_options run; /* first: the rows of `atoll run` use its offset */
	const char *url, *language, *name, *idle;
	bool no_fork;
	const char *word; /* the session, of commands that take one */
};
/* Rows of `atoll run` that a session takes; for option_list.more. */
const struct option *session_run_row(size_t i);
/* The flags that only sessions have; the last one is --json. */
enum { SESSION_ROWS = 6 };
extern const struct option session_rows[SESSION_ROWS];
/* As remote_begin(), for a struct that begins with struct session_options. */
int session_begin(const struct command *self, struct arguments *args, struct session_options *o,
		  struct remote *ret, int *ret_code);
/* Makes one; *ret is the daemon's answer. */
int session_make(const struct remote *remote, const struct session_options *o, json_t **ret,
		 struct error *err) _must_check_;

/* --- cmd-session-exec.c --- */
/* A rich output as text: its text/plain, or the names of its types. */
int session_show_output(const json_t *output);
/* The value of a result on a line, as its language prints it. last: the output before it, which may show it already; or NULL. */
int session_show_value(const json_t *result, const json_t *last);
