/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See channel.h. The socket is read in pieces of 32 KiB; what the socket does not take is queued and sent when there is room. A program
 * can write lines faster than they are parsed: a round of the loop spends ROUND_MS on them, and a timer brings the rest in the next.
 *
 * A large line is parsed by the worker, on a fiber that owns the line. Meanwhile the channel is not read, so lines are told in their
 * order. The timer then tells the message from the loop. When the channel is closed before, the fiber drops the message.
 */
#include "run/link/channel.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/fiber.h"
#include "base/loop/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE_BYTES = 32 << 10, ROUND_MS = 2, LITTLE_BYTES = 64 << 10 };

struct channel_large {
	struct channel *channel; /* NULL: closed meanwhile */
	struct channel_listener to;
	struct buf text;
	void *message;
	size_t bytes;
	bool is_read;
};

static void large_free(struct channel_large *l)
{
	buf_done(&l->text);
	if (l->message)
		l->to.drop(l->message);
	free(l);
}

static void forget_large(struct channel *c)
{
	struct channel_large *l = TAKE_PTR(c->large);

	if (!l)
		return;
	l->channel = NULL;
	if (l->is_read)
		large_free(l);
}

void channel_close(struct channel *c)
{
	forget_large(c);
	c->source = source_free(c->source);
	c->more = source_free(c->more);
	if (c->fd > 0)
		(void)fd_close(c->fd);
	c->fd = 0;
	buf_done(&c->in);
	buf_done(&c->out);
	c->out_sent = 0;
}

/* Tells the owner how much is in memory, when that is more than a little or has been. */
static int account_for(struct channel *c)
{
	size_t bytes = c->in.len + (c->large ? c->large->bytes : 0) + c->out.len - c->out_sent;
	bool told = c->is_holding;

	c->is_holding = bytes > LITTLE_BYTES;
	if (!c->may_hold || (!told && !c->is_holding))
		return 0;
	return c->may_hold(c->to.data, c->is_holding ? bytes : 0) ? 0 : -EDQUOT;
}

static void fail_channel(struct channel *c, int r)
{
	channel_close(c);
	c->to.on_closed(c->to.data, r);
}

static int watch_channel(struct channel *c)
{
	bool waits = c->out.len > c->out_sent;

	/* While the worker parses, the end of the other side is told once at most. */
	const uint32_t in = c->large ? EPOLLONESHOT : EPOLLIN;

	return loop_set_events(c->source, waits ? in | EPOLLOUT : in);
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
	if (sender.pid == c->speaker)
		return n;
	if (c->on_other)
		c->on_other(c->to.data, sender.pid);
	return -EAGAIN;
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

static void read_line(void *data)
{
	struct channel_large *l = data;

	l->message = l->to.read((struct span){ l->text.data, l->text.len });
	buf_done(&l->text);
}

static void read_on_fiber(void *data)
{
	struct channel_large *l = data;

	worker_call(l->bytes, read_line, l);
	l->is_read = true;
	if (l->channel)
		source_set_time(l->channel->more, clock_now_ns());
	else
		large_free(l);
}

/* The first line takes the buffer along; what is behind it is short. */
static int take_first(struct channel *c, size_t len, struct buf *ret)
{
	struct buf rest = { 0 };
	int r = 0;

	buf_init(&rest, CHANNEL_LINE_MAX);
	if (c->in.len > len + 1)
		r = buf_append(&rest, c->in.data + len + 1, c->in.len - len - 1);
	if (r < 0)
		return r;
	*ret = c->in;
	ret->len = len;
	c->in = rest;
	c->searched = 0;
	return 0;
}

/* Hands the first line of the buffer to the worker. */
static int begin_large(struct channel *c, size_t len)
{
	struct channel_large *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	*l = (struct channel_large){ .channel = c, .to = c->to, .bytes = len };
	r = take_first(c, len, &l->text);
	c->large = l;
	if (r == 0)
		r = fiber_start(c->loop, read_on_fiber, l);
	if (r < 0) {
		c->large = NULL;
		large_free(l);
	}
	return r;
}

static int tell_line(struct channel *c, struct span line)
{
	void *message = c->to.read(line);

	if (message) {
		c->to.on_message(c->to.data, message, line.len);
		c->to.drop(message);
	}
	return c->fd == 0 ? -ECANCELED : 0;
}

/* 0: the worker has no line, or its line was told. */
static int tell_large(struct channel *c)
{
	struct channel_large *l = c->large;

	if (l && !l->is_read)
		return -EINPROGRESS;
	c->large = NULL;
	if (l && l->message)
		c->to.on_message(c->to.data, l->message, l->bytes);
	if (l)
		large_free(l);
	return c->fd == 0 ? -ECANCELED : 0;
}

/*
 * Tells complete lines. 0: none is left; 1: the time is over; -ECANCELED: the listener has closed the channel; -EINPROGRESS: the worker
 * has a line; -EDQUOT.
 */
static int tell_lines(struct channel *c, int64_t until_ns)
{
	size_t begin = 0, len = 0;
	bool late = false, large = false;
	char *end;

	while (!late && c->in.len > begin &&
	       (end = memchr(c->in.data + begin + c->searched, '\n',
			     c->in.len - begin - c->searched))) {
		len = (size_t)(end - c->in.data) - begin;
		c->searched = 0;
		if (c->lines_left-- <= 0)
			return -EDQUOT;
		large = worker_wants(len);
		if (large)
			break;
		if (tell_line(c, (struct span){ c->in.data + begin, len }) < 0)
			return -ECANCELED;
		begin += len + 1;
		late = clock_now_ns() >= until_ns;
	}
	if (!late && !large)
		c->searched = c->in.len - begin;
	drop_told(c, begin);
	if (large) {
		int r = begin_large(c, len);

		return r < 0 ? r : -EINPROGRESS;
	}
	return late;
}

/* One round. 0: nothing more can be read now; 1: the time is over; negative: as tell_lines() and read_piece() say. */
static int hear(struct channel *c)
{
	int64_t until_ns = clock_now_ns() + ROUND_MS * NS_PER_MS;
	char piece[PIECE_BYTES];
	int r = tell_large(c);

	if (r < 0)
		return r;
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
	if (r >= 0 || r == -EINPROGRESS)
		r = account_for(c);
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
	if (r == 0)
		r = account_for(c);
	return r == 0 ? watch_channel(c) : r;
}
