/* SPDX-License-Identifier: Apache-2.0 */
/* See place.h: the broker's side; child-place.c is the other. */
#include "box/place.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/sys/kernel.h"
#include "box/child.h"
#include "box/commit-walk.h"
#include "box/spawn.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LOOK_MS = 100,	 /* between two readings of its files */
	LOOK_SHARE = 10, /* reading them takes at most 1/LOOK_SHARE of the broker's time */
	YOUNG_S = 10,	 /* a place that is this young may not be locked yet */
	TOP_TRIES = 8,
	FREE_SHARE =
		50, /* a run ends when less than 1/FREE_SHARE of the file system is free, in bytes or in files */
};

struct place {
	int top_fd; /* PLACE_DIR */
	int fd;
	char name[NUMBER_TEXT];
	struct tree_size bounds;
	int64_t look_ns; /* when to read its files next */
};

/* Of all places; a broker has one thread. */
static struct commit_walk walk;

bool plan_has_place(const struct plan_view *plan)
{
	return plan->n_ops > 0 && plan->ops[0].kind == OP_PLACE;
}

/* --- ending --- */

/* As init: the program, which may be killing and stopping all that it can reach, cannot reach a process with this real user. */
static bool become_killer(uint32_t id)
{
	return id > 0 && sys_set_user(id - 1, id, id) == 0 && getuid() == id - 1 && geteuid() == id;
}

