/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See channel.h. The socket is read in pieces of 32 KiB; what the socket does not take is queued and sent when there is room. A program
 * can write lines faster than they are parsed: a round of the loop spends ROUND_MS on them, and a timer brings the rest in the next.
 */
#include "link/channel.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE_BYTES = 32 << 10, ROUND_MS = 2 };

void channel_close(struct channel *c)
{
	c->source = source_free(c->source);
	c->more = source_free(c->more);
	if (c->fd > 0)
		(void)fd_close(c->fd);
	c->fd = 0;
	buf_done(&c->in);
	buf_done(&c->out);
	c->out_sent = 0;
}

static void fail_channel(struct channel *c, int r)
{
	channel_close(c);
	c->to.on_closed(c->to.data, r);
}

static int watch_channel(struct channel *c)
{
	bool waits = c->out.len > c->out_sent;

	return loop_set_events(c->source, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static int flush_channel(struct channel *c)
{
	while (c->out_sent < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->out_sent, c->out.len - c->out_sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		c->out_sent += (size_t)n;
	}
	/* The memory of a large line is not kept. */
	buf_done(&c->out);
	buf_init(&c->out, CHANNEL_QUEUE_MAX);
	c->out_sent = 0;
	return 0;
}

/* The bytes of the process that speaks. 0: none now; -EPIPE: the end. */
static ssize_t read_piece(struct channel *c, char *piece)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control = { 0 };
	struct iovec part = { piece, PIECE_BYTES };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	/* There is room for the sender's name only: descriptors that come along are closed by the kernel. */
	ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	struct ucred sender = { 0 };

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_CREDENTIALS)
		memcpy(&sender, CMSG_DATA(h), sizeof(sender));
	if (c->speaker == 0)
		c->speaker = sender.pid;
	return sender.pid == c->speaker ? n : -EAGAIN;
}

static void drop_told(struct channel *c, size_t n)
{
	if (n == 0)
		return;
	memmove(c->in.data, c->in.data + n, c->in.len - n);
	c->in.len -= n;
	if (c->in.len == 0) {
		buf_done(&c->in);
		buf_init(&c->in, CHANNEL_LINE_MAX);
	}
}

/* Tells complete lines. 0: none is left; 1: the time is over; -ECANCELED: the listener has closed the channel; -EDQUOT. */
static int tell_lines(struct channel *c, int64_t until_ns)
{
	size_t begin = 0;
	bool late = false;
	char *end;

	while (!late && c->in.len > begin &&
	       (end = memchr(c->in.data + begin + c->searched, '\n',
			     c->in.len - begin - c->searched))) {
		size_t at = (size_t)(end - c->in.data);

		if (c->lines_left-- <= 0)
			return -EDQUOT;
		c->to.on_line(c->to.data, (struct span){ c->in.data + begin, at - begin });
		if (c->fd == 0)
			return -ECANCELED;
		begin = at + 1;
		c->searched = 0;
		late = clock_now_ns() >= until_ns;
	}
	if (!late)
		c->searched = c->in.len - begin;
	drop_told(c, begin);
	return late;
}

/* One round. 0: nothing more can be read now; 1: the time is over; negative: as tell_lines() and read_piece() say. */
static int hear(struct channel *c)
{
	int64_t until_ns = clock_now_ns() + ROUND_MS * NS_PER_MS;
	char piece[PIECE_BYTES];
	int r;

	do {
		ssize_t n;

		r = tell_lines(c, until_ns);
		if (r != 0)
			return r;
		n = read_piece(c, piece);
		if (n == 0)
			return 0;
		c->bytes_left -= MAX(n, (ssize_t)0);
		if (c->bytes_left < 0)
			return -EDQUOT;
		if (n != -EAGAIN)
			r = n < 0 ? (int)n : buf_append(&c->in, piece, (size_t)n);
	} while (r == 0 && clock_now_ns() < until_ns);
	return r < 0 ? r : 1;
}

static int on_channel(void *data, uint32_t events)
{
	struct channel *c = data;
	int r = events & EPOLLOUT ? flush_channel(c) : 0;

	if (r == 0)
		r = hear(c);
	if (r == -ECANCELED)
		return 0;
	if (r > 0)
		source_set_time(c->more, clock_now_ns());
	if (r >= 0)
		r = watch_channel(c);
	if (r < 0)
		fail_channel(c, r == -EPIPE || r == -ECONNRESET ? 0
				: r == -ENOBUFS			? -EMSGSIZE
								: r);
	return 0;
}

void channel_grant(struct channel *c)
{
	c->lines_left = CHANNEL_LINES_MAX;
	c->bytes_left = CHANNEL_BYTES_MAX;
}

int channel_open(struct channel *c, struct loop *loop, struct channel_listener to, int *ret_fd)
{
	const int on = 1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	*c = (struct channel){ .loop = loop, .to = to, .fd = pair[0] };
	buf_init(&c->in, CHANNEL_LINE_MAX);
	buf_init(&c->out, CHANNEL_QUEUE_MAX);
	channel_grant(c);
	r = setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ? -errno : 0;
	if (r == 0)
		r = loop_add_fd(loop, pair[0], EPOLLIN, (struct handler){ on_channel, c },
				&c->source);
	if (r == 0)
		r = loop_add_timer(loop, INT64_MAX, (struct handler){ on_channel, c }, &c->more);
	if (r < 0) {
		channel_close(c);
		(void)fd_close(pair[1]);
		return r;
	}
	*ret_fd = pair[1];
	return 0;
}

int channel_send(struct channel *c, struct span line)
{
	int r;

	if (c->fd == 0)
		return -EPIPE;
	if (c->out.len + line.len + 1 > CHANNEL_QUEUE_MAX)
		return -ENOBUFS;
	r = buf_append(&c->out, line.data, line.len);
	if (r == 0)
		r = buf_append(&c->out, "\n", 1);
	if (r == 0)
		r = flush_channel(c);
	return r == 0 ? watch_channel(c) : r;
}
