/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See loop.h. Descriptors live in one level-triggered epoll set, timers in a binary min-heap
 * ordered by their instant. A round waits for the nearest timer or a descriptor, calls what is
 * ready, then calls the timers that are due. A source freed while a round lasts is only marked: its
 * address may still stand in the round's event array, so its memory goes when the round is over.
 */
#include "base/loop/loop.h"

#include "base/clock.h"
#include "base/fd.h"

#include <assert.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>

enum { LOOP_SOURCES_MAX = 65536, LOOP_EVENTS = 64 };

/* The heap index of a source that is not in the heap. */
#define HEAP_OUT SIZE_MAX

struct source {
	struct loop *loop;
	struct handler handler;
	int fd; /* -EBADF: a timer */
	int64_t at_ns;
	size_t heap_index;
	bool dead;
	struct source *next_dead;
};

struct loop {
	int epoll_fd;
	bool stop, dispatching;
	size_t n_sources;
	struct source **heap; /* armed timers, the nearest first */
	size_t heap_len, heap_capacity;
	struct source *dead;
};

struct loop *loop_new(void)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0) {
		free(l);
		return NULL;
	}
	return l;
}

static void bury(struct loop *l)
{
	while (l->dead) {
		struct source *s = l->dead;

		l->dead = s->next_dead;
		free(s);
	}
}

struct loop *loop_free(struct loop *l)
{
	if (!l)
		return NULL;
	assert(!l->dispatching);
	assert(l->n_sources == 0);
	bury(l);
	l->epoll_fd = fd_close(l->epoll_fd);
	free(l->heap);
	free(l);
	return NULL;
}

static void heap_place(struct loop *l, size_t i, struct source *s)
{
	l->heap[i] = s;
	s->heap_index = i;
}

static void heap_up(struct loop *l, size_t i)
{
	struct source *s = l->heap[i];

	while (i > 0 && l->heap[(i - 1) / 2]->at_ns > s->at_ns) {
		heap_place(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_place(l, i, s);
}

static void heap_down(struct loop *l, size_t i)
{
	struct source *s = l->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= l->heap_len)
			break;
		if (child + 1 < l->heap_len && l->heap[child + 1]->at_ns < l->heap[child]->at_ns)
			child++;
		if (l->heap[child]->at_ns >= s->at_ns)
			break;
		heap_place(l, i, l->heap[child]);
		i = child;
	}
	heap_place(l, i, s);
}

static void heap_remove(struct loop *l, struct source *s)
{
	size_t i = s->heap_index;

	if (i == HEAP_OUT)
		return;
	s->heap_index = HEAP_OUT;
	l->heap_len--;
	if (i == l->heap_len)
		return;
	heap_place(l, i, l->heap[l->heap_len]);
	heap_down(l, i);
	heap_up(l, i);
}

/* Room for every source is made when a timer is added, so arming one cannot fail. */
static int heap_reserve(struct loop *l)
{
	struct source **heap;
	size_t capacity;

	if (l->n_sources < l->heap_capacity)
		return 0;
	capacity = l->heap_capacity ? l->heap_capacity * 2 : 8;
	heap = reallocarray(l->heap, capacity, sizeof(struct source *));
	if (!heap)
		return -ENOMEM;
	l->heap = heap;
	l->heap_capacity = capacity;
	return 0;
}

static struct source *source_new(struct loop *l, struct handler handler)
{
	struct source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->loop = l;
	s->handler = handler;
	s->fd = -EBADF;
	s->at_ns = INT64_MAX;
	s->heap_index = HEAP_OUT;
	return s;
}

int loop_add_fd(struct loop *l, int fd, uint32_t events, struct handler handler,
		struct source **ret)
{
	struct epoll_event event = { .events = events };
	struct source *s;

	if (l->n_sources >= LOOP_SOURCES_MAX)
		return -ENOSPC;
	s = source_new(l, handler);
	if (!s)
		return -ENOMEM;
	event.data.ptr = s;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		int r = -errno;

