/* SPDX-License-Identifier: Apache-2.0 */
/* See relay.h. One thread, one epoll, no heap: the list of connections has fixed length, and buffers for each. */
#include "box/egress/relay.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, LISTENER_TAG = CONNECTIONS_MAX * _SIDE_MAX };

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * MS_PER_SEC + now.tv_nsec / NS_PER_MS;
}

static uint64_t tag_of(const struct relay *s, const struct connection *c, enum side side)
{
	return (uint64_t)c->generation << 32 | ((uint64_t)(c - s->list) * _SIDE_MAX + side);
}

/* A socket without wanted events leaves epoll, which would report its hang-up again and again. */
static int watch(const struct relay *s, struct connection *c, enum side side, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = tag_of(s, c, side) };
	const uint32_t before = c->watched[side];
	const int op = !events ? EPOLL_CTL_DEL : before ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (events == before)
		return 0;
	c->watched[side] = events;
	return epoll_ctl(s->epoll_fd, op, c->fds[side], &event) < 0 ? -errno : 0;
}

static int watch_listeners(struct relay *s, bool on)
{
	for (size_t i = 0; i < s->n_listeners; i++) {
		struct epoll_event event = { .events = on ? EPOLLIN : 0,
					     .data.u64 = LISTENER_TAG + i };

		if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->listeners[i], &event) < 0)
			return -errno;
	}
	s->full = !on;
	return 0;
}

/*
 * From the beginning a socket is one that resets its connection when it is closed, also by the kernel when the relay is killed: half a
 * transfer must not look like a whole one.
 */
static void set_abort(int fd, bool on)
{
	const struct linger linger = { .l_onoff = on };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static void close_side(struct connection *c, enum side side, bool reset)
{
	if (c->fds[side] < 0)
		return;
	if (!reset)
		set_abort(c->fds[side], false);
	(void)close(c->fds[side]);
	c->fds[side] = -EBADF;
	c->watched[side] = 0;
}

/* Leaves its entry of the list to another one. Closing a socket takes it out of epoll. */
static int end_connection(struct relay *s, struct connection *c, bool reset)
{
	close_side(c, OUTER, reset);
	close_side(c, INNER, reset);
	return s->full ? watch_listeners(s, true) : 0;
}

static enum relay_outcome outcome_of(int error)
{
	return error == ECONNREFUSED ? RELAY_REFUSED
	       : error == ETIMEDOUT  ? RELAY_TIMED_OUT
				     : RELAY_UNREACHABLE;
}

static void prepare_socket(int fd)
{
	const int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	set_abort(fd, true);
}

/* Begins to connect to one address. */
static int dial_one(struct relay *s, struct connection *c, struct sockaddr_storage *address)
{
	const bool six = address->ss_family == AF_INET6;
	const socklen_t len = six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	address_set_port(address, c->destination.port);
	close_side(c, OUTER, true);
	c->fds[OUTER] = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fds[OUTER] < 0)
		return -errno;
	prepare_socket(c->fds[OUTER]);
	if (connect(c->fds[OUTER], (const struct sockaddr *)address, len) < 0 &&
	    errno != EINPROGRESS)
		return -errno;
	c->deadline_ms = now_ms() + DIAL_MS;
	return watch(s, c, OUTER, EPOLLOUT);
}

/* From c->address on. Without one that can be reached, the program's connection is reset. */
static int dial(struct relay *s, struct connection *c)
{
	for (; c->address < c->n_addresses; c->address++) {
		int r = dial_one(s, c, &c->addresses[c->address]);

		if (r == 0)
			return 0;
		c->outcome = outcome_of(-r);
	}
	(void)judge_note(s->judge, &c->destination, c->outcome);
	return end_connection(s, c, true);
}

/* One direction; what it took of the run's bytes is added to *sum. Negative: broken. */
static int carry_flow(struct relay *s, struct connection *c, enum side from, uint64_t *sum)
{
	const enum side to = from == INNER ? OUTER : INNER;
	const uint64_t before = s->judge->left;
	int r = flow_carry(from == INNER ? &c->out : &c->in, c->fds[from], c->fds[to],
			   &s->judge->left);

	*sum += before - s->judge->left;
	return r;
}

/* Negative: broken, or the run's bytes are used up. */
static int carry(struct relay *s, struct connection *c)
{
	uint64_t lost = 0; /* no row counts them */
	int r;

	if (!judge_may_carry(s->judge)) {
		judge_refuse(s->judge, &c->destination, RELAY_OVER_BYTES);
		return -EDQUOT;
	}
	r = carry_flow(s, c, INNER, c->row ? &c->row->sent : &lost);
	if (r == 0)
		r = carry_flow(s, c, OUTER, c->row ? &c->row->received : &lost);
	if (r == 0)
		r = watch(s, c, INNER,
			  (flow_wants_input(&c->out) ? EPOLLIN : 0) |
				  (flow_wants_output(&c->in) ? EPOLLOUT : 0));
	return r < 0 ? r
		     : watch(s, c, OUTER,
			     (flow_wants_input(&c->in) ? EPOLLIN : 0) |
				     (flow_wants_output(&c->out) ? EPOLLOUT : 0));
}

