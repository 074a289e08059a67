/* SPDX-License-Identifier: Apache-2.0 */
/* See outq.h. A list of pieces; one call sends many. The last piece has room for small appends. */
#include "web/http/outq.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { PIECE_BYTES = 4096 - 64, PIECES_AT_ONCE = 16 };

struct out_piece {
	struct out_piece *next;
	char *data;
	size_t at, len, capacity;
	char room[];
};

static struct out_piece *piece_new(struct outq *q, size_t room)
{
	struct out_piece *p = malloc(sizeof(*p) + room);

	if (!p)
		return NULL;
	*p = (struct out_piece){ .data = p->room, .capacity = room };
	if (q->last)
		q->last->next = p;
	else
		q->first = p;
	q->last = p;
	return p;
}

static void piece_free(struct out_piece *p)
{
	if (p->data != p->room)
		free(p->data);
	free(p);
}

int outq_append(struct outq *q, const void *data, size_t n)
{
	struct out_piece *p = q->last;

	if (n == 0)
		return 0;
	if (!p || p->capacity - p->len < n)
		p = piece_new(q, MAX(n, (size_t)PIECE_BYTES));
	if (!p)
		return -ENOMEM;
	memcpy(p->data + p->len, data, n);
	p->len += n;
	q->bytes += n;
	return 0;
}

int outq_take(struct outq *q, char *data, size_t n)
{
	struct out_piece *p = q->last;

	if (n == 0 || (p && p->capacity - p->len >= n)) {
		int r = outq_append(q, data, n);

		free(data);
		return r;
	}
	p = piece_new(q, 0);
	if (!p) {
		free(data);
		return -ENOMEM;
	}
	p->data = data;
	p->len = p->capacity = n;
	q->bytes += n;
	return 0;
}

static void outq_drop(struct outq *q, size_t n)
{
	assert(n <= q->bytes);
	q->bytes -= n;
	while (n > 0) {
		struct out_piece *p = q->first;
		size_t part = MIN(n, p->len - p->at);

		p->at += part;
		n -= part;
		if (p->at < p->len)
			return;
		q->first = p->next;
		if (!q->first)
			q->last = NULL;
		piece_free(p);
	}
}

static ssize_t send_some(struct outq *q, int fd)
{
	struct iovec parts[PIECES_AT_ONCE];
	struct msghdr message = { .msg_iov = parts };
	ssize_t n;

	for (struct out_piece *p = q->first; p && message.msg_iovlen < PIECES_AT_ONCE; p = p->next)
		parts[message.msg_iovlen++] = (struct iovec){ p->data + p->at, p->len - p->at };
	do
		n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int64_t outq_send(struct outq *q, int fd)
{
	int64_t sent = 0;

	while (q->bytes > 0) {
		ssize_t n = send_some(q, fd);

		if (n == -EAGAIN)
			break;
		if (n < 0)
			return n;
		outq_drop(q, (size_t)n);
		sent += n;
	}
	return sent;
}

void outq_done(struct outq *q)
{
	while (q->first) {
		struct out_piece *p = q->first;

		q->first = p->next;
		piece_free(p);
	}
	*q = (struct outq){ 0 };
}
