/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor's children: how each is started, and how often. The first restart is immediate. Each later one
 * comes at twice the distance from the start before it, up to ten seconds. After half a minute of life the
 * count begins again. So a child that dies rarely is back at once (and a new broker speeds up the cleanup after
 * the old one), and a child that dies at once is not restarted in a tight loop.
 */
#include "atoll/daemon/monitor-state.h"

#include "atoll/daemon/notify.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	HEALTHY_MS = 30 * 1000,
	AGAIN_FIRST_MS = 100,
	AGAIN_MOST_MS = 10 * 1000,
	FAILURES_AT_START = 5, /* before it was ready for the first time */
};

/* From now on. The time it has lived counts: only a child that died young waits. */
static int64_t delay_ms(const struct monitored_process *c)
{
	int64_t lived_ms = (clock_now_ns() - c->started_ns) / NS_PER_MS, apart_ms = AGAIN_MOST_MS;

	if (c->failures <= 1)
		return 0;
	if (c->failures <= 8)
		apart_ms = MIN(AGAIN_FIRST_MS << (c->failures - 2), AGAIN_MOST_MS);
	return MAX(apart_ms - lived_ms, 0);
}

static void plan_restart(struct monitored_process *c, pid_t pid, const char *how)
{
	struct monitor *m = c->monitor;
	bool healthy = clock_now_ns() - c->started_ns > HEALTHY_MS * NS_PER_MS;
	struct error why;
	int64_t wait_ms;

	c->failures = healthy ? 1 : c->failures + 1;
	if (!m->ever_ready && c->failures >= FAILURES_AT_START) {
		(void)error_set(&why, ERROR_INTERNAL, EIO,
				"the %s ended %u times before the daemon was ready (%s); its log "
				"says why, or see: atoll doctor",
				c->name, c->failures, how);
		monitor_fail(m, &why);
		return;
	}
	wait_ms = delay_ms(c);
	log_say(&m->log, LOG_ERROR, "a process died and is started again",
		LOG_TEXT("process", c->name), LOG_I64("pid", pid), LOG_TEXT("how", how),
		LOG_I64("failures", c->failures), LOG_MS("after", wait_ms));
	source_set_time(c->again, clock_now_ns() + wait_ms * NS_PER_MS);
}

void child_forget(struct monitored_process *c)
{
	c->pidfd = fd_close(c->pidfd);
	c->pid = 0;
}

static void child_ended(struct monitored_process *c, int status)
{
	char how[64];
	pid_t pid = c->pid;

	process_describe_end(status, how, sizeof(how));
	child_forget(c);
	if (monitor_child_ended(c, how) > 0)
		plan_restart(c, pid, how);
}

void monitor_reap(struct monitor *m)
{
	int status;
	pid_t pid;

	/* The others are orphans that a killed broker left. */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == m->broker.pid)
			child_ended(&m->broker, status);
		else if (pid == m->front.pid)
			child_ended(&m->front, status);
	}
}

void child_kill(const struct monitored_process *c, int signo)
{
	int r = c->pid > 0 ? process_signal(&c->monitor->setup, c->pidfd, signo) : 0;

	if (r < 0 && r != -ESRCH)
		log_say(&c->monitor->log, LOG_ERROR, "a process cannot be told to end",
			LOG_TEXT("process", c->name), LOG_I64("pid", c->pid),
			LOG_TEXT("why", strerror(-r)));
}

static int on_again(void *data, uint32_t events)
{
	struct monitored_process *c = data;
	struct error why = { 0 };

	(void)events;
	if (c->monitor->stage != MONITOR_SERVING)
		return 0;
	if (c->start(c->monitor, &why) < 0) {
		log_say(&c->monitor->log, LOG_ERROR, why.text);
		c->started_ns = clock_now_ns();
		plan_restart(c, 0, why.text);
	}
	return 0;
}

int child_begin(struct monitored_process *c)
{
	c->pidfd = -EBADF;
	return loop_add_timer(c->monitor->loop, INT64_MAX, (struct handler){ on_again, c },
			      &c->again);
}

