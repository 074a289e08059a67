/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cgroup-kill.h. Processes are held some at a time: there may be more of them than a broker has
 * descriptors.
 */
#include "box/cgroup-kill.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "base/sys/textfile.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

	memset(ret, 0, HELD_MAX * sizeof(*ret));
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

static int kill_held(int dir_fd, const char *path, const struct held held[HELD_MAX], int spared_pid)
{
	static char text[PROCS_BYTES_MAX]; /* the broker has one thread */
	int n = 0;

	if (textfile_read_at(dir_fd, path, text, sizeof(text)) < 0)
		text[0] = '\0';
	for (size_t i = 0; i < HELD_MAX && held[i].pid; i++) {
		if (held[i].pid != spared_pid && is_listed(text, held[i].pid))
			n += sys_pidfd_send_signal(held[i].fd, SIGKILL) == 0;
		(void)fd_close(held[i].fd);
	}
	return n;
}

int cgroup_kill_listed(int dir_fd, const char *path, int spared_pid)
{
	static char text[PROCS_BYTES_MAX]; /* the broker has one thread */
	struct held held[HELD_MAX];
	const char *at = text;
	int n = 0;

	if (textfile_read_at(dir_fd, path, text, sizeof(text)) < 0)
		return -EOPNOTSUPP;
	while (hold(&at, held) > 0)
		n += kill_held(dir_fd, path, held, spared_pid);
	return n;
}
