/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the routes: what request_app() points to, and how all routes refuse. Handlers read the
 * request, call the engine (or the executor) and render the answer; they make no decisions.
 */
#pragma once

#include "engine/engine.h"
#include "mcp/execute/execute-004.h"
#include "session/session.h"
#include "web/compat/execute/execute-002.h"
#include "web/routes/routes.h"

/* --- route-host.c --- */
struct question; /* a question to the executor, and the requests that wait for its answer */
enum { QUESTIONS = 2 };

/* --- routes.c: counts of answers --- */
enum { ACCESS_STATUSES = 6, ACCESS_BOUNDS = 12 };
struct access_counts {
	uint64_t by_class[ACCESS_STATUSES]; /* 1xx … 5xx, at their first digit */
	uint64_t by_time[ACCESS_BOUNDS + 1];
	double seconds;
};
extern const double access_bounds[ACCESS_BOUNDS];

struct api {
	struct api_options options;
	struct engine *engine;
	struct executor *executor;
	struct sessions *sessions;
	struct mcp *mcp;
	struct server *server;
	struct router router;
	char *openapi; /* made once; without `servers` */
	size_t openapi_len;
	struct question *questions[QUESTIONS];
	struct access_counts access;
	struct registry *registry;	/* whose texts the next three borrow */
	const struct language **sorted; /* by name; ends with NULL */
	const char *
		*languages; /* names and aliases, as POST /execute takes them; NULL-terminated */
	struct tool_language *tools; /* for execute_code, in the order of its messages */
};

/*
 * The caller whose executions this request may see. NULL: all of them, for peers of the unix socket
 * (operators).
 */
const char *request_viewer(const struct request_ctx *ctx);
/* ?name, ?name=true, ?name=1 */
bool request_flag(const struct request_ctx *ctx, const char *name);
/*
 * The form of an answer that comes as JSON and in one other: ?format=json, ?format=WORD, or what Accept prefers. True: the other one.
 * -EINVAL: the request is answered with 400.
 */
struct other_form {
	const char *word, *media;
};
int request_other_form(struct request_ctx *ctx, struct other_form other, bool *ret) _must_check_;

/* Each answers and returns 0. */
/* With what the engine says of the execution of the path. */
typedef int engine_question(struct engine *e, const char *caller, const char *id, json_t **ret,
			    struct error *err);
int respond_asked(struct request_ctx *ctx, engine_question *ask);
/* Compact, with seconds as people write them. Takes over root; NULL: 503. */
int respond_tree(struct request_ctx *ctx, int status, json_t *root);

/* --- tables, each ending with an empty row --- */
extern const struct route run_routes[], batch_routes[], execution_routes[], host_routes[],
	execute_routes[], session_routes[], tool_routes[], mcp_routes[], runner_routes[];

/* --- route-run.c --- */
/* The result of an execution, or its state. */
int respond_state(struct request_ctx *ctx, const char *id);
/* The result, as soon as it is there; at the deadline the state. */
int respond_result(struct request_ctx *ctx, const char *id, int64_t deadline_ns);

/* --- route-run.c --- */
enum { KEY_MAX = 255 };
/* Whether the client's disconnect ends its program: ?disconnect=. -EINVAL: respond_bad_disconnect(). */
int request_disconnect(const struct request_ctx *ctx, bool *ret_cancels) _must_check_;
int respond_bad_disconnect(struct request_ctx *ctx);

/* The Idempotency-Key; "": none. -EINVAL: respond_bad_key(). */
int request_key(struct request_ctx *ctx, char ret[KEY_MAX + 1]) _must_check_;
int respond_bad_key(struct request_ctx *ctx);
/* "queued", "running" or "ended"; NULL: it ended a while ago. */
const char *execution_phase(const struct execution *x);
/* Runs the body of the request and answers with the result or with events. session NULL: in a sandbox of its own. */
int respond_execution(struct request_ctx *ctx, struct session *session);

/* --- upload.c: a route's read_body --- */
int upload_read(const struct request_ctx *ctx, json_t **ret, struct error *err) _must_check_;

/* --- route-batch.c --- */
int respond_many(struct request_ctx *ctx); /* GET /v1/executions?ids= */

/* --- route-session.c, route-session-file.c --- */
struct session *
session_of(struct request_ctx *ctx); /* of the path; NULL: the request is answered */
int session_ask_file(struct request_ctx *ctx);
int session_get_file(struct request_ctx *ctx);
int session_put_archive(struct request_ctx *ctx);

int stream_get_events(struct request_ctx *ctx);	 /* event-stream.c */
int attach_get(struct request_ctx *ctx);	 /* attach.c */
int session_attach_get(struct request_ctx *ctx); /* attach-session.c */

/* --- event-stream.c --- */
enum stream_format { STREAM_SSE, STREAM_NDJSON };
struct stream_source {
	struct watcher *watcher; /* taken over, also on failure */
	enum stream_format format;
	/* Cancelled when the client disconnects. The stream takes its own reference. NULL: none. */
	struct execution *cancels;
};
/* An empty comment, which keeps a connection with server-sent events alive. */
#define EVENT_COMMENT ":\n\n"
/* Bytes to send that are in several places; an empty part ends the list. */
struct pieces {
	struct span parts[3];
	size_t part, written; /* how many parts are sent, and how much of the next */
};
struct span pieces_next(const struct pieces *p, size_t max); /* len 0: all is sent */
void pieces_taken(struct pieces *p, size_t n);
struct event_keys {
	bool id; /* for formats without another place for it */
	const char
		*execution; /* its id, where events of several come over one connection; or NULL */
};
/*
 * An event as JSON. A value that exists as text (event->text, may be large) is left out: out ends where the text belongs, and
 * "}" follows the text.
 */
int event_write_head(const struct event *event, struct event_keys with,
		     struct buf *out) _must_check_;
/* Answers with events until the last one; negative: nothing was answered. */
int stream_begin(struct request_ctx *ctx, const struct stream_source *source) _must_check_;

/* --- route-host.c --- */
void questions_free(struct api *api);

/* --- routes.c --- */
/* The language with this name or alias, ignoring case; word itself if there is none. */
const char *language_called(const struct api *api, const char *word);
