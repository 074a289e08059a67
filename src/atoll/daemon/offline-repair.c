/* SPDX-License-Identifier: Apache-2.0 */
/* See offline-repair.h. */
#include "atoll/daemon/offline-repair.h"

#include "atoll/daemon/config.h"
#include "atoll/daemon/identity.h"
#include "atoll/daemon/process.h"
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "engine/history/aside-name.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int find_state_dir(const char *given, char ret[PATH_MAX], struct error *err)
{
	const struct config_source source = { .system_file = CONFIG_SYSTEM_FILE,
					      .env = (const char *const *)environ,
					      .root = geteuid() == 0,
					      .cores = 1,
					      .memory_bytes = GiB };
	struct config c = { 0 };
	int r = given ? 0 : config_load(&source, &c, err);

	if (r == 0)
		(void)snprintf(ret, PATH_MAX, "%s", given ?: c.places.state_dir);
	config_done(&c);
	return r;
}

static _noreturn_ void repair_child(int program_fd, int out_fd, const struct identity *owner,
				    char *state_dir)
{
	static char name[] = "atolld", word[] = OFFLINE_REPAIR;
	char *const argv[] = { name, word, state_dir, NULL };

	(void)umask(077);
	if (dup2(out_fd, STDOUT_FILENO) < 0 || identity_become(owner) < 0)
		_exit(1);
	(void)sys_execveat(program_fd, argv, environ);
	_exit(1);
}

int offline_repair(const char *state_dir, struct buf *ret, struct error *err)
{
	_cleanup_close_ int program_fd = -EBADF, in_fd = -EBADF, out_fd = -EBADF;
	char dir[PATH_MAX], history[PATH_MAX + 16];
	struct identity owner;
	int ends[2], status = 0, r = find_state_dir(state_dir, dir, err);
	struct stat st;
	pid_t pid;

	if (r < 0)
		return r;
	(void)snprintf(history, sizeof(history), "%s/history", dir);
	if (stat(history, &st) < 0)
		return error_set(err, ERROR_NOT_FOUND, errno,
				 "there is no history in '%.200s' (%s); name the daemon's state "
				 "directory with --state-dir",
				 dir, strerror(errno));
	owner = (struct identity){ st.st_uid, st.st_gid };
	program_fd = process_find_front(err);
	if (program_fd < 0)
		return program_fd;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "cannot repair the history: %s",
				 strerror(errno));
	in_fd = ends[0];
	out_fd = ends[1];
	pid = fork();
	if (pid == 0)
		repair_child(program_fd, out_fd, &owner, dir);
	out_fd = fd_close(out_fd);
	r = pid < 0 ? -errno : buf_read_fd(ret, in_fd);
	if (pid > 0 && waitpid(pid, &status, 0) != pid)
		r = -errno;
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot repair the history: %s",
				 strerror(-r));
	if (status != 0)
		return error_set(err, ERROR_STORAGE, EIO, "%s",
				 ret->len > 0
					 ? ret->data
					 : "the history cannot be repaired: atolld ended early");
	return 0;
}

int64_t offline_repair_wanted(void)
{
	char path[PATH_MAX], history[PATH_MAX + 16];
	const struct dirent *entry;
	struct error err;
	int64_t n = 0;
	DIR *dir;

	if (find_state_dir(NULL, path, &err) < 0)
		return 0;
	(void)snprintf(history, sizeof(history), "%s/history", path);
	dir = opendir(history);
	while (dir && (entry = readdir(dir)))
		n += aside_is_name(entry->d_name) && !aside_is_repaired(dirfd(dir), entry->d_name);
	if (dir)
		(void)closedir(dir);
	return n;
}
