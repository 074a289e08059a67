/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See monitor.h: from settings to a serving daemon, and its end. One loop: signals (also a child's end) by
 * signalfd, the front's records by its socket. The monitor reads no byte that came from a caller.
 *
 * Of a child that died, the first restart is immediate. Each later one comes at twice the distance from the start before it, up to ten
 * seconds. After half a minute of life the count begins again. So a child that dies rarely is back at once (and a new broker speeds up the
 * cleanup after the old one), and a child that dies at once is not restarted in a tight loop.
 */
#include "atoll/daemon/monitor.h"

#include "atoll/daemon/control.h"
#include "atoll/daemon/listeners.h"
#include "atoll/daemon/logfile.h"
#include "atoll/daemon/process.h"
#include "atoll/daemon/state-dir.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop/loop.h"
#include "base/parse.h"
#include "base/sys/kernel.h"
#include "run/kit-prepare.h"
#include "run/toolchain/data.h"
#include "run/toolchain/kit.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PING_MS = 10 * 1000,
	ROTATE_MS = 1000,    /* interval of checks of the audit log's size */
	PONG_MS = 60 * 1000, /* a front without an answer for that long hangs */
	STOP_MS = 5 * 1000,  /* time for the cleanup */
	/* A dozen for a sandbox, as many for one that is being removed, and its share of common ones. */
	FILES_A_RUN = 30,
	HEALTHY_MS = 30 * 1000,
	AGAIN_FIRST_MS = 100,
	AGAIN_MOST_MS = 10 * 1000,
	FAILURES_AT_START = 5, /* before it was ready for the first time */
};

struct monitor;

/* A process that the monitor keeps running. */
struct monitored_process {
	const char *name;
	struct monitor *monitor;
	int (*start)(struct monitor *m, struct error *err);
	pid_t pid; /* 0: it does not run */
	int pidfd;
	int64_t started_ns;
	unsigned failures;    /* in a row */
	struct source *again; /* timer of the next start */
};

enum monitor_stage { MONITOR_SERVING, MONITOR_DRAINING, MONITOR_STOPPING };

/* Pings to the front, and its answers. */
struct monitor_heartbeat {
	struct source *timer;
	int64_t every_ms;
	int64_t patience_ms; /* the longest time to an answer */
	int64_t answered_ns;
};

struct monitor {
	struct config config;
	struct log log;
	int log_fd, audit_fd; /* opened by the monitor, or -EBADF */
	struct state_dir place;
	struct listening_sockets sockets;
	struct process_setup setup;
	struct loop *loop;
	struct monitored_process broker, front;
	int lifeline_fd; /* the monitor's end of the broker's lifeline */
	int control_fd;	 /* to the front */
	int signal_fd;
	struct source *signals, *owner, *control, *rotator, *deadline;
	struct monitor_heartbeat heartbeat;
	int64_t began_ns;
	bool ready, ever_ready; /* the front is ready; was ready once */
	enum monitor_stage stage;
	int result; /* return value of monitor_serve() */
	struct error error;
};

/*
 * --- the service manager: sd_notify(3) without libsystemd ---
 *
 * A datagram to $NOTIFY_SOCKET, which is a path or, with a leading @, an abstract name. Without the variable nothing is sent, and that is no
 * failure.
 */

