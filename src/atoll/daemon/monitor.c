/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See monitor.h: from settings to a serving daemon, and its end. One loop: signals (also a child's end) by
 * signalfd, the front's records by its socket. The monitor reads no byte that came from a caller.
 */
#include "atoll/daemon/monitor-state.h"

#include "atoll/daemon/logfile.h"
#include "atoll/daemon/notify.h"
#include "base/clock.h"
#include "base/fd.h"
#include "run/kit-prepare.h"
#include "run/toolchain/data.h"
#include "run/toolchain/kit.h"

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
#include <sys/stat.h>
#include <unistd.h>

enum {
	PING_MS = 10 * 1000,
	ROTATE_MS = 1000,    /* interval of checks of the audit log's size */
	PONG_MS = 60 * 1000, /* a front without an answer for that long hangs */
	STOP_MS = 5 * 1000,  /* time for the cleanup */
	FILES_A_RUN =
		/* a dozen for a sandbox, as many for one that is being removed, and its share of common ones */
	30,
};

static void set_deadline(struct monitor *m, int64_t in_ms)
{
	source_set_time(m->deadline, clock_now_ns() + in_ms * NS_PER_MS);
}

/* The front has ended: stops the broker. */
static void stop(struct monitor *m)
{
	m->stage = MONITOR_STOPPING;
	listening_close(&m->sockets);
	child_kill(&m->broker, SIGTERM);
	set_deadline(m, STOP_MS);
	if (m->broker.pid == 0)
		loop_stop(m->loop);
}

static void drain(struct monitor *m)
{
	m->stage = MONITOR_DRAINING;
	notify_send("STOPPING=1");
	/*
	 * While the front drains, it answers new clients itself. Once it is gone, no client may wait in a queue
	 * that is not served.
	 */
	listening_leave(&m->sockets);
	log_say(&m->log, LOG_INFO, "draining", LOG_MS("at_most", m->config.drain_ms));
	if (m->front.pid == 0) {
		stop(m);
		return;
	}
	child_kill(&m->front, SIGTERM);
	set_deadline(m, m->config.drain_ms + STOP_MS);
}

void monitor_fail(struct monitor *m, const struct error *why)
{
	if (m->result < 0)
		return;
	m->error = *why;
	m->result = -why->errnum;
	if (m->stage == MONITOR_SERVING)
		drain(m);
	child_kill(&m->front, SIGKILL);
}

/* Positive: start the child again. */
int monitor_child_ended(struct monitored_process *c, const char *how)
{
	struct monitor *m = c->monitor;

	if (c == &m->front)
		m->ready = false;
	if (m->stage == MONITOR_SERVING)
		return 1;
	log_say(&m->log, LOG_INFO, "ended", LOG_TEXT("process", c->name), LOG_TEXT("how", how));
	if (c == &m->front)
		stop(m);
	else if (m->stage == MONITOR_STOPPING)
		loop_stop(m->loop);
	return 0;
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

void monitor_ready(struct monitor *m)
{
	char names[1024] = "";

	notify_send("READY=1\nSTATUS=serving");
	for (size_t i = 0; i < m->sockets.n; i++) {
		size_t n = strlen(names);

		(void)snprintf(names + n, sizeof(names) - n, "%s%s", i ? " " : "",
			       m->sockets.list[i].name);
	}
	log_say(&m->log, LOG_INFO, "ready", LOG_TEXT("listen", names),
		LOG_TEXT("state_dir", m->config.state_dir),
		LOG_I64("front_uid", m->setup.identity.uid),
		LOG_MS("after", (clock_now_ns() - m->began_ns) / NS_PER_MS));
	if (!m->ever_ready)
		kit_prepare_behind(m->config.data_dir);
	m->ever_ready = true;
}

/* Opens both or none; replaces the ones that were open. */
static int open_logs(struct monitor *m, struct error *err)
{
	_cleanup_close_ int log_fd = -EBADF, audit_fd = -EBADF;

	if (*m->config.log_file) {
		log_fd = logfile_open(&m->config, m->config.log_file, err);
		if (log_fd < 0)
			return log_fd;
	}
	if (*m->config.audit_file) {
		audit_fd = logfile_open(&m->config, m->config.audit_file, err);
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

static void send_reload(struct monitor *m)
{
	if (m->control && (monitor_send_settings(m) < 0 ||
			   control_send(m->control_fd, CONTROL_RELOAD, NULL, -EBADF) < 0))
		child_kill(&m->front, SIGKILL);
}

static void reload(struct monitor *m)
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
	if (m->config.audit_bytes == 0 || m->audit_fd < 0 || m->stage != MONITOR_SERVING ||
	    fstat(m->audit_fd, &st) < 0 || st.st_size < m->config.audit_bytes)
		return 0;
	r = logfile_rotate(&m->config, m->config.audit_file, m->config.audit_files);
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
		reload(m);
	else if (info.ssi_signo != SIGHUP && m->stage == MONITOR_SERVING)
		drain(m);
	else if (info.ssi_signo != SIGHUP && m->stage == MONITOR_DRAINING)
		child_kill(&m->front, SIGKILL);
	return 0;
}

static int on_ping(void *data, uint32_t events)
{
	struct monitor *m = data;
	int64_t now_ns = clock_now_ns();

	(void)events;
	source_set_time(m->pinger, now_ns + m->ping_ms * NS_PER_MS);
	if (!m->ready) {
		notify_send("WATCHDOG=1");
		return 0;
	}
	if (now_ns - m->pong_ns > m->pong_ms * NS_PER_MS) {
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
		drain(m);
	child_kill(&m->front, SIGKILL);
	return 0;
}

static int watch_all(struct monitor *m, bool until_eof, struct error *err)
{
	int64_t watchdog_ms = notify_watchdog_ms();
	int r;

	/* Well before a service manager's watchdog would kill the service. */
	m->ping_ms = watchdog_ms > 0 ? MIN(MAX(watchdog_ms / 6, 1), PING_MS) : PING_MS;
	m->pong_ms = watchdog_ms > 0 ? MIN(MAX(watchdog_ms / 2, 1), PONG_MS) : PONG_MS;
	m->broker = (struct monitored_process){ "broker", m, monitor_start_broker,
						.pidfd = -EBADF };
	m->front = (struct monitored_process){ "front", m, monitor_start_front, .pidfd = -EBADF };
	m->loop = loop_new();
	r = m->loop ? watch_signals(m) : -ENOMEM;
	if (r == 0 && until_eof)
		r = loop_add_fd(m->loop, STDIN_FILENO, EPOLLIN, (struct handler){ on_owner, m },
				&m->owner);
	if (r == 0)
		r = child_begin(&m->broker);
	if (r == 0)
		r = child_begin(&m->front);
	if (r == 0)
		r = loop_add_timer(m->loop, INT64_MAX, (struct handler){ on_monitor_deadline, m },
				   &m->deadline);
	if (r == 0)
		r = loop_add_timer(m->loop, clock_now_ns() + m->ping_ms * NS_PER_MS,
				   (struct handler){ on_ping, m }, &m->pinger);
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
	int r = state_dir_make_parents(c->output_data_path, "--output-data-path", &made, err);

	if (r < 0)
		return r;
	if (mkdir(c->output_data_path, 0755) < 0) {
		if (errno == EEXIST)
			return use_real_path(c, &c->output_data_path, err);
		return error_set(err, ERROR_STORAGE, errno,
				 "cannot make output_data_path '%.200s': %s", c->output_data_path,
				 strerror(errno));
	}
	if (geteuid() == 0 && lchown(c->output_data_path, id->uid, id->gid) < 0)
		return error_set(err, ERROR_STORAGE, errno,
				 "cannot hand output_data_path '%.200s' to the front: %s",
				 c->output_data_path, strerror(errno));
	return use_real_path(c, &c->output_data_path, err);
}

static int resolve_paths(struct monitor *m, struct error *err)
{
	_cleanup_free_ char *found = NULL;
	struct config *c = &m->config;
	int r = data_find(*c->data_dir ? c->data_dir : NULL, &found, err);

	if (r < 0)
		return r;
	c->data_dir = found;
	r = use_real_path(c, &c->data_dir, err);
	if (r == 0)
		r = use_real_path(c, &c->state_dir, err);
	if (r == 0)
		r = identity_check_data(&m->setup.identity, c->data_dir, err);
	return r;
}

/* As root, kits are in a directory that the users of sandboxes can reach. */
static void choose_kit_place(const struct config *c)
{
	char path[4096 + 16];

	(void)snprintf(path, sizeof(path), "%s/kits", c->state_dir);
	(void)setenv("ATOLL_KIT_DIR", geteuid() == 0 ? "/var/cache/atoll" : path, 0);
	/* It must exist before the front's view is made. */
	(void)fd_close(kit_place_open(-EBADF));
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
	if (m->config.queue_running <= most)
		return;
	log_say(&m->log, LOG_WARNING,
		"the limit of open files is too low for queue.running; raise it (ulimit -n, "
		"LimitNOFILE=)",
		LOG_I64("files", (int64_t)files.rlim_max),
		LOG_I64("asked", m->config.queue_running), LOG_I64("running", most));
	m->config.queue_running = most;
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
	return r < 0 ? r : identity_check_state(id, c->state_dir, err);
}

static int load_settings(struct monitor *m, const struct config_source *source, struct error *err)
{
	int r = monitor_settle(source, &m->config, &m->setup.identity, err);

	if (r == 0)
		r = process_find_front(err);
	if (r < 0)
		return r;
	m->setup.program_fd = r;
	m->log.format = (enum log_format)m->config.log_format;
	m->log.level = (enum log_level)m->config.log_level;
	m->place.path = m->config.state_dir;
	return 0;
}

/* A start that is refused here leaves nothing behind. */
static int open_all(struct monitor *m, struct error *err)
{
	int r = state_dir_open(&m->place, m->setup.identity.uid, m->setup.identity.gid, err);

	if (r == 0)
		r = resolve_paths(m, err);
	if (r == 0)
		r = listening_open(&m->sockets, &m->config, &m->log, err);
	if (r == 0 && *m->config.output_data_path)
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
	choose_kit_place(&m->config);
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
	m->pinger = source_free(m->pinger);
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
