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

static int journal_flush(struct journal *j)
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
		r = journal_flush(j);
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
	int r = journal_flush(j);
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

/* Opens the directory of a path, unless it is already open. *ret_base: the path's last component. */
static int journal_open_parent(struct journal *j, int top_fd, const char *path,
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
		struct stat st;
		int next;

		*end = '\0';
		if (fstatat(fd, at, &st, AT_SYMLINK_NOFOLLOW) < 0)
			next = -errno;
		else
			next = S_ISDIR(st.st_mode) ? entry_open(fd, at, st.st_mode) : -ENOTDIR;
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
static int journal_move(int from_fd, const char *from, int to_fd, const char *to)
{
	int r = sys_renameat(from_fd, from, to_fd, to);

	if (r != -EACCES || geteuid() == 0 || fchmodat(from_fd, from, 0700, 0) < 0)
		return r;
	return sys_renameat(from_fd, from, to_fd, to);
}

static int journal_put(const struct journal *j, const struct journal_places *at, uint64_t number,
		       const char *base)
{
	struct number_text name = number_text(number);
	int r = sys_renameat(at->stage_fd, name.text, j->parent_fd, base);

	if (r != -EISDIR && r != -ENOTDIR && r != -ENOTEMPTY && r != -EEXIST)
		return r;
	r = journal_move(j->parent_fd, base, at->trash_fd, name.text);
	return r < 0 ? r : sys_renameat(at->stage_fd, name.text, j->parent_fd, base);
}

/*
 * An unreadable file, or one of another user, keeps its mode and time; its content is right all the same. With privilege, only files
 * of the workspace's owner are changed: the owner may have put a link to another user's file there.
 */
static int journal_set(const struct journal *j, int workspace_fd, const struct journal_op *op,
		       const char *base)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = op->mtime_s, .tv_nsec = op->mtime_nsec } };
	_cleanup_close_ int fd = -EBADF;
	struct stat st, owner;

	if (fstatat(j->parent_fd, base, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return 0;
	fd = entry_open(j->parent_fd, base, st.st_mode);
	if (fd < 0)
		return 0;
	if (geteuid() == 0 &&
	    (fstat(workspace_fd, &owner) < 0 || fstat(fd, &st) < 0 || st.st_uid != owner.st_uid))
		return 0;
	if (op->mtime_nsec != JOURNAL_KEEP_TIME)
		(void)futimens(fd, times);
	return fchmod(fd, op->mode & 0777) < 0 && errno != EPERM ? -errno : 0;
}

static int journal_redo_one(struct journal *j, const struct journal_places *at,
			    const struct journal_op *op, const char *path)
{
	const char *base;
	int r = journal_open_parent(j, at->workspace_fd, path, &base);

	/* Removed on the host meanwhile: its entries are dropped with it. */
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0;
	if (r < 0)
		return r;
	switch (op->kind) {
	case JOURNAL_PUT:
		r = journal_put(j, at, op->number, base);
		break;
	case JOURNAL_REMOVE:
		r = sys_unlinkat(j->parent_fd, base, 0);
		if (r == -EISDIR)
			r = journal_move(j->parent_fd, base, at->trash_fd,
					 number_text(op->number).text);
		break;
	default:
		return journal_set(j, at->workspace_fd, op, base);
	}
	/* It was done before. */
	return r == -ENOENT ? 0 : r;
}

/* The bytes at a place of the file, which are all of an operation that begins there; how many, or a negative errno. */
static ssize_t journal_read(struct journal *j, int fd, uint64_t place, const char **ret)
{
	const uint64_t op_max = sizeof(struct journal_op) + CHANGE_PATH_MAX + 8;
	ssize_t n;

	if (place < j->read_from || place + op_max > j->read_from + j->n) {
		n = pread(fd, j->bytes, sizeof(j->bytes), (off_t)place);
		if (n < 0)
			return -errno;
		j->read_from = place;
		j->n = (size_t)n;
	}
	*ret = j->bytes + (place - j->read_from);
	return (ssize_t)(j->read_from + j->n - place);
}

static int journal_redo_all(struct journal *j, const struct journal_places *at, int fd)
{
	uint64_t place = sizeof(j->head);
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < j->head.ops; i++) {
		const struct journal_op *op;
		const char *bytes;
		ssize_t left = journal_read(j, fd, place, &bytes);

		if (left < 0)
			return (int)left;
		op = (const struct journal_op *)bytes;
		/* The sum is right, so another version wrote this journal. */
		if (left < (ssize_t)sizeof(*op) || left - (ssize_t)sizeof(*op) < op->path_bytes)
			return -EBADMSG;
		place += sizeof(*op) + op->path_bytes;
		r = journal_redo_one(j, at, op, bytes + sizeof(*op));
	}
	return r;
}

/* 1: complete; 0: torn, so none of its operations were done. */
static int journal_check(struct journal *j, int fd)
{
	uint64_t place = sizeof(j->head);
	char hex[SHA256_HEX];
	ssize_t n = pread(fd, &j->head, sizeof(j->head), 0);

	if (n < 0)
		return -errno;
	if (n != (ssize_t)sizeof(j->head) || memcmp(j->head.magic, magic, sizeof(magic)) != 0)
		return 0;
	sha256_init(&j->hash);
	while ((n = pread(fd, j->bytes, sizeof(j->bytes), (off_t)place)) > 0) {
		sha256_update(&j->hash, j->bytes, (size_t)n);
		place += (uint64_t)n;
	}
	if (n < 0)
		return -errno;
	sha256_final(&j->hash, hex);
	return place - sizeof(j->head) == j->head.bytes &&
	       memcmp(hex, j->head.sha256, SHA256_HEX) == 0;
}

int journal_redo(struct journal *j, const struct journal_places *at)
{
	_cleanup_close_ int fd = sys_openat(at->store_fd, STORE_JOURNAL, O_RDONLY | O_NOFOLLOW, 0);
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	j->parent_fd = -EBADF;
	r = journal_check(j, fd);
	if (r > 0) {
		j->n = 0;
		r = journal_redo_all(j, at, fd);
		if (r == 0)
			store_note_size(at->store_fd, &j->head.size);
	}
	j->parent_fd = fd_close(j->parent_fd);
	return r < 0 ? r : sys_unlinkat(at->store_fd, STORE_JOURNAL, 0);
}
