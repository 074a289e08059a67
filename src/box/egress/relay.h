/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of one sandbox. Each has an inner socket, accepted from a listening socket of the sandbox's network
 * namespace, and an outer one, which the relay dials:
 *
 *   accepted ──judged──▶ DIALLING ──connected──▶ OPEN ──both directions ended──▶ closed
 *      └── refused ─────────┴── no address left ──┴── broken ──▶ reset
 *
 * The kernel has accepted the inner connection before the relay sees it, so a program learns of a refusal by a reset.
 */
#pragma once

#include "box/egress/flow.h"
#include "box/egress/judge.h"
#include "box/egress/names.h"

/* Further connections wait in the listening sockets. */
enum { CONNECTIONS_MAX = 64, DIAL_MS = 10000 };

enum side { INNER, OUTER, _SIDE_MAX };

struct connection {
	int fds[_SIDE_MAX];	     /* [INNER] negative: this entry of the list is unused */
	uint32_t watched[_SIDE_MAX]; /* events that epoll looks for; 0: the socket is not in it */
	uint32_t generation;	     /* counts the connections that had this entry */
	bool open;		     /* false: it is being dialled */
	struct destination destination; /* as the program asked for it */
	struct sockaddr_storage addresses[NAME_ADDRESSES_MAX];
	size_t n_addresses, address; /* address: the one that is dialled */
	enum relay_outcome outcome;  /* of the last dial that failed */
	int64_t deadline_ms;
	struct relay_row *row; /* NULL: the book is full */
	struct flow out, in;   /* from the program, to the program */
};

struct relay {
	struct judge *judge;
	struct names *names;
	int epoll_fd;
	int listeners[RELAY_PORTS_MAX];
	size_t n_listeners;
	bool full; /* every entry is in use, and no listener is watched */
	struct connection list[CONNECTIONS_MAX];
};

/* Takes the listening sockets. */
int relay_init(struct relay *s, struct judge *judge, struct names *names) _must_check_;
int relay_listen(struct relay *s, int fd) _must_check_;
/* Serves until it is killed; returns on a failure of the relay itself. */
int relay_serve(struct relay *s);
