/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WebSocket that sends events, and takes messages. Its owner has it as a member, gives the next event when it is asked for
 * one, and handles the messages. attach.c, attach-session.c and route-mcp.c are owners.
 */
#pragma once

#include "web/routes/api-private.h"

#include <wslay/wslay.h>

struct event_socket;

struct event_socket_ops {
	size_t message_bytes_max; /* of the client's messages */
	/* As watcher_next(); -ENODATA closes the socket. The event is valid until the next call. NULL: there are no events. */
	int (*next)(struct event_socket *s, struct event *ret);
	void (*on_text)(struct event_socket *s, struct span text);
	void (*on_bytes)(struct event_socket *s, struct span bytes);
	/* After each round; true: no more messages are read for now. Or NULL. */
	bool (*on_pumped)(struct event_socket *s);
	/* The socket is gone: calls event_socket_done() and frees what it is a member of. */
	void (*on_gone)(struct event_socket *s);
};

struct event_socket {
	const struct event_socket_ops *ops;
	struct tunnel *tunnel;
	struct event_keys keys; /* that each event has beside its own */
	bool bytes; /* stdout and stderr are binary frames: a byte 1 or 2, then the program's */
	wslay_event_context_ptr frames;
	struct source *timer;
	struct span in;		       /* bytes of the tunnel that wslay has not taken yet */
	struct buf message;	       /* that is arriving */
	int64_t message_ns;	       /* when its first bytes came; 0: none is arriving */
	struct source *late;	       /* then, a message that is arriving has had its time */
	struct charge arrived, queued; /* bytes of that message; of frames that wait in wslay */
	bool is_control;	       /* the frame that is arriving is none of a message */
	bool paused;		       /* the tunnel is not read */
	bool full;		       /* the tunnel is full, until on_drain */
	bool closing;		       /* a close frame is queued */
	bool bad;		       /* the client sent something that is no frame */
	uint64_t sending;	       /* bytes left of the wslay frame that is being sent */
	struct pieces result;	       /* a frame with a large result, made here */
	struct buf head;	       /* its bytes before the result's text */
	bool broken;		       /* nothing can be sent */
};

int event_socket_init(struct event_socket *s, const struct event_socket_ops *ops,
		      struct loop *loop) _must_check_;
void event_socket_done(struct event_socket *s);
/* As response_upgrade(). The owner calls event_socket_pump() when it is ready. */
int event_socket_upgrade(struct event_socket *s, struct request_ctx *ctx) _must_check_;
/* For those that tell of news, of whose calls data is the socket: there is something to send; what there was to send is lost. */
void event_socket_wake(void *data);
void event_socket_lost(void *data);
/* Sends what there is. May end in on_gone: never from inside a callback of the ops. */
void event_socket_pump(struct event_socket *s);
enum { SOCKET_TRY_AGAIN_LATER = 1013 }; /* a status that wslay has no name for */
/* Queues a text frame; takes over the tree. NULL: -ENOMEM. */
int event_socket_send(struct event_socket *s, json_t *tree);
/* The same for a text, which is copied. -EBUSY: its caller has too many bytes that wait for it. */
int event_socket_send_text(struct event_socket *s, struct span text);
/* Text frames that the client has not taken yet: enough that a client that reads slowly should get no more. */
bool event_socket_is_full(const struct event_socket *s);
/* Queues a close frame; why: a text for the client, or NULL. */
void event_socket_close(struct event_socket *s, uint16_t code, const char *why);
/* Ends the connection without one: the client does not take its frames. */
void event_socket_drop(struct event_socket *s);