/* "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=…" */
static void notify_send(const char *state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	_cleanup_close_ int fd = -EBADF;
	size_t n = path ? strlen(path) : 0;

	if (n < 2 || n >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(address.sun_path, path, n);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL,
			      (const struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}

/* The interval for WATCHDOG=1; 0: not wanted. */
static int64_t notify_watchdog_ms(void)
{
	const char *period = getenv("WATCHDOG_USEC"), *whom = getenv("WATCHDOG_PID");
	int64_t us, pid;

	if (!period || parse_i64(period, &us) < 0 || us <= 0)
		return 0;
	/* The variables are meant for another process of the same service. */
	if (whom && (parse_i64(whom, &pid) < 0 || pid != getpid()))
		return 0;
	return MAX(us / US_PER_MS, 1);
}

/* --- the children --- */

static void child_forget(struct monitored_process *c)
{
	c->pidfd = fd_close(c->pidfd);
	c->pid = 0;
}

static void child_kill(const struct monitored_process *c, int signo)
{
	int r = c->pid > 0 ? process_signal(&c->monitor->setup, c->pidfd, signo) : 0;

	if (r < 0 && r != -ESRCH)
		log_say(&c->monitor->log, LOG_ERROR, "a process cannot be told to end",
			LOG_TEXT("process", c->name), LOG_I64("pid", c->pid),
			LOG_TEXT("why", strerror(-r)));
}

/* --- the end --- */

static void set_deadline(struct monitor *m, int64_t in_ms)
{
	source_set_time(m->deadline, clock_now_ns() + in_ms * NS_PER_MS);
}

/* The front has ended: stops the broker. */
static void monitor_stop(struct monitor *m)
{
	assert(m->stage != MONITOR_STOPPING && m->front.pid == 0);
	m->stage = MONITOR_STOPPING;
	listening_close(&m->sockets);
	child_kill(&m->broker, SIGTERM);
	set_deadline(m, STOP_MS);
	if (m->broker.pid == 0)
		loop_stop(m->loop);
}

static void monitor_drain(struct monitor *m)
{
	assert(m->stage == MONITOR_SERVING);
	m->stage = MONITOR_DRAINING;
	notify_send("STOPPING=1");
	/*
	 * While the front drains, it answers new clients itself. Once it is gone, no client may wait in a queue
	 * that is not served.
	 */
	listening_leave(&m->sockets);
	log_say(&m->log, LOG_INFO, "draining", LOG_MS("at_most", m->config.drain_ms));
	if (m->front.pid == 0) {
		monitor_stop(m);
		return;
	}
	child_kill(&m->front, SIGTERM);
	set_deadline(m, m->config.drain_ms + STOP_MS);
}

static void monitor_fail(struct monitor *m, const struct error *why)
{
	if (m->result < 0)
		return;
	m->error = *why;
	m->result = -why->errnum;
	if (m->stage == MONITOR_SERVING)
		monitor_drain(m);
	child_kill(&m->front, SIGKILL);
}

/* --- restarts --- */

static void plan_restart(struct monitored_process *c, pid_t pid, const char *how)
{
	struct monitor *m = c->monitor;
	int64_t lived_ms = (clock_now_ns() - c->started_ns) / NS_PER_MS, wait_ms = 0;
	struct error why;

	c->failures = lived_ms > HEALTHY_MS ? 1 : c->failures + 1;
	if (!m->ever_ready && c->failures >= FAILURES_AT_START) {
		(void)error_set(&why, ERROR_INTERNAL, EIO,
				"the %s ended %u times before the daemon was ready (%s); its log "
				"says why, or see: atoll doctor",
				c->name, c->failures, how);
		monitor_fail(m, &why);
		return;
	}
	/* The time it has lived counts: only a child that died young waits. */
	if (c->failures > 8)
		wait_ms = AGAIN_MOST_MS;
	else if (c->failures > 1)
		wait_ms = MIN(AGAIN_FIRST_MS << (c->failures - 2), AGAIN_MOST_MS);
	wait_ms = MAX(wait_ms - lived_ms, 0);
	log_say(&m->log, LOG_ERROR, "a process died and is started again",
		LOG_TEXT("process", c->name), LOG_I64("pid", pid), LOG_TEXT("how", how),
		LOG_I64("failures", c->failures), LOG_MS("after", wait_ms));
	source_set_time(c->again, clock_now_ns() + wait_ms * NS_PER_MS);
}

static void child_ended(struct monitored_process *c, int status)
{
	struct monitor *m = c->monitor;
	char how[64];
	pid_t pid = c->pid;

	process_describe_end(status, how, sizeof(how));
	child_forget(c);
	if (c == &m->front)
		m->ready = false;
	if (m->stage == MONITOR_SERVING) {
		plan_restart(c, pid, how);
		return;
	}
	log_say(&m->log, LOG_INFO, "ended", LOG_TEXT("process", c->name), LOG_TEXT("how", how));
	if (c == &m->front)
		monitor_stop(m);
	else if (m->stage == MONITOR_STOPPING)
		loop_stop(m->loop);
}

/* Reaps ended children; the others are orphans that a killed broker left. */
static void monitor_reap(struct monitor *m)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == m->broker.pid)
			child_ended(&m->broker, status);
		else if (pid == m->front.pid)
			child_ended(&m->front, status);
	}
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

