/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See state-dir.h. The front owns the directory and an attacker may control the front. So as root the monitor
 * follows no link in it and creates nothing under a name that the front could have prepared; a run/ of another
 * owner is refused.
 */
#include "atoll/daemon/state-dir.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_WAIT_MS = 5000, LOCK_STEP_MS = 20 };

int state_dir_make_parents(const char *path, const char *flag, size_t *made, struct error *err)
{
	char partial[PATH_MAX];
	mode_t before;
	int errnum;

	*made = 0;
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		if (snprintf(partial, sizeof(partial), "%.*s", (int)(slash - path), path) >=
		    (int)sizeof(partial))
			return error_set(err, ERROR_INPUT, ENAMETOOLONG,
					 "the path is too long: '%.200s'", path);
		/* Independent of the umask: private files are below, and the front must be able to pass. */
		before = umask(022);
		errnum = mkdir(partial, 0755) < 0 ? errno : 0;
		(void)umask(before);
		if (errnum == 0)
			*made = *made ? *made : strlen(partial);
		else if (errnum != EEXIST)
			return error_set(err, ERROR_STORAGE, errnum,
					 "cannot make the directory '%.200s': %s; give another "
					 "place with %s",
					 partial, strerror(errnum), flag);
	}
	return 0;
}

void state_dir_remove_parents(const char *path, size_t made)
{
	char partial[PATH_MAX];
	char *slash;

	(void)snprintf(partial, sizeof(partial), "%s", path);
	while (made > 0 && (slash = strrchr(partial, '/')) && slash - partial >= (ptrdiff_t)made) {
		*slash = '\0';
		if (rmdir(partial) < 0 && errno != ENOENT)
			return;
	}
}

static int refuse_state_dir(const struct state_dir *p, int errnum, const char *what,
			    struct error *err)
{
	return error_set(err, ERROR_STORAGE, errnum,
			 "the state directory '%.200s' %s: %s; give another with --state-dir",
			 p->path, what, strerror(errnum));
}

/*
 * The directory belongs to the front, or is given to it if it was root's; with any other owner it is refused.
 */
static int take_over(struct state_dir *p, uid_t uid, gid_t gid, struct error *err)
{
	struct stat st;

	if (fstat(p->state_fd, &st) < 0)
		return refuse_state_dir(p, errno, "cannot be looked at", err);
	if (st.st_uid != uid && st.st_uid != geteuid())
		return error_set(err, ERROR_INPUT, EPERM,
				 "the state directory '%.200s' belongs to uid %u, and the daemon's "
				 "front runs as uid %u; give it to that user with chown -R, or "
				 "name another with --state-dir",
				 p->path, st.st_uid, uid);
	if (st.st_uid != uid && fchown(p->state_fd, uid, gid) < 0)
		return refuse_state_dir(p, errno, "cannot be handed to the front", err);
	if ((st.st_mode & 07777) != 0700 && fchmod(p->state_fd, 0700) < 0)
		return refuse_state_dir(p, errno, "cannot be closed to others", err);
	return 0;
}

static int open_state(struct state_dir *p, uid_t uid, gid_t gid, struct error *err)
{
	int r = state_dir_make_parents(p->path, "--state-dir", &p->made, err);

	if (r < 0)
		return r;
	if (mkdir(p->path, 0700) == 0)
		p->made = p->made ?: strlen(p->path);
	else if (errno != EEXIST)
		return refuse_state_dir(p, errno, "cannot be made", err);
	p->state_fd = open(p->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->state_fd < 0)
		return refuse_state_dir(p, errno, "cannot be opened", err);
	return take_over(p, uid, gid, err);
}

