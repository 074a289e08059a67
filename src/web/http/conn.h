/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection, and one request on it. Private to web/http/.
 *
 *   IDLE ──byte──▶ HEAD ──complete──▶ BODY ──complete──▶ HANDLING ──answered──▶ FLUSH ──sent──▶ IDLE
 *                   │ refused          │ refused   │  ▲      │                    └──close──▶ LINGER or gone
 *                   │                  │           ▼  │      │
 *                   │                  │      READY or LINE  │
 *                   └──────────────────┴──── answered ───────┼──▶ FLUSH
 *                                                            └──upgrade──▶ TUNNEL ──▶ FLUSH ──▶ LINGER
 *
 * Everything a connection does, it does in its slice (base/slice.h): an event of the socket only asks for one. In a slice steps are
 * taken as long as the state changes without more bytes, up to the end of one request. A request waits in READY when the caller
 * that its token names is another one than the one whose slice it is. It waits in LINE when its handler needs a fiber and
 * SLOW_AT_ONCE of them are under way.
 *
 * An answer given inside a handler only changes the state; a later answer goes through conn_kick(). Handlers and
 * their callbacks (on_drain, on_gone, tunnel ops) are called from the loop, never from inside a call they made.
 *
 * Ownership: the server owns connections; a connection owns its request until the handler is called. From then
 * on the handler owns the request and ends it by answering. If the client disconnects first, ctx->conn is NULL.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"
#include "web/codec/http-body.h"
#include "web/http/outq.h"
#include "web/http/server.h"

enum conn_state {
	CONN_IDLE,
	CONN_HEAD,
	CONN_BODY,
	CONN_READY, /* the request is complete and waits for a slice of its caller */
	CONN_LINE,  /* the same, for a fiber */
	CONN_HANDLING,
	CONN_FLUSH,
	CONN_TUNNEL,
	CONN_LINGER,
	CONN_GONE, /* closed; freed when none of its events is on the stack */
};

/* Links of a list whose first and last are in struct server. */
struct conn_links {
	struct conn *previous, *next;
};
struct conn_list {
	struct conn *first, *last;
};

/* A place in the list of connections in IDLE and HEAD, the longest wait first. */
struct conn_waiting {
	struct conn_links links;
	int64_t since_ns;
	bool is_listed;
};

struct conn_socket {
	int fd;
	struct source *source;
	uint32_t events;  /* the epoll events that the connection waits for */
	uint32_t arrived; /* epoll events that the next slice of the connection handles */
	bool peer_done;	  /* the client sends no more */
	bool has_unread;  /* bytes came while a request was handled; EPOLLIN is off */
};

struct conn_timer {
	struct source *source;
	int64_t deadline_ns, armed_ns; /* when the timer fires; may be before the deadline */
};

/* Since when a body arrives and an answer is sent. Deadlines come from it: they grow with the bytes that were moved. */
struct conn_pace {
	int64_t body_started_ns, flush_started_ns, flush_ended_ns;
	size_t flush_bytes; /* bytes in the queue when the flush began */
	int64_t owed_ns; /* time that the client owes because it took the last answer too slowly */
};

struct conn {
	struct server *server;
	struct conn_links all;
	struct conn_waiting waiting;
	enum conn_state state;
	struct conn_socket socket;
	struct conn_timer timer;
	struct slice slice, slow_slice; /* of the caller of `place` */
	struct conn_peer peer;
	struct buf in; /* bytes that no request has taken yet */
	struct outq out;
	/* The caller of the last request; before the first one, its address or user. */
	struct charge place;	 /* one connection */
	struct charge answers;	 /* the bytes of out */
	struct request_ctx *ctx; /* the request that is read or answered */
	struct http_body body;
	struct conn_pace pace;
	/* the current answer is a stream: its end may be sent as slowly as the stream */
	bool was_streamed;
	struct tunnel *tunnel;
	/* It is within its caller's limit of connections. Until that is known only ROUTE_ALWAYS is answered. */
	bool is_admitted;
	bool running;	  /* one of its events is on the stack */
	bool broken;	  /* the socket is dead; the loop will report that */
	bool close_after; /* this answer is the last */
	bool linger; /* the client may still be sending: a plain close would cut the answer off */
	bool wants_drain; /* the writer was told to stop until on_drain */
	bool paused;	  /* a tunnel that does not read at the moment */
};

/* The callbacks of a request's handler. */
struct request_hooks {
	void (*on_drain)(void *data);
	void *drain_data;
	void (*on_gone)(void *data, enum gone how);
	void *gone_data;
	bool half_reported; /* the client sends no more, and on_gone was told */
};

struct request_ctx {
	struct server *server;
	struct conn *conn; /* NULL: the client is gone */
	struct request_ctx *previous, *next;
	struct http_request head;
	struct buf head_bytes, body;
	struct uri uri;
	struct route_match match;
	struct principal principal;
	json_t *json;
	bool principal_known, handling;
	struct charge
		body_charge; /* the bytes of body; without a caller until the caller is known */
	int64_t started_ns;

