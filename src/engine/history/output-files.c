/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. Whole outputs and collected files, below two directories that stay open:
 *
 *   outputs/ab/ex_ab….stdout     files/ab/ex_ab…/<path>
 *                    .stderr, .events, and .request, .result where they are too large for a row
 *
 * Names are made from ids that were checked, never from what a program said. Links are never followed. A file
 * whose row is gone is an orphan; after an unclean stop the sweep looks for them, a directory a tick.
 *
 * An execution may have collected a thousand files, and executions are deleted many at a time: their directories are moved to
 * files/gone, which is emptied some names a tick.
 */
#include "engine/history/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

enum {
	NAME_BYTES = 48,
	TREE_DEPTH = REQUEST_DEPTH_MAX + 2,
	GONE_PER_TICK = 256, /* a few milliseconds */
	GONE_AGAIN_S = 60,
};

static const char gone[] = "gone";

static const char *const suffixes[] = {
	[HISTORY_STDOUT] = "stdout", [HISTORY_STDERR] = "stderr", [HISTORY_REQUEST] = "request",
	[HISTORY_RESULT] = "result", [HISTORY_EVENTS] = "events", [HISTORY_VALUE] = "value"
};

static int files_open_dir(int at, const char *name)
{
	int fd;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int files_open(struct history *h, struct error *err)
{
	h->files.outputs_fd = files_open_dir(h->dir_fd, "outputs");
	h->files.fd = files_open_dir(h->dir_fd, "files");
	if (h->files.outputs_fd < 0 || h->files.fd < 0)
		return store_say(err, MIN(h->files.outputs_fd, h->files.fd));
	h->files.has_gone = true; /* of the last process */
	return 0;
}

static void output_name(const char *id, enum history_stream stream, char ret[NAME_BYTES])
{
	(void)snprintf(ret, NAME_BYTES, "%.2s/%s.%s", id + 3, id, suffixes[stream]);
}

static int files_make_shard(int at, const char *id)
{
	const char shard[] = { id[3], id[4], '\0' };

	return mkdirat(at, shard, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int history_output_create(struct history *h, const char *id, enum history_stream stream)
{
	char name[NAME_BYTES];
	int fd, r;

	if (!id_is_valid(id))
		return -EINVAL;
	output_name(id, stream, name);
	fd = openat(h->files.outputs_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0 && errno == ENOENT) {
		r = files_make_shard(h->files.outputs_fd, id);
		if (r < 0)
			return r;
		fd = openat(h->files.outputs_fd, name,
			    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	return fd < 0 ? -errno : fd;
}

int history_output_nameless(struct history *h, const char *id, enum history_stream stream)
{
	int fd = openat(h->files.outputs_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	/* A file system that has no such files: the name goes at once. If this process dies in between, the sweep finds an empty file. */
	fd = history_output_create(h, id, stream);
	if (fd >= 0)
		(void)history_output_delete(h, id, stream);
	return fd;
}

int history_output_open(struct history *h, const char *id, enum history_stream stream)
{
	char name[NAME_BYTES];
	int fd;

	if (!id_is_valid(id))
		return -ENOENT;
	output_name(id, stream, name);
	fd = openat(h->files.outputs_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int history_output_delete(struct history *h, const char *id, enum history_stream stream)
{
	char name[NAME_BYTES];

	if (!id_is_valid(id))
		return -ENOENT;
	output_name(id, stream, name);
	return unlinkat(h->files.outputs_fd, name, 0) < 0 ? -errno : 0;
}

static int files_open_of(struct history *h, const char *id)
{
	char name[NAME_BYTES];
	int fd;

	(void)snprintf(name, sizeof(name), "%.2s/%s", id + 3, id);
	fd = openat(h->files.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int history_files_create(struct history *h, const char *id)
{
	char name[NAME_BYTES];
	int r;

	if (!id_is_valid(id))
		return -EINVAL;
	r = files_make_shard(h->files.fd, id);
	if (r < 0)
		return r;
	(void)snprintf(name, sizeof(name), "%.2s/%s", id + 3, id);
	if (mkdirat(h->files.fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	return files_open_of(h, id);
}

int history_files_open(struct history *h, const char *id)
{
	return id_is_valid(id) ? files_open_of(h, id) : -ENOENT;
}

static void files_read_part(int fd, off_t from, size_t n, struct buf *ret)
{
	char chunk[4096];

	while (n > 0) {
		ssize_t got = pread(fd, chunk, MIN(n, sizeof(chunk)), from);

		if (got <= 0 || buf_append(ret, chunk, (size_t)got) < 0)
			break;
		from += got;
		n -= (size_t)got;
	}
}

/* The first byte of a character at or behind `at`: what is cut is cut between two. */
static off_t files_next_character(int fd, off_t at)
{
	char bytes[4];
	ssize_t n = pread(fd, bytes, sizeof(bytes), at), i = 0;

	while (i < n && ((unsigned char)bytes[i] & 0xc0) == 0x80)
		i++;
	/* Four in a row are not UTF-8 at all: such bytes may be cut anywhere. */
	return i < (ssize_t)sizeof(bytes) ? at + i : at;
}

int64_t files_ends(struct history *h, const char *id, enum history_stream stream, size_t max,
		   struct buf *ret)
{
	_cleanup_close_ int fd = history_output_open(h, id, stream);
	off_t head = (off_t)(max / 2), tail;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (st.st_size <= (off_t)max) {
		files_read_part(fd, 0, (size_t)st.st_size, ret);
		return st.st_size;
	}
	tail = files_next_character(fd, st.st_size - head);
	head = files_next_character(fd, head - 3);
	files_read_part(fd, 0, (size_t)head, ret);
	/* As run/link/capture.c has it. */
	if (buf_printf(ret, "\n... [%lld bytes omitted] ...\n", (long long)(tail - head)) == 0)
		files_read_part(fd, tail, (size_t)(st.st_size - tail), ret);
	return st.st_size;
}

static void files_close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static DIR *files_list_dir(int at, const char *name)
{
	_cleanup_close_ int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		(void)TAKE_FD(fd);
	return dir;
}

static bool files_is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* So many names may be removed, and so many were tried. */
struct removing {
	int max, tried, removed;
};

static void files_remove_some(struct removing *r, int at, const char *name, int depth)
{
	_cleanup_(files_close_dir) DIR *dir = NULL;
	const struct dirent *entry;

	if (r->tried++ >= r->max || depth > TREE_DEPTH)
		return;
	if (unlinkat(at, name, 0) == 0) {
		r->removed++;
		return;
	}
	dir = errno == ENOENT ? NULL : files_list_dir(at, name);
	while (dir && r->tried < r->max && (entry = readdir(dir)))
		if (!files_is_dots(entry->d_name))
			files_remove_some(r, dirfd(dir), entry->d_name, depth + 1);
	r->removed += dir && unlinkat(at, name, AT_REMOVEDIR) == 0;
}

static void files_remove_tree(int at, const char *name)
{
	files_remove_some(&(struct removing){ .max = INT_MAX }, at, name, 0);
}

/* On a disk that is full there may be no room even for that. */
static bool files_move_away(struct history *h, const char *from, const char *id)
{
	char to[NAME_BYTES];

	(void)snprintf(to, sizeof(to), "%s/%s", gone, id);
	if (renameat(h->files.fd, from, h->files.fd, to) < 0 &&
	    (mkdirat(h->files.fd, gone, 0700) < 0 ||
	     renameat(h->files.fd, from, h->files.fd, to) < 0))
		return false;
	h->files.has_gone = true;
	h->files.gone_at_ns = 0;
	return true;
}

void files_delete(struct history *h, const char *id)
{
	char name[NAME_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		(void)history_output_delete(h, id, (enum history_stream)i);
	(void)snprintf(name, sizeof(name), "%.2s/%s", id + 3, id);
	if (faccessat(h->files.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !files_move_away(h, name, id))
		files_remove_tree(h->files.fd, name);
}

bool files_are_going(const struct history *h)
{
	return h->files.has_gone && clock_now_ns() >= h->files.gone_at_ns;
}

bool files_empty_gone(struct history *h)
{
	struct removing r = { .max = GONE_PER_TICK };

	if (!files_are_going(h))
		return false;
	files_remove_some(&r, h->files.fd, gone, 0);
	h->files.has_gone = faccessat(h->files.fd, gone, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
			    errno != ENOENT;
	/* There may be no descriptor for it now, or a name that we may not remove: no caller waits for that. */
	if (r.removed == 0)
		h->files.gone_at_ns = clock_now_ns() + GONE_AGAIN_S * NS_PER_SEC;
	return files_are_going(h);
}

static void files_sweep_dir(struct history *h, int at, const char *shard)
{
	_cleanup_(files_close_dir) DIR *dir = files_list_dir(at, shard);
	const struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		const struct span id = { entry->d_name, strnlen(entry->d_name, HISTORY_ID - 1) };
		_cleanup_stmt_ sqlite3_stmt *s = NULL;

		/* Requests and outputs are written before there is a row for them. */
		if (!files_is_dots(entry->d_name) &&
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_ctim.tv_sec * NS_PER_SEC + st.st_ctim.tv_nsec < h->files.opened_ns &&
		    store_get(h, &s, STMT_BY_ID, VALUES(V_SPAN(id))) == 0)
			files_remove_tree(dirfd(dir), entry->d_name);
	}
	(void)unlinkat(at, shard, AT_REMOVEDIR); /* only when it is empty */
}

bool files_sweep(struct history *h)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

	/* Directories that are not there cost nothing: go on to the next that is. */
	while (h->files.sweep < SWEEP_END) {
		char shard[3] = { digits[h->files.sweep / 36], digits[h->files.sweep % 36], '\0' };
		bool outputs = faccessat(h->files.outputs_fd, shard, F_OK, 0) == 0;
		bool files = faccessat(h->files.fd, shard, F_OK, 0) == 0;

		h->files.sweep++;
		if (outputs)
			files_sweep_dir(h, h->files.outputs_fd, shard);
		if (files)
			files_sweep_dir(h, h->files.fd, shard);
		if (outputs || files)
			break;
	}
	return h->files.sweep < SWEEP_END;
}
