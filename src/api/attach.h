/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the two files of the attach WebSocket: attach.c (frames and events) and attach-input.c (input for
 * the program).
 */
#pragma once

#include "api/api-private.h"

#include <wslay/wslay.h>

enum { INPUT_BYTES_MAX = 4 << 20, SIGNALS_MAX = 16 };

struct attach {
	struct tunnel *tunnel;
	struct watcher *watcher;
	wslay_event_context_ptr frames;
	struct source *timer;
	struct span in;		  /* bytes of the tunnel that wslay has not taken yet */
	struct buf input;	  /* for the program */
	size_t taken;		  /* bytes of input that the program has taken */
	bool input_ends;	  /* standard input ends after input */
	int signals[SIGNALS_MAX]; /* signals that came before the program ran */
	size_t n_signals;
	struct source *retry;
	int fragments;	      /* of the message that is arriving */
	bool bytes;	      /* ?output=bytes */
	bool full;	      /* the tunnel is full, until on_drain */
	bool closing;	      /* a close frame is queued */
	bool bad;	      /* the client sent something that is no frame */
	uint64_t sending;     /* bytes left of the wslay frame that is being sent */
	struct pieces result; /* a frame with a large result, made here */
	struct buf head;      /* its bytes before the result's text */
	bool broken;	      /* nothing can be sent */
};

/* --- attach.c --- */
void attach_complain(struct attach *a, const char *detail);
void attach_close(struct attach *a, uint16_t code);

/* --- attach-input.c --- */
void attach_take_bytes(struct attach *a, const void *bytes, size_t n); /* for standard input */
void attach_take_text(struct attach *a, const char *text, size_t n);   /* a message */
/* Gives the program as much input as it takes. */
void attach_feed(struct attach *a);
int attach_on_retry(void *data, uint32_t events);
