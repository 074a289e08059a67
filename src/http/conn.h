/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the server: one connection, and one request on it. Nobody outside api/'s core includes this.
 *
 *   IDLE ──byte──▶ HEAD ──complete──▶ BODY ──complete──▶ HANDLING ──answered──▶ FLUSH ──sent──▶ IDLE
 *                   │ refused          │ refused            │                    └──close──▶ LINGER or gone
 *                   └──────────────────┴──── answered ──────┼──▶ FLUSH
 *                                                           └──upgrade──▶ TUNNEL ──▶ FLUSH ──▶ LINGER
 *
 * Events drive this (conn-run.c): steps are taken while the state changes without more bytes. An answer given
 * from inside a handler only changes the state; one given later goes through conn_kick(). Handlers and their
 * callbacks (on_drain, on_gone, tunnel ops) are called from the loop, never from inside a call they made.
 *
 * Ownership: the server owns connections; a connection owns its request until the handler is called, from
 * then on the handler does (it ends it by answering). When the client vanishes first, ctx->conn is NULL.
 */
#pragma once

#include "base/buf.h"
#include "base/caller.h"
#include "codec/http-body.h"
#include "http/outq.h"
#include "http/server.h"

enum conn_state {
	CONN_IDLE,
	CONN_HEAD,
	CONN_BODY,
	CONN_HANDLING,
	CONN_FLUSH,
	CONN_TUNNEL,
	CONN_LINGER,
	CONN_GONE, /* closed; freed when nobody on the stack uses it */
};

/* Links of a list that has no head of its own kind: first and last point into the server. */
struct conn_links {
	struct conn *previous, *next;
};
struct conn_list {
	struct conn *first, *last;
};

struct conn {
	struct server *server;
	struct conn_links all, waiting; /* waiting: IDLE and HEAD, the longest first */
	enum conn_state state;
	int fd;
	struct source *io, *timer;
	uint32_t events; /* what the loop watches for */
	int64_t deadline_ns,
		armed_ns; /* the timer may be armed for an earlier instant than it is due */
	int64_t waiting_since_ns;
	struct conn_peer peer;
	struct buf in; /* bytes that no request has taken yet */
	struct outq out;
	struct charge answers;	 /* the bytes of out; its caller asked last, NULL: none yet */
	struct request_ctx *ctx; /* being read or answered */
	struct http_body body;
	int64_t body_started_ns, flush_started_ns, flush_ended_ns;
	size_t flush_bytes; /* were queued when that began */
	int64_t owed_ns;    /* by who took the last answer slower than he may */
	bool was_streamed; /* the answer at hand, in which he might be slower: so he may with its end */
	struct tunnel *tunnel;
	bool is_waiting;  /* on the list of those */
	bool is_reserve;  /* above the number of connections: only ROUTE_ALWAYS is answered */
	bool running;	  /* one of its events is on the stack */
	bool broken;	  /* the socket is dead, which the loop will find out */
	bool peer_done;	  /* sends nothing more */
	bool has_unread;  /* bytes came while a request was handled: not polled for */
	bool close_after; /* this answer is the last */
	bool linger;	  /* the client may still be sending: a plain close would cut the answer */
	bool wants_drain; /* somebody was told to stop writing */
	bool paused;	  /* a tunnel that does not read now */
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
	struct charge body_charge; /* the bytes of body; without a caller until that is known */
	int64_t started_ns;

	struct buf extra; /* header lines of the handler */
	int status;	  /* 0: not begun */
	bool chunked, swallow;
	int64_t length_left; /* of a declared length; -1: none declared */
	uint64_t sent_bytes;
	void (*on_drain)(void *data);
	void *drain_data;
	void (*on_gone)(void *data, enum gone how);
	void *gone_data;
	bool told_half;
	bool *freed; /* set when it is freed: the route's handler is on the stack */
};

enum {
	LISTENERS_MAX = 16,
	SCRATCH_BYTES = 64 << 10,
	SMALL_BYTES =
		64 << 10, /* of such bodies and answers there are as many as connections, at most */
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
	struct request_ctx *ctxs;
	int spare_fd; /* given up for a moment when descriptors run out */
	bool draining, settling, freeing;
	int64_t date_sec;
	char date[40];
	char scratch[SCRATCH_BYTES]; /* what was received last; valid until the next receive */
};

/* --- conn.c --- */
int conn_new(struct server *s, int fd, const struct conn_peer *peer,
	     struct conn **ret) _must_check_;
/* Closes the socket now. The struct goes when none of its events is on the stack. */
void conn_close(struct conn *c);
/* The client is gone: whoever answers is told, then it is closed. */
void conn_lost(struct conn *c);
void conn_release(struct conn *c); /* frees it unless an event of its own holds it */
void conn_set_deadline(struct conn *c, int64_t at_ns);
void conn_touch(struct conn *c); /* sets the deadline that its state has from now on */
void conn_poke(struct conn *c);	 /* from the loop, in its next round */
void conn_set_state(struct conn *c, enum conn_state state);
/* Sends what it can. */
void conn_flush(struct conn *c);
/* Both charge the caller. Takes over data in the second. */
int conn_queue(struct conn *c, const void *data, size_t n) _must_check_;
int conn_queue_take(struct conn *c, char *data, size_t n) _must_check_;
/* The caller is known: what is queued is charged to it from now on. -ENOMEM. */
int conn_set_caller(struct conn *c, const char *name) _must_check_;
/* response_write and tunnel_write: 0, 1 or a negative errno. */
int conn_pressure(struct conn *c);

/* --- conn-run.c --- */
int conn_on_io(void *data, uint32_t events);
int conn_on_timer(void *data, uint32_t events);
/* Something was queued or answered: sends, watches; the next request waits for the loop. */
void conn_kick(struct conn *c);

/* --- dispatch.c --- */
struct request_ctx *ctx_new(struct conn *c);
void ctx_free(struct request_ctx *ctx);
/* A complete head was read: refuses, or makes ready for the body. */
void dispatch_head(struct request_ctx *ctx);
/* The body is complete. */
void dispatch_handler(struct request_ctx *ctx);
/* Answers a request that cannot be read further; the connection ends with it. */
void dispatch_refuse(struct request_ctx *ctx, int status, const char *code, const char *detail);

/* --- respond.c --- */
/* The answer is complete (or the client gone): logs, frees, lets the connection go on. */
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
