/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a front rings before it sends a request: an eventfd that the cell which will most likely get that request waits for,
 * too. Front and cell have nothing else in common, and a cell closes its end before its program begins.
 */
#pragma once

#include <stdint.h>

struct bell {
	int fd;
	int cpu;	 /* where it was rung last */
	uint64_t serial; /* no two bells of a process have the same; 0: none, and no descriptor */
};

/* One that cannot be had costs speed and nothing else. */
struct bell bell_new(void);
/* *b becomes one of its own that rings with `other`. */
void bell_follow(struct bell *b, const struct bell *other);
void bell_done(struct bell *b);
