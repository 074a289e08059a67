/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files of a WebSocket at a program: frames and events (attach.c), what the client has for the program. */
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
	size_t taken;		  /* of it */
	bool input_ends;	  /* behind that */
	int signals[SIGNALS_MAX]; /* that came before the program was known to run */
	size_t n_signals;
	struct source *retry;
	int fragments;	      /* of the message that arrives */
	bool bytes;	      /* ?output=bytes */
	bool full;	      /* until on_drain */
	bool closing;	      /* a close frame is on its way */
	bool bad;	      /* what the client sent is no frame */
	uint64_t sending;     /* of wslay's frame that is on its way out: so many bytes to come */
	struct pieces result; /* a frame of ours */
	struct buf head;      /* what of it is in front of the result's text */
	bool broken;	      /* nothing can be sent any more */
};

/* --- attach.c --- */
void attach_complain(struct attach *a, const char *detail);
void attach_close(struct attach *a, uint16_t code);

/* --- attach-input.c --- */
void attach_take_bytes(struct attach *a, const void *bytes, size_t n); /* of standard input */
void attach_take_text(struct attach *a, const char *text, size_t n);   /* a message */
/* To the program what it takes. */
void attach_feed(struct attach *a);
int attach_on_retry(void *data, uint32_t events);
