/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of one run. A name is resolved once, outside of the sandbox; the program gets an address that stands for the
 * name (198.18.0.0/15, which is no network's), and its connections to that address are dialled to what was resolved.
 * So a name cannot lead to one address when it is judged and to another when it is dialled.
 */
#pragma once

#include "box/egress/judge.h"

#include <netinet/in.h>

enum { NAMES_MAX = 1024, NAME_ADDRESSES_MAX = 8, NAME_THREADS = 4 };

struct name {
	char host[HOST_NAME_MAX_BYTES + 1];
	struct sockaddr_storage addresses[NAME_ADDRESSES_MAX]; /* in the resolver's order, port 0 */
	size_t n; /* 0: there is no such name, or none of its addresses may be dialled */
};

struct names {
	struct judge *judge;
	int socket_fd; /* queries arrive here */
	pthread_mutex_t lock;
	struct name list[NAMES_MAX]; /* an entry below n does not change any more */
	size_t n;
	size_t n_asked; /* questions to the host's resolver, answered or not: at most NAMES_MAX */
};

/* Answers queries from NAME_THREADS threads, each of which waits for the host's resolver. */
int names_start(struct names *s, struct judge *judge, int socket_fd) _must_check_;
/* The name that an address stands for, or NULL. */
const struct name *names_of(struct names *s, const struct sockaddr *address);