	struct buf extra; /* header lines that the handler added */
	int status;	  /* 0: the answer has not begun */
	bool chunked, swallow;
	int64_t length_left; /* bytes left of a declared length; -1: none declared */
	uint64_t sent_bytes;
	struct request_hooks hooks;
	bool *freed; /* set when the ctx is freed while its handler is on the stack */
};

enum {
	LISTENERS_MAX = 16,
	SCRATCH_BYTES = 64 << 10,
	BUSY_RETRY_S = 1, /* told with ERROR_NO_ROOM */
	SLOW_AT_ONCE =
		8, /* requests that are begun on fibers while others are on theirs: there is one worker */
	SMALL_BYTES =
		/* smaller bodies and answers are not counted; the number of connections bounds them */
	64 << 10,
};

struct server {
	struct server_config config;
	struct server_stats stats;
	struct {
		struct server *server;
		struct listener listener;
		struct source *source;
	} listeners[LISTENERS_MAX];
	size_t n_listeners;
	struct conn_list all, waiting;
	struct slices slices, slow;
	struct source *slice_source; /* due while a slice waits */
	bool slices_due;
	struct request_ctx *ctxs;
	int spare_fd; /* closed for a moment when descriptors run out */
	bool draining, waits_for_fibers, freeing;
	int64_t date_sec;
	char date[40];
	char scratch[SCRATCH_BYTES]; /* the last bytes received; valid until the next receive */
};

/* --- conn.c --- */
int conn_new(struct server *s, int fd, const struct conn_peer *peer,
	     struct conn **ret) _must_check_;
/* Closes the socket now. The struct is freed when none of its events is on the stack. */
void conn_close(struct conn *c);
/* The client is gone: tells the handler, then closes. */
void conn_lost(struct conn *c);
void conn_release(struct conn *c); /* frees the struct unless one of its events is on the stack */
void conn_set_deadline(struct conn *c, int64_t at_ns);
void conn_touch(struct conn *c); /* sets the deadline of its state */
/* When a body or a message that began then, and of which so many bytes are here, must go on. */
int64_t conn_arrival_deadline(const struct conn *c, int64_t started_ns, size_t bytes);
void conn_poke(struct conn *c); /* asks for a slice */
void conn_set_state(struct conn *c, enum conn_state state);
/* Sends as much as the socket takes. */
void conn_flush(struct conn *c);
/* Both charge the caller. The second takes over data. */
int conn_queue(struct conn *c, const void *data, size_t n) _must_check_;
int conn_queue_take(struct conn *c, char *data, size_t n) _must_check_;
/* The caller is known now: the connection, its queued bytes and its slices are that caller's. -ENOMEM. */
int conn_set_caller(struct conn *c, const char *name) _must_check_;
/* The return value of response_write and tunnel_write: 0, 1 or a negative errno. */
int conn_pressure(struct conn *c);

/* --- conn-run.c --- */
void conn_take_slice(struct slice *t);
int conn_on_io(void *data, uint32_t events);
int conn_on_timer(void *data, uint32_t events);
/*
 * After bytes were queued or an answer was given: sends, and waits for events. The next request begins from the
 * loop.
 */
void conn_kick(struct conn *c);

/* --- dispatch.c --- */
struct request_ctx *ctx_new(struct conn *c);
void ctx_free(struct request_ctx *ctx);
/* A complete head was read: refuses the request, or prepares for the body. */
void dispatch_head(struct request_ctx *ctx);
/* The body is complete. */
void dispatch_handler(struct request_ctx *ctx);
/* CONN_READY, in a slice of the caller. */
void dispatch_ready(struct request_ctx *ctx);
void dispatch_slow(struct slice *t);
/* Answers a request that cannot be read further, and closes the connection after the answer. */
void dispatch_refuse(struct request_ctx *ctx, struct problem problem);
/* 413; its words are those of *err. */
struct problem dispatch_too_large(const struct request_ctx *ctx, struct error *err);

/* --- respond.c --- */
/* The answer is complete, or the client is gone: logs, frees the ctx, lets the connection go on. */
void ctx_finish(struct request_ctx *ctx);

/* --- tunnel.c --- */
void tunnel_deliver(struct conn *c, const void *data, size_t n);
void tunnel_lost(struct conn *c);
void tunnel_drained(struct conn *c);

/* --- server.c --- */
int server_write_common(struct server *s, struct buf *b, int status) _must_check_;
void server_conn_opened(struct server *s, struct conn *c);
void server_conn_closed(struct server *s, struct conn *c);
void server_waiting(struct server *s, struct conn *c, bool waits);
/* A slice waits, or one may begin. */
void server_want_slices(struct server *s);
/* Whether the connection, which has a request, is within the limits, perhaps after one without a request was closed for it. */
bool server_make_room(struct server *s, struct conn *c, struct error *err);
