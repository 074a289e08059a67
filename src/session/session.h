/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: one live interpreter in one sandbox, in which executions follow one another and find the state of those before. The
 * sandbox is an ordinary run of the executor whose program is the language's session runner (runners/); the two speak over a
 * channel (run/link/channel.h). An execution of a session is an execution of the engine like any other; the session is its runner.
 *
 *   session_create ─▶ session_execute … session_execute ─▶ session_close, or idle for too long
 *
 * When the sandbox dies (an exit, a limit, a timeout that the language cannot stop), the session stays: its next execution
 * finds a new interpreter, and the result of the one that ended it says that the state is lost.
 *
 * A session of another caller looks as if it did not exist (ERROR_NOT_FOUND). Replies come from the loop, exactly once, never from inside a
 * call of this header; a session that ends answers them with ERROR_NOT_FOUND.
 */
#pragma once

#include "base/error.h"
#include "base/log.h"
#include "engine/engine.h"

#include <jansson.h>

struct sessions;
struct session;

struct sessions_options {
	struct loop *loop;
	struct executor *executor;
	struct engine *engine;
	struct callers *callers; /* these outlive the sessions */
	struct log *log;
	int64_t max, max_per_caller;
	int64_t host_calls; /* of one execution at most */
};

int sessions_new(const struct sessions_options *options, struct sessions **ret) _must_check_;
/* After sessions_drain(), when the executor has no run any more. NULL is fine; returns NULL. */
struct sessions *sessions_free(struct sessions *all);
/* Takes no new ones and ends those that do nothing; others end when their last execution has. */
void sessions_drain(struct sessions *all);
int64_t sessions_count_of(const struct sessions *all, const char *caller);
/* Ends those of one caller; NULL: of all. Returns how many. */
int64_t sessions_close_of(struct sessions *all, const char *caller);

struct session_reply {
	void *data;
	void (*fn)(void *data, struct session *s,
		   const struct error *err); /* s NULL: err says why */
};
/* The reply comes when the interpreter is ready. body: doc/http.md. 0: the reply follows. */
int session_create(struct sessions *all, const char *caller, json_t *body,
		   struct session_reply reply, struct error *err) _must_check_;
/*
 * The caller's session with the name that body has; it is made when there is none, and gets its interpreter with its first
 * execution. Borrowed, as below.
 */
int session_get(struct sessions *all, const char *caller, json_t *body, struct session **ret,
		struct error *err) _must_check_;
/* Borrowed, until control returns to the loop. caller NULL: of any caller. */
int session_find(struct sessions *all, const char *caller, const char *id, struct session **ret,
		 struct error *err) _must_check_;
/* The caller's session with this name (`name` at creation), or NULL. */
struct session *session_named(struct sessions *all, const char *caller, const char *name);
const char *session_id(const struct session *s);
json_t *session_to_json(const struct session *s);		    /* NULL: no memory */
json_t *sessions_to_json(struct sessions *all, const char *caller); /* {"sessions": […]} */
json_t *session_logs(const struct session *s); /* {"stdout", "stderr", "truncated"} */

/*
 * One execution: as engine_submit(), of which the caller fills mode and callbacks, and of which this function fills the rest.
 * body: {"code", "stdin", "limits", "host_functions", "globals", "labels"}. ERROR_BUSY: too many wait already.
 */
int session_execute(struct session *s, json_t *body, struct submission *in, struct submitted *ret,
		    struct error *err) _must_check_;
/* Stops the running code. The reply comes when it has stopped; *ret_state of the reply: session_state_kept(). */
int session_interrupt(struct session *s, struct session_reply reply,
		      struct error *err) _must_check_;
/* A new interpreter, with the files that the session began with. */
int session_reset(struct session *s, struct session_reply reply, struct error *err) _must_check_;
/*
 * Copies of a live interpreter, each in a session of its own: the live process is forked. s NULL: err says why. ERROR_CONFLICT: the
 * session is not forkable, or its process cannot be forked now (threads, child processes, open sockets).
 */
struct session_fork_reply {
	void *data;
	void (*fn)(void *data, struct session *const *list, size_t n, const struct error *err);
};
int session_fork(struct session *s, int64_t count, struct session_fork_reply reply,
		 struct error *err) _must_check_;
void session_close(struct session *s);
/* Whether the state of the last execution was kept. */
bool session_kept(const struct session *s);
/* Answers a host call. body: {"result"} or {"error"}. */
int session_answer(struct session *s, const char *call_id, const json_t *body,
		   struct error *err) _must_check_;

/* Whether its executions may call functions of the client that no execution names. */
bool session_calls_host(const struct session *s);

/* A client that follows a session. A session with such a client is not idle. */
struct session_listener {
	struct session_listener *next;
	struct session *session; /* NULL: it has ended */
	void *data;
	/* These two come from inside other calls of this header, and may call none. */
	void (*on_execution)(void *data, const char *id); /* a client has sent it */
	void (*on_closed)(void *data);
};
/* Tells of the executions that have not ended, at once. */
void session_listen(struct session *s, struct session_listener *l);
void session_unlisten(struct session_listener *l);

/* Counts since the start, of all callers. */
struct sessions_counts {
	int64_t live, created, executions;
};
struct sessions_counts sessions_count(const struct sessions *all);

enum session_file_op { SESSION_LIST, SESSION_READ, SESSION_WRITE, SESSION_REMOVE };
enum { SESSION_PIECE_MAX = 32 << 20, SESSION_PIECE_READ = 1 << 20 };
struct session_file {
	enum session_file_op op;
	const char *path;  /* below /sandbox */
	struct span bytes; /* to write; at most SESSION_PIECE_MAX */
	int64_t offset; /* where to read or write; a file that is written from its beginning begins anew */
};
/* answer: {"entries"}, or {"base64", "size"}: at most SESSION_PIECE_READ bytes, of a file of that size; borrowed. */
struct session_file_reply {
	void *data;
	void (*fn)(void *data, const json_t *answer, const struct error *err);
};
/* Waits for its turn like an execution. On a fiber, the worker encodes a large file. */
int session_file(struct session *s, const struct session_file *file,
		 struct session_file_reply reply, struct error *err) _must_check_;