static int on_open(struct relay *s, struct connection *c)
{
	int r = carry(s, c);

	if (r < 0)
		return end_connection(s, c, true);
	return c->out.passed && c->in.passed ? end_connection(s, c, false) : 0;
}

/* Something happened to the outer socket, or its time is over. */
static int on_dialled(struct relay *s, struct connection *c, int error)
{
	socklen_t len = sizeof(error);

	if (error == 0 && getsockopt(c->fds[OUTER], SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		c->outcome = outcome_of(error);
		c->address++;
		return dial(s, c);
	}
	c->open = true;
	c->row = judge_note(s->judge, &c->destination, RELAY_CONNECTED);
	return on_open(s, c);
}

/* What the program asked for, by the address that its socket is connected to. */
static bool find_destination(struct relay *s, struct connection *c)
{
	struct sockaddr_storage to = { 0 };
	socklen_t len = sizeof(to);
	const struct name *name;

	if (getsockname(c->fds[INNER], (struct sockaddr *)&to, &len) < 0)
		return false;
	c->destination.port = address_port(&to);
	address_unmap(&to);
	name = names_of(s->names, (const struct sockaddr *)&to);
	if (name) {
		memcpy(c->destination.host, name->host, sizeof(name->host));
		memcpy(c->addresses, name->addresses, name->n * sizeof(to));
		c->n_addresses = name->n;
		return true;
	}
	address_format((const struct sockaddr *)&to, c->destination.host);
	c->addresses[0] = to;
	c->n_addresses = 1;
	return true;
}

/* Leaves the addresses that may be dialled. */
static bool is_permitted(struct relay *s, struct connection *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_addresses; i++)
		if (judge_may_dial(s->judge, (const struct sockaddr *)&c->addresses[i],
				   c->destination.port))
			c->addresses[n++] = c->addresses[i];
	c->n_addresses = n;
	if (n == 0)
		judge_refuse(s->judge, &c->destination, RELAY_NOT_PUBLIC);
	else if (!judge_permits(s->judge, &c->destination))
		judge_refuse(s->judge, &c->destination, RELAY_NOT_LISTED);
	else if (!judge_may_carry(s->judge))
		judge_refuse(s->judge, &c->destination, RELAY_OVER_BYTES);
	else
		return true;
	return false;
}

static struct connection *unused_entry(struct relay *s)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->list[i].fds[INNER] < 0)
			return &s->list[i];
	return NULL;
}

static int accept_one(struct relay *s, int listener)
{
	struct connection *c = unused_entry(s);

	if (!c)
		return watch_listeners(s, false);
	c->fds[INNER] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (c->fds[INNER] < 0)
		return 0;
	c->generation++;
	c->open = false;
	c->row = NULL;
	c->address = 0;
	c->outcome = RELAY_UNREACHABLE;
	flow_init(&c->out);
	flow_init(&c->in);
	memset(&c->destination, 0, sizeof(c->destination));
	prepare_socket(c->fds[INNER]);
	if (!find_destination(s, c) || !is_permitted(s, c))
		return end_connection(s, c, true);
	return dial(s, c);
}

static int on_event(struct relay *s, uint64_t data)
{
	const uint32_t tag = (uint32_t)data;
	struct connection *c;

	if (tag >= LISTENER_TAG)
		return accept_one(s, s->listeners[tag - LISTENER_TAG]);
	c = &s->list[tag / _SIDE_MAX];
	/* An earlier event of this round may have ended it, and its entry may be another connection's now. */
	if (c->fds[INNER] < 0 || c->generation != data >> 32)
		return 0;
	return c->open ? on_open(s, c) : on_dialled(s, c, 0);
}

/* Gives up dials whose time is over. Returns how long epoll may wait. */
static int64_t next_deadline_ms(struct relay *s, int *r)
{
	int64_t now = now_ms(), next = -1;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *c = &s->list[i];

		if (c->fds[INNER] >= 0 && !c->open && c->deadline_ms <= now && *r == 0)
			*r = on_dialled(s, c, ETIMEDOUT);
		if (c->fds[INNER] >= 0 && !c->open && (next < 0 || c->deadline_ms - now < next))
			next = MAX(c->deadline_ms - now, 0);
	}
	return next;
}

int relay_init(struct relay *s, struct judge *judge, struct names *names)
{
	s->judge = judge;
	s->names = names;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		s->list[i].fds[INNER] = s->list[i].fds[OUTER] = -EBADF;
	return s->epoll_fd < 0 ? -errno : 0;
}

int relay_listen(struct relay *s, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = LISTENER_TAG + s->n_listeners };

	if (s->n_listeners == RELAY_PORTS_MAX)
		return -E2BIG;
	s->listeners[s->n_listeners++] = fd;
	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int relay_serve(struct relay *s)
{
	struct epoll_event events[EVENTS_MAX];
	int r = 0;

	while (r == 0) {
		int64_t wait_ms = next_deadline_ms(s, &r);
		int n = epoll_wait(s->epoll_fd, events, EVENTS_MAX, (int)wait_ms);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; r == 0 && i < n; i++)
			r = on_event(s, events[i].data.u64);
	}
	return r;
}
