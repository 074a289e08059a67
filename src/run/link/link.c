/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See link.h. The front's end of the socket is non-blocking. Records that do not fit into it are queued, within a bound, and sent
 * when the loop reports room; before the link is watched, sending waits a bounded time instead. The broker has more rights than
 * the front, but lengths and descriptor counts are checked: a protocol error must not corrupt memory.
 */
#include "run/link/link.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LINK_SEND_WAIT_MS = 5000,
	LINK_EXIT_WAIT_MS = 10000,
	LINK_CONNECT_WAIT_MS = 2000,
	LINK_UNSENT_MAX = 4096, /* records; each may hold RECORD_FDS_MAX descriptors */
	LINK_ROUND_MS = 2, /* for records in one round of the loop: handling FILE reads a file */
};

/* A queued record. A front's records use only the first bytes of struct record, so the rest is not kept. */
struct unsent {
	struct unsent *next;
	uint32_t kind, job;
	struct record_run run; /* or kill_cause, or signo: all at the start of the union */
	int fds[RECORD_FDS_MAX];
	size_t n_fds;
	size_t n_plan;
	char plan[];
};

struct link {
	int fd;
	pid_t pid; /* of a forked broker; 0: none to wait for */
	bool broken;
	bool greeted;
	struct record_hello hello; /* valid if greeted */
	uint32_t next_job;
	struct source *source;
	struct link_port *ports;
	struct unsent *first, **last;
	size_t n_unsent;
};

int link_new(int fd, pid_t pid, struct link **ret)
{
	struct link *l;
	int r = fd_set_nonblock(fd, true);

	if (r < 0)
		return r;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->fd = fd;
	l->pid = pid;
	l->next_job = 1;
	l->last = &l->first;
	*ret = l;
	return 0;
}

/*
 * The broker must not inherit the caller's signal mask and SIGCHLD disposition. The caller's other dispositions do no harm: a
 * session of its own keeps signals away from the broker, and sandboxes start with default dispositions.
 */
static void reset_signals(void)
{
	sigset_t none;

	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Runs in the child. Before serve() only calls that are safe after fork() are used: no stdio, no heap. All descriptors
 * but the socket and stderr are closed, so a broker never holds a pipe end or a file of the caller. A session of its own
 * keeps the terminal's signals away: the broker ends when the socket closes.
 */
static _noreturn_ void child_serve(int fd, struct link_server server)
{
	int null_fd;

	reset_signals();
	(void)setsid();
	/* The socket moves to 3, so that one range covers the rest. */
	if (fd != 3 && dup3(fd, 3, O_CLOEXEC) < 0)
		_exit(125);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		_exit(125);
	if (close_range(4, ~0U, 0) < 0)
		_exit(125);
	_exit(server.serve(server.data, 3));
}

/* Both ends get numbers above 2, also if the caller has closed standard streams. */
static int socket_pair(int ret[2])
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		int fd = pair[i];

		if (fd > STDERR_FILENO)
			continue;
		pair[i] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		(void)fd_close(fd);
		if (pair[i] < 0) {
			int r = -errno;

			(void)fd_close(pair[1 - i]);
			return r;
		}
	}
	ret[0] = pair[0];
	ret[1] = pair[1];
	return 0;
}

int link_spawn(struct link_server server, struct link **ret, struct error *err)
{
	_cleanup_close_ int ours = -EBADF, theirs = -EBADF;
	int pair[2] = { -EBADF, -EBADF };
	pid_t pid;
	int r = socket_pair(pair);

	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r,
				 "cannot make a socket for the sandbox broker: %s", strerror(-r));
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return error_set(err, ERROR_INTERNAL, errno, "cannot start the sandbox broker: %s",
				 strerror(errno));
	if (pid == 0)
		child_serve(theirs, server);
	/* Lets the broker make its first sandbox now: some kernels would start it on this processor only when the front waits. */
	(void)sched_yield();
	r = link_new(ours, pid, ret);
	if (r < 0) {
		ours = fd_close(ours);
		theirs = fd_close(theirs);
		(void)waitpid(pid, NULL, 0);
		return error_set(err, ERROR_INTERNAL, -r, "cannot keep a sandbox broker: %s",
				 strerror(-r));
	}
	(void)TAKE_FD(ours);
	return 0;
}

