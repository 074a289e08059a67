/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See commit-journal.h. Operations come in the order of a walk, so the directory of the last one is kept open.
 * Paths are opened one component at a time, never through a link: the workspace's owner is not trusted and may
 * write there at any time.
 */
#include "box/commit-journal.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/commit-private.h"

#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

static const char magic[8] = "atolljl";

static_assert(sizeof(struct journal_op) + CHANGE_PATH_MAX + 8 <= JOURNAL_BYTES,
	      "the buffer must hold any operation");

void journal_end(struct journal *j)
{
	j->fd = fd_close(j->fd);
	j->parent_fd = fd_close(j->parent_fd);
}

int journal_begin(struct journal *j, int store_fd)
{
	j->parent_fd = -EBADF;
	j->n = 0;
	j->head = (struct journal_head){ 0 };
	memcpy(j->head.magic, magic, sizeof(magic));
	sha256_init(&j->hash);
	j->fd = sys_openat(store_fd, STORE_NEW, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	if (j->fd < 0)
		return j->fd;
	return lseek(j->fd, sizeof(j->head), SEEK_SET) < 0 ? -errno : 0;
}

static int flush_journal(struct journal *j)
{
	size_t n = j->n;

	sha256_update(&j->hash, j->bytes, n);
	j->head.bytes += n;
	j->n = 0;
	return n ? sys_write(j->fd, j->bytes, n) : 0;
}

int journal_add(struct journal *j, const struct journal_op *op, const char *path)
{
	size_t path_len = strlen(path), path_bytes = (path_len + 8) & ~(size_t)7;
	struct journal_op *at;
	int r = 0;

	if (j->n + sizeof(*op) + path_bytes > sizeof(j->bytes))
		r = flush_journal(j);
	if (r < 0)
		return r;
	at = (struct journal_op *)(j->bytes + j->n);
	*at = *op;
	at->path_bytes = (uint16_t)path_bytes;
	memset(at + 1, 0, path_bytes);
	memcpy(at + 1, path, path_len);
	j->n += sizeof(*op) + path_bytes;
	j->head.ops++;
	return 0;
}

int journal_commit(struct journal *j, int store_fd, const struct tree_size *size)
{
	int r = flush_journal(j);
	ssize_t n;

	if (r < 0)
		return r;
	sha256_final(&j->hash, j->head.sha256);
	j->head.size = *size;
	n = pwrite(j->fd, &j->head, sizeof(j->head), 0);
	if (n != (ssize_t)sizeof(j->head))
		return n < 0 ? -errno : -ENOSPC;
	return sys_renameat(store_fd, STORE_NEW, store_fd, STORE_JOURNAL);
}

/* Reads the next piece of the file after the rest in the buffer; *at is where that rest begins. */
static int refill(struct journal *j, size_t *at)
{
	ssize_t n;

	memmove(j->bytes, j->bytes + *at, j->n - *at);
	j->n -= *at;
	*at = 0;
	n = read(j->fd, j->bytes + j->n, sizeof(j->bytes) - j->n);
	if (n < 0)
		return -errno;
	j->n += (size_t)n;
	return 0;
}

static int rewind_to_ops(struct journal *j)
{
	j->n = 0;
	return lseek(j->fd, sizeof(j->head), SEEK_SET) < 0 ? -errno : 0;
}

/* 1: complete; 0: torn, so none of its operations were done. */
static int check(struct journal *j)
{
	char hex[SHA256_HEX];
	uint64_t bytes = 0;
	ssize_t n;
	int r;

	n = pread(j->fd, &j->head, sizeof(j->head), 0);
	if (n < 0)
		return -errno;
	if (n != (ssize_t)sizeof(j->head) || memcmp(j->head.magic, magic, sizeof(magic)) != 0)
		return 0;
	r = rewind_to_ops(j);
	if (r < 0)
		return r;
	sha256_init(&j->hash);
	while ((n = read(j->fd, j->bytes, sizeof(j->bytes))) > 0) {
		sha256_update(&j->hash, j->bytes, (size_t)n);
		bytes += (size_t)n;
	}
	if (n < 0)
		return -errno;
	sha256_final(&j->hash, hex);
	if (bytes != j->head.bytes || memcmp(hex, j->head.sha256, SHA256_HEX) != 0)
		return 0;
	r = rewind_to_ops(j);
	return r < 0 ? r : 1;
}

static int step_down(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? entry_open(dir_fd, name, st.st_mode) : -ENOTDIR;
}

/* Opens the directory of a path, unless it is already open. *ret_base: the path's last component. */
static int open_journal_parent(struct journal *j, int top_fd, const char *path,
			       const char **ret_base)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	_cleanup_close_ int fd = -EBADF;

	*ret_base = slash ? slash + 1 : path;
	if (j->parent_fd >= 0 && strncmp(j->path, path, n) == 0 && j->path[n] == '\0')
		return 0;
	j->parent_fd = fd_close(j->parent_fd);
	fd = sys_dup_above(top_fd, 3);
	memcpy(j->path, path, n);
	j->path[n] = '\0';
	for (char *at = j->path; fd >= 0 && *at;) {
		char *end = strchrnul(at, '/'), was = *end;
		int next;

		*end = '\0';
		next = step_down(fd, at);
		*end = was;
		at = was ? end + 1 : end;
		(void)fd_close(fd);
		fd = next;
	}
	if (fd < 0)
		return fd;
	j->parent_fd = TAKE_FD(fd);
	return 0;
}

