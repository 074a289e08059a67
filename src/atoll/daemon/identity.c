/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See identity.h. Access is tried by a process that has become the front's user, with its groups and without
 * capabilities.
 */
#include "atoll/daemon/identity.h"

#include "base/parse.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PASSED = 0, CANNOT_TRY = 255 };

/* Reads /etc/passwd, because a static program cannot use NSS. 1: found; 0: not. */
static int find_user(const char *name, struct identity *ret)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *entry;
	int found = 0;

	while (file && !found && (entry = fgetpwent(file)))
		if (strcmp(entry->pw_name, name) == 0) {
			*ret = (struct identity){ entry->pw_uid, entry->pw_gid };
			found = 1;
		}
	if (file)
		(void)fclose(file);
	return found;
}

int identity_find(const struct config *c, struct identity *ret, struct error *err)
{
	int64_t uid;

	*ret = (struct identity){ geteuid(), getegid() };
	if (geteuid() != 0)
		return *c->user ? error_field(err, "user",
					      "user: only root can run the front as another user; "
					      "leave it out")
				: 0;
	if (!*c->user) {
		if (!find_user("atoll", ret))
			*ret = (struct identity){ FRONT_UID, FRONT_UID };
		return 0;
	}
	if (find_user(c->user, ret))
		return 0;
	if (parse_i64(c->user, &uid) < 0 || uid >= 0x70000000)
		return error_field(err, "user", "user: there is no user '%.60s' in /etc/passwd",
				   c->user);
	*ret = (struct identity){ (uid_t)uid, (gid_t)uid };
	return 0;
}

int identity_become(const struct identity *id)
{
	int r;

	if (geteuid() != 0)
		return sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
	r = sys_drop_bounding();
	if (r == 0 && setgroups(0, NULL) < 0)
		r = -errno;
	if (r == 0 && (setresgid(id->gid, id->gid, id->gid) < 0))
		r = -errno;
	if (r == 0 && id->uid == 0)
		r = sys_drop_caps();
	if (r == 0 && setresuid(id->uid, id->uid, id->uid) < 0)
		r = -errno;
	return r < 0 ? r : sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
}

/* The return value of `attempt` when the front's user makes it: a number below CANNOT_TRY. */
static int try_as(const struct identity *id, int (*attempt)(const char *path), const char *path)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(identity_become(id) < 0 ? CANNOT_TRY : attempt(path));
	/* If access cannot be tried, a later step fails with its own message. */
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) == CANNOT_TRY)
		return PASSED;
	return WEXITSTATUS(status);
}

static int attempt_read(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0;
}

int identity_check_data(const struct identity *id, const char *data_dir, struct error *err)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/languages", data_dir);
	if (try_as(id, attempt_read, path) != PASSED)
		return error_set(
			err, ERROR_INPUT, EACCES,
			"the data directory '%.200s' cannot be read by uid %u, whom the front runs "
			"as; open it with chmod a+rX, or name a copy with --data-dir",
			data_dir, id->uid);
	return 0;
}

/* The number of path components up to the first directory that cannot be passed, plus one; 0: all can. */
static int attempt_pass(const char *path)
{
	char partial[PATH_MAX];
	int n = 1;

	for (const char *end = path; n < CANNOT_TRY; n++) {
		(void)snprintf(partial, sizeof(partial), "%.*s/", (int)(end - path), path);
		if (faccessat(AT_FDCWD, partial, X_OK, AT_EACCESS) < 0 && errno == EACCES)
			return n;
		if (!*end)
			break;
		end += 1 + strcspn(end + 1, "/");
	}
	return PASSED;
}

/* The existing part of the path to the state directory, without links. */
static char *find_way(const char *state_dir)
{
	_cleanup_free_ char *head = strdup(state_dir);
	char *slash;

	for (size_t n = head ? strlen(head) : 0; n > 1 && head[n - 1] == '/'; n--)
		head[n - 1] = '\0';
	while (head && (slash = strrchr(head, '/'))) {
		char *way;

		/* The directory itself is handed to the front. */
		*slash = '\0';
		way = realpath(*head ? head : "/", NULL);
		if (way)
			return way;
	}
	return NULL;
}

int identity_check_state(const struct identity *id, const char *state_dir, struct error *err)
{
	_cleanup_free_ char *way = find_way(state_dir);
	int n = way ? try_as(id, attempt_pass, way + (strcmp(way, "/") == 0)) : PASSED;
	const char *end = way;

	if (n == PASSED)
		return 0;
	while (--n > 0)
		end += 1 + strcspn(end + 1, "/");
	return error_set(err, ERROR_INPUT, EACCES,
			 "the state directory '%.200s' cannot be reached by uid %u, whom the front "
			 "runs as: '%.*s' is closed to it; let it pass with chmod o+x, or name "
			 "another place with --state-dir",
			 state_dir, id->uid, end == way ? 1 : (int)MIN(end - way, 200),
			 end == way ? "/" : way);
}
