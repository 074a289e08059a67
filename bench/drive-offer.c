/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offers more work than a server can take: one thread, many connections kept alive. With a rate, a request
 * leaves when its time has come, on any free connection, even if earlier answers are missing; so a slow server
 * is not offered less. A moment at which no connection was free is counted as missed: many of them mean that
 * the rate was not kept.
 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "drive.h"

enum { EVENTS = 64, TIMES_MAX = 1 << 20, DRAIN_S = 20, PRIORITY = -10 };

struct line {
	int fd;
	int64_t sent_ns; /* 0: free */
	struct buf in;
};

struct times {
	const char *name;
	int status;
	int64_t *ns;
	size_t n;
};

struct load {
	const struct job *job;
	const struct offer *offer;
	struct line *lines;
	int *free;
	int n_free, busy, epoll;
	int64_t begin_ns, end_ns, next_ns;
	int64_t sent, missed, lost, other;
	struct times times[2];
};

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static json_t *describe(struct times *t)
{
	if (t->n == 0)
		return json_pack("{s:i}", "n", 0);
	qsort(t->ns, t->n, sizeof(t->ns[0]), compare);
	return json_pack("{s:I, s:I, s:I, s:I}", "n", (json_int_t)t->n, "p50",
			 (json_int_t)t->ns[t->n / 2], "p99", (json_int_t)t->ns[t->n * 99 / 100],
			 "max", (json_int_t)t->ns[t->n - 1]);
}

static int line_open(struct load *l, int i, struct error *err)
{
	struct line *line = &l->lines[i];
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)i };

	line->fd = http_connect(l->job->port, err);
	if (line->fd < 0)
		return -EPROTO;
	line->sent_ns = 0;
	line->in.len = 0;
	line->in.max = 4 << 20;
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, line->fd, &event) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "epoll: %s", strerror(errno));
	l->free[l->n_free++] = i;
	return 0;
}

static int line_send(struct load *l, struct error *err)
{
	struct line *line = &l->lines[l->free[--l->n_free]];

	line->sent_ns = clock_now_ns();
	l->busy++;
	l->sent++;
	return http_send(line->fd, l->job, err);
}

/* What is due leaves; without a pace, whenever a connection is free. */
static int send_due(struct load *l, int64_t now, struct error *err)
{
	int r = 0;

	while (r == 0 && now < l->end_ns && l->n_free > 0 &&
	       (l->offer->rate <= 0 || l->next_ns <= now)) {
		r = line_send(l, err);
		if (l->offer->rate > 0)
			l->next_ns += (int64_t)((double)NS_PER_SEC / l->offer->rate);
	}
	while (l->offer->rate > 0 && l->next_ns <= now && now < l->end_ns && l->n_free == 0) {
		l->next_ns += (int64_t)((double)NS_PER_SEC / l->offer->rate);
		l->missed++;
	}
	return r;
}

static int take_answer(struct load *l, struct line *line, const struct answer *answer,
		       struct error *err)
{
	int64_t ns = clock_now_ns() - line->sent_ns;
	struct sample sample;

	for (size_t i = 0; i < ARRAY_SIZE(l->times); i++) {
		struct times *t = &l->times[i];

		if (t->status != answer->status)
			continue;
		if (t->n < TIMES_MAX)
			t->ns[t->n++] = ns;
		return answer->status == 200
			       ? job_check_result(l->job, line->in.data + answer->head, &sample,
						  err)
			       : 0;
	}
	l->other++;
	return 0;
}

static int line_read(struct load *l, int i, struct error *err)
{
	static char chunk[64 << 10];
	struct line *line = &l->lines[i];
	ssize_t n = recv(line->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	struct answer answer;
	int r;

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0) {
		if (line->sent_ns == 0)
			return error_set(err, ERROR_INTERNAL, EPIPE,
					 "the server closed a connection that was kept alive");
		l->lost++;
		l->busy--;
		line->fd = fd_close(line->fd);
		return line_open(l, i, err);
	}
	if (buf_append(&line->in, chunk, (size_t)n) < 0)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "the answer is too long");
	r = answer_find(line->in.data, line->in.len, &answer);
	if (r == 0)
		return 0;
	if (r < 0 || line->sent_ns == 0)
		return error_set(err, ERROR_INTERNAL, EPROTO, "that is no answer: %.200s",
				 line->in.data);
	r = take_answer(l, line, &answer, err);
	line->sent_ns = 0;
	line->in.len = 0;
	l->busy--;
	l->free[l->n_free++] = i;
	return r;
}