/* A directory that is moved must be writable itself, because its ".." changes. */
static int move(int from_fd, const char *from, int to_fd, const char *to)
{
	int r = sys_renameat(from_fd, from, to_fd, to);

	if (r != -EACCES || geteuid() == 0 || fchmodat(from_fd, from, 0700, 0) < 0)
		return r;
	return sys_renameat(from_fd, from, to_fd, to);
}

static int put_journal_entry(const struct journal *j, const struct journal_places *at,
			     uint64_t number, const char *base)
{
	struct number_text name = number_text(number);
	int r = sys_renameat(at->stage_fd, name.text, j->parent_fd, base);

	if (r == -EISDIR || r == -ENOTDIR || r == -ENOTEMPTY || r == -EEXIST) {
		r = move(j->parent_fd, base, at->trash_fd, name.text);
		if (r == 0)
			r = sys_renameat(at->stage_fd, name.text, j->parent_fd, base);
	}
	return r == -ENOENT ? 0 : r;
}

static int take_away(const struct journal *j, const struct journal_places *at, uint64_t number,
		     const char *base)
{
	int r = sys_unlinkat(j->parent_fd, base, 0);

	if (r == -EISDIR)
		r = move(j->parent_fd, base, at->trash_fd, number_text(number).text);
	return r == -ENOENT ? 0 : r;
}

/*
 * With privilege, only files of the workspace's owner are changed: the owner may have put a link to another
 * user's file there.
 */
static bool may_set(int workspace_fd, int fd)
{
	struct stat owner, st;

	if (geteuid() != 0)
		return true;
	return fstat(workspace_fd, &owner) == 0 && fstat(fd, &st) == 0 && st.st_uid == owner.st_uid;
}

/* An unreadable file, or one of another user, keeps its mode and time; its content is right all the same. */
static int set(const struct journal *j, int workspace_fd, const struct journal_op *op,
	       const char *base)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = op->mtime_s, .tv_nsec = op->mtime_nsec } };
	_cleanup_close_ int fd = -EBADF;
	struct stat st;

	if (fstatat(j->parent_fd, base, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return 0;
	fd = entry_open(j->parent_fd, base, st.st_mode);
	if (fd < 0 || !may_set(workspace_fd, fd))
		return 0;
	if (op->mtime_nsec != JOURNAL_KEEP_TIME)
		(void)futimens(fd, times);
	return fchmod(fd, op->mode & 0777) < 0 && errno != EPERM ? -errno : 0;
}

static int redo_one(struct journal *j, const struct journal_places *at, const struct journal_op *op,
		    const char *path)
{
	const char *base;
	int r = open_journal_parent(j, at->workspace_fd, path, &base);

	/* Removed on the host meanwhile: its entries are dropped with it. */
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0;
	if (r < 0)
		return r;
	switch (op->kind) {
	case JOURNAL_PUT:
		return put_journal_entry(j, at, op->number, base);
	case JOURNAL_REMOVE:
		return take_away(j, at, op->number, base);
	default:
		return set(j, at->workspace_fd, op, base);
	}
}

static int redo_all(struct journal *j, const struct journal_places *at)
{
	size_t pos = 0;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < j->head.ops; i++) {
		const struct journal_op *op;

		if (j->n - pos < sizeof(*op) + CHANGE_PATH_MAX)
			r = refill(j, &pos);
		if (r < 0)
			return r;
		op = (const struct journal_op *)(j->bytes + pos);
		/* The sum is right, so another version wrote this journal. */
		if (j->n - pos < sizeof(*op) || j->n - pos - sizeof(*op) < op->path_bytes)
			return -EBADMSG;
		r = redo_one(j, at, op, (const char *)(op + 1));
		pos += sizeof(*op) + op->path_bytes;
	}
	return r;
}

int journal_redo(struct journal *j, const struct journal_places *at)
{
	int r;

	j->parent_fd = -EBADF;
	j->fd = sys_openat(at->store_fd, STORE_JOURNAL, O_RDONLY | O_NOFOLLOW, 0);
	if (j->fd < 0)
		return j->fd == -ENOENT ? 0 : j->fd;
	r = check(j);
	if (r > 0) {
		r = redo_all(j, at);
		if (r == 0)
			store_note_size(at->store_fd, &j->head.size);
	}
	journal_end(j);
	return r < 0 ? r : sys_unlinkat(at->store_fd, STORE_JOURNAL, 0);
}
