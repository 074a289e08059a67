/* SPDX-License-Identifier: Apache-2.0 */
/* See flow.h. A slow receiver fills the buffer once; then the sender's window closes. */
#include "box/egress/flow.h"

#include "base/macro.h"

#include <sys/socket.h>

enum { ROUNDS_MAX = 4 }; /* then another connection has its turn */

void flow_init(struct flow *f)
{
	f->begin = f->end = 0;
	f->ended = f->passed = false;
}

/* 1: bytes came; 0: none now. */
static int fill(struct flow *f, int from_fd, uint64_t *left)
{
	ssize_t n = recv(from_fd, f->data, (size_t)MIN(sizeof(f->data), *left), 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	f->ended = n == 0;
	f->end = (size_t)n;
	*left -= (uint64_t)n;
	return n > 0;
}

/* Negative: broken; otherwise whether all bytes are gone. */
static int empty(struct flow *f, int to_fd)
{
	while (f->begin < f->end) {
		ssize_t n = send(to_fd, f->data + f->begin, f->end - f->begin, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0 && errno != EINTR)
			return -errno;
		f->begin += n > 0 ? (size_t)n : 0;
	}
	f->begin = f->end = 0;
	return true;
}

int flow_carry(struct flow *f, int from_fd, int to_fd, uint64_t *left)
{
	for (int i = 0; i < ROUNDS_MAX; i++) {
		int r = empty(f, to_fd);

		if (r < 0)
			return r;
		/* Of nothing that may be read, the kernel would say that it is the end. */
		if (r == 0 || f->ended || *left == 0)
			break;
		r = fill(f, from_fd, left);
		if (r < 0)
			return r;
		if (r == 0)
			break;
	}
	if (f->ended && f->end == 0 && !f->passed) {
		f->passed = true;
		(void)shutdown(to_fd, SHUT_WR);
	}
	return 0;
}