/* --- starts --- */

static void monitor_ready(struct monitor *m)
{
	char names[1024] = "";

	notify_send("READY=1\nSTATUS=serving");
	for (size_t i = 0; i < m->sockets.n; i++) {
		size_t n = strlen(names);

		(void)snprintf(names + n, sizeof(names) - n, "%s%s", i ? " " : "",
			       m->sockets.list[i].name);
	}
	log_say(&m->log, LOG_INFO, "ready", LOG_TEXT("listen", names),
		LOG_TEXT("state_dir", m->config.places.state_dir),
		LOG_I64("front_uid", m->setup.identity.uid),
		LOG_MS("after", (clock_now_ns() - m->began_ns) / NS_PER_MS));
	if (!m->ever_ready)
		kit_prepare_behind(m->config.places.data_dir);
	m->ever_ready = true;
}

/* Sends CONFIG, LOG and AUDIT, then the rest or RELOAD. */
static int monitor_send_settings(struct monitor *m)
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

/* Watches a new pid. */
static int watch_child(struct monitored_process *c, pid_t pid, struct error *err)
{
	if (pid < 0)
		return error_set(err, ERROR_INTERNAL, (int)-pid, "cannot start the %s: %s", c->name,
				 strerror((int)-pid));
	assert(c->pid == 0 && c->pidfd < 0);
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

static int monitor_start_broker(struct monitor *m, struct error *err)
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
	m->heartbeat.answered_ns = clock_now_ns();
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

static int monitor_start_front(struct monitor *m, struct error *err)
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

/* --- the loop --- */

static void send_reload(struct monitor *m)
{
	if (m->control && (monitor_send_settings(m) < 0 ||
			   control_send(m->control_fd, CONTROL_RELOAD, NULL, -EBADF) < 0))
		child_kill(&m->front, SIGKILL);
}

static int on_monitor_deadline(void *data, uint32_t events)
{
	struct monitor *m = data;
	struct monitored_process *c = m->stage == MONITOR_DRAINING ? &m->front : &m->broker;

	(void)events;
	log_say(&m->log, LOG_WARNING, "a process does not end and is killed",
		LOG_TEXT("process", c->name), LOG_I64("pid", c->pid));
	child_kill(c, SIGKILL);
	return 0;
}

/* Opens both or none; replaces the ones that were open. */
static int open_logs(struct monitor *m, struct error *err)
{
	_cleanup_close_ int log_fd = -EBADF, audit_fd = -EBADF;

	if (*m->config.log.file) {
		log_fd = logfile_open(&m->config, m->config.log.file, err);
		if (log_fd < 0)
			return log_fd;
	}
	if (*m->config.audit.file) {
		audit_fd = logfile_open(&m->config, m->config.audit.file, err);
		if (audit_fd < 0)
			return audit_fd;
	}
	(void)fd_close(m->log_fd);
	(void)fd_close(m->audit_fd);
	m->log.fd = log_fd >= 0 ? log_fd : STDERR_FILENO;
	m->log_fd = TAKE_FD(log_fd);
	m->audit_fd = TAKE_FD(audit_fd);
	return 0;
}

static void monitor_reload(struct monitor *m)
{
	struct error why = { 0 };
	int r = config_read_tokens(&m->config, &why);

	if (r == 0)
		r = open_logs(m, &why);
	if (r < 0) {
		log_say(&m->log, LOG_ERROR, "nothing was read again", LOG_TEXT("why", why.text));
		return;
	}
	config_warn_of_tokens(&m->config, &m->log);
	send_reload(m);
	log_say(&m->log, LOG_INFO, "tokens were read and logs opened again");
}

/* When the audit file is full it becomes FILE.1. If that fails, it is tried again a second later. */
static int on_rotate(void *data, uint32_t events)
{
	struct monitor *m = data;
	struct error why = { 0 };
	struct stat st;
	int r;

	(void)events;
	source_set_time(m->rotator, clock_now_ns() + ROTATE_MS * NS_PER_MS);
	if (m->config.audit.bytes == 0 || m->audit_fd < 0 || m->stage != MONITOR_SERVING ||
	    fstat(m->audit_fd, &st) < 0 || st.st_size < m->config.audit.bytes)
		return 0;
	r = logfile_rotate(&m->config, m->config.audit.file, m->config.audit.files);
	if (r == 0)
		r = open_logs(m, &why);
	if (r == 0)
		send_reload(m);
	else
		log_say(&m->log, LOG_ERROR, "the audit log cannot be rotated",
			LOG_TEXT("why", *why.text ? why.text : strerror(-r)));
	return 0;
}

static int on_monitor_signal(void *data, uint32_t events)
{
	struct monitor *m = data;
	struct signalfd_siginfo info;

	(void)events;
	if (read(m->signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo == SIGCHLD)
		monitor_reap(m);
	else if (info.ssi_signo == SIGHUP && m->stage == MONITOR_SERVING)
		monitor_reload(m);
	else if (info.ssi_signo != SIGHUP && m->stage == MONITOR_SERVING)
		monitor_drain(m);
	else if (info.ssi_signo != SIGHUP && m->stage == MONITOR_DRAINING)
		child_kill(&m->front, SIGKILL);
	return 0;
}

static int on_ping(void *data, uint32_t events)
{
	struct monitor *m = data;
	int64_t now_ns = clock_now_ns();

	(void)events;
	source_set_time(m->heartbeat.timer, now_ns + m->heartbeat.every_ms * NS_PER_MS);
	if (!m->ready) {
		notify_send("WATCHDOG=1");
		return 0;
	}
	if (now_ns - m->heartbeat.answered_ns > m->heartbeat.patience_ms * NS_PER_MS) {
		log_say(&m->log, LOG_ERROR, "the front does not answer and is killed",
			LOG_I64("pid", m->front.pid));
		child_kill(&m->front, SIGKILL);
		m->ready = false;
		return 0;
	}
	/* If the socket is full, the front does not read; it has time until PONG_MS. */
	(void)!control_send(m->control_fd, CONTROL_PING, NULL, -EBADF);
	return 0;
}

static int watch_signals(struct monitor *m)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	(void)sigdelset(&set, SIGPIPE);
	(void)signal(SIGCHLD, SIG_DFL);
	/*
	 * Orphans of a killed broker are reaped at once, independent of pid 1: a zombie would keep its cgroup
	 * busy.
	 */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return m->signal_fd < 0
		       ? -errno
		       : loop_add_fd(m->loop, m->signal_fd, EPOLLIN,
				     (struct handler){ on_monitor_signal, m }, &m->signals);
}

/* The program that started this daemon for itself has gone, and with it every reader of results: nothing is waited for. */
static int on_owner(void *data, uint32_t events)
{
	struct monitor *m = data;
	char bytes[256];

	(void)events;
	if (read(STDIN_FILENO, bytes, sizeof(bytes)) > 0)
		return 0;
	m->owner = source_free(m->owner);
	if (m->stage == MONITOR_SERVING)
		monitor_drain(m);
	child_kill(&m->front, SIGKILL);
	return 0;
}

static int watch_all(struct monitor *m, bool until_eof, struct error *err)
{
	struct monitored_process *const children[] = { &m->broker, &m->front };
	int64_t watchdog_ms = notify_watchdog_ms();
	int r;

	/* Well before a service manager's watchdog would kill the service. */
	m->heartbeat.every_ms = watchdog_ms > 0 ? MIN(MAX(watchdog_ms / 6, 1), PING_MS) : PING_MS;
	m->heartbeat.patience_ms = watchdog_ms > 0 ? MIN(MAX(watchdog_ms / 2, 1), PONG_MS)
						   : PONG_MS;
	m->broker = (struct monitored_process){ "broker", m, monitor_start_broker,
						.pidfd = -EBADF };
	m->front = (struct monitored_process){ "front", m, monitor_start_front, .pidfd = -EBADF };
	m->loop = loop_new();
	r = m->loop ? watch_signals(m) : -ENOMEM;
	if (r == 0 && until_eof)
		r = loop_add_fd(m->loop, STDIN_FILENO, EPOLLIN, (struct handler){ on_owner, m },
				&m->owner);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(children); i++)
		r = loop_add_timer(m->loop, INT64_MAX, (struct handler){ on_again, children[i] },
				   &children[i]->again);
	if (r == 0)
		r = loop_add_timer(m->loop, INT64_MAX, (struct handler){ on_monitor_deadline, m },
				   &m->deadline);
	if (r == 0)
		r = loop_add_timer(m->loop, clock_now_ns() + m->heartbeat.every_ms * NS_PER_MS,
				   (struct handler){ on_ping, m }, &m->heartbeat.timer);
	if (r == 0)
		r = loop_add_timer(m->loop, clock_now_ns() + ROTATE_MS * NS_PER_MS,
				   (struct handler){ on_rotate, m }, &m->rotator);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "the daemon cannot start: %s",
				 strerror(-r))
		     : 0;
}

