/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends to its program while it runs: bytes for standard input, its end, and signals. They wait here until the program
 * takes them. Owned by a door that has a watcher on the execution: attach.c, route-runner.c.
 */
#pragma once

#include "engine/engine.h"
#include "web/http/respond.h"

enum { PROGRAM_INPUT_BYTES_MAX = 4 << 20, PROGRAM_SIGNALS_MAX = 16 };

struct program_input {
	struct watcher *watcher; /* the door's; NULL: there is no execution yet */
	struct charge held;	 /* of bytes that wait; the door sets its caller (tunnel_charge) */
	void *data;
	void (*on_closed)(
		void *data); /* the program's input was closed, and bytes were dropped; or NULL */
	void (*on_taken)(
		void *data,
		size_t n); /* the program took so many bytes, or they were dropped; or NULL */

	struct buf bytes;
	size_t taken;			  /* of bytes */
	bool ends;			  /* standard input ends behind bytes */
	int signals[PROGRAM_SIGNALS_MAX]; /* that came before the program ran */
	size_t n_signals;
	struct source *retry;
};

/* The members above bytes are set before. */
int program_input_init(struct program_input *p, struct loop *loop) _must_check_;
void program_input_done(struct program_input *p);
/* -EPIPE: its end was told before; -EBUSY: err says that the caller has too many bytes here; -ENOBUFS: too many wait. */
int program_input_add(struct program_input *p, struct span bytes, struct error *err) _must_check_;
void program_input_end(struct program_input *p);
/* Gives the program as much as it takes. true: some is left. */
bool program_input_feed(struct program_input *p);
/* More than PROGRAM_SIGNALS_MAX that wait are dropped. */
void program_input_signal(struct program_input *p, int number);
