/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See broker.h: admission of fronts, dispatch of their records, and the life of the process. One task is in task.c, the
 * sending of records to a peer in peer.c.
 */
#include "broker/broker.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/fault.h"
#include "base/sys/kernel.h"
#include "box/commit.h"
#include "box/confine/confine.h"
#include "broker/peer.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PEERS_MAX = 4096, ACCEPT_AGAIN_MS = 100, SWEEP_MS = 2000, SWEEP_SLICE_MS = 5 };
/*
 * Shares of the limit of open files: 1/FILES_RESERVE, at most FILES_RESERVE_MAX, is for ending tasks and for new connections.
 * Sandboxes made ahead leave 1/FILES_OF_TASKS to tasks.
 */
enum { FILES_RESERVE = 16, FILES_RESERVE_MAX = 1024, FILES_OF_TASKS = 4 };

/* Also used for a forked broker: then listen_fd is negative. */
struct listening_broker {
	struct broker broker; /* first: a struct broker * is cast to this */
	const struct broker_options *options;
	int listen_fd, signal_fd;
	size_t n_peers;
	struct source *listener, *signals, *accept_again, *lifeline, *sweeper, *leaving;
};

/*
 * The caller of `atoll run` and its broker are the same user, so any path that user can read may be shown. Numbers have
 * bounds in every plan.
 */
static const char *const any_source[] = { "/", NULL };
static const struct plan_ceilings local_ceilings = {
	.sources = any_source,
	.limits = {
		[STAGE_WALL_MS] = 24 * 3600 * MS_PER_SEC,
		[STAGE_WALL_MAX_MS] = 2 * 24 * 3600 * MS_PER_SEC,
		[STAGE_CPU_MS] = 24 * 3600 * MS_PER_SEC,
		[STAGE_MEMORY_BYTES] = 1024 * GiB,
		[STAGE_SWAP_BYTES] = 1024 * GiB,
		[STAGE_CPU_MILLI] = 4096 * 1000,
		[STAGE_CPU_SHARES] = 262144,
		[STAGE_PIDS] = 1 << 22,
	},
	.disk_bytes = 1024 * GiB,
	.files = 1 << 24,
	.places = true,
};

static void tell_failed(struct peer *peer, uint32_t job, const struct error *err)
{
	struct record rec = { .kind = RECORD_FAILED, .job = job, .failed = *err };

	(void)peer_send(peer, &rec, -EBADF);
}

/* A new descriptor gets the lowest free number: if that is high, all below are in use. */
static bool is_crowded(const struct broker *b, const int fds[RECORD_FDS_MAX])
{
	for (size_t i = 0; i < RECORD_FDS_MAX; i++)
		if (fds[i] >= b->files_max)
			return true;
	return false;
}

static void accept_run(struct peer *peer, const struct record *rec, struct span plan, int fds[],
		       size_t n_fds)
{
	struct broker *b = peer->broker;
	struct error err = { 0 };

	if (!record_place_fds(&rec->run, plan.len > 0, fds, n_fds))
		(void)error_set(&err, ERROR_INTERNAL, EBADMSG,
				"a run came without its descriptors");
	else if (task_find(peer, rec->job))
		(void)error_set(&err, ERROR_INTERNAL, EEXIST, "job %u exists already", rec->job);
	else if (b->closing)
		(void)error_set(&err, ERROR_LOST, ESHUTDOWN, "the sandbox broker is ending");
	else if (b->host_error.code != ERROR_NONE)
		err = b->host_error;
	else if (is_crowded(b, fds))
		task_explain_crowd(&err);
	if (err.code != ERROR_NONE) {
		for (size_t i = 0; i < RECORD_FDS_MAX; i++)
			(void)fd_close(fds[i]);
		tell_failed(peer, rec->job, &err);
		return;
	}
	(void)!task_new(peer, rec, plan, fds);
}

static void end_all(struct broker *b)
{
	b->closing = true;
	pool_close(b->pool);
	for (struct task *task = b->tasks; task; task = task->next[TASK_OF_BROKER])
		task_kill(task, CAUSE_INTERRUPTED);
	broker_may_end(b);
}

/* Takes no further fronts, and ends what runs. */
static void close_doors(struct listening_broker *s)
{
	s->listener = source_free(s->listener);
	end_all(&s->broker);
}