/* The pid of the monitor that holds the lock, as written in the file; 0: unknown. */
static pid_t lock_holder(int lock_fd)
{
	char text[32] = "";
	ssize_t n = pread(lock_fd, text, sizeof(text) - 1, 0);
	int64_t pid = 0;

	if (n > 0)
		text[strcspn(text, "\n")] = '\0';
	return n > 0 && parse_i64(text, &pid) == 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

/* If the holder lives, the start is refused; what a dead daemon left ends within two seconds. */
static int wait_for_lock(struct state_dir *p, struct error *err)
{
	const struct timespec step = { .tv_nsec = LOCK_STEP_MS * NS_PER_MS };
	int64_t until_ns = clock_now_ns() + LOCK_WAIT_MS * NS_PER_MS;

	while (flock(p->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		pid_t pid = errno == EWOULDBLOCK ? lock_holder(p->lock_fd) : -1;

		if (pid < 0)
			return refuse_state_dir(p, errno, "cannot be locked", err);
		if ((pid > 0 && (kill(pid, 0) == 0 || errno == EPERM)) || clock_now_ns() > until_ns)
			return error_set(err, ERROR_INPUT, EBUSY,
					 "the state directory '%.200s' is in use by another daemon "
					 "(pid %d); end that one first, or give this one another "
					 "with --state-dir",
					 p->path, pid);
		(void)nanosleep(&step, NULL);
	}
	return 0;
}

static int lock_state_dir(struct state_dir *p, struct error *err)
{
	struct stat st;
	int r;

	p->lock_fd = openat(p->state_fd, "lock",
			    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
			    0600);
	if (p->lock_fd < 0)
		return refuse_state_dir(p, errno, "has a lock that cannot be opened", err);
	r = wait_for_lock(p, err);
	if (r < 0)
		return r;
	/* A file with a second name may be any file of the monitor's user. */
	if (fstat(p->lock_fd, &st) == 0 && st.st_nlink == 0)
		return error_set(err, ERROR_INPUT, EBUSY,
				 "another daemon began in the state directory '%.200s' at the same "
				 "moment and could not start; try again",
				 p->path);
	if (fstat(p->lock_fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_nlink != 1)
		return refuse_state_dir(p, EPERM, "has a lock that is not the daemon's", err);
	if (ftruncate(p->lock_fd, 0) < 0 || dprintf(p->lock_fd, "%d\n", getpid()) < 0)
		return refuse_state_dir(p, errno, "cannot be written to", err);
	return 0;
}

/* Its content is of a daemon that is gone, because this one has the lock. */
static int open_run(struct state_dir *p, struct error *err)
{
	struct stat st;

	if (mkdirat(p->state_fd, "run", 0711) < 0 && errno != EEXIST)
		return refuse_state_dir(p, errno, "cannot be written to", err);
	p->run_fd = openat(p->state_fd, "run", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->run_fd < 0 || fstat(p->run_fd, &st) < 0)
		return refuse_state_dir(p, errno, "has a run/ that cannot be opened", err);
	if (st.st_uid != geteuid())
		return refuse_state_dir(p, EPERM, "has a run/ that is not the daemon's", err);
	return fchmod(p->run_fd, 0711) < 0 ? refuse_state_dir(p, errno, "cannot be changed", err)
					   : 0;
}

int state_dir_open(struct state_dir *p, uid_t uid, gid_t gid, struct error *err)
{
	int r = open_state(p, uid, gid, err);

	if (r == 0)
		r = lock_state_dir(p, err);
	if (r == 0)
		r = open_run(p, err);
	if (r < 0)
		state_dir_undo(p);
	assert(r < 0 || (p->state_fd >= 0 && p->lock_fd >= 0 && p->run_fd >= 0));
	return r;
}

void state_dir_undo(struct state_dir *p)
{
	/* Under the lock: no other daemon uses the directory. The next start makes both anew. */
	if (p->run_fd >= 0) {
		(void)unlinkat(p->state_fd, "run", AT_REMOVEDIR);
		(void)unlinkat(p->state_fd, "lock", 0);
	}
	if (p->made > 0 && rmdir(p->path) == 0)
		state_dir_remove_parents(p->path, p->made);
	state_dir_close(p);
}

void state_dir_close(struct state_dir *p)
{
	p->run_fd = fd_close(p->run_fd);
	p->lock_fd = fd_close(p->lock_fd);
	p->state_fd = fd_close(p->state_fd);
}
