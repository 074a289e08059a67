/* SPDX-License-Identifier: Apache-2.0 */
/* See peer.h. */
#include "broker/peer.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

enum {
	PATIENCE_S = 60,
	HOLD_MS = 3, /* the longest time that a held record waits for the next one */
	HELD_MAX = 2,
	/* One peer: the files of a few tasks. All peers together: some 70 MB of records. */
	PENDING_BEHIND = 512,
	PENDING_MAX = 4096,
	PENDING_ALL_MAX = 16384,
};

struct pending_record {
	struct pending_record *next;
	struct record rec;
	int fd;
};

struct peer_socket {
	struct peer peer; /* first: socket_of() casts a peer */
	bool several;
	struct handler handler;
	struct record held[HELD_MAX]; /* sent before the pending records */
	size_t n_held;
	struct source *held_timer;
	struct source *stalled; /* armed while a record is pending */
	struct pending_record *first, **last;
	size_t n_pending;
};

static struct peer_socket *socket_of(struct peer *peer)
{
	return (struct peer_socket *)peer;
}

int peer_new(struct broker *b, int fd, bool several, struct peer **ret)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	struct peer_socket *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c)
		return -ENOMEM;
	if (several)
		r = fd_set_nonblock(fd, true);
	else
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (r < 0) {
		free(c);
		return r;
	}
	c->peer = (struct peer){ .next = b->peers, .broker = b, .fd = fd };
	c->several = several;
	c->last = &c->first;
	b->peers = &c->peer;
	*ret = &c->peer;
	return 0;
}

/* The peer's loop event sees the shutdown and frees the peer later, so callers of peer_send() may go on using the peer. */
static void hang_up(struct peer_socket *c)
{
	(void)shutdown(c->peer.fd, SHUT_RDWR);
}

static void drop_first(struct peer_socket *c)
{
	struct pending_record *p = c->first;

	c->first = p->next;
	if (!c->first)
		c->last = &c->first;
	c->n_pending--;
	c->peer.broker->n_pending--;
	(void)fd_close(p->fd);
	free(p);
}

struct peer *peer_free(struct peer *peer)
{
	struct peer_socket *c = socket_of(peer);
	struct broker *b = peer->broker;

	for (struct peer **at = &b->peers; *at; at = &(*at)->next)
		if (*at == peer) {
			*at = peer->next;
			break;
		}
	estates_forget_all(peer);
	while (peer->tasks) {
		struct task *task = peer->tasks;

		task_orphan(task);
		task_kill(task, CAUSE_INTERRUPTED);
	}
	peer->source = source_free(peer->source);
	c->held_timer = source_free(c->held_timer);
	c->stalled = source_free(c->stalled);
	while (c->first)
		drop_first(c);
	(void)fd_close(peer->fd);
	free(c);
	return NULL;
}

static int on_stalled(void *data, uint32_t events)
{
	(void)events;
	hang_up(data);
	return 0;
}

static int64_t patience_end_ns(void)
{
	return clock_now_ns() + PATIENCE_S * NS_PER_SEC;
}

static int want_output(struct peer_socket *c)
{
	int r = 0;

	if (!c->stalled)
		r = loop_add_timer(c->peer.broker->loop, INT64_MAX,
				   (struct handler){ on_stalled, c }, &c->stalled);
	if (r == 0)
		r = loop_set_events(c->peer.source, EPOLLIN | EPOLLOUT);
	if (r == 0)
		source_set_time(c->stalled, patience_end_ns());
	return r;
}

static int keep_record(struct peer_socket *c, const struct record *rec, int fd)
{
	struct broker *b = c->peer.broker;
	struct pending_record *p;
	int r = 0;

	if (c->n_pending >= PENDING_MAX || b->n_pending >= PENDING_ALL_MAX)
		return -ENOBUFS;
	p = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct pending_record){ .rec = *rec, .fd = -EBADF };
	if (fd >= 0) {
		p->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		/* The same error as for too many descriptors in flight: this file is left out. */
		r = p->fd < 0 ? -ETOOMANYREFS : 0;
	}
	if (r == 0 && !c->first)
		r = want_output(c);
	if (r < 0) {
		(void)fd_close(p->fd);
		free(p);
		return r;
	}
	*c->last = p;
	c->last = &p->next;
	c->n_pending++;
	b->n_pending++;
	return 0;
}

static int send_now(struct peer_socket *c, const struct record *rec, int fd)
{
	return sys_send_record(c->peer.fd, rec, sizeof(*rec), &fd, fd >= 0 ? 1 : 0);
}

/* A file may be left out. If it was queued, note_missed() reports that; otherwise task_collect() does. So may a book. */
static bool can_be_missed(const struct record *rec, int r)
{
	return r == -ETOOMANYREFS && (rec->kind == RECORD_FILE || rec->kind == RECORD_NETWORK);
}