static int on_leave(void *data, uint32_t events)
{
	(void)events;
	close_doors(data);
	return 0;
}

/* A front has come or gone. */
static void set_leaving(struct listening_broker *s)
{
	if (s->leaving)
		source_set_time(s->leaving,
				s->n_peers > 0 ? INT64_MAX
					       : clock_now_ns() + s->options->leave_ms * NS_PER_MS);
}

static int peer_gone(struct peer *peer)
{
	struct listening_broker *s = (struct listening_broker *)peer->broker;

	(void)peer_free(peer);
	s->n_peers--;
	set_leaving(s);
	if (s->listen_fd < 0)
		end_all(&s->broker);
	return 0;
}

/* For a RUN whose record arrived, but whose descriptors exceeded the limit of open files. */
static void refuse_run(struct peer *peer, uint32_t job)
{
	struct error err;

	task_explain_crowd(&err);
	tell_failed(peer, job, &err);
}

static int on_record(void *data, uint32_t events)
{
	struct peer *peer = data;
	struct record rec = { .kind = 0 };
	char plan[RECORD_PLAN_MAX];
	const struct record_parts parts = { &rec, plan, sizeof(rec), sizeof(plan) };
	int fds[RECORD_FDS_MAX] = { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF };
	size_t n_fds = RECORD_FDS_MAX;
	ssize_t n = sys_recv_parts(peer->fd, &parts, fds, &n_fds);
	struct task *task;

	(void)events;
	if (n == -EAGAIN)
		return 0;
	if (n == -EMFILE && rec.kind == RECORD_RUN && !task_find(peer, rec.job)) {
		explicit_bzero(plan, sizeof(plan));
		refuse_run(peer, rec.job);
		return 0;
	}
	if (n >= (ssize_t)sizeof(rec) && rec.kind == RECORD_RUN) {
		size_t len = (size_t)n - sizeof(rec);

		accept_run(peer, &rec, (struct span){ plan, len }, fds, n_fds);
		/* The plan holds the tenant's data: no copy may stay in the broker's memory. */
		explicit_bzero(plan, len);
		return 0;
	}
	for (size_t i = 0; i < n_fds; i++)
		(void)fd_close(fds[i]);
	if (n != (ssize_t)sizeof(rec))
		return peer_gone(peer);
	task = task_find(peer, rec.job);
	if (task && rec.kind == RECORD_KILL && rec.kill_cause >= 0 && rec.kill_cause < _CAUSE_MAX)
		task_kill(task, rec.kill_cause);
	else if (task && rec.kind == RECORD_USAGE)
		task_send_usage(task);
	else if (task && rec.kind == RECORD_SIGNAL)
		task_signal(task, rec.signo);
	else if (task && rec.kind == RECORD_PARK)
		task_park(task);
	else if (task && rec.kind == RECORD_COPY)
		task_move_copy(task, rec.copy_pid);
	else if (rec.kind == RECORD_INHERIT)
		estate_inherit(peer, rec.job, rec.inherit_from);
	else if (rec.kind == RECORD_FORGET)
		estate_forget(peer, rec.job);
	return 0;
}

static void say_hello(struct peer *peer)
{
	const struct broker_options *o = ((struct listening_broker *)peer->broker)->options;
	struct record rec = { .kind = RECORD_HELLO };

	rec.hello = (struct record_hello){
		.version = PROTO_VERSION,
		.warm = o->warm && o->bounds.spares > 0 && o->bounds.memory_bytes > 0,
		.facts = peer->broker->host.facts,
	};
	(void)peer_send(peer, &rec, -EBADF);
}

/* Allowed are the broker's own user, who could start such a broker anyway, and the user of the broker's front. */
static bool is_ours(const struct listening_broker *s, int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return false;
	return peer.uid == geteuid() ||
	       (s->options->front_uid && peer.uid == s->options->front_uid);
}

static void welcome(struct listening_broker *s, int fd)
{
	struct peer *peer = NULL;
	int r = s->n_peers < PEERS_MAX && is_ours(s, fd) ? peer_new(&s->broker, fd, true, &peer)
							 : -EPERM;

	if (r < 0) {
		(void)fd_close(fd);
		return;
	}
	s->n_peers++;
	set_leaving(s);
	r = peer_watch(peer, (struct handler){ on_record, peer });
	if (r < 0)
		(void)peer_gone(peer);
	else
		say_hello(peer);
}

