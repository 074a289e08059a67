/* SPDX-License-Identifier: Apache-2.0 */
/* See own-pool.h. */
#include "atoll/commands/own-pool.h"

#include "atoll/commands/cmd.h"
#include "atoll/commands/say.h"
#include "atoll/daemon/config.h"
#include "base/fd.h"
#include "run/pool-place.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAVE_SECONDS "300"

enum { STOP_WAIT_MS = 20 * 1000 };

/* Its words are kept back: two first runs may start one each, and the second one fails. */
static void spawn_pool(void)
{
	static char program[] = "/proc/self/exe", name[] = "atoll", pool[] = "pool",
		    detach[] = "--detach", leave[] = "--leave-seconds", seconds[] = LEAVE_SECONDS;
	char *const argv[] = { name, pool, detach, leave, seconds, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return;
	if (posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) ==
		    0 &&
	    posix_spawn(&pid, program, &actions, NULL, argv, environ) == 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	(void)posix_spawn_file_actions_destroy(&actions);
}

/* Without ATOLL_POOL the settings decide. Most hosts have none, and then this costs two system calls. */
static bool is_wanted(void)
{
	const char *word = getenv("ATOLL_POOL");
	/* A file that this user cannot read is not meant for this user: /etc's, or another user's in a HOME that sudo kept. */
	const bool readable = access(CONFIG_SYSTEM_FILE, R_OK) == 0;
	const struct config_source source = { .system_file = readable ? CONFIG_SYSTEM_FILE : "",
					      .env = (const char *const *)environ };
	struct error err = { 0 };
	bool wanted = false;

	if (word && *word)
		return pool_place_is_auto();
	if (config_read_pool(&source, &wanted, &err) < 0 && err.errnum != EACCES)
		(void)say_error(&err);
	return wanted;
}

void own_pool_start(void)
{
	_cleanup_free_ char *path = NULL;
	pid_t pid;

	if (!is_wanted() || pool_place_usual(&path) < 0)
		return;
	if (!path)
		say("ATOLL_POOL=auto needs XDG_RUNTIME_DIR, the directory of the pool's socket; "
		    "this run has no pool");
	else if (pool_place_process(path, &pid) < 0)
		spawn_pool();
}

json_t *own_pool_describe(void)
{
	_cleanup_free_ char *path = NULL;
	pid_t pid;

	if (pool_place_find(NULL, &path) < 0 || !path || pool_place_process(path, &pid) < 0)
		return NULL;
	return json_pack("{s:i, s:s}", "pid", (int)pid, "socket", path);
}

/* A pidfd names the process itself, also when it ends meanwhile and its number is given to another one. */
static int end_process(pid_t pid)
{
	_cleanup_close_ int fd = pidfd_open(pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd < 0 || pidfd_send_signal(fd, SIGTERM, NULL, 0) < 0)
		return errno == ESRCH ? 0 : -errno;
	return poll(&p, 1, STOP_WAIT_MS) > 0 ? 0 : -ETIMEDOUT;
}

int own_pool_stop(const char *socket)
{
	_cleanup_free_ char *path = NULL;
	pid_t pid = 0;
	int r = pool_place_find(socket, &path);

	if (r == 0 && !path) {
		say("no pool is wanted here: ATOLL_POOL is off, or XDG_RUNTIME_DIR is not set");
		return EXIT_OURS;
	}
	if (r == 0 && pool_place_process(path, &pid) < 0) {
		say("no pool listens on '%s'", path);
		return EXIT_OURS;
	}
	if (r == 0)
		r = end_process(pid);
	if (r < 0)
		say("the pool, process %d, does not end: %s", (int)pid, strerror(-r));
	return r < 0 ? EXIT_OURS : 0;
}