/* The broker ends by itself once the socket is closed; if it does not in time, it is killed. */
static void reap_broker(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int r;

	if (pidfd >= 0) {
		do {
			r = poll(&p, 1, LINK_EXIT_WAIT_MS);
		} while (r < 0 && errno == EINTR);
		if (r == 0)
			(void)kill(pid, SIGKILL);
		(void)fd_close(pidfd);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void drop_first(struct link *l)
{
	struct unsent *u = l->first;

	l->first = u->next;
	if (!l->first)
		l->last = &l->first;
	l->n_unsent--;
	for (size_t i = 0; i < u->n_fds; i++)
		(void)fd_close(u->fds[i]);
	free(u);
}

static void drop_unsent(struct link *l)
{
	while (l->first)
		drop_first(l);
}

struct link *link_close(struct link *l)
{
	if (!l)
		return NULL;
	assert(!l->ports);
	link_unwatch(l);
	drop_unsent(l);
	l->fd = fd_close(l->fd);
	if (l->pid > 0)
		reap_broker(l->pid);
	free(l);
	return NULL;
}

void link_attach(struct link *l, struct link_port *port)
{
	port->job = l->next_job++;
	/* 0 is the keeper's number (link_attach_keeper). */
	if (l->next_job == 0)
		l->next_job = 1;
	port->next = l->ports;
	l->ports = port;
}

void link_attach_keeper(struct link *l, struct link_port *port)
{
	port->job = 0;
	port->next = l->ports;
	l->ports = port;
}

bool link_is_idle(const struct link *l)
{
	return !l->ports;
}

void link_detach(struct link *l, struct link_port *port)
{
	for (struct link_port **p = &l->ports; *p; p = &(*p)->next) {
		if (*p != port)
			continue;
		*p = port->next;
		port->next = NULL;
		return;
	}
}

bool link_is_broken(const struct link *l)
{
	return l->broken;
}

bool link_is_shared(const struct link *l)
{
	return l->pid == 0;
}

bool link_is_warm(const struct link *l)
{
	return l->greeted && l->hello.warm;
}

/* Tells every port once; a handler may detach its own port. */
static int break_link(struct link *l)
{
	int result = 0;

	if (l->broken)
		return 0;
	l->broken = true;
	l->source = source_free(l->source);
	drop_unsent(l);
	/* A broker that the front did not fork ends the front's runs when it sees this. */
	(void)shutdown(l->fd, SHUT_RDWR);
	for (struct link_port *p = l->ports, *next; p; p = next) {
		int r;

		next = p->next;
		r = p->on_message(p->data, NULL);
		if (r < 0 && result == 0)
			result = r;
	}
	return result;
}

void link_give_up(struct link *l)
{
	if (l->pid > 0)
		(void)kill(l->pid, SIGKILL);
	(void)break_link(l);
}

static int wait_for_socket(int fd, short events, int wait_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	int r;

	do {
		r = poll(&p, 1, wait_ms);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return r == 0 ? -ETIMEDOUT : 0;
}

static int keep_outgoing(struct link *l, const struct record *record, struct span plan,
			 const int *fds, size_t n_fds)
{
	struct unsent *u;
	int r = 0;

	if (l->n_unsent >= LINK_UNSENT_MAX)
		return -ENOBUFS;
	u = malloc(sizeof(*u) + plan.len);
	if (!u)
		return -ENOMEM;
	*u = (struct unsent){
		.kind = record->kind, .job = record->job, .run = record->run, .n_plan = plan.len
	};
	if (plan.len > 0)
		memcpy(u->plan, plan.data, plan.len);
	for (; u->n_fds < n_fds && r == 0; u->n_fds++) {
		u->fds[u->n_fds] = fcntl(fds[u->n_fds], F_DUPFD_CLOEXEC, 3);
		if (u->fds[u->n_fds] < 0)
			r = -errno;
	}
	if (r == 0 && !l->first)
		r = loop_set_events(l->source, EPOLLIN | EPOLLOUT);
	if (r < 0) {
		for (size_t i = 0; i < u->n_fds; i++)
			(void)fd_close(u->fds[i]);
		free(u);
		return r;
	}
	*l->last = u;
	l->last = &u->next;
	l->n_unsent++;
	return 0;
}

static int send_parts(struct link *l, const struct record *record, struct span plan, const int *fds,
		      size_t n_fds)
{
	const struct record_parts parts = { .head = (void *)(uintptr_t)record,
					    .head_len = sizeof(*record),
					    .tail = (void *)(uintptr_t)plan.data,
					    .tail_len = plan.len };

	return sys_send_parts(l->fd, &parts, fds, n_fds);
}

int link_send_plan(struct link *l, const struct record *record, struct span plan, const int *fds,
		   size_t n_fds)
{
	assert(n_fds <= RECORD_FDS_MAX && plan.len <= RECORD_PLAN_MAX);
	if (l->broken)
		return -EPIPE;
	if (l->first)
		return keep_outgoing(l, record, plan, fds, n_fds);
	for (;;) {
		/* SEQPACKET: the whole record or nothing. */
		int r = send_parts(l, record, plan, fds, n_fds);

		if (r != -EAGAIN)
			return r == -ECONNRESET ? -EPIPE : r;
		if (l->source)
			return keep_outgoing(l, record, plan, fds, n_fds);
		r = wait_for_socket(l->fd, POLLOUT, LINK_SEND_WAIT_MS);
		if (r < 0)
			return r;
	}
}

int link_send(struct link *l, const struct record *record, const int *fds, size_t n_fds)
{
	return link_send_plan(l, record, (struct span){ 0 }, fds, n_fds);
}

static void close_fds(struct link_message *m)
{
	for (size_t i = 0; i < m->n_fds; i++)
		m->fds[i] = fd_close(m->fds[i]);
}

/* 1: a record; 0: no record now; negative: the link must be broken. */
static int receive_message(struct link *l, struct link_message *ret)
{
	ssize_t n;

	for (size_t i = 0; i < RECORD_FDS_MAX; i++)
		ret->fds[i] = -EBADF;
	ret->n_fds = RECORD_FDS_MAX;
	ret->record.kind = ret->record.job = 0;
	n = sys_recv_record(l->fd, &ret->record, sizeof(ret->record), ret->fds, &ret->n_fds);
	/* A record without its descriptors fails one run, not the link. */
	ret->lost_fds = n == -EMFILE;
	if (ret->lost_fds)
		return 1;
	if (n < 0)
		return n == -EAGAIN ? 0 : (int)n;
	if (n != sizeof(ret->record)) {
		close_fds(ret);
		return n == 0 ? -EPIPE : -EPROTO;
	}
	return 1;
}

static int route(struct link *l, struct link_message *m)
{
	if (m->record.kind == RECORD_HELLO) {
		if (m->record.hello.version != PROTO_VERSION)
			return break_link(l);
		l->greeted = true;
		l->hello = m->record.hello;
	}
	for (struct link_port *p = l->ports; p; p = p->next) {
		if (p->job == m->record.job)
			return p->on_message(p->data, m);
	}
	return 0;
}

int link_explain_unsent(int r, struct error *err)
{
	if (r == -EPIPE)
		return error_set(err, ERROR_LOST, EPIPE, "the sandbox broker died");
	if (r != -ETOOMANYREFS)
		return error_set(err, ERROR_INTERNAL, -r, "cannot start the run: %s", strerror(-r));
	return error_set(
		err, ERROR_BUSY, EAGAIN,
		"too many descriptors of this user are on their way between processes: try again "
		"when a run has ended, or raise the limit of open files (ulimit -n, LimitNOFILE=)");
}

/* The kernel does not pass on the descriptors of the first queued RUN: that run fails, and the link stays. */
static int refuse_first(struct link *l)
{
	struct link_message m = { .record = { .kind = RECORD_FAILED, .job = l->first->job } };

	drop_first(l);
	(void)link_explain_unsent(-ETOOMANYREFS, &m.record.failed);
	return route(l, &m);
}

/* 0: the queue is empty, the socket is full again, or the link is broken; negative: the broker is gone. */
static int flush_link(struct link *l)
{
	while (l->first) {
		const struct unsent *u = l->first;
		const struct record record = { .kind = u->kind, .job = u->job, .run = u->run };
		int r = send_parts(l, &record, (struct span){ u->plan, u->n_plan }, u->fds,
				   u->n_fds);

		if (r == -EAGAIN)
			return 0;
		if (r == 0)
			drop_first(l);
		else if (r == -ETOOMANYREFS)
			r = refuse_first(l);
		if (r < 0)
			return r;
	}
	return l->broken ? 0 : loop_set_events(l->source, EPOLLIN);
}

/*
 * `all`: reads until the socket is empty or closed. Otherwise stops when no port is left or the round's time is over; the rest
 * is read in the next round.
 */
static int dispatch(struct link *l, bool all)
{
	int64_t until_ns = clock_now_ns() + LINK_ROUND_MS * NS_PER_MS;
	struct link_message m;

	while (!l->broken) {
		int r = receive_message(l, &m);

		if (r == 0)
			return 0;
		if (r < 0)
			return break_link(l);
		r = route(l, &m);
		close_fds(&m);
		if (r < 0)
			return r;
		if (!all && (!l->ports || clock_now_ns() >= until_ns))
			return 0;
	}
	return 0;
}

int link_dispatch(struct link *l)
{
	return dispatch(l, true);
}

int link_hello(struct link *l, struct host_facts *ret)
{
	/* A listening broker gets less time: the caller can do without it. */
	int wait_ms = l->pid > 0 ? LINK_SEND_WAIT_MS : LINK_CONNECT_WAIT_MS;

	while (!l->greeted) {
		int r = l->broken ? -EPIPE : wait_for_socket(l->fd, POLLIN, wait_ms);

		if (r == 0)
			r = link_dispatch(l);
		if (r < 0)
			return r;
	}
	*ret = l->hello.facts;
	return 0;
}

/* A broker controls the runs of its fronts, so only brokers of the front's own user or of root are trusted. */
static bool is_trusted(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

int link_connect(const char *path, struct link **ret)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -EBADF;
	size_t n = strlen(path);
	int r;

	if (n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, n);
	/* Non-blocking: if the broker's queue of connections is full, the caller does without this broker. */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (!is_trusted(fd))
		return -EPERM;
	r = link_new(fd, 0, ret);
	if (r == 0)
		(void)TAKE_FD(fd);
	return r;
}

static int on_events(void *data, uint32_t events)
{
	struct link *l = data;

	if (events & EPOLLOUT && flush_link(l) < 0)
		return break_link(l);
	return events & ~(uint32_t)EPOLLOUT ? dispatch(l, false) : 0;
}

int link_watch(struct link *l, struct loop *loop)
{
	if (l->broken)
		return -EPIPE;
	return loop_add_fd(loop, l->fd, EPOLLIN, (struct handler){ on_events, l }, &l->source);
}

void link_unwatch(struct link *l)
{
	l->source = source_free(l->source);
}