/* DONE leaves without its list of changes: the peer reads that at least one change is missing. */
static void note_lost_list(struct record *done)
{
	done->done.commit.omitted++;
}

static int send_or_keep(struct peer_socket *c, const struct record *rec, int fd)
{
	int r = c->first ? -EAGAIN : send_now(c, rec, fd);

	return r == -EAGAIN && c->several ? keep_record(c, rec, fd) : r;
}

static int pass_on(struct peer_socket *c, const struct record *rec, int fd)
{
	int r = send_or_keep(c, rec, fd);

	if (r == -ETOOMANYREFS && rec->kind == RECORD_DONE) {
		struct record without = *rec;

		note_lost_list(&without);
		r = send_or_keep(c, &without, -EBADF);
	}
	/* A peer that misses a record would wait for ever: it sees a closed socket instead. */
	if (r < 0 && !can_be_missed(rec, r))
		hang_up(c);
	return r;
}

static void release(struct peer_socket *c)
{
	for (size_t i = 0; i < c->n_held; i++)
		(void)pass_on(c, &c->held[i], -EBADF);
	c->n_held = 0;
	if (c->held_timer)
		source_set_time(c->held_timer, INT64_MAX);
}

static int on_held(void *data, uint32_t events)
{
	(void)events;
	release(data);
	return 0;
}

static bool hold(struct peer_socket *c, const struct record *rec, int fd)
{
	if (fd >= 0 || c->n_held == HELD_MAX || c->first ||
	    (rec->kind != RECORD_STARTED && rec->kind != RECORD_STAGE))
		return false;
	/* A client waits for a copy's start; a session asks for its usage, which releases the record, but may do so before. */
	if (rec->kind == RECORD_STARTED && rec->started.copy)
		return false;
	if (!c->held_timer && loop_add_timer(c->peer.broker->loop, INT64_MAX,
					     (struct handler){ on_held, c }, &c->held_timer) < 0)
		return false;
	if (c->n_held == 0)
		source_set_time(c->held_timer, clock_now_ns() + HOLD_MS * NS_PER_MS);
	c->held[c->n_held++] = *rec;
	return true;
}

/* Sends DONE together with the task's held STARTED. */
static int send_whole(struct peer_socket *c, const struct record *rec, int fd)
{
	struct record whole = *rec;

	whole.done.has_started = true;
	whole.done.started = c->held[0].started;
	c->n_held = 0;
	source_set_time(c->held_timer, INT64_MAX);
	return pass_on(c, &whole, fd);
}

int peer_send(struct peer *peer, const struct record *rec, int fd)
{
	struct peer_socket *c;

	if (!peer)
		return -EPIPE;
	c = socket_of(peer);
	if (hold(c, rec, fd))
		return 0;
	if (c->n_held == 1 && rec->kind == RECORD_DONE && c->held[0].kind == RECORD_STARTED &&
	    c->held[0].job == rec->job)
		return send_whole(c, rec, fd);
	if (c->n_held > 0)
		release(c);
	return pass_on(c, rec, fd);
}

bool peer_is_behind(struct peer *peer)
{
	return peer && socket_of(peer)->n_pending > PENDING_BEHIND;
}

/* A queued file is left out. task_conclude() has queued the DONE of its task behind it: that DONE says that files are missing. */
static void note_missed(struct pending_record *file)
{
	for (struct pending_record *p = file->next; p; p = p->next)
		if (p->rec.kind == RECORD_DONE && p->rec.job == file->rec.job) {
			p->rec.done.files_truncated = true;
			return;
		}
}

static void flush_peer(struct peer_socket *c)
{
	while (c->first) {
		int r = send_now(c, &c->first->rec, c->first->fd);

		if (r == -EAGAIN)
			return;
		if (r == -ETOOMANYREFS && c->first->rec.kind == RECORD_DONE) {
			note_lost_list(&c->first->rec);
			c->first->fd = fd_close(c->first->fd);
			continue;
		}
		if (r < 0 && !can_be_missed(&c->first->rec, r)) {
			hang_up(c);
			return;
		}
		if (r < 0 && c->first->rec.kind == RECORD_FILE)
			note_missed(c->first);
		drop_first(c);
		source_set_time(c->stalled, c->first ? patience_end_ns() : INT64_MAX);
	}
	if (loop_set_events(c->peer.source, EPOLLIN) < 0)
		hang_up(c);
}

static int on_events(void *data, uint32_t events)
{
	struct peer_socket *c = data;

	if (events & EPOLLOUT && c->first)
		flush_peer(c);
	/* Last: the handler may free the peer. */
	return events & ~EPOLLOUT ? c->handler.fn(c->handler.data, events) : 0;
}

int peer_watch(struct peer *peer, struct handler handler)
{
	struct peer_socket *c = socket_of(peer);

	c->handler = handler;
	return loop_add_fd(peer->broker->loop, peer->fd, EPOLLIN, (struct handler){ on_events, c },
			   &peer->source);
}
