/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See server.h. Accepts and counts connections, and gives them their slices.
 *
 * Connections are counted for callers: for the client's address or user until the first request, then for the caller that
 * the request names. The last eighth is for callers that have few. At a limit, the connection that has waited longest without a
 * request is closed, of the caller that has the most. If all are busy, a few more are accepted, also
 * for health checks. Beyond that, and when descriptors run out, a new connection gets a 503 and is closed.
 */
#include "web/http/conn.h"

#include "base/clock.h"
#include "base/fd.h"
#include "web/codec/http-write.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* How long a connection waits for a request before it gives way: to a new one, to one that has a request. Looked at are the longest. */
enum { EVICT_AFTER_MS = 100, EVICT_FOR_REQUEST_MS = 5, EVICT_AMONG = 64 };
/* In one round of the loop; then other descriptors are served, for instance those of programs that run. */
enum { ACCEPTS_PER_ROUND = 16, SLICES_PER_ROUND_NS = SLICE_QUANTUM_NS };

struct server_limits server_limits_default(void)
{
	return (struct server_limits){
		.head = HTTP_LIMITS,
		.body_max_bytes = 320 * MiB,
		.body_total_bytes = 1 * GiB,
		.queue_high_bytes = 256 * KiB,
		.queue_max_bytes = 4 * MiB,
		.queue_total_bytes = 1 * GiB,
		.connections = 4096,
		.connections_reserve = 64,
		.head_ms = 10000,
		.body_idle_ms = 30000,
		.write_stall_ms = 30000,
		.idle_ms = 75000,
		.linger_ms = 5000,
		.slow_bytes_per_s = 16 * KiB,
		.slow_max_ms = 15 * 60 * 1000,
		.drain_pause_ms = 5000,
	};
}

static struct slot_rule half_for_one(int64_t max)
{
	return (struct slot_rule){ .max = max, .own_max = max / 2, .own_first = true };
}

void server_want_slices(struct server *s)
{
	if (s->slices_due)
		return;
	s->slices_due = true;
	/* Not before now: timers that are due come behind the descriptors of the same round, and those set meanwhile in the next. */
	source_set_time(s->slice_source, clock_now_ns());
}

static int on_slices(void *data, uint32_t events _unused_)
{
	struct server *s = data;
	const int64_t end_ns = clock_now_ns() + SLICES_PER_ROUND_NS;

	s->slices_due = false;
	while (slices_next(&s->slices) && clock_now_ns() < end_ns)
		;
	for (int i = 0; i < SLOW_AT_ONCE && s->stats.on_fibers < SLOW_AT_ONCE; i++)
		if (s->waits_for_fibers || !slices_next(&s->slow))
			break;
	if (s->slices.first || (s->slow.first && s->stats.on_fibers < SLOW_AT_ONCE))
		server_want_slices(s);
	return 0;
}

int server_new(const struct server_config *config, struct server **ret)
{
	const int64_t connections = config->limits.connections, share = slot_share(connections);
	struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->slices = (struct slices){ .callers = config->callers,
				     .ring = RING_FRONT,
				     .spent_ns = clock_thread_ns };
	s->slow = (struct slices){ .callers = config->callers, .ring = RING_SLOW };
	r = loop_add_timer(config->loop, INT64_MAX, (struct handler){ on_slices, s },
			   &s->slice_source);
	if (r < 0) {
		free(s);
		return r;
	}
	/* The last eighth is for callers that have few: each gets a quarter of it, when others have taken the rest. */
	config->callers->rules[SLOT_CONNECTIONS] = (struct slot_rule){
		.max = share, .own_max = share, .few = MAX((connections - share) / 4, (int64_t)1)
	};
	config->callers->rules[SLOT_BODY_BYTES] = half_for_one(config->limits.body_total_bytes);
	config->callers->rules[SLOT_ANSWER_BYTES] = half_for_one(config->limits.queue_total_bytes);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	*ret = s;
	return 0;
}

