/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the routes: what a handler finds behind request_app(), and how all of them refuse. Handlers
 * read the request, call the engine (or the executor) and render; they decide nothing.
 */
#pragma once

#include "api/routes.h"
#include "compat/execute/execute-002.h"
#include "engine/engine.h"

/* --- route-host.c --- */
struct question; /* a question to the executor and who waits for its answer */
enum { QUESTIONS = 2 };

/* --- routes.c: what was answered so far --- */
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
	struct server *server;
	struct router router;
	char *openapi; /* made once */
	struct question *questions[QUESTIONS];
	struct access_counts access;
	char **languages;      /* names and aliases, as POST /execute takes them; NULL-terminated */
	char **language_names; /* beside each of them: of which language */
};

/* Whose executions this caller sees: the socket's peers are the operator, who sees everybody's (NULL). */
const char *request_viewer(const struct request_ctx *ctx);
/* ?name, ?name=true, ?name=1 */
bool request_flag(const struct request_ctx *ctx, const char *name);

/* Each answers and returns 0. */
int respond_refusal(struct request_ctx *ctx, const struct submitted *submitted,
		    const struct error *err);
/* What a call by id gave: 404, 409 for one that has not ended, else by the error's kind. */
int respond_failure(struct request_ctx *ctx, int r, const struct error *err);
/* Compact, seconds as people write them. Takes over root; NULL: 503. */
int respond_tree(struct request_ctx *ctx, int status, json_t *root);

/* --- tables, each ending with an empty row --- */
extern const struct route run_routes[], execution_routes[], output_routes[], host_routes[],
	execute_routes[];

int stream_get_events(struct request_ctx *ctx); /* event-stream.c */
int attach_get(struct request_ctx *ctx);	/* attach.c */

/* --- event-stream.c --- */
enum stream_format { STREAM_SSE, STREAM_NDJSON };
struct stream_source {
	struct watcher *watcher; /* taken over, also on failure */
	enum stream_format format;
	/* Cancelled when the client goes; the stream takes its own reference. NULL: nothing. */
	struct execution *cancels;
};
/* Bytes that lie in several places, on their way out; the first place that is empty ends them. */
struct pieces {
	struct span parts[3];
	size_t part, written; /* what is out: so many parts, and so much of the next */
};
struct span pieces_next(const struct pieces *p, size_t max); /* len 0: that was all */
void pieces_taken(struct pieces *p, size_t n);
/*
 * An event as JSON, with its "id" for clients that have no other place for it. What is at hand as text (event->text, it may be
 * large) is left out: out ends where it belongs, and "}" follows it.
 */
int event_write_head(const struct event *event, bool with_id, struct buf *out) _must_check_;
/* Answers with events until the last; negative: nothing was answered. */
int stream_begin(struct request_ctx *ctx, const struct stream_source *source) _must_check_;

/* --- route-host.c --- */
void questions_free(struct api *api);

/* --- route-execute.c --- */
int languages_load(struct api *api, struct error *err) _must_check_;
void languages_free(struct api *api);
/* The name of the language that has this name or alias, in any case; the word itself where there is none. */
const char *language_called(const struct api *api, const char *word);
