/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that a socket has still to send. Small pieces are gathered, large ones kept as they are. */
#pragma once

#include "base/macro.h"

struct outq {
	struct out_piece *first, *last;
	size_t bytes; /* not sent yet */
};

int outq_append(struct outq *q, const void *data, size_t n) _must_check_; /* copies */
/* Takes over data (malloc'd), also on failure. */
int outq_take(struct outq *q, char *data, size_t n) _must_check_;
/*
 * Sends until all is sent or the socket is full. Returns the bytes sent; a negative errno: the socket is dead.
 */
int64_t outq_send(struct outq *q, int fd) _must_check_;
void outq_done(struct outq *q);