/* --- heads --- */

/* The header lines of every response. */
int server_write_common(struct server *s, struct buf *b, int status)
{
	const int64_t sec = clock_realtime_ns() / NS_PER_SEC;
	int r = http_write_status(b, status);

	if (sec != s->date_sec) {
		http_date(sec, s->date);
		s->date_sec = sec;
	}
	return r < 0 ? r
		     : buf_printf(b,
				  "Date: %s\r\n"
				  "X-Content-Type-Options: nosniff\r\n"
				  "X-Frame-Options: SAMEORIGIN\r\n"
				  "Cache-Control: no-store\r\n",
				  s->date);
}

/* --- lists --- */

#define LIST_LINK(list, c, links)                                                                  \
	do {                                                                                       \
		(c)->links = (struct conn_links){ .previous = (list)->last };                      \
		if ((list)->last)                                                                  \
			(list)->last->links.next = (c);                                            \
		else                                                                               \
			(list)->first = (c);                                                       \
		(list)->last = (c);                                                                \
	} while (0)

#define LIST_UNLINK(list, c, links)                                                                \
	do {                                                                                       \
		if ((c)->links.previous)                                                           \
			(c)->links.previous->links.next = (c)->links.next;                         \
		else                                                                               \
			(list)->first = (c)->links.next;                                           \
		if ((c)->links.next)                                                               \
			(c)->links.next->links.previous = (c)->links.previous;                     \
		else                                                                               \
			(list)->last = (c)->links.previous;                                        \
	} while (0)

void server_conn_opened(struct server *s, struct conn *c)
{
	LIST_LINK(&s->all, c, all);
	s->stats.open++;
	s->stats.accepted++;
	s->stats.open_max = MAX(s->stats.open_max, s->stats.open);
}

void server_conn_closed(struct server *s, struct conn *c)
{
	LIST_UNLINK(&s->all, c, all);
	s->stats.open--;
}

/* Waiting: between requests, and while a head arrives. The time counts from the beginning of the wait. */
void server_waiting(struct server *s, struct conn *c, bool waits)
{
	if (waits == c->waiting.is_listed)
		return;
	c->waiting.is_listed = waits;
	if (waits) {
		c->waiting.since_ns = clock_now_ns();
		LIST_LINK(&s->waiting, c, waiting.links);
	} else {
		LIST_UNLINK(&s->waiting, c, waiting.links);
	}
}

/* --- accepting --- */

static int64_t ms_ago(int64_t ms)
{
	return clock_now_ns() - ms * NS_PER_MS;
}

static int64_t connections_of(const struct conn *c)
{
	return c->place.caller->used[SLOT_CONNECTIONS];
}

/* Which connections give way: those of a caller, or if that is NULL, those of callers that have more than some. */
struct eviction {
	const struct caller *of;
	int64_t spared; /* so many connections of each caller give way to nothing, once they had a request */
	int64_t since_ns; /* they have waited since then */
};

static bool may_evict(const struct conn *c, const struct eviction *e)
{
	/* With a slice, it has something to say. */
	if (c->running || c->slice.waits)
		return false;
	return e->of ? c->place.caller == e->of : !c->is_admitted || connections_of(c) > e->spared;
}

/* Closes the one that has waited longest of the caller that has the most. */
static bool evict_one(struct server *s, struct eviction e)
{
	struct conn *c = s->waiting.first, *most = NULL;

	for (int i = 0; c && i < EVICT_AMONG && c->waiting.since_ns <= e.since_ns; i++) {
		if (may_evict(c, &e) && (!most || connections_of(c) > connections_of(most)))
			most = c;
		c = c->waiting.links.next;
	}
	if (!most)
		return false;
	s->stats.evicted++;
	conn_close(most);
	return true;
}