/* Watches a new pid. */
static int watch_child(struct monitored_process *c, pid_t pid, struct error *err)
{
	if (pid < 0)
		return error_set(err, ERROR_INTERNAL, (int)-pid, "cannot start the %s: %s", c->name,
				 strerror((int)-pid));
	c->pid = pid;
	c->started_ns = clock_now_ns();
	c->pidfd = sys_pidfd_open(pid);
	if (c->pidfd < 0) {
		int r = c->pidfd;

		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		child_forget(c);
		return error_set(err, ERROR_INTERNAL, -r, "cannot watch the %s: %s", c->name,
				 strerror(-r));
	}
	log_say(&c->monitor->log, LOG_INFO, "started", LOG_TEXT("process", c->name),
		LOG_I64("pid", pid));
	return 0;
}

int monitor_start_broker(struct monitor *m, struct error *err)
{
	int pair[2], r;

	m->lifeline_fd = fd_close(m->lifeline_fd);
	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "cannot start the broker: %s",
				 strerror(errno));
	r = watch_child(&m->broker, process_start_broker(&m->setup, pair[0]), err);
	(void)fd_close(pair[0]);
	m->lifeline_fd = pair[1];
	return r;
}

int monitor_send_settings(struct monitor *m)
{
	json_t *tree = config_to_json(&m->config);
	char *text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
	_cleanup_close_ int fd = text ? fd_sealed_memfd("settings", text, strlen(text)) : -ENOMEM;
	int r = fd < 0 ? fd : control_send(m->control_fd, CONTROL_CONFIG, NULL, fd);

	json_decref(tree);
	free(text);
	if (r == 0)
		r = control_send(m->control_fd, CONTROL_LOG, NULL, m->log.fd);
	if (r == 0)
		r = control_send(m->control_fd, CONTROL_AUDIT, NULL, m->audit_fd);
	return r;
}

static int send_setup(struct monitor *m)
{
	int r = monitor_send_settings(m);

	if (r == 0)
		r = control_send(m->control_fd, CONTROL_LOCK, NULL, m->place.lock_fd);
	if (r == 0)
		r = control_send(m->control_fd, CONTROL_RUN, NULL, m->place.run_fd);
	for (size_t i = 0; r == 0 && i < m->sockets.n; i++)
		r = control_send(m->control_fd, CONTROL_LISTEN, m->sockets.list[i].name,
				 m->sockets.list[i].fd);
	return r < 0 ? r : control_send(m->control_fd, CONTROL_GO, NULL, -EBADF);
}

static int on_child_control(void *data, uint32_t events)
{
	struct monitor *m = data;
	struct control_record record;
	int fd, r = control_receive(m->control_fd, &record, &fd);
	struct error why;

	(void)events;
	if (r == -EAGAIN)
		return 0;
	if (r <= 0) {
		/*
		 * The front has closed the socket and is ending, or it has broken the protocol and is killed.
		 */
		m->control = source_free(m->control);
		if (r < 0)
			child_kill(&m->front, SIGKILL);
		return 0;
	}
	(void)fd_close(fd);
	m->pong_ns = clock_now_ns();
	if (record.kind == CONTROL_READY) {
		m->ready = true;
		monitor_ready(m);
	} else if (record.kind == CONTROL_PONG) {
		notify_send("WATCHDOG=1");
	} else if (record.kind == CONTROL_FAILED && !m->ever_ready) {
		(void)error_set(&why, ERROR_INTERNAL, EIO, "%s", record.text);
		monitor_fail(m, &why);
	} else if (record.kind == CONTROL_FAILED) {
		log_say(&m->log, LOG_ERROR, "the front cannot serve", LOG_TEXT("why", record.text));
	}
	return 0;
}

int monitor_start_front(struct monitor *m, struct error *err)
{
	int pair[2], r;

	m->control = source_free(m->control);
	m->control_fd = fd_close(m->control_fd);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "cannot start the front: %s",
				 strerror(errno));
	m->control_fd = pair[0];
	r = watch_child(&m->front, process_start_front(&m->setup, pair[1]), err);
	(void)fd_close(pair[1]);
	if (r < 0)
		return r;
	r = loop_add_fd(m->loop, m->control_fd, EPOLLIN, (struct handler){ on_child_control, m },
			&m->control);
	/* The front runs: if setup failed, it is killed, and its end leads to a restart. */
	if (r < 0 || send_setup(m) < 0)
		child_kill(&m->front, SIGKILL);
	return 0;
}
