/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running daemon, for the commands that ask one. Its address: --url, $ATOLL_URL, or the default socket of
 * `atoll serve`. Its refusals (problem+json) become errors with Atoll's own exit codes.
 */
#pragma once

#include "atoll/commands/cmd.h"

/*
 * Finds the daemon's address; connects to nothing. url NULL: as above. -ENOENT without a message: no address,
 * or "off".
 */
int remote_find(const char *url, struct remote *ret, struct error *err) _must_check_;
/* The sentence for a connection that failed with that errno. */
int remote_absent(const struct remote *remote, int errnum, struct error *err) _must_check_;

/* A whole answer; body is bounded. Any status but 2xx is an error. */
int remote_text(const struct remote *remote, const struct http_call *call, struct buf *ret,
		struct error *err) _must_check_;
int remote_json(const struct remote *remote, const struct http_call *call, json_t **ret,
		struct error *err) _must_check_;
/* Sends, and reads the head; any status but 2xx is an error. The caller reads the body. */
int remote_call(const struct remote *remote, const struct http_call *call, struct http_client **ret,
		struct error *err) _must_check_;
/* The same for an answer that may take long: a readable cancel_fd hangs up, as http_client's. */
int remote_call_until(const struct remote *remote, const struct http_call *call, int cancel_fd,
		      struct http_client **ret, struct error *err) _must_check_;
/* Reads the whole body as JSON. */
int remote_tree(const struct remote *remote, struct http_client *c, json_t **ret,
		struct error *err) _must_check_;
/* Reads the whole body into ret, up to its bound. */
int remote_body(struct http_client *c, struct buf *ret, struct error *err) _must_check_;
/* Compact, with seconds as people write them, but every digit in a program's own value. NULL: no memory. */
char *remote_dump(const json_t *tree);
int remote_print_json(const json_t *tree);

/* --- remote-target.c: what a command asks about ---------------------------------------------------------------------- */

/* Finds the daemon of a command that asks one; words after -- are refused. */
int remote_locate(struct invocation *in, struct error *err) _must_check_;
/* False, with a message: another number of ids than the command takes. */
bool remote_has_ids(const struct invocation *in);

/* Whether the word can be a whole id, rather than the beginning of one. */
bool remote_is_whole_id(const char *word);
/* The path of an object of the daemon and what follows, which is encoded already. */
struct remote_target {
	char id[64];
	char text[4096];
};
/* "/v1/executions/ID" of an id as typed: whole, or a beginning that only one execution has, or "-2" for the last but one, or "last". */
int remote_target(const struct remote *remote, const char *id, const char *rest,
		  struct remote_target *ret, struct error *err) _must_check_;
/* "/v1/sessions/ID" of an id, its beginning, a name, or "last". */
int session_target(const struct remote *remote, const char *word, const char *rest,
		   struct remote_target *ret, struct error *err) _must_check_;
/* The words about a session that there is not. Always negative. */
int session_missing(const char *word, struct error *err);

/* A request about an object, whose target and call.target it fills; a daemon that does not know a session has its own words. */
struct remote_question {
	enum command_object of;
	const char *word, *rest;
	struct http_call call;
};
int remote_ask(const struct remote *remote, const struct remote_question *q, json_t **ret,
	       struct error *err) _must_check_;
/* Prints an answer as the command shows it, and frees it; an exit code. */
int remote_show(const struct invocation *in, json_t *answer);
/* The main of a command that is one request. */
int remote_answer(struct invocation *in);

/* What a command does with one id; *ret: the daemon's answer. */
typedef int (*remote_one_fn)(const struct remote *remote, const char *id, json_t **ret,
			     struct error *err);
/* Does it for each id, reports failures and goes on; with --json prints the answers as they come. Returns an exit code. */
int remote_each(struct invocation *in, remote_one_fn one);
/*
 * The same for a command with ASK_CONFIRM. All words become whole ids before anything is removed: then "-2" is another one. With
 * --dry-run, look instead of remove; it prints a line, or with --json its answer.
 */
struct remote_removal {
	const char *things; /* "executions with their outputs" */
	int (*target)(const struct remote *remote, const char *word, const char *rest,
		      struct remote_target *ret, struct error *err);
	remote_one_fn look, remove;
};
int remote_remove_each(struct invocation *in, const struct remote_removal *how);

/* --- remote-events.c: an execution as it happens ------------------------------------------------------------------- */

/* Takes output. A negative errno ends the reading. */
typedef int (*remote_output_fn)(void *data, int fd, const char *bytes, size_t n);

struct remote_follow {
	const struct remote *remote;
	struct http_client *client; /* its head is read: application/x-ndjson */
	remote_output_fn output;    /* NULL: not wanted */
	/* A rich output, {"data", "metadata"}; NULL: not wanted. Borrowed. */
	void (*rich)(void *data, json_t *output);
	void (*stage)(void *data); /* a stage has ended; NULL: not wanted */
	void *data;
	json_t *result; /* of the last event; the caller owns it */
};
/* Reads until the result. If the output cannot be written, hangs up, and only reads the rest. */
int remote_follow(struct remote_follow *f, struct error *err) _must_check_;
/* Writes to standard output and standard error unchanged. */
int remote_output_plain(void *data, int fd, const char *bytes, size_t n);

/* --- remote-result.c: how a command should end -------------------------------------------------------------------- */

struct remote_ending {
	int exit_code;	   /* doc/cli.md */
	bool is_problem;   /* nothing ran: text says why */
	char text[512];	   /* about an end that was not the program's own; "": none */
	char reduced[512]; /* about isolation that is not full; "": it is */
};
void remote_end(const json_t *result, struct remote_ending *ret);
