/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atolld: the front's process. The monitor gives it everything it may touch over one socket (control.h); when
 * that socket closes, the front ends. SIGTERM drains: no new work, and running programs may end by themselves
 * until the deadline.
 */
#include "atoll/daemon/front.h"

#include "atoll/daemon/control.h"
#include "atoll/daemon/offline-repair.h"
#include "atoll/daemon/process.h"
#include "atoll/daemon/view.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "engine/unpacker.h"
#include "spec/yaml.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SETUP_WAIT_MS = 10 * 1000,
	CONFIG_BYTES_MAX = 1 << 20,
	TICK_MS = 20,	       /* while draining */
	INTERRUPTED_MS = 2000, /* time to record interrupted runs */
	LARGE_BLOCK_BYTES = 256 << 10,
	EXIT_FAILED = 1,
	EXIT_ALONE = 125,
};

static int read_config(int fd, struct config *ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	struct document doc = { .name = "settings" };
	json_t *root = NULL;
	int r;

	buf_init(&text, CONFIG_BYTES_MAX);
	/* The descriptor and its offset are shared with the monitor, which wrote the file. */
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : buf_read_fd(&text, fd);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the settings cannot be read: %s",
				 strerror(-r));
	doc.text = text.data ?: "";
	doc.len = text.len;
	r = json_parse(&doc, &root, err);
	if (r == 0)
		r = config_from_json(root, ret, err);
	json_decref(root);
	return r;
}

static void set_log(struct log *log, int fd, const struct config *c)
{
	(void)fd_close(log->fd);
	log->fd = fd;
	log->format = (enum log_format)c->log.format;
}

static int take_door(struct front *f, const struct control_record *record, int *fd)
{
	struct listening_socket *listening = &f->sockets.list[f->sockets.n];

	if (f->sockets.n == LISTENING_MAX || *fd < 0)
		return -EPROTO;
	(void)snprintf(listening->name, sizeof(listening->name), "%.*s",
		       (int)sizeof(listening->name) - 1, record->text);
	listening->fd = TAKE_FD(*fd);
	f->sockets.n++;
	return 0;
}

/* Handles one record of the setup or of a reload. 1: it was the last. */
static int take_record(struct front *f, const struct control_record *record, int record_fd,
		       struct error *err)
{
	_cleanup_close_ int fd = record_fd;
	struct config fresh;
	int r = 0;

	switch (record->kind) {
	case CONTROL_CONFIG:
		r = read_config(fd, &fresh, err);
		if (r == 0) {
			config_done(&f->pending);
			f->pending = fresh;
		}
		break;
	case CONTROL_LOG:
		set_log(&f->log, TAKE_FD(fd), &f->pending);
		f->log.level = (enum log_level)f->pending.log.level;
		break;
	case CONTROL_AUDIT:
		set_log(&f->audit, TAKE_FD(fd), &f->pending);
		break;
	case CONTROL_LOCK:
		f->lock_fd = TAKE_FD(fd);
		break;
	case CONTROL_RUN:
		f->run_fd = TAKE_FD(fd);
		break;
	case CONTROL_LISTEN:
		r = take_door(f, record, &fd);
		break;
	case CONTROL_GO:
	case CONTROL_RELOAD:
		return 1;
	default:
		r = -EPROTO;
		break;
	}
	return r;
}

static int receive_setup(struct front *f, struct error *err)
{
	struct pollfd p = { .fd = CONTROL_FD, .events = POLLIN };
	struct control_record record;
	int fd, r;

	do {
		if (poll(&p, 1, SETUP_WAIT_MS) <= 0)
			return error_set(err, ERROR_INTERNAL, ETIMEDOUT,
					 "the monitor does not say what to serve");
		r = control_receive(CONTROL_FD, &record, &fd);
		if (r == 0)
			return -EPIPE;
		if (r > 0)
			r = take_record(f, &record, fd, err);
	} while (r == 0 || r == -EAGAIN);
	if (r < 0 && err->code == ERROR_NONE)
		return error_set(err, ERROR_INTERNAL, -r, "the monitor sent an unexpected record");
	if (r > 0 && f->run_fd < 0)
		return error_set(err, ERROR_INTERNAL, EPROTO, "the monitor named no broker");
	f->config = f->pending;
	f->pending = (struct config){ 0 };
	f->tokens = f->config.access.tokens;
	(void)snprintf(f->broker_path, sizeof(f->broker_path), "/proc/self/fd/%d/" CONTROL_BROKER,
		       f->run_fd);
	return r < 0 ? r : 0;
}

/* The monitor's descriptor of the directory leads out of the front's root, so the directory is opened again. */
static int find_run(struct front *f, struct error *err)
{
	char path[PATH_MAX];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/run", f->config.places.state_dir);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || dup3(fd, f->run_fd, O_CLOEXEC) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "'%.200s' cannot be opened: %s", path,
				 strerror(errno));
	(void)fd_close(fd);
	return 0;
}

void front_is_ready(struct front *f)
{
	if (!f->ready && control_send(CONTROL_FD, CONTROL_READY, NULL, -EBADF) == 0)
		f->ready = true;
}

static void front_take_reload(struct front *f)
{
	struct config before = f->reloaded;

	f->reloaded = f->pending;
	f->pending = (struct config){ 0 };
	f->tokens = f->reloaded.access.tokens;
	front_reload(f);
	config_done(&before);
}