/* Stops listening for a while: the loop would report a waiting connection again at once, before a task frees descriptors. */
static int accept_later(struct listening_broker *s)
{
	source_set_time(s->accept_again, clock_now_ns() + ACCEPT_AGAIN_MS * NS_PER_MS);
	return loop_set_events(s->listener, 0);
}

static int on_connect(void *data, uint32_t events)
{
	struct listening_broker *s = data;
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	bool crowded = fd >= s->broker.files_max;

	(void)events;
	if (fd < 0)
		crowded = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
	else
		welcome(s, fd);
	return crowded ? accept_later(s) : 0;
}

static int on_accept_again(void *data, uint32_t events)
{
	struct listening_broker *s = data;
	_cleanup_close_ int next_fd = fcntl(s->listen_fd, F_DUPFD_CLOEXEC, 0);

	(void)events;
	if (!s->listener)
		return 0;
	return next_fd < 0 || next_fd >= s->broker.files_max
		       ? accept_later(s)
		       : loop_set_events(s->listener, EPOLLIN);
}

/* Peers stay until the last task has ended: each is told the outcome of its own tasks. */
static int on_broker_signal(void *data, uint32_t events)
{
	struct listening_broker *s = data;
	struct signalfd_siginfo info;

	(void)events;
	(void)!read(s->signal_fd, &info, sizeof(info));
	close_doors(s);
	return 0;
}

/* Repeated: if the previous broker was killed just before this one started, its groups are still too young at the start. */
static int on_sweep(void *data, uint32_t events)
{
	struct listening_broker *s = data;
	int64_t ms = sandbox_host_sweep(&s->broker.host) ? SWEEP_SLICE_MS : SWEEP_MS;

	(void)events;
	source_set_time(s->sweeper, clock_now_ns() + ms * NS_PER_MS);
	return 0;
}

static int on_lifeline(void *data, uint32_t events)
{
	struct listening_broker *s = data;

	(void)events;
	s->lifeline = source_free(s->lifeline);
	close_doors(s);
	return 0;
}

/* The front makes its plan meanwhile. A failure here is the answer to each RUN. */
static void prepare_broker(struct broker *b)
{
	int r = sandbox_host_init(&b->host, &b->spare, &b->host_error);

	/* With cgroups a crowd has the processors of its quota only, and short turns would cost 5 % of the rate. */
	if (b->host.facts.cgroup == CGROUP_NONE)
		(void)sys_short_turns();
	if (b->peers)
		say_hello(b->peers);
	if (r == 0)
		r = sandbox_host_open(&b->host, &b->host_error);
	/* There may still be sandboxes without namespaces. */
	if (r == 0 && sandbox_complete(b->spare, &b->spare_error) < 0) {
		sandbox_destroy(TAKE_PTR(b->spare));
		if (b->spare_error.code == ERROR_NONE)
			(void)error_set(&b->spare_error, ERROR_INTERNAL, EPERM,
					"a first sandbox cannot be made; see: atoll doctor");
	}
	/* After the first sandbox was let go, so that both confine themselves at the same time; before the first task is taken. */
	if (r == 0 && !b->host.facts.broker_open) {
		r = confine_enter(CONFINE_BROKER);
		if (r < 0)
			(void)error_set(&b->host_error, ERROR_INTERNAL, -r,
					"the broker cannot give up its rights: %s", strerror(-r));
	}
	if (r < 0 && b->host_error.code == ERROR_NONE)
		(void)error_set(&b->host_error, ERROR_INTERNAL, -r, "the broker cannot start: %s",
				strerror(-r));
}

static int watch_signals(struct listening_broker *s)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return -errno;
	return loop_add_fd(s->broker.loop, s->signal_fd, EPOLLIN,
			   (struct handler){ on_broker_signal, s }, &s->signals);
}

/* A task takes a few descriptors of the broker. */
static void raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void bound_files(struct broker *b)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	int most;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	most = (int)MIN(limit.rlim_cur, (rlim_t)INT_MAX);
	b->files_max = most - MIN(most / FILES_RESERVE, (int)FILES_RESERVE_MAX);
	b->host.files_ahead = most - most / FILES_OF_TASKS;
}

