/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions from acceptance to result. One thread, one loop; nothing here waits for anything but the disk.
 *
 *   engine_submit ─▶ accepted ─▶ queued ─▶ running ─▶ ended ─▶ result in the history (states: execution-state.h)
 *        │                └───────────┴── cancel ──────▲
 *        └─ refused: struct error says why
 *
 * Two kinds of submission. A *job* (POST /v1/executions) is acknowledged once its row is durable: `on_accepted`. A *waited* one
 * (POST /v1/execute) is answered with its result: `on_end`. Both share the queue: priorities, callers in turn inside one, bounds.
 * Output and other events of an execution are its stream (engine/stream/stream.h): watchers read it at their own pace.
 *
 * Callbacks come from the loop, never from inside a call of this header, and may call everything here but engine_free().
 * A `caller` that is NULL sees all executions. An execution of another caller looks as if it did not exist (ERROR_NOT_FOUND).
 */
#pragma once

#include "base/error.h"
#include "base/log.h"
#include "base/loop/loop.h"
#include "base/span.h"
#include "engine/stream/watcher.h"
#include "spec/limits.h"
#include "spec/usage.h"

#include <jansson.h>
#include <stdbool.h>

struct callers;
struct engine;
struct execution;
struct tarball;
struct history;
struct run;
struct runner;
struct metric_text;

struct engine_options {
	struct loop *loop;
	struct runner *runner; /* what carries executions out; these two outlive the engine */
	struct history *history;
	struct log *log, *audit; /* outlive it too; audit's fd may be negative */
	int unpacker_fd;	 /* unpacker_start()'s, for archives; outlives it */
	struct callers *callers; /* outlives it; the engine sets the rules of its slots */

	int64_t running_max; /* at once */
	int64_t judging_max; /* of them, with tests; 0: no bound of their own */
	int64_t queue_max;   /* jobs that wait */
	/* Of them, of one caller; of its waited ones that wait, as many, shared with the callers that wait at the same time. */
	int64_t queue_per_caller;
	int64_t queue_bytes; /* of the bodies of all that wait; 0 in these two: no bound */
	int64_t queue_bytes_per_caller;
	/* Ended executions that are kept in memory for readers of their events; twice the bytes for a minute. 0: a usual bound. */
	int64_t ended_max, ended_bytes_max;

	bool full; /* durability: outputs reach the disk before their result */
	bool callbacks;
	const char *const
		*callback_hosts; /* "host", "host:port", "*.domain"; empty: any public address */
	/* What callbacks are signed with, "whsec_…" (Standard Webhooks); NULL or empty: they are not signed. */
	const char *const *callback_secrets;
	int64_t callback_timeout_ms, callback_attempts;

	int64_t alert_count, alert_window_ms;		/* 0: no alerts */
	int64_t adaptive_factor_milli, adaptive_min_ms; /* 0: Unified-AI-Project's */

	const char *node;	      /* in results; NULL: none */
	const char *shared_workspace; /* the only one that is the same for all callers; or NULL */
};

/* Takes up jobs that were queued when the last process died. The options' strings must outlive the engine. */
int engine_new(const struct engine_options *options, struct engine **ret,
	       struct error *err) _must_check_;
/* After engine_is_idle(), or executor_count() is 0. Watchers must be gone. NULL is fine; returns NULL. */
struct engine *engine_free(struct engine *e);
/* The executor's on_broker, passed on. */
void engine_on_broker(struct engine *e, bool up);
/* An archive's files, as a request has them (unpack.h); on a fiber. */
int engine_unpack(struct engine *e, struct span packed, json_t *files,
		  struct error *err) _must_check_;
/* No further work; waited ones and what runs may end, queued jobs stay for the next process. */
void engine_drain(struct engine *e);
bool engine_is_idle(const struct engine *e);
/* What is waited for ends now, as interrupted. The owner of the runner ends what runs. */
void engine_interrupt(struct engine *e);

struct engine_health {
	bool ready;  /* a broker answers, storage works, not draining */
	bool broker; /* answers */
	bool draining;
	int storage;		 /* 0, or the negative errno of the trouble */
	int64_t queued, running; /* queued: waited ones too */
	int64_t damaged;	 /* histories that were put aside and not repaired yet */
	bool unsound;		 /* the history in use is damaged: the next start puts it aside */
};
struct engine_health engine_health(const struct engine *e);