		free(s);
		return r;
	}
	s->fd = fd;
	l->n_sources++;
	*ret = s;
	return 0;
}

int loop_set_events(struct source *s, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = s };

	assert(s->fd >= 0);
	return epoll_ctl(s->loop->epoll_fd, EPOLL_CTL_MOD, s->fd, &event) < 0 ? -errno : 0;
}

void source_set_handler(struct source *s, struct handler handler)
{
	s->handler = handler;
}

int loop_add_timer(struct loop *l, int64_t at_ns, struct handler handler, struct source **ret)
{
	struct source *s;
	int r;

	if (l->n_sources >= LOOP_SOURCES_MAX)
		return -ENOSPC;
	r = heap_reserve(l);
	if (r < 0)
		return r;
	s = source_new(l, handler);
	if (!s)
		return -ENOMEM;
	l->n_sources++;
	source_set_time(s, at_ns);
	*ret = s;
	return 0;
}

void source_set_time(struct source *s, int64_t at_ns)
{
	struct loop *l = s->loop;

	assert(s->fd < 0 && !s->dead);
	heap_remove(l, s);
	s->at_ns = at_ns;
	if (at_ns == INT64_MAX)
		return;
	assert(l->heap_len < l->heap_capacity);
	l->heap[l->heap_len++] = s;
	heap_up(l, l->heap_len - 1);
}

struct source *source_free(struct source *s)
{
	struct loop *l;

	if (!s)
		return NULL;
	assert(!s->dead);
	l = s->loop;
	heap_remove(l, s);
	/* If the caller closed the descriptor first, the kernel has removed it from the set. */
	if (s->fd >= 0)
		(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	l->n_sources--;
	if (!l->dispatching) {
		free(s);
		return NULL;
	}
	s->dead = true;
	s->next_dead = l->dead;
	l->dead = s;
	return NULL;
}

/* Milliseconds until the nearest timer, rounded up so that it is due when the wait ends. */
static int wait_ms(const struct loop *l)
{
	int64_t left_ns, ms;

	if (l->heap_len == 0)
		return -1;
	left_ns = l->heap[0]->at_ns - clock_now_ns();
	if (left_ns <= 0)
		return 0;
	ms = left_ns / NS_PER_MS + (left_ns % NS_PER_MS != 0);
	return (int)MIN(ms, INT_MAX);
}

/*
 * Calls at most as many timers as are armed now: timers that re-arm for the past must not starve descriptors.
 */
static int dispatch_timers(struct loop *l)
{
	int64_t now_ns = l->heap_len > 0 ? clock_now_ns() : 0;

	for (size_t left = l->heap_len; left > 0 && !l->stop && l->heap_len > 0; left--) {
		struct source *s = l->heap[0];
		int r;

		if (s->at_ns > now_ns)
			break;
		heap_remove(l, s);
		s->at_ns = INT64_MAX;
		r = s->handler.fn(s->handler.data, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static int dispatch(struct loop *l, const struct epoll_event *events, int n)
{
	for (int i = 0; i < n && !l->stop; i++) {
		struct source *s = events[i].data.ptr;
		int r;

		if (s->dead)
			continue;
		r = s->handler.fn(s->handler.data, events[i].events);
		if (r < 0)
			return r;
	}
	return l->stop ? 0 : dispatch_timers(l);
}

int loop_run(struct loop *l)
{
	struct epoll_event events[LOOP_EVENTS];
	int r = 0;

	assert(!l->dispatching);
	l->stop = false;
	while (r >= 0 && !l->stop) {
		int n = epoll_wait(l->epoll_fd, events, LOOP_EVENTS, wait_ms(l));

		if (n < 0 && errno != EINTR)
			return -errno;
		l->dispatching = true;
		r = dispatch(l, events, MAX(n, 0));
		l->dispatching = false;
		bury(l);
	}
	return r;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
