/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of a connection: bytes on their way from one socket to another. */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLOW_BYTES = 64 << 10 };

struct flow {
	size_t begin, end; /* of the bytes that wait in data */
	bool ended;	   /* the sender has sent all */
	bool passed;	   /* and the receiver was told so */
	char data[FLOW_BYTES];
};

void flow_init(struct flow *f);
/*
 * Carries what is there, up to a bound and up to *left bytes, which what is read is taken from: also of a connection that turns out
 * to be broken (negative errno).
 */
int flow_carry(struct flow *f, int from_fd, int to_fd, uint64_t *left) _must_check_;
static inline bool flow_wants_input(const struct flow *f)
{
	return !f->ended && f->end == 0;
}
static inline bool flow_wants_output(const struct flow *f)
{
	return f->end > 0;
}