/* As if the connection came only now. */
static bool is_within_limits(const struct server *s, struct conn *c, struct error *err)
{
	const struct slot_demand demand = { SLOT_CONNECTIONS, 1, BUSY_RETRY_S };
	bool within;

	charge_add(&c->place, -1);
	within = caller_check(s->config.callers, c->place.caller, demand, err) == 0;
	charge_add(&c->place, 1);
	return within;
}

bool server_make_room(struct server *s, struct conn *c, struct error *err)
{
	const struct callers *cs = s->config.callers;
	const struct slot_rule *rule = &cs->rules[SLOT_CONNECTIONS];
	const bool many = connections_of(c) > rule->own_max;

	if (is_within_limits(s, c, err))
		return true;
	/* One connection less would not be enough. */
	if (!many && cs->all[SLOT_CONNECTIONS].used > rule->max + 1)
		return false;
	/* A caller that has few gives way to one that has fewer, and not to one that has more. */
	return evict_one(s, (struct eviction){ .of = many ? c->place.caller : NULL,
					       .spared = MIN(rule->few, connections_of(c)),
					       .since_ns = ms_ago(EVICT_FOR_REQUEST_MS) }) &&
	       is_within_limits(s, c, err);
}

static void refuse_connection(struct server *s, int fd)
{
	_cleanup_buf_ struct buf b = { 0 };

	s->stats.refused++;
	buf_init(&b, 4096);
	if (server_write_common(s, &b, 503) >= 0 &&
	    buf_puts(&b, "Content-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n") >= 0)
		(void)!send(fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)fd_close(fd);
}

static void name_address(const struct sockaddr_storage *a, char ret[48], uint16_t *port)
{
	char text[INET6_ADDRSTRLEN] = "";
	bool six = a->ss_family == AF_INET6;

	if (six) {
		const struct sockaddr_in6 *in6 = (const void *)a;

		(void)inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
		*port = ntohs(in6->sin6_port);
	} else if (a->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)a;

		(void)inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
		*port = ntohs(in->sin_port);
	}
	(void)snprintf(ret, 48, six ? "[%.45s]" : "%.46s", text);
}

static int read_peer(int fd, const struct listener *l, struct conn_peer *ret)
{
	struct conn_peer peer = { .is_unix = l->kind == LISTENER_UNIX,
				  .needs_token = l->needs_token,
				  .old_headers = l->old_headers };
	struct sockaddr_storage local = { 0 }, remote = { 0 };
	socklen_t local_len = sizeof(local), remote_len = sizeof(remote);
	struct ucred cred = { 0 };
	socklen_t cred_len = sizeof(cred);
	int on = 1;
	uint16_t port = 0;

	if (peer.is_unix) {
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) < 0)
			return -errno;
		peer.uid = cred.uid;
		*ret = peer;
		return 0;
	}
	if (getsockname(fd, (void *)&local, &local_len) < 0 ||
	    getpeername(fd, (void *)&remote, &remote_len) < 0)
		return -errno;
	name_address(&remote, peer.address, &port);
	name_address(&local, peer.local, &peer.local_port);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	*ret = peer;
	return 0;
}

/*
 * The limit of one caller is looked at when a request names the caller. Where nothing else is left, any connection without a request
 * gives way, the oldest first, but for those that came in this round: whether they say something is not known yet.
 */
static void server_admit(struct server *s, const struct listener *l, int fd, int64_t round_ns)
{
	const struct server_limits *limits = &s->config.limits;
	const uint32_t most = limits->connections + limits->connections_reserve;
	struct conn *c = NULL;
	struct conn_peer peer;

	if (s->stats.open >= limits->connections)
		(void)evict_one(s, (struct eviction){
					   .spared = s->config.callers->rules[SLOT_CONNECTIONS].few,
					   .since_ns = s->stats.open < most ? ms_ago(EVICT_AFTER_MS)
									    : round_ns });
	if (s->stats.open >= most) {
		refuse_connection(s, fd);
		return;
	}
	if (read_peer(fd, l, &peer) < 0 || conn_new(s, fd, &peer, &c) < 0) {
		(void)fd_close(fd);
		return;
	}
}

