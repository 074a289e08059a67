/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See feed.h. The source descriptor belongs to the caller and is often shared with other processes (a
 * shell's terminal), so it stays blocking, and is read only when the loop reports it readable.
 * Regular files, which cannot be polled, never block and are read as the program takes the bytes.
 * While bytes are pending, the source is not in the loop, which would report a hang-up for ever.
 */
#include "run/link/feed.h"

#include "base/fd.h"

#include <assert.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

void feed_init(struct feed *f)
{
	*f = (struct feed){ .from_fd = -EBADF, .to_fd = -EBADF };
}

void feed_stop(struct feed *f)
{
	f->from = source_free(f->from);
	f->to = source_free(f->to);
	f->to_fd = fd_close(f->to_fd);
	f->from_fd = -EBADF;
	free(TAKE_PTR(f->chunk));
	f->pending = (struct span){ 0 };
}

/* write() without SIGPIPE: a library does not change its caller's signal dispositions. */
static ssize_t write_quietly(int fd, const void *data, size_t n)
{
	const struct timespec now = { 0 };
	sigset_t pipe_set, before, pending;
	ssize_t written;
	int saved;

	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	(void)sigpending(&pending);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
	written = write(fd, data, n);
	saved = errno;
	/* Remove the pending SIGPIPE only if this write raised it. */
	if (written < 0 && saved == EPIPE && sigismember(&pending, SIGPIPE) == 0)
		(void)sigtimedwait(&pipe_set, NULL, &now);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return written;
}

/* 1: all pending bytes are written; 0: the target is full; negative: the target has no reader any more. */
static int flush_pending(struct feed *f)
{
	while (f->pending.len > 0) {
		ssize_t n = write_quietly(f->to_fd, f->pending.data, f->pending.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n > 0)
			f->last = f->pending.data[n - 1];
		f->pending.data += n;
		f->pending.len -= (size_t)n;
	}
	return 1;
}

/* One read from the source; an error counts as the end of input, too. */
static int fill_feed(struct feed *f)
{
	ssize_t n;

	if (!f->chunk)
		f->chunk = malloc(FEED_CHUNK);
	if (!f->chunk)
		return -ENOMEM;
	n = read(f->from_fd, f->chunk, FEED_CHUNK);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0) {
		f->from = source_free(f->from);
		f->from_fd = -EBADF;
		return 0;
	}
	f->took = true;
	f->pending = (struct span){ .data = f->chunk, .len = (size_t)n };
	if (f->on_bytes)
		f->on_bytes(f->data, f->pending);
	return 0;
}

void feed_finish(struct feed *f)
{
	do
		f->pending = (struct span){ 0 };
	while (f->from_fd >= 0 && fill_feed(f) >= 0 && f->pending.len > 0);
	feed_stop(f);
}

/* The reader is gone. */
static void lose_target(struct feed *f)
{
	f->to = source_free(f->to);
	f->to_fd = fd_close(f->to_fd);
	f->pending = (struct span){ 0 };
	if (!f->drains)
		feed_stop(f);
}

/* A terminal's input ends with ^D at the start of a line. After an incomplete line a first ^D flushes that line. */
static struct span end_of_terminal(const struct feed *f)
{
	bool at_line_start = f->last == '\0' || f->last == '\n';

	return (struct span){ .data = "\004\004", .len = at_line_start ? 1 : 2 };
}

static int step(struct feed *f);

/* The return value of a callback: passes an error to on_error, if there is one. */
static int result(struct feed *f, int r)
{
	if (r >= 0 || !f->on_error)
		return r;
	feed_stop(f);
	f->on_error(f->data, r);
	return 0;
}

static int on_source(void *data, uint32_t events)
{
	struct feed *f = data;
	int r;

	(void)events;
	r = fill_feed(f);
	return result(f, r < 0 ? r : step(f));
}

static int on_target(void *data, uint32_t events)
{
	struct feed *f = data;

	if (events & (EPOLLERR | EPOLLHUP))
		lose_target(f);
	if (f->from_fd < 0 && f->to_fd < 0)
		return 0;
	return result(f, step(f));
}

/* The target's errors are always watched, its readiness only while bytes are pending. */
static int watch_target(struct feed *f, uint32_t events)
{
	if (f->to)
		return loop_set_events(f->to, events);
	return loop_add_fd(f->loop, f->to_fd, events, (struct handler){ on_target, f }, &f->to);
}

/* 1: the source is in the loop; 0: the source is a regular file, which can be read at once. */
static int watch_source(struct feed *f)
{
	int r;

	if (f->from)
		return 1;
	r = loop_add_fd(f->loop, f->from_fd, EPOLLIN, (struct handler){ on_source, f }, &f->from);
	if (r == -EPERM)
		return 0;
	return r < 0 ? r : 1;
}

static int step(struct feed *f)
{
	for (;;) {
		int r = f->to_fd >= 0 ? flush_pending(f) : 1;

		if (r < 0) {
			lose_target(f);
			if (f->from_fd < 0)
				return 0;
			continue;
		}
		if (f->to_fd < 0)
			f->pending = (struct span){ 0 };
		if (r == 0) {
			f->from = source_free(f->from);
			return watch_target(f, EPOLLOUT);
		}
		if (f->from_fd < 0 && f->tty) {
			f->tty = false;
			f->pending = end_of_terminal(f);
			continue;
		}
		if (f->from_fd < 0 && f->holds)
			return f->to_fd >= 0 ? watch_target(f, 0) : 0;
		if (f->from_fd < 0) {
			feed_stop(f);
			return 0;
		}
		r = watch_source(f);
		if (r < 0)
			return r;
		if (r > 0)
			return f->to_fd >= 0 ? watch_target(f, 0) : 0;
		r = fill_feed(f);
		if (r < 0)
			return r;
	}
}

int feed_release(struct feed *f)
{
	f->holds = false;
	return f->to_fd >= 0 ? step(f) : 0;
}

int feed_start(struct feed *f, struct loop *loop, struct span first, int from_fd)
{
	assert(f->to_fd >= 0);
	f->loop = loop;
	f->from_fd = from_fd >= 0 ? from_fd : -EBADF;
	f->pending = first;
	return step(f);
}
