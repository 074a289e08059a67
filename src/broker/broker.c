/* SPDX-License-Identifier: Apache-2.0 */
/* See broker.h: the front's socket and the life of the process. What one run does is in run.c. */
#include "broker/broker.h"

#include "base/fd.h"
#include "broker/run.h"
#include "sys/fault.h"
#include "sys/kernel.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

/*
 * The caller of `atoll run` and its broker are the same user, so any path that user can read may be shown. Numbers are
 * bounded whatever a plan says.
 */
static const char *const any_source[] = { "/", NULL };
static const struct plan_ceilings local_ceilings = {
	.sources = any_source,
	.limits = {
		[STAGE_WALL_MS] = 24 * 3600 * MS_PER_SEC,
		[STAGE_CPU_MS] = 24 * 3600 * MS_PER_SEC,
		[STAGE_MEMORY_BYTES] = 1024 * GiB,
		[STAGE_SWAP_BYTES] = 1024 * GiB,
		[STAGE_CPU_MILLI] = 4096 * 1000,
		[STAGE_CPU_SHARES] = 262144,
		[STAGE_PIDS] = 1 << 22,
	},
	.disk_bytes = 1024 * GiB,
	.files = 1 << 24,
};

int broker_send(struct broker *b, const struct record *rec, int fd)
{
	int r = sys_send_record(b->front_fd, rec, sizeof(*rec), &fd, fd >= 0 ? 1 : 0);

	/* A front that was not told would wait for ever: both ends see a closed socket instead. */
	if (r < 0 && !(rec->kind == RECORD_FILE && r == -ETOOMANYREFS))
		(void)shutdown(b->front_fd, SHUT_RDWR);
	return r;
}

static void tell_failed(struct broker *b, uint32_t job, const struct error *err)
{
	struct record rec = { .kind = RECORD_FAILED, .job = job, .failed = *err };

	(void)broker_send(b, &rec, -EBADF);
}

static void accept_run(struct broker *b, const struct record *rec, int fds[], size_t n_fds)
{
	struct error err = { 0 };

	if (n_fds != RECORD_FDS_MAX)
		(void)error_set(&err, ERROR_INTERNAL, EBADMSG,
				"a run came without its descriptors");
	else if (run_find(b, rec->job))
		(void)error_set(&err, ERROR_INTERNAL, EEXIST, "job %u exists already", rec->job);
	else if (b->host_error.code != ERROR_NONE)
		err = b->host_error;
	if (err.code != ERROR_NONE) {
		for (size_t i = 0; i < n_fds; i++)
			(void)fd_close(fds[i]);
		tell_failed(b, rec->job, &err);
		return;
	}
	(void)!run_new(b, rec->job, fds);
}

static int end_all(struct broker *b)
{
	b->closing = true;
	b->front_source = source_free(b->front_source);
	for (struct run *run = b->runs; run; run = run->next)
		run_kill(run, CAUSE_INTERRUPTED);
	if (!b->runs)
		loop_stop(b->loop);
	return 0;
}

static int on_front(void *data, uint32_t events)
{
	struct broker *b = data;
	struct record rec;
	int fds[RECORD_FDS_MAX];
	size_t n_fds = RECORD_FDS_MAX;
	ssize_t n = sys_recv_record(b->front_fd, &rec, sizeof(rec), fds, &n_fds);
	struct run *run;

	(void)events;
	if (n == (ssize_t)sizeof(rec) && rec.kind == RECORD_RUN) {
		accept_run(b, &rec, fds, n_fds);
		return 0;
	}
	for (size_t i = 0; i < n_fds; i++)
		(void)fd_close(fds[i]);
	if (n != (ssize_t)sizeof(rec))
		return end_all(b);
	run = run_find(b, rec.job);
	if (run && rec.kind == RECORD_KILL && rec.kill_cause >= 0 && rec.kill_cause < _CAUSE_MAX)
		run_kill(run, rec.kill_cause);
	else if (run && rec.kind == RECORD_USAGE)
		run_send_usage(run);
	return 0;
}

static void say_hello(struct broker *b)
{
	struct record rec = { .kind = RECORD_HELLO, .hello = b->host.facts };

	(void)broker_send(b, &rec, -EBADF);
}

/* The front makes its plan meanwhile. What fails here is told with the first run. */
static void prepare(struct broker *b)
{
	int r = sandbox_host_init(&b->host, &b->spare, &b->host_error);

	say_hello(b);
	if (r == 0)
		r = sandbox_host_open(&b->host, &b->host_error);
	if (r == 0)
		r = sandbox_complete(b->spare, &b->host_error);
	if (r < 0 && b->host_error.code == ERROR_NONE)
		(void)error_set(&b->host_error, ERROR_INTERNAL, -r, "the broker cannot start: %s",
				strerror(-r));
}

int broker_run(int front_fd)
{
	struct broker b = { .front_fd = front_fd, .ceilings = local_ceilings };
	/* A front that reads nothing for this long is broken; blocking for ever would outlive deadlines. */
	const struct timeval patience = { .tv_sec = 60 };
	int r;

	fault_role("broker");
	(void)setsockopt(front_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	prepare(&b);
	b.loop = loop_new();
	r = !b.loop ? -ENOMEM
		    : loop_add_fd(b.loop, front_fd, EPOLLIN, (struct handler){ on_front, &b },
				  &b.front_source);
	if (r == 0)
		r = loop_run(b.loop);
	b.front_source = source_free(b.front_source);
	sandbox_destroy(b.spare);
	sandbox_host_done(&b.host);
	b.loop = loop_free(b.loop);
	return r < 0 ? 1 : 0;
}