/* Resolves links: paths shown in a sandbox are compared with these, and no link is followed to a workspace. */
static int use_real_path(struct config *c, const char **path, struct error *err)
{
	_cleanup_free_ char *real = realpath(*path, NULL);

	if (!real)
		return error_set(err, ERROR_STORAGE, errno, "cannot find '%.200s': %s", *path,
				 strerror(errno));
	*path = arena_strndup(&c->memory, real, strlen(real));
	return *path ? 0 : error_oom(err);
}

/* Programs' files there belong to the directory's owner, which must not be root. */
static int make_output_path(struct config *c, const struct identity *id, struct error *err)
{
	size_t made;
	int r = state_dir_make_parents(c->places.output_data_path, "--output-data-path", &made,
				       err);

	if (r < 0)
		return r;
	if (mkdir(c->places.output_data_path, 0755) < 0) {
		if (errno == EEXIST)
			return use_real_path(c, &c->places.output_data_path, err);
		return error_set(err, ERROR_STORAGE, errno,
				 "cannot make output_data_path '%.200s': %s",
				 c->places.output_data_path, strerror(errno));
	}
	if (geteuid() == 0 && lchown(c->places.output_data_path, id->uid, id->gid) < 0)
		return error_set(err, ERROR_STORAGE, errno,
				 "cannot hand output_data_path '%.200s' to the front: %s",
				 c->places.output_data_path, strerror(errno));
	return use_real_path(c, &c->places.output_data_path, err);
}