static int open_doors(struct listening_broker *s)
{
	struct loop *loop = s->broker.loop;
	int r;

	sandbox_host_lift(&s->broker.host);
	/* On failure the next task that uses the workspace tries again, and reports the error. */
	(void)!commit_recover_all(s->broker.host.workspaces);
	r = watch_signals(s);
	if (r == 0)
		r = fd_set_nonblock(s->listen_fd, true);
	if (r == 0 && s->options->lifeline_fd > 0)
		r = loop_add_fd(loop, s->options->lifeline_fd, EPOLLIN,
				(struct handler){ on_lifeline, s }, &s->lifeline);
	if (r == 0)
		r = loop_add_timer(loop, INT64_MAX, (struct handler){ on_accept_again, s },
				   &s->accept_again);
	if (r == 0)
		r = loop_add_timer(loop, clock_now_ns() + SWEEP_MS * NS_PER_MS,
				   (struct handler){ on_sweep, s }, &s->sweeper);
	if (r == 0 && s->options->leave_ms > 0)
		r = loop_add_timer(loop, INT64_MAX, (struct handler){ on_leave, s }, &s->leaving);
	if (r == 0)
		r = loop_add_fd(loop, s->listen_fd, EPOLLIN, (struct handler){ on_connect, s },
				&s->listener);
	set_leaving(s);
	return r;
}

/* Without a pool every task is slower, but works. */
static void open_pool(struct listening_broker *s)
{
	const struct pool_options options = { .sandboxes = &s->broker.host,
					      .loop = s->broker.loop,
					      .table = s->options->warm,
					      .bounds = s->options->bounds };

	if (s->options->warm && s->options->bounds.spares > 0 &&
	    s->broker.host_error.code == ERROR_NONE && s->broker.spare_error.code == ERROR_NONE)
		(void)!pool_new(&options, &s->broker.pool);
}

static int serve_peers(struct listening_broker *s)
{
	struct broker *b = &s->broker;
	int r = 0;

	raise_files();
	b->loop = loop_new();
	if (!b->loop)
		return -ENOMEM;
	open_pool(s);
	if (b->peers)
		r = peer_watch(b->peers, (struct handler){ on_record, b->peers });
	if (r == 0 && s->listen_fd >= 0)
		r = open_doors(s);
	bound_files(b);
	return r < 0 ? r : loop_run(b->loop);
}

static void listening_broker_done(struct listening_broker *s)
{
	struct broker *b = &s->broker;

	while (b->peers)
		(void)peer_free(b->peers);
	/* Tasks are left only if the loop has failed. */
	while (b->tasks)
		task_abandon(b->tasks);
	committers_end(b);
	s->listener = source_free(s->listener);
	s->signals = source_free(s->signals);
	s->accept_again = source_free(s->accept_again);
	s->lifeline = source_free(s->lifeline);
	s->sweeper = source_free(s->sweeper);
	s->leaving = source_free(s->leaving);
	s->signal_fd = fd_close(s->signal_fd);
	b->pool = pool_free(b->pool);
	sandbox_destroy(b->spare);
	b->relay_program_fd = fd_close(b->relay_program_fd);
	sandbox_host_done(&b->host);
	b->loop = loop_free(b->loop);
}

int broker_serve(const struct broker_options *options)
{
	struct listening_broker s = { .broker = { .ceilings = local_ceilings,
						  .relay_program_fd = -EBADF },
				      .options = options,
				      .listen_fd = options->listen_fd,
				      .signal_fd = -EBADF };
	struct peer *peer;
	int r = 0;

	fault_role("broker");
	s.broker.host.workspaces = options->workspaces;
	if (options->sources) {
		s.broker.ceilings.sources = options->sources;
		s.broker.ceilings.places = false;
	}
	if (options->front_fd >= 0) {
		r = peer_new(&s.broker, options->front_fd, s.listen_fd >= 0, &peer);
		s.n_peers = r == 0;
	}
	if (r == 0) {
		prepare_broker(&s.broker);
		r = serve_peers(&s);
	}
	listening_broker_done(&s);
	return r < 0 ? 1 : 0;
}
