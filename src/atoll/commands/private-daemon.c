/* SPDX-License-Identifier: Apache-2.0 */
/* See private-daemon.h. */
#include "atoll/commands/private-daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum { READY_MS = 30000, CHECK_MS = 200, PATH_SIZE = PATH_MAX / 2 + 32 };

/*
 * The shell's name is the directory, which it removes when the daemon has ended. It waits without a standard error, because it would tell
 * there of a daemon that was killed.
 */
static const char shell_script[] = "exec 3<&0; \"$@\" <&3 3<&- & exec 2>/dev/null 3<&-; wait $!; "
				   "r=$?; rm -rf -- \"$0\"; exit $r";

static int make_private_dir(struct private_daemon *d, struct error *err)
{
	const char *run = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	const char *base = run && *run == '/' ? run : tmp && *tmp == '/' ? tmp : "/tmp";

	/*
	 * A socket's path has room for 107 bytes. The front of root's daemon runs as another user, to whom root's own directories
	 * (/run/user/0) are closed.
	 */
	if (strlen(base) > 60 || geteuid() == 0)
		base = "/tmp";
	(void)snprintf(d->dir, sizeof(d->dir), "%s/atoll-XXXXXX", base);
	if (!mkdtemp(d->dir))
		return error_set(err, ERROR_STORAGE, errno,
				 "cannot make a directory for a private daemon in %.100s: %s", base,
				 strerror(errno));
	/* The front of a daemon that root starts runs as another user. */
	(void)chmod(d->dir, 0711);
	(void)snprintf(d->socket, sizeof(d->socket), "%s/s", d->dir);
	return 0;
}

static int open_ready(struct private_daemon *d, char *ret, size_t size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/ready", d->dir);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		(void)fd_close(fd);
		return -errno;
	}
	(void)snprintf(ret, size, "NOTIFY_SOCKET=%s", address.sun_path);
	d->ready_fd = fd;
	return 0;
}

/* The caller's variables but those of another service manager's service and of addresses to listen on. */
static char **make_environment(char *ready)
{
	static const char *const without[] = { "NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID=",
					       "ATOLL_SOCKET=", "ATOLL_STATE_DIR=" };
	size_t n = 0, kept = 0;
	char **list;

	while (environ[n])
		n++;
	list = calloc(n + 2, sizeof(*list));
	for (size_t i = 0; list && i < n; i++) {
		bool keeps = true;

		for (size_t j = 0; j < ARRAY_SIZE(without); j++)
			keeps = keeps && strncmp(environ[i], without[j], strlen(without[j])) != 0;
		if (keeps)
			list[kept++] = environ[i];
	}
	if (list)
		list[kept] = ready;
	return list;
}

static int spawn_shell(struct private_daemon *d, int life_fd, char *ready)
{
	char program[PATH_MAX] = "", state[PATH_SIZE], log[PATH_SIZE];
	const char *const argv[] = { "sh",	"-c",	      shell_script,  d->dir,
				     program,	"serve",      "--until-eof", "--set",
				     "listen=", "--socket",   d->socket,     "--state-dir",
				     state,	"--log-file", log,	     NULL };
	char **environment = make_environment(ready);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	int r;

	(void)snprintf(state, sizeof(state), "%s/state", d->dir);
	(void)snprintf(log, sizeof(log), "%s/log", d->dir);
	if (n < 0 || !environment) {
		free(environment);
		return n < 0 ? errno : ENOMEM;
	}
	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawnattr_init(&attributes);
	r = posix_spawn_file_actions_adddup2(&files, life_fd, STDIN_FILENO);
	if (r == 0) /* standard output belongs to the protocol */
		r = posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	/* Signals of the terminal are for this process; the daemon sees its end. */
	if (r == 0)
		r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
	if (r == 0)
		r = posix_spawn(&d->shell, "/bin/sh", &files, &attributes,
				(char *const *)(uintptr_t)argv, environment);
	(void)posix_spawn_file_actions_destroy(&files);
	(void)posix_spawnattr_destroy(&attributes);
	free(environment);
	return r;
}

int private_daemon_start(struct private_daemon *d, struct error *err)
{
	_cleanup_close_ int life_fd = -EBADF;
	char ready[PATH_SIZE];
	int ends[2], r;

	*d = (struct private_daemon){ .life_fd = -EBADF, .ready_fd = -EBADF };
	r = make_private_dir(d, err);
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		r = errno;
	} else {
		life_fd = ends[0];
		d->life_fd = ends[1];
		r = -open_ready(d, ready, sizeof(ready));
	}
	if (r == 0)
		r = spawn_shell(d, life_fd, ready);
	if (r == 0)
		return 0;
	private_daemon_stop(d);
	return error_set(err, ERROR_INTERNAL, r, "cannot start a private daemon: %s", strerror(r));
}

static bool has_ended(struct private_daemon *d)
{
	if (waitpid(d->shell, NULL, WNOHANG) != d->shell)
		return false;
	d->shell = 0;
	return true;
}

int private_daemon_wait(struct private_daemon *d, struct error *err)
{
	int64_t until_ns = clock_now_ns() + READY_MS * NS_PER_MS;
	struct pollfd p = { .fd = d->ready_fd, .events = POLLIN };
	char text[512];
	ssize_t n;

	while (clock_now_ns() < until_ns && !has_ended(d)) {
		if (poll(&p, 1, CHECK_MS) <= 0)
			continue;
		n = recv(d->ready_fd, text, sizeof(text) - 1, MSG_DONTWAIT);
		text[MAX(n, (ssize_t)0)] = '\0';
		if (strstr(text, "READY=1"))
			return 0;
	}
	return error_set(err, ERROR_INTERNAL, d->shell ? ETIMEDOUT : ECHILD, "%s",
			 d->shell
				 ? "the private daemon is not ready after 30 s"
				 : "the private daemon ended at once; `atoll doctor` may know why");
}

void private_daemon_stop(struct private_daemon *d)
{
	d->life_fd = fd_close(d->life_fd);
	d->ready_fd = fd_close(d->ready_fd);
	if (d->shell > 0) {
		(void)waitpid(d->shell, NULL, 0);
	} else if (d->dir[0]) { /* nothing was started in it */
		char path[PATH_SIZE];

		(void)snprintf(path, sizeof(path), "%s/ready", d->dir);
		(void)unlink(path);
		(void)rmdir(d->dir);
	}
	d->shell = 0;
}
