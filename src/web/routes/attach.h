/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the two files of an execution's WebSocket: attach.c (events) and attach-input.c (input for the program).
 */
#pragma once

#include "web/routes/event-socket.h"

enum { INPUT_BYTES_MAX = 4 << 20, SIGNALS_MAX = 16 };

struct attach {
	struct event_socket socket;
	struct watcher *watcher;
	struct buf input;	  /* for the program */
	struct charge held;	  /* of input */
	size_t taken;		  /* bytes of input that the program has taken */
	bool input_ends;	  /* standard input ends after input */
	int signals[SIGNALS_MAX]; /* signals that came before the program ran */
	size_t n_signals;
	struct source *retry;
};
static inline struct attach *attach_of(struct event_socket *s)
{
	return (struct attach *)((char *)s - offsetof(struct attach, socket));
}

/* --- attach.c --- */
void attach_complain(struct attach *a, const char *detail);

/* --- attach-input.c --- */
void attach_take_bytes(struct attach *a, const void *bytes, size_t n); /* for standard input */
void attach_take_text(struct attach *a, const char *text, size_t n);   /* a message */
/* Gives the program as much input as it takes. true: some is left. */
bool attach_feed(struct attach *a);
int attach_on_retry(void *data, uint32_t events);