static int wait_events(struct load *l, int64_t until_ns, struct error *err)
{
	struct epoll_event events[EVENTS];
	int64_t left_ns = until_ns - clock_now_ns();
	/* The time has gone on since the caller looked. */
	const struct timespec t = { MAX(left_ns, (int64_t)0) / NS_PER_SEC,
				    MAX(left_ns, (int64_t)0) % NS_PER_SEC };
	int n = epoll_pwait2(l->epoll, events, EVENTS, &t, NULL), r = 0;

	if (n < 0 && errno != EINTR)
		return error_set(err, ERROR_INTERNAL, errno, "epoll: %s", strerror(errno));
	for (int i = 0; i < n && r == 0; i++)
		r = line_read(l, (int)events[i].data.u32, err);
	return r;
}

static int drive(struct load *l, struct error *err)
{
	int64_t give_up = l->end_ns + DRAIN_S * NS_PER_SEC, now = clock_now_ns();
	int r = 0;

	while (r == 0 && (now < l->end_ns || l->busy > 0)) {
		r = send_due(l, now, err);
		if (r == 0)
			r = wait_events(l,
					now >= l->end_ns     ? give_up
					: l->offer->rate > 0 ? MIN(l->next_ns, l->end_ns)
							     : l->end_ns,
					err);
		now = clock_now_ns();
		if (r == 0 && now >= give_up)
			return error_set(err, ERROR_INTERNAL, ETIMEDOUT,
					 "%d requests without an answer after %d s", l->busy,
					 DRAIN_S);
	}
	return r;
}

static int prepare(struct load *l, struct error *err)
{
	int n = l->offer->connections, r = 0;

	l->lines = calloc((size_t)n, sizeof(*l->lines));
	l->free = calloc((size_t)n, sizeof(*l->free));
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(l->times); i++)
		l->times[i].ns = calloc(TIMES_MAX, sizeof(int64_t));
	if (!l->lines || !l->free || !l->times[0].ns || !l->times[1].ns || l->epoll < 0)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	for (int i = 0; i < n; i++)
		l->lines[i].fd = -EBADF;
	for (int i = 0; i < n && r == 0; i++)
		r = line_open(l, i, err);
	return r;
}

static void finish(struct load *l)
{
	for (int i = 0; l->lines && i < l->offer->connections; i++) {
		l->lines[i].fd = fd_close(l->lines[i].fd);
		buf_done(&l->lines[i].in);
	}
	free(l->lines);
	free(l->free);
	for (size_t i = 0; i < ARRAY_SIZE(l->times); i++)
		free(l->times[i].ns);
	(void)fd_close(l->epoll);
}

int offer_run(const struct job *job, const struct offer *offer, json_t *answer, struct error *err)
{
	struct load l = { .job = job,
			  .offer = offer,
			  .times = { { "accepted", 200, NULL, 0 }, { "refused", 429, NULL, 0 } } };
	/* Who reads the clock must not wait for a core that the server and its sandboxes fight over. */
	int priority = getpriority(PRIO_PROCESS, 0), r = prepare(&l, err);

	(void)setpriority(PRIO_PROCESS, 0, PRIORITY);
	if (r == 0) {
		l.begin_ns = l.next_ns = clock_now_ns();
		l.end_ns = l.begin_ns + offer->window_ns;
		r = drive(&l, err);
	}
	(void)setpriority(PRIO_PROCESS, 0, priority);
	if (r == 0) {
		for (size_t i = 0; i < ARRAY_SIZE(l.times); i++)
			(void)json_object_set_new(answer, l.times[i].name, describe(&l.times[i]));
		(void)json_object_set_new(answer, "sent", json_integer(l.sent));
		(void)json_object_set_new(answer, "missed", json_integer(l.missed));
		(void)json_object_set_new(answer, "lost", json_integer(l.lost));
		(void)json_object_set_new(answer, "other", json_integer(l.other));
		(void)json_object_set_new(answer, "ns", json_integer(offer->window_ns));
	}
	finish(&l);
	return r;
}