static int on_front_control(void *data, uint32_t events)
{
	struct front *f = data;
	struct control_record record;
	struct error err = { 0 };
	int fd, r = control_receive(CONTROL_FD, &record, &fd);

	(void)events;
	if (r == -EAGAIN)
		return 0;
	/* The monitor is gone, and a new daemon may wait for the lock. The next start recovers. */
	if (r <= 0)
		_exit(EXIT_FAILED);
	if (record.kind == CONTROL_PING) {
		(void)fd_close(fd);
		return control_send(CONTROL_FD, CONTROL_PONG, NULL, -EBADF) == -EPIPE ? -EPIPE : 0;
	}
	r = take_record(f, &record, fd, &err);
	if (r < 0)
		log_say(&f->log, LOG_ERROR, "the settings stay as they were",
			LOG_TEXT("why", err.text));
	else if (r > 0)
		front_take_reload(f);
	return 0;
}

static int on_front_tick(void *data, uint32_t events)
{
	struct front *f = data;
	int64_t now_ns = clock_now_ns();

	(void)events;
	if (front_is_idle(f) || now_ns > f->drain_until_ns + INTERRUPTED_MS * NS_PER_MS) {
		loop_stop(f->loop);
		return 0;
	}
	if (now_ns > f->drain_until_ns)
		front_interrupt(f);
	source_set_time(f->ticker, now_ns + TICK_MS * NS_PER_MS);
	return 0;
}

static int on_front_signal(void *data, uint32_t events)
{
	struct front *f = data;
	struct signalfd_siginfo info;

	(void)events;
	if (read(f->signal_fd, &info, sizeof(info)) != sizeof(info) || f->draining)
		return 0;
	f->draining = true;
	f->drain_until_ns = clock_now_ns() + f->config.drain_ms * NS_PER_MS;
	front_drain(f);
	source_set_time(f->ticker, 0);
	return 0;
}

/*
 * The unpacker only waits and forks. If it is gone, archives cannot be read: the front ends, and its restart
 * recovers.
 */
static int on_unpacker(void *data, uint32_t events)
{
	struct front *f = data;

	(void)events;
	log_say(&f->log, LOG_ERROR, "the process that unpacks archives is gone");
	_exit(EXIT_FAILED);
}

static int watch_lifeline(struct front *f)
{
	sigset_t ends, blocked;
	int r;

	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGINT);
	blocked = ends;
	(void)sigaddset(&blocked, SIGHUP);
	(void)sigaddset(&blocked, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
		return -errno;
	f->signal_fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	f->loop = loop_new();
	if (f->signal_fd < 0 || !f->loop)
		return -ENOMEM;
	r = worker_new(f->loop, &f->worker);
	if (r < 0)
		return r;
	r = loop_add_fd(f->loop, f->signal_fd, EPOLLIN, (struct handler){ on_front_signal, f },
			&f->signals);
	if (r == 0)
		r = loop_add_fd(f->loop, CONTROL_FD, EPOLLIN,
				(struct handler){ on_front_control, f }, &f->control);
	if (r == 0)
		r = loop_add_fd(f->loop, f->unpacker_fd, EPOLLIN,
				(struct handler){ on_unpacker, f }, &f->unpacker);
	if (r == 0)
		r = loop_add_timer(f->loop, INT64_MAX, (struct handler){ on_front_tick, f },
				   &f->ticker);
	return r;
}

static int serve_front(struct front *f, struct error *err)
{
	int r;

	/* Forked before there is a token or a thread to inherit. */
	f->unpacker_fd = unpacker_start(&unpacker_defaults);
	if (f->unpacker_fd < 0)
		return error_set(err, ERROR_INTERNAL, -f->unpacker_fd,
				 "the process that unpacks archives cannot start: %s",
				 strerror(-f->unpacker_fd));
	r = receive_setup(f, err);
	if (r == 0 && f->own_root)
		r = find_run(f, err);
	if (r < 0)
		return r;
	f->kind = view_confine(&f->config, f->own_root, &f->log);
	r = watch_lifeline(f);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the front cannot start: %s",
				 strerror(-r));
	r = front_open(f, err);
	if (r < 0)
		return r;
	r = loop_run(f->loop);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "the front's loop failed: %s",
				 strerror(-r))
		     : 0;
}

int main(int argc, char **argv)
{
	struct front f = { .log = { .fd = -EBADF, .who = "front" },
			   .audit = { .fd = -EBADF },
			   .lock_fd = -EBADF,
			   .run_fd = -EBADF,
			   .signal_fd = -EBADF,
			   .unpacker_fd = -EBADF,
			   .own_root = argc > 1 && strcmp(argv[1], PROCESS_OWN_ROOT) == 0 };
	struct error err = { 0 };
	struct stat st;
	int r;

	if (argc == 3 && strcmp(argv[1], OFFLINE_REPAIR) == 0)
		return front_repair(argv[2]);
	if (fstat(CONTROL_FD, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		(void)fprintf(stderr, "atolld: this is a part of the daemon; run: atoll serve\n");
		return EXIT_ALONE;
	}
	(void)fcntl(CONTROL_FD, F_SETFD, FD_CLOEXEC);
	/* Large blocks go back to the system when they are freed, in either thread. */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	(void)sys_short_turns();
	r = serve_front(&f, &err);
	if (r < 0) {
		log_say(&f.log, LOG_ERROR, err.text);
		(void)!control_send(CONTROL_FD, CONTROL_FAILED, err.text, -EBADF);
		/* Crash-only: the files on disk are valid at any time. */
		_exit(EXIT_FAILED);
	}
	front_close(&f);
	/* Runs that did not end in time still use the loop. */
	if (f.parts)
		_exit(0);
	f.signals = source_free(f.signals);
	f.control = source_free(f.control);
	f.ticker = source_free(f.ticker);
	f.unpacker = source_free(f.unpacker);
	f.worker = worker_free(f.worker);
	f.loop = loop_free(f.loop);
	config_done(&f.config);
	config_done(&f.reloaded);
	config_done(&f.pending);
	return 0;
}