/* --- Submitting --------------------------------------------------------------------------------------------------- */

/* How a submission is answered. */
enum submit_mode {
	SUBMIT_WAITED, /* with its result: on_end */
	SUBMIT_ANNOUNCED, /* with its result; its id is told before (streams), so its row comes first */
	SUBMIT_DETACHED, /* a job: on_accepted, once its row is durable */
};

struct submission {
	const char *caller; /* never NULL */
	json_t *request; /* doc/http.md's body; a reference is taken; it must not change afterwards */
	struct span text; /* the same as text, when it is at hand; data NULL: made from request */
	enum submit_mode mode;
	bool interactive; /* execution_stdin_write() will follow */
	/*
	 * SUBMIT_WAITED, by a client that does not know ERROR_BUSY: it waits as long as a job would, up to queue_max of them; a caller's
	 * first also beyond that.
	 */
	bool patient;
	const char *key;     /* Idempotency-Key of a job or an announced one, or NULL */
	int64_t accepted_ns; /* CLOCK_MONOTONIC; 0: now */
	/* Open already: a turn of a session, never a job. The engine's from engine_submit()'s success on. NULL: the runner opens one. */
	struct run *turn;

	void *data;
	/* A job: once, when its row is durable (err NULL), or why it is not: then the execution is gone. */
	void (*on_accepted)(void *data, struct execution *x, const struct error *err);
	/*
	 * Waited: once, when the result is there: execution_result_text(). A failure after engine_submit() is a
	 * result too (cancelled, interrupted, internal_error). May be NULL.
	 */
	void (*on_end)(void *data, struct execution *x);
	/*
	 * Waited: instead of on_end, when its time is over, and it was killed and takes long to go, or is still being compiled,
	 * which goes on for the next request with the same code. Its result is on record once it is gone. NULL: on_end comes then.
	 */
	void (*on_timeout)(void *data, struct execution *x);
	/*
	 * Waited, not announced: instead of on_end, when there was no room to begin it. The execution is gone, as if
	 * engine_submit() had refused it with ERROR_BUSY. NULL: on_end comes, as interrupted.
	 */
	void (*on_refused)(void *data, struct execution *x, const struct error *err);
};

struct submitted {
	struct execution *execution; /* a reference of the caller's: execution_unref() */
	/* The key was used before: the id of that execution, which is durable. Then execution is NULL, and no callback comes. */
	char existing[32];
};

/*
 * 0, also for `existing`. Refusals: ERROR_INPUT, ERROR_POLICY, ERROR_CALLBACKS_OFF, ERROR_RUNTIME, ERROR_TOO_LARGE (an
 * archive's contents), ERROR_KEY_PENDING, ERROR_KEY_REUSED, ERROR_BUSY, ERROR_STORAGE, ERROR_STOPPING, ERROR_NOT_READY; err is never NULL.
 */
int engine_submit(struct engine *e, const struct submission *in, struct submitted *ret,
		  struct error *err) _must_check_;

/*
 * The same in two steps: judged, and nothing has happened; then submitted. Not for keys and turns. The engine does not know an
 * execution before engine_start(): execution_unref() discards it. Refusals as above, of both.
 */
int engine_open(struct engine *e, const struct submission *in, struct execution **ret,
		struct error *err) _must_check_;
struct execution_start {
	bool interactive;	/* execution_stdin_write() will follow */
	uint16_t rows, columns; /* of its terminal; 0: as the runner has it */
	int64_t idle_ns; /* since engine_open(), which is the client's time and not part of the start */
};
int engine_start(struct execution *x, const struct execution_start *how,
		 struct error *err) _must_check_;
/* {"language", "policy", "limits", "timeout_max", "code_sha256", "labels"}: what it was judged to be. NULL: no memory. */
json_t *execution_admission(const struct execution *x);
/* {"id", "status", "exit_code", "duration", "start", "cpu_time", "memory_peak"} of one that has ended. NULL: no memory. */
json_t *execution_summary(const struct execution *x);

