/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the unit tests of broker/ that run real sandboxes: a broker to talk to, and plans made by hand. */
#pragma once

#include "base/fd.h"
#include "base/span.h"
#include "broker/broker.h"
#include "plan/wire.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 60000, FDS_LOOKED_AT = 256 };

static inline bool wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, WAIT_MS) == 1;
}

/* Runs in the broker, at SIGUSR1: replaces the loop's epoll descriptor by another file, so that the loop fails. */
static inline void break_loop(int sig)
{
	struct epoll_event event;

	(void)sig;
	for (int fd = 3; fd < FDS_LOOKED_AT; fd++)
		if (epoll_wait(fd, &event, 1, 0) >= 0)
			(void)dup3(STDIN_FILENO, fd, O_CLOEXEC);
}

/* Forks a broker with the test as its only front. Returns its pid, or -1. */
static inline pid_t fork_broker(struct broker_options options, int *ret_fd)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		(void)signal(SIGUSR1, break_loop);
		options.front_fd = pair[1];
		options.listen_fd = -EBADF;
		_exit(broker_serve(&options));
	}
	(void)close(pair[1]);
	*ret_fd = pair[0];
	return pid;
}

static inline void add(struct plan *p, struct op op, const char *a, const char *b)
{
	assert_int_equal(plan_add(p, op, (struct op_args){ .a = a, .b = b }), 0);
}

static inline void add_limit(struct plan *p, enum stage_limit limit, int64_t amount)
{
	add(p, (struct op){ .kind = OP_LIMIT, .value = limit, .value2 = amount }, NULL, NULL);
}

/* A root with programs, devices and a work directory. The caller may add mounts, and must add the pivot. */
static inline void plan_root(struct plan *p)
{
	static const char *const shown[] = { "/bin", "/lib", "/lib64", "/usr" };

	plan_init(p);
	add(p, (struct op){ .kind = OP_ROOT, .value = MiB, .value2 = 1000 }, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		add(p, (struct op){ .kind = OP_SHOW, .flags = OP_OPTIONAL }, shown[i], shown[i]);
	add(p, (struct op){ .kind = OP_DEV }, NULL, "/dev");
	add(p, (struct op){ .kind = OP_SCRATCH, .value = MiB, .value2 = 1000 }, NULL, NULL);
	add(p, (struct op){ .kind = OP_SCRATCH_DIR, .mode = 0755 }, "work", "/sandbox");
}

static inline void plan_lock(struct plan *p)
{
	add(p, (struct op){ .kind = OP_LANDLOCK, .value = ACCESS_READ }, NULL, "/");
	add(p, (struct op){ .kind = OP_LANDLOCK, .value = ACCESS_READ | ACCESS_WRITE }, NULL,
	    "/sandbox");
	add(p, (struct op){ .kind = OP_LANDLOCK, .value = ACCESS_DEVICE }, NULL, "/dev");
	add(p, (struct op){ .kind = OP_SECCOMP }, NULL, NULL);
}

/* Adds limits to the stage before. */
static inline void plan_limit(struct plan *p)
{
	add_limit(p, STAGE_MEMORY_BYTES, 64 * MiB);
	add_limit(p, STAGE_PIDS, 16);
}

static inline int plan_fd(const struct plan *p)
{
	_cleanup_buf_ struct buf bytes = { 0 };
	int fd;

	buf_init(&bytes, PLAN_BYTES_MAX);
	assert_int_equal(plan_encode(p, &bytes), 0);
	fd = fd_sealed_memfd("plan", bytes.data, bytes.len);
	assert_true(fd >= 0);
	return fd;
}