static int resolve_paths(struct monitor *m, struct error *err)
{
	_cleanup_free_ char *found = NULL;
	struct config *c = &m->config;
	int r = data_find(*c->places.data_dir ? c->places.data_dir : NULL, &found, err);

	if (r < 0)
		return r;
	c->places.data_dir = found;
	r = use_real_path(c, &c->places.data_dir, err);
	if (r == 0)
		r = use_real_path(c, &c->places.state_dir, err);
	if (r == 0)
		r = identity_check_data(&m->setup.identity, c->places.data_dir, err);
	return r;
}

/*
 * Broker and front have a limited number of descriptors. Runs beyond what these allow would be started and
 * refused instead of queued.
 */
static void bound_running(struct monitor *m)
{
	struct rlimit files;
	int64_t most;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	most = MAX((int64_t)MIN(files.rlim_max, (rlim_t)INT_MAX) / FILES_A_RUN, (int64_t)1);
	if (m->config.queue.running <= most)
		return;
	log_say(&m->log, LOG_WARNING,
		"the limit of open files is too low for queue.running; raise it (ulimit -n, "
		"LimitNOFILE=)",
		LOG_I64("files", (int64_t)files.rlim_max),
		LOG_I64("asked", m->config.queue.running), LOG_I64("running", most));
	m->config.queue.running = most;
}

int monitor_settle(const struct config_source *source, struct config *c, struct identity *id,
		   struct error *err)
{
	int r = config_load(source, c, err);

	if (r == 0)
		r = config_read_tokens(c, err);
	if (r == 0)
		r = config_read_secrets(c, err);
	if (r == 0)
		r = config_read_languages(c, err);
	if (r == 0)
		r = config_check_exposure(c, err);
	if (r == 0)
		r = identity_find(c, id, err);
	/* Before anything is made or handed over. */
	return r < 0 ? r : identity_check_state(id, c->places.state_dir, err);
}

static int load_settings(struct monitor *m, const struct config_source *source, struct error *err)
{
	int r = monitor_settle(source, &m->config, &m->setup.identity, err);

	if (r == 0)
		r = process_find_front(err);
	if (r < 0)
		return r;
	m->setup.program_fd = r;
	m->log.format = (enum log_format)m->config.log.format;
	m->log.level = (enum log_level)m->config.log.level;
	m->place.path = m->config.places.state_dir;
	return 0;
}