/* No descriptor is left: an idle connection is closed, or the spare descriptor is used to answer 503. */
static void out_of_descriptors(struct server *s, int listener)
{
	int fd;

	if (evict_one(s, (struct eviction){ .spared = 1, .since_ns = ms_ago(EVICT_AFTER_MS) }))
		return;
	s->spare_fd = fd_close(s->spare_fd);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		refuse_connection(s, fd);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int on_accept(void *data, uint32_t events)
{
	typeof(&((struct server *)NULL)->listeners[0]) own = data;
	struct server *s = own->server;
	const int64_t round_ns = clock_now_ns();

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
		int fd = accept4(own->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			server_admit(s, &own->listener, fd, round_ns);
			continue;
		}
		if (errno == EAGAIN)
			return 0;
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			out_of_descriptors(s, own->listener.fd);
			return 0;
		}
		/* ECONNABORTED and network errors concern that one connection only. */
	}
	return 0;
}

int server_listen(struct server *s, struct listener listener)
{
	_cleanup_close_ int fd = listener.fd;
	size_t i = s->n_listeners;
	int r;

	if (i == LISTENERS_MAX)
		return -ENOSPC;
	r = fd_set_nonblock(fd, true);
	if (r < 0)
		return r;
	s->listeners[i].server = s;
	s->listeners[i].listener = listener;
	r = loop_add_fd(s->config.loop, fd, EPOLLIN,
			(struct handler){ on_accept, &s->listeners[i] }, &s->listeners[i].source);
	if (r < 0)
		return r;
	(void)TAKE_FD(fd);
	s->n_listeners++;
	return 0;
}

/* --- the end --- */

void server_set_auth(struct server *s, const struct auth_rules *auth)
{
	s->config.auth = *auth;
}

void server_drain(struct server *s)
{
	s->draining = true;
	/* For those that stand still now. */
	for (struct conn *c = s->all.first; c; c = c->all.next)
		if (c->state != CONN_IDLE)
			conn_touch(c);
}

struct server *server_free(struct server *s)
{
	if (!s)
		return NULL;
	for (; s->n_listeners > 0; s->n_listeners--) {
		typeof(&s->listeners[0]) l = &s->listeners[s->n_listeners - 1];

		l->source = source_free(l->source);
		l->listener.fd = fd_close(l->listener.fd);
	}
	/* These fibers wait only for the worker, so they return, even if their clients are gone. */
	s->waits_for_fibers = true;
	while (s->stats.on_fibers > 0 && loop_run(s->config.loop) >= 0)
		;
	s->freeing = true;
	while (s->ctxs) {
		struct request_ctx *ctx = s->ctxs;
		struct conn *c = ctx->conn;

		if (ctx->handling && ctx->hooks.on_gone)
			ctx->hooks.on_gone(ctx->hooks.gone_data, GONE_SERVER);
		if (c)
			c->ctx = NULL;
		ctx_free(ctx);
	}
	while (s->all.first) {
		struct conn *c = s->all.first;

		assert(!c->running);
		conn_lost(c);
	}
	s->slice_source = source_free(s->slice_source);
	s->spare_fd = fd_close(s->spare_fd);
	free(s);
	return NULL;
}

void server_stats(const struct server *s, struct server_stats *ret)
{
	*ret = s->stats;
	ret->body_bytes = s->config.callers->all[SLOT_BODY_BYTES].used;
	ret->queue_bytes = s->config.callers->all[SLOT_ANSWER_BYTES].used;
	ret->in_requests = ret->arriving = 0;
	for (const struct conn *c = s->all.first; c; c = c->all.next) {
		ret->in_requests += c->ctx != NULL;
		ret->arriving += (c->state >= CONN_HEAD && c->state <= CONN_LINE) || c->slice.waits;
	}
}
