/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running daemon, for the commands that ask one. Its address: --url, $ATOLL_URL, or the default socket of
 * `atoll serve`. Its refusals (problem+json) become errors with Atoll's own exit codes.
 */
#pragma once

#include "atoll/commands/cmd.h"
#include "atoll/remote/http-client.h"

#include <jansson.h>

struct remote {
	struct http_address address;
	bool named;	 /* by the user: when it does not answer, nothing takes its place */
	char token[520]; /* "": none */
};

/* Every command's own struct begins with this. */
struct remote_options {
	const char *url;
	bool json;
};
#define REMOTE_URL                                                                                 \
	{                                                                                          \
		.flag = "--url", .argument = "URL",                                                \
		.help = "the daemon's socket or http://ADDRESS:PORT [$ATOLL_URL]",                 \
		.apply = option_set_text, .offset = offsetof(struct remote_options, url)           \
	}
#define REMOTE_JSON                                                                                \
	{                                                                                          \
		.flag = "--json", .help = "print JSON", .apply = option_set_true,                  \
		.offset = offsetof(struct remote_options, json)                                    \
	}

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
/* The error of an answer other than 2xx; reads its body. Always negative. */
int remote_refusal(struct http_client *c, struct error *err) _must_check_;

/* --- remote-target.c: ids as they are typed ------------------------------------------------------------------------- */

/* Whether the word can be a whole id, rather than the beginning of one. */
bool remote_is_whole_id(const char *word);
/* The one of a list of {"id"} that begins so, borrowed. -ENOENT without a message: none; -EEXIST: several, which the message names. */
int remote_pick(const json_t *list, const char *beginning, const char **ret,
		struct error *err) _must_check_;
/*
 * "/v1/executions/ID" and what follows, for an id as typed: whole, or a beginning that only one execution has, or "-2" for the last but
 * one; "last" is the newest execution.
 */
struct remote_target {
	char id[64];
	char text[512];
};
int remote_target(const struct remote *remote, const char *id, const char *rest,
		  struct remote_target *ret, struct error *err) _must_check_;

/* --- remote.c ------------------------------------------------------------------------------------------------------- */

/* The daemon's address, for a command without words after --. */
int remote_locate(const char *url, const struct arguments *args, struct remote *ret,
		  struct error *err) _must_check_;
/* Compact, with seconds as people write them, but every digit in a program's own value. NULL: no memory. */
char *remote_dump(const json_t *tree);
int remote_print_json(const json_t *tree);
/* The usual start of a command, whole or in its two halves. 0: go on; otherwise *ret_code is the exit code. */
int remote_parse(const struct command *self, struct arguments *args, void *options, int *ret_code);
int remote_reach(const char *url, const struct arguments *args, struct remote *ret, int *ret_code);
int remote_begin(const struct command *self, struct arguments *args, void *options,
		 struct remote *ret, int *ret_code);

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

/* --- remote-attach.c: the same with standard input, over a WebSocket ----------------------------------------------- */

struct remote_attach {
	struct remote_follow
		follow; /* its client is only kept open and drained: closing it would cancel */
	int input_fd;	/* what the program reads */
	int cancel_fd;	/* as http_client's */
};
int remote_attach(struct remote_attach *a, const char *id, struct error *err) _must_check_;

/* --- remote-result.c: how a command should end -------------------------------------------------------------------- */

struct remote_ending {
	int exit_code;	   /* doc/cli.md */
	bool is_problem;   /* nothing ran: text says why */
	char text[512];	   /* about an end that was not the program's own; "": none */
	char reduced[512]; /* about isolation that is not full; "": it is */
};
void remote_end(const json_t *result, struct remote_ending *ret);
