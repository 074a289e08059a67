/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox's relay (src/box/egress) may do, and what it did: one shared memory file. The broker writes the first
 * part before the relay starts; the relay writes the second; the front reads that when the relay is dead. Plain data
 * of fixed size, which its reader checks.
 */
#pragma once

#include "base/address.h"

#include <stdint.h>

enum {
	RELAY_PORTS_MAX = 32,
	RELAY_RULES_MAX = 1024,
	RELAY_ROWS_MAX = 128,
	RELAY_DENIALS_MAX = 64,
};

/* How the connections of one row began. */
enum relay_outcome {
	RELAY_CONNECTED,
	RELAY_REFUSED,
	RELAY_UNREACHABLE,
	RELAY_TIMED_OUT,
	_RELAY_OUTCOME_MAX,
};

enum relay_denial {
	RELAY_NOT_LISTED, /* the name, or the name or address with this port */
	RELAY_NOT_PUBLIC, /* the address is one of the host or of its network, and not listed */
	RELAY_OVER_BYTES, /* the run's bytes are used up */
	RELAY_TOO_MANY,	  /* names in one run */
	_RELAY_DENIAL_MAX,
};

struct relay_row {
	struct destination destination; /* as the program asked for it */
	uint8_t outcome;
	uint32_t count;
	uint64_t sent, received; /* bytes */
};

struct relay_refusal {
	struct destination destination; /* port 0: a name was looked up */
	uint8_t reason;			/* enum relay_denial */
	uint32_t count;
};

struct relay_book {
	/* by the broker */
	uint64_t bytes_max; /* 0: no bound */
	uint32_t n_rules;
	struct destination rules[RELAY_RULES_MAX]; /* hosts may be patterns */
	/* by the relay */
	uint32_t n_rows, n_refusals;
	uint32_t rows_lost, refusals_lost; /* connections and refusals that found no row */
	struct relay_row rows[RELAY_ROWS_MAX];
	struct relay_refusal refusals[RELAY_DENIALS_MAX];
};

/*
 * The relay's descriptors: a socket that brings the sandbox's sockets, each with its port (uint16_t), and the book. The first one
 * is for names (UDP), the others listen.
 */
enum { RELAY_FD_SOCKET = 0, RELAY_FD_BOOK = 1, RELAY_DNS_PORT = 53 };