/* --- One execution that is known in memory: it lives, or has ended a moment ago ------------------------------------- */

/* A new reference, or NULL: it ended a while ago (engine_get_text() knows), or never was, or is another's. */
struct execution *engine_find(struct engine *e, const char *caller, const char *id);
struct execution *execution_ref(struct execution *x);
struct execution *execution_unref(struct execution *x); /* NULL is fine; returns NULL */
const char *execution_id(const struct execution *x);
const char *execution_caller(const struct execution *x);
bool execution_is_running(const struct execution *x);
bool execution_has_ended(const struct execution *x); /* and its result was told */
/* JSON text of the result; {NULL, 0} until it ended. As long as the reference. */
struct span execution_result_text(const struct execution *x);
/* The same as a tree, borrowed; NULL until it ended. On a fiber, a large one is made on the worker. */
json_t *execution_result(const struct execution *x);
/* The callbacks of its submission are not called any more. It goes on: engine_cancel() ends it. */
void execution_forget(struct execution *x);

/* It has a durable row when this returns 0: its id may be told. */
int execution_keep(struct execution *x, struct error *err) _must_check_;
/* Ends it as `cancelled`. 0; -EALREADY: it has ended. */
int execution_cancel(struct execution *x);
/* As input() of a runner: taken bytes, less than n when full (on_stdin follows); -EPIPE: closed; -EAGAIN: not running yet. */
ssize_t execution_stdin_write(struct execution *x, const void *bytes, size_t n) _must_check_;
void execution_stdin_close(struct execution *x);
int execution_signal(struct execution *x, int signo) _must_check_; /* -ESRCH, -EINVAL */
void execution_resize(struct execution *x, uint16_t rows, uint16_t columns);

/* --- Events ------------------------------------------------------------------------------------------------------- */

/*
 * Events of an execution behind `after` (an event's id or seq; NULL or "": from the beginning), living or ended, in memory or
 * in the history. ret's first watcher_next() may be called at once. ERROR_NOT_FOUND; ERROR_INPUT: there is no such event.
 *
 * watcher_attach(): the standard input of a job that came without any stays open if a watcher attaches within a second of the
 * start. It ends when the last such watcher is freed.
 */
struct engine_place {
	const char *id;
	const char *after; /* behind this event; NULL or "": from the beginning */
};
int engine_watch(struct engine *e, const char *caller, struct engine_place place,
		 struct watcher **ret, struct error *err) _must_check_;
/* The execution of a watcher, borrowed. */
struct execution *watcher_execution(struct watcher *w);
/*
 * {"event", "seq", "time", …}: what NDJSON has a line of, and SSE as data; a result's text is no part of it. Bytes are text with
 * U+FFFD; NULL: no memory.
 */
json_t *event_to_json(const struct event *event);

/* --- By id, wherever it is ---------------------------------------------------------------------------------------- */

/* JSON text: the result; of one that has not ended {"id", "status": "queued" | "running", "usage", …}. *ret is to be freed. */
int engine_get_text(struct engine *e, const char *caller, const char *id, char **ret,
		    struct error *err) _must_check_;
/* The same as a tree, a new reference; it is shared, so it is not changed. */
int engine_get(struct engine *e, const char *caller, const char *id, json_t **ret,
	       struct error *err) _must_check_;
/* Ends one. ERROR_ENDED: it has ended. */
int engine_cancel(struct engine *e, const char *caller, const char *id,
		  struct error *err) _must_check_;
/* Deletes one that has ended. ERROR_NOT_ENDED: it has not. */
int engine_remove(struct engine *e, const char *caller, const char *id,
		  struct error *err) _must_check_;
/* Cancels a living one (*ret_cancelled true), deletes one that has ended. */
int engine_delete(struct engine *e, const char *caller, const char *id, bool *ret_cancelled,
		  struct error *err) _must_check_;
/* The request it was submitted with, for a replay: engine_submit() it. A new reference. */
int engine_request(struct engine *e, const char *caller, const char *id, json_t **ret,
		   struct error *err) _must_check_;
