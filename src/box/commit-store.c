/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See commit.h. Only this process's user may be able to write to a store: a forged journal would be done with
 * the broker's rights. The lock is on the store's directory, so it ends with the last process that holds it.
 */
#include "box/commit-private.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/workspace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

static const char size_magic[8] = "atollus";

struct size_note {
	char magic[8];
	struct tree_size size;
};

static struct commit_work store_work;

/* A directory of this user below another, created if missing and wanted. */
static int own_dir(int dir_fd, const char *name, bool make)
{
	struct stat st;
	int r = make ? sys_mkdirat(dir_fd, name, 0700) : 0, fd;

	if (r < 0 && r != -EEXIST)
		return r;
	fd = sys_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 0022) {
		(void)fd_close(fd);
		return -EPERM;
	}
	return fd;
}

/* Whether a rename works between them: the same file system, through the same mount. */
static bool is_near(int a_fd, int b_fd)
{
	struct statx a, b;

	if (statx(a_fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &a) < 0 ||
	    statx(b_fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &b) < 0)
		return false;
	return a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor &&
	       a.stx_mnt_id == b.stx_mnt_id;
}

static int open_beside(const struct workspace_place *places, const char *name, bool make)
{
	_cleanup_close_ int parent = -EBADF, all = -EBADF;
	const char *base;

	parent = workspace_open_parent(places, name, make, &base);
	if (parent < 0)
		return parent;
	all = own_dir(parent, STORE_DIR, make);
	return all < 0 ? all : own_dir(all, base, make);
}

static bool is_closed(int r)
{
	return r == -EACCES || r == -EPERM || r == -EROFS;
}

int commit_store_open(const struct workspace_place *places, const char *name, int workspace_fd,
		      struct error *err)
{
	int fd = own_dir(workspace_fd, STORE_DIR, false);

	/* If there is a store inside, it stays there: it may hold a journal. */
	if (fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP && fd != -EPERM)
		return fd;
	fd = open_beside(places, name, true);
	if (fd >= 0 && !is_near(fd, workspace_fd)) {
		(void)fd_close(fd);
		fd = -EPERM;
	}
	if (is_closed(fd))
		fd = own_dir(workspace_fd, STORE_DIR, true);
	if (fd < 0)
		return error_set(
			err, ERROR_STORAGE, -fd,
			"the workspace '%.64s' has no place for its journal: %s; remove or "
			"give to Atoll's user the directory " STORE_DIR " beside it",
			name, strerror(-fd));
	return fd;
}

int store_open_places(struct journal_places *at)
{
	at->stage_fd = own_dir(at->store_fd, STORE_STAGE, true);
	if (at->stage_fd < 0)
		return at->stage_fd;
	at->trash_fd = own_dir(at->store_fd, STORE_TRASH, true);
	return at->trash_fd < 0 ? at->trash_fd : 0;
}

void store_close_places(struct journal_places *at)
{
	at->stage_fd = fd_close(at->stage_fd);
	at->trash_fd = fd_close(at->trash_fd);
}

int store_read_size(int store_fd, struct tree_size *ret)
{
	_cleanup_close_ int fd = sys_openat(store_fd, STORE_USAGE, O_RDONLY | O_NOFOLLOW, 0);
	struct size_note note;

	if (fd < 0)
		return fd;
	if (pread(fd, &note, sizeof(note), 0) != (ssize_t)sizeof(note) ||
	    memcmp(note.magic, size_magic, sizeof(size_magic)) != 0)
		return -EBADMSG;
	*ret = note.size;
	return 0;
}

/* Only a hint: without it, the size is counted again. */
void store_note_size(int store_fd, const struct tree_size *size)
{
	_cleanup_close_ int fd = -EBADF;
	struct size_note note = { .size = *size };

	if (size->bytes >= 0) {
		memcpy(note.magic, size_magic, sizeof(size_magic));
		fd = sys_openat(store_fd, STORE_USAGE, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
		if (fd >= 0 && pwrite(fd, &note, sizeof(note), 0) == (ssize_t)sizeof(note))
			return;
	}
	(void)sys_unlinkat(store_fd, STORE_USAGE, 0);
}

/* The store is locked. If the workspace is gone, its journal is dropped. */
static int finish_journal(int store_fd, int workspace_fd)
{
	struct journal_places at = { .workspace_fd = workspace_fd,
				     .store_fd = store_fd,
				     .stage_fd = -EBADF,
				     .trash_fd = -EBADF };
	int r = store_open_places(&at);

	if (r == 0)
		r = workspace_fd < 0 ? sys_unlinkat(store_fd, STORE_JOURNAL, 0)
				     : journal_redo(&store_work.journal, &at);
	if (r == 0 || r == -ENOENT)
		r = tree_wipe(&store_work.other, at.stage_fd);
	if (r == 0)
		r = tree_wipe(&store_work.other, at.trash_fd);
	store_close_places(&at);
	return r;
}

enum recovery {
	/* only the journal; other leftovers wait for the next commit, so that a run's start need not */
	RECOVER_JOURNAL,
	RECOVER_ALL,
};

static int recover_store(int store_fd, int workspace_fd, enum recovery what)
{
	struct stat st;

	if (what == RECOVER_JOURNAL &&
	    fstatat(store_fd, STORE_JOURNAL, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	if (flock(store_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno;
	return finish_journal(store_fd, workspace_fd);
}

static bool is_absent(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

/* Does not create a missing one. */
static int find_workspace(const struct workspace_place *places, const char *name)
{
	const struct workspace_place *place = workspace_find(places, name);
	_cleanup_close_ int parent = -EBADF;
	const char *base;

	if (place && place->name)
		return sys_open(place->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	parent = workspace_open_parent(places, name, false, &base);
	return parent < 0 ? parent : sys_open_beneath(parent, base, O_RDONLY | O_DIRECTORY);
}

static int recover_commit(const struct workspace_place *places, const char *name,
			  enum recovery what)
{
	_cleanup_close_ int workspace = find_workspace(places, name);
	_cleanup_close_ int inside = -EBADF, beside = -EBADF;
	int r = 0;

	if (workspace < 0 && !is_absent(workspace))
		return is_closed(workspace) ? 0 : workspace;
	inside = workspace < 0 ? -ENOENT : own_dir(workspace, STORE_DIR, false);
	if (inside >= 0)
		r = recover_store(inside, workspace, what);
	beside = open_beside(places, name, false);
	if (r == 0 && beside >= 0)
		r = recover_store(beside, workspace, what);
	return r;
}

int commit_recover(const struct workspace_place *places, const char *name)
{
	return recover_commit(places, name, RECOVER_JOURNAL);
}

static int recover_below(const char *root)
{
	const struct workspace_place here[] = { { .path = root }, { 0 } };
	struct directory_names *names = &store_work.walk.levels[0];
	const char *name;
	int first = 0, r;

	names->fd = open_beside(here, ".", false);
	if (names->fd < 0)
		return is_absent(names->fd) || is_closed(names->fd) ? 0 : names->fd;
	names->at = names->n = 0;
	while ((r = names_next(names, &name)) > 0) {
		r = recover_commit(here, name, RECOVER_ALL);
		first = first ? first : r;
	}
	names->fd = fd_close(names->fd);
	return first ? first : r;
}

int commit_recover_all(const struct workspace_place *places)
{
	int first = 0;

	for (const struct workspace_place *p = places; p && p->path; p++) {
		int r = p->name ? recover_commit(places, p->name, RECOVER_ALL)
				: recover_below(p->path);

		first = first ? first : r;
	}
	return first;
}