/* In a process of its own: the user of a place's program kills all its processes. No signal reaches another user's. */
static void kill_user(uint32_t id)
{
	const struct clone_request plain = { .cgroup_fd = -EBADF, .no_clone3 = true };
	_cleanup_close_ int pidfd = -EBADF;
	pid_t pid = sys_clone(&plain, &pidfd);

	if (pid == 0) {
		if (become_killer(id))
			(void)kill(-1, SIGKILL);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* init reads the end of its orders, kills the program, and ends. A child that is not init yet ends by itself. */
static void place_kill(struct sandbox *sb)
{
	(void)shutdown(sb->control_fd, SHUT_WR);
}

/* init kills before it ends; but it may have been killed itself. */
static void place_bury(struct sandbox *sb)
{
	kill_user(sb->host_id);
}

/* Until here the name reserves the users. */
static int place_clear(struct sandbox *sb)
{
	struct place *p = sb->place;

	if (p->fd >= 0) {
		(void)!tree_wipe(&walk, p->fd);
		(void)sys_unlinkat(p->top_fd, p->name, AT_REMOVEDIR);
		/* If this was the last one. */
		(void)rmdir(PLACE_DIR);
	}
	p->fd = fd_close(p->fd);
	return 0;
}

static struct place *place_free(struct place *p)
{
	(void)fd_close(p->fd);
	(void)fd_close(p->top_fd);
	free(p);
	return NULL;
}

static void place_release(struct sandbox *sb)
{
	sb->place = place_free(sb->place);
}

/* --- what it uses --- */

static int64_t place_files_in_memory(const struct sandbox *sb _unused_)
{
	return 0;
}

static void place_disk_left(const struct sandbox *sb _unused_, struct usage *usage _unused_)
{
}

/* Files without a name are not found by a walk: the least that stays free for others. */
static bool is_nearly_full(int fd)
{
	struct statfs fs;

	/* Some file systems do not count files. */
	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_bavail < fs.f_blocks / FREE_SHARE || fs.f_ffree < fs.f_files / FREE_SHARE);
}

static int64_t place_look(struct sandbox *sb)
{
	struct place *p = sb->place;
	struct tree_size size = { 0 };
	int64_t begin_ns = clock_now_ns(), cost_ns;

	if (begin_ns < p->look_ns)
		return (p->look_ns - begin_ns) / NS_PER_MS + 1;
	if (is_nearly_full(p->fd) || tree_measure(&walk, p->fd, &size) < 0 || size.too_deep ||
	    size.bytes > p->bounds.bytes || size.inodes > p->bounds.inodes + _PLACE_DIR_MAX)
		return 0;
	cost_ns = clock_now_ns() - begin_ns;
	p->look_ns = begin_ns + MAX(LOOK_MS * NS_PER_MS, cost_ns * LOOK_SHARE);
	return MAX((p->look_ns - clock_now_ns()) / NS_PER_MS, (int64_t)1);
}

static const struct sandbox_kind placed = {
	.kill = place_kill,
	.bury = place_bury,
	.clear = place_clear,
	.release = place_release,
	.files_in_memory = place_files_in_memory,
	.disk_left = place_disk_left,
	.look = place_look,
};

/* --- making --- */

static int open_top(struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat st;
	int r = sys_mkdir(PLACE_DIR, 0711);

	if (r == 0 || r == -EEXIST)
		fd = r = sys_open(PLACE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, PLACE_DIR " cannot be opened: %s",
				 strerror(-r));
	if (fstat(fd, &st) < 0 || st.st_uid != 0 || st.st_mode & 022)
		return error_set(err, ERROR_POLICY, EPERM,
				 PLACE_DIR " belongs to another user, or others may write to it; "
					   "remove it");
	return TAKE_FD(fd);
}

static uint32_t program_of(const struct host_facts *facts, uint32_t number)
{
	return facts->uid_base + 2 * number + 1;
}

/* What a killed broker left. A living one has the lock. */
static void sweep_place(int top_fd, const char *name, const struct host_facts *facts)
{
	struct stat st, now;
	int64_t number;
	_cleanup_close_ int fd = sys_openat(top_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0 || parse_i64(name, &number) < 0 || number < 0 ||
	    number >= facts->uid_count / 2 || fstat(fd, &st) < 0 ||
	    st.st_ctim.tv_sec > clock_realtime_ns() / NS_PER_SEC - YOUNG_S ||
	    flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	/* Another broker may have removed it before it was locked; the name may be a new sandbox's. */
	if (fstatat(top_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0 || now.st_ino != st.st_ino)
		return;
	kill_user(program_of(facts, (uint32_t)number));
	if (tree_wipe(&walk, fd) == 0)
		(void)sys_unlinkat(top_fd, name, AT_REMOVEDIR);
}

static void sweep_places(int top_fd, const struct host_facts *facts)
{
	int fd = sys_openat(top_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir)
		(void)fd_close(fd);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			sweep_place(top_fd, entry->d_name, facts);
	if (dir)
		(void)closedir(dir);
}

/* Another broker may remove PLACE_DIR when its last place goes. */
static int make_in_top(struct place *p, const struct host_facts *facts, struct error *err)
{
	int r = -ENOENT;

	for (int tries = 0; r == -ENOENT && tries < TOP_TRIES; tries++) {
		(void)fd_close(p->top_fd);
		p->top_fd = open_top(err);
		if (p->top_fd < 0)
			return p->top_fd;
		sweep_places(p->top_fd, facts);
		r = sys_mkdirat(p->top_fd, p->name, 0700);
	}
	return r < 0 ? error_set(err, r == -EEXIST ? ERROR_BUSY : ERROR_INTERNAL, -r,
				 PLACE_DIR "/%s cannot be made (%s); try again", p->name,
				 strerror(-r))
		     : 0;
}

/* Where ids are few, another program may have one of them. */
static bool has_process(uint32_t id)
{
	errno = 0;
	return getpriority(PRIO_USER, id) != -1 || errno != ESRCH;
}

/* Only root and the program's user can enter it, and only root can change what is directly in it. */
static int reserve_place(struct place *p, uint32_t program_id, const struct host_facts *facts,
			 struct error *err)
{
	int r;

	/* Before the place exists: what is in a place is killed when it is swept. */
	if (has_process(program_id) || has_process(program_id - 1))
		return error_set(err, ERROR_BUSY, EBUSY,
				 "the users of place %s have processes; try again", p->name);
	r = make_in_top(p, facts, err);
	if (r < 0)
		return r;
	p->fd = r = sys_openat(p->top_fd, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0 && is_nearly_full(p->fd))
		return error_set(err, ERROR_INTERNAL, ENOSPC,
				 "the file system of " PLACE_DIR " is nearly full: make room");
	if (r >= 0)
		r = flock(p->fd, LOCK_EX | LOCK_NB) < 0 || fchown(p->fd, 0, program_id) < 0 ||
				    fchmod(p->fd, 0710) < 0
			    ? -errno
			    : 0;
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, PLACE_DIR "/%s cannot be made: %s",
				 p->name, strerror(-r))
		     : 0;
}

static int new_place(struct sandbox *sb, const struct plan_view *plan, struct error *err)
{
	const struct host_facts *facts = &sb->host->facts;
	const struct op *scratch = plan_find(plan, OP_SCRATCH, -1);
	int64_t number = plan->ops[0].value;
	struct place *p = calloc(1, sizeof(*p));

	if (!p)
		return error_oom(err);
	*p = (struct place){ .fd = -EBADF,
			     .top_fd = -EBADF,
			     .bounds = { .bytes = scratch->value, .inodes = scratch->value2 } };
	sb->place = p;
	sb->kind = &placed;
	memcpy(p->name, number_text((uint64_t)number).text, sizeof(p->name));
	if (!facts->placing || number >= facts->uid_count / 2)
		return error_set(err, ERROR_POLICY, EPERM,
				 "sandboxes without namespaces take a broker that is root with "
				 "CAP_SETUID; see: atoll doctor");
	sb->host_id = sb->stdio_owner = program_of(facts, (uint32_t)number);
	return reserve_place(p, sb->host_id, facts, err);
}

static void placed_cleanup(struct sandbox **sb)
{
	sandbox_destroy(*sb);
}

static int clone_placed(struct sandbox *sb, struct error *err)
{
	struct child child = { CHILD_NO_FDS, .host = sb->host, .keep_fd = -EBADF,
			       .program_id = sb->host_id, .init_id = sb->host_id - 1 };
	_cleanup_close_ int far_end = sandbox_make_pair(&sb->control_fd, err);

	if (far_end < 0)
		return far_end;
	child.control_fd = far_end;
	return sandbox_clone_as(sb, &child, 0, child_place_main, err);
}

int place_create(struct sandbox_host *host, const struct plan_view *plan, struct sandbox **ret,
		 struct error *err)
{
	_cleanup_(placed_cleanup) struct sandbox *sb = sandbox_new(host);
	int r;

	if (!sb)
		return error_oom(err);
	r = new_place(sb, plan, err);
	if (r == 0)
		r = sandbox_make_group(sb, err);
	if (r == 0)
		r = clone_placed(sb, err);
	if (r == 0)
		r = sandbox_admit(sb, err);
	if (r < 0)
		return r;
	sb->id_reserved = true;
	*ret = TAKE_PTR(sb);
	return 0;
}
