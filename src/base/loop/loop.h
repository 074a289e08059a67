/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll loop: descriptors and one-shot timers with callbacks, single-threaded. A callback may add and
 * remove any source, its own too. A loop has at most LOOP_SOURCES_MAX sources.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct source; /* a descriptor or a timer in a loop */

/* a negative return ends loop_run() with that value */
typedef int (*source_fn)(void *data, uint32_t events);

struct handler {
	source_fn fn;
	void *data;
};

struct loop *loop_new(void); /* NULL: out of memory or descriptors */
struct loop *loop_free(struct loop *l);
/* events are epoll's (EPOLLIN…). The caller keeps the fd. */
int loop_add_fd(struct loop *l, int fd, uint32_t events, struct handler handler,
		struct source **ret) _must_check_;
int loop_set_events(struct source *s, uint32_t events) _must_check_;
/* Later events of the source go to this handler. */
void source_set_handler(struct source *s, struct handler handler);
/* Fires once at the CLOCK_MONOTONIC instant; source_set_time re-arms it, INT64_MAX disarms. */
int loop_add_timer(struct loop *l, int64_t at_ns, struct handler handler,
		   struct source **ret) _must_check_;
void source_set_time(struct source *s, int64_t at_ns);
struct source *source_free(struct source *s); /* NULL is fine; returns NULL */
/* Returns after loop_stop(), or when a callback fails. */
int loop_run(struct loop *l) _must_check_;
void loop_stop(struct loop *l);