/* A start that is refused here leaves nothing behind. */
static int open_all(struct monitor *m, struct error *err)
{
	char kits[4096 + 16];
	int r = state_dir_open(&m->place, m->setup.identity.uid, m->setup.identity.gid, err);

	if (r == 0)
		r = resolve_paths(m, err);
	if (r == 0)
		r = listening_open(&m->sockets, &m->config, &m->log, err);
	if (r == 0 && *m->config.places.output_data_path)
		r = make_output_path(&m->config, &m->setup.identity, err);
	if (r == 0)
		r = open_logs(m, err);
	if (r < 0) {
		listening_close(&m->sockets);
		state_dir_undo(&m->place);
		return r;
	}
	config_warn_of_tokens(&m->config, &m->log);
	bound_running(m);
	/* As root, kits are in a directory that the users of sandboxes can reach. */
	(void)snprintf(kits, sizeof(kits), "%s/kits", m->config.places.state_dir);
	(void)setenv("ATOLL_KIT_DIR", geteuid() == 0 ? "/var/cache/atoll" : kits, 0);
	/* It must exist before the front's view is made. */
	(void)fd_close(kit_place_open(-EBADF));
	r = listen_for_broker(m->place.run_fd);
	if (r < 0)
		return error_set(err, ERROR_STORAGE, -r, "cannot make the broker's socket: %s",
				 strerror(-r));
	m->setup.broker_fd = r;
	return 0;
}

static void close_all(struct monitor *m)
{
	child_forget(&m->broker);
	child_forget(&m->front);
	m->broker.again = source_free(m->broker.again);
	m->front.again = source_free(m->front.again);
	m->signals = source_free(m->signals);
	m->owner = source_free(m->owner);
	m->control = source_free(m->control);
	m->heartbeat.timer = source_free(m->heartbeat.timer);
	m->rotator = source_free(m->rotator);
	m->deadline = source_free(m->deadline);
	m->loop = loop_free(m->loop);
	m->signal_fd = fd_close(m->signal_fd);
	m->control_fd = fd_close(m->control_fd);
	m->lifeline_fd = fd_close(m->lifeline_fd);
	listening_close(&m->sockets);
	if (m->setup.broker_fd >= 0)
		(void)unlinkat(m->place.run_fd, CONTROL_BROKER, 0);
	m->setup.broker_fd = fd_close(m->setup.broker_fd);
	m->setup.program_fd = fd_close(m->setup.program_fd);
	m->log_fd = fd_close(m->log_fd);
	m->audit_fd = fd_close(m->audit_fd);
	/* Last: the next daemon that gets the lock finds the rest gone. */
	state_dir_close(&m->place);
	config_done(&m->config);
}

int monitor_serve(const struct config_source *source, struct error *err)
{
	struct monitor m = { .log = { .fd = STDERR_FILENO, .who = "monitor" },
			     .log_fd = -EBADF,
			     .audit_fd = -EBADF,
			     .place = { .state_fd = -EBADF, .lock_fd = -EBADF, .run_fd = -EBADF },
			     .setup = { .broker_fd = -EBADF, .program_fd = -EBADF },
			     .broker.pidfd = -EBADF,
			     .front.pidfd = -EBADF,
			     .lifeline_fd = -EBADF,
			     .control_fd = -EBADF,
			     .signal_fd = -EBADF,
			     .began_ns = clock_now_ns() };
	int r = load_settings(&m, source, err);

	m.setup.config = &m.config;
	m.setup.log = &m.log;
	if (r == 0)
		r = open_all(&m, err);
	if (r == 0)
		r = watch_all(&m, source->until_eof, err);
	if (r == 0)
		r = monitor_start_broker(&m, err);
	if (r == 0)
		r = monitor_start_front(&m, err);
	if (r == 0) {
		r = loop_run(m.loop);
		if (r < 0)
			(void)error_set(err, ERROR_INTERNAL, -r, "the monitor's loop failed: %s",
					strerror(-r));
	}
	if (r == 0 && m.result < 0) {
		*err = m.error;
		r = m.result;
	}
	/* Children that still run end with their lifelines. */
	close_all(&m);
	return r;
}
