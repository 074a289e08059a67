/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cgroup-kill.h. Processes are held some at a time: there may be more of them than a broker has
 * descriptors.
 */
#include "sandbox/cgroup-kill.h"

#include "base/fd.h"
#include "sys/kernel.h"
#include "sys/textfile.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

enum { HELD_MAX = 32, PROCS_BYTES_MAX = 48 << 10 };

struct held {
	int pid, fd;
};

/* The next number of the text; 0: none left. */
static int next_pid(const char **text)
{
	int pid, used;

	while (sscanf(*text, "%d%n", &pid, &used) == 1) {
		*text += used;
		/* 0: a process outside of this pid namespace. */
		if (pid > 1)
			return pid;
	}
	return 0;
}

static size_t hold(const char **text, struct held ret[HELD_MAX])
{
	size_t n = 0;

	while (n < HELD_MAX) {
		int pid = next_pid(text), fd;

		if (!pid)
			break;
		fd = sys_pidfd_open(pid);
		if (fd >= 0)
			ret[n++] = (struct held){ pid, fd };
	}
	return n;
}

static bool is_listed(const char *text, int wanted)
{
	int pid;

	while ((pid = next_pid(&text)))
		if (pid == wanted)
			return true;
	return false;
}

static void kill_held(int dir_fd, const char *path, const struct held *held, size_t n)
{
	static char text[PROCS_BYTES_MAX]; /* the broker has one thread */

	if (textfile_read_at(dir_fd, path, text, sizeof(text)) < 0)
		text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		if (is_listed(text, held[i].pid))
			(void)sys_pidfd_send_signal(held[i].fd, SIGKILL);
		(void)fd_close(held[i].fd);
	}
}

int cgroup_kill_listed(int dir_fd, const char *path)
{
	static char text[PROCS_BYTES_MAX]; /* the broker has one thread */
	struct held held[HELD_MAX];
	const char *at = text;
	size_t n;

	if (textfile_read_at(dir_fd, path, text, sizeof(text)) < 0)
		return -EOPNOTSUPP;
	while ((n = hold(&at, held)) > 0)
		kill_held(dir_fd, path, held, n);
	return 0;
}