/* {is_error, …}, as doc/http.md says. ERROR_NOT_ENDED: it has not ended. */
int engine_analysis(struct engine *e, const char *caller, const char *id, json_t **ret,
		    struct error *err) _must_check_;
int engine_debug_report(struct engine *e, const char *caller, const char *id, json_t **ret,
			struct error *err) _must_check_;
/* On a fiber, made on the worker; to be freed; NULL: no memory. */
char *engine_report_markdown(const json_t *report);
struct engine_pair {
	const char *a, *b;
};
int engine_diff(struct engine *e, const char *caller, struct engine_pair ids, json_t **ret,
		struct error *err) _must_check_;

/* Everything of a stream there is now, up to size_bytes; the descriptor is the caller's, to pread() from. */
struct engine_file {
	int fd;
	int64_t size_bytes;
	bool growing; /* the program still runs */
	bool cut;     /* of a stream: something of it could not be kept */
};
enum engine_stream { ENGINE_STDOUT, ENGINE_STDERR };
struct engine_output {
	const char *id;
	enum engine_stream stream;
};
/* The JSON text of the value of an execution that has ended. ERROR_NOT_FOUND: it has none, or none was kept. */
int engine_value(struct engine *e, const char *caller, const char *id, struct engine_file *ret,
		 struct error *err) _must_check_;
int engine_output(struct engine *e, const char *caller, struct engine_output which,
		  struct engine_file *ret, struct error *err) _must_check_;
/* {"files": [{"path", "size", "sha256"}], "truncated"} */
int engine_files(struct engine *e, const char *caller, const char *id, json_t **ret,
		 struct error *err) _must_check_;
struct engine_path {
	const char *id, *path;
};
int engine_file(struct engine *e, const char *caller, struct engine_path which,
		struct engine_file *ret, struct error *err) _must_check_;
/* All of them as a tar, in pieces: tarball_read() gives bytes, 0 at the end. */
int engine_tarball(struct engine *e, const char *caller, const char *id, struct tarball **ret,
		   struct error *err) _must_check_;
ssize_t tarball_read(struct tarball *t, void *bytes, size_t n) _must_check_;
struct tarball *tarball_free(struct tarball *t);

/* --- Many --------------------------------------------------------------------------------------------------------- */

struct engine_query { /* as struct history_filter */
	const char *caller;
	const char *id;
	const char *status, *language;
	const char *label; /* "name=value", or NULL */
	/* As many more; any of the statuses, all of the labels. End with NULL; or NULL. */
	const char *const *more_statuses, *const *more_labels;
	const char *text;
	int64_t since_ns, until_ns;
	const char *cursor;
	int64_t limit;		   /* 0: 50 */
	bool (*pause)(void *data); /* of statistics: as that of struct history_window */
	void *pause_data;
};
/* {"executions": [{"id", "status", "language", "exit_code", "created_at", "duration", …}], "next": CURSOR | null} */
int engine_list(struct engine *e, const struct engine_query *query, json_t **ret,
		struct error *err) _must_check_;
/* history_stats(), and "now": {"queued", "running", "running_max", "uptime", …}. */
int engine_stats(struct engine *e, const struct engine_query *query, json_t **ret,
		 struct error *err) _must_check_;
struct engine_cleanup_count {
	int64_t cancelled, deleted; /* deleted: also the cancelled ones */
};
/* What engine_cleanup() would do now; of very many, deleted is a lower bound. */
int engine_cleanup_count(struct engine *e, const char *caller, struct engine_cleanup_count *ret,
			 struct error *err) _must_check_;
/* Ends the caller's living executions and removes all of them; done once, from the loop. */
struct engine_cleanup_done {
	void *data;
	void (*fn)(void *data, struct engine_cleanup_count count);
};
int engine_cleanup(struct engine *e, const char *caller, struct engine_cleanup_done done,
		   struct error *err) _must_check_;
/*
 * Takes over what can still be read of damaged histories that were put aside: history_repair_report(). On a fiber; other work goes
 * on. ERROR_CONFLICT: that is being done already.
 */
int engine_repair(struct engine *e, json_t **ret, struct error *err) _must_check_;
/* Prometheus text of everything the engine counts; the caller appends its own. */
void engine_metrics(struct engine *e, struct metric_text *out);
