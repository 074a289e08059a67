/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the relay may do, by the rules in its book, and what it did, written there. Threads share it. A verdict on an
 * address is given for the address that is dialled, never for the name it came from.
 */
#pragma once

#include "plan/relay-book.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

struct judge {
	struct relay_book *book;
	pthread_mutex_t lock; /* of the book's second part */
	uint64_t left;	      /* bytes that may still be carried; one thread carries */
};

void judge_init(struct judge *j, struct relay_book *book);
/* Some port of this host is listed. */
bool judge_knows_host(const struct judge *j, const char *host);
bool judge_permits(const struct judge *j, const struct destination *destination);
/* Public and not this host's own, or listed as itself; port 0: with any port. */
bool judge_may_dial(const struct judge *j, const struct sockaddr *address, uint16_t port);

/* Counts a refusal. */
void judge_refuse(struct judge *j, const struct destination *destination, enum relay_denial reason);
/* Counts one connection; its bytes are counted in the row. NULL: the book is full. */
struct relay_row *judge_note(struct judge *j, const struct destination *destination,
			     enum relay_outcome outcome);
/* False: the run may transfer no more. */
bool judge_may_carry(const struct judge *j);
