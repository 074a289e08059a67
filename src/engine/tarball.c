/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of an execution as one tar, made while it is read: a piece of a file goes into libarchive only when what came out
 * of it has been taken. So it costs the same memory for any number of bytes.
 */
#include "engine/engine-private.h"

#include "base/fd.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10, READY_MAX = 1 << 20 };

struct tarball {
	struct archive *archive;
	json_t *files; /* [{"path"}, …] */
	size_t next;
	int dir_fd, fd; /* fd: the file at hand */
	int64_t left;	/* of it */
	int64_t time_ns;
	bool closed;
	struct buf ready; /* bytes not taken yet, from `taken` on */
	size_t taken;
};

static ssize_t on_bytes(struct archive *a, void *data, const void *bytes, size_t n)
{
	struct tarball *t = data;

	if (buf_append(&t->ready, bytes, n) < 0) {
		archive_set_error(a, ENOBUFS, "no room");
		return -1;
	}
	return (ssize_t)n;
}

struct tarball *tarball_free(struct tarball *t)
{
	if (!t)
		return NULL;
	if (t->archive)
		(void)archive_write_free(t->archive);
	json_decref(t->files);
	t->dir_fd = fd_close(t->dir_fd);
	t->fd = fd_close(t->fd);
	buf_done(&t->ready);
	free(t);
	return NULL;
}

static int set_up(struct tarball *t)
{
	t->archive = archive_write_new();
	if (!t->archive)
		return -ENOMEM;
	if (archive_write_set_format_pax_restricted(t->archive) != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(t->archive, 0) != ARCHIVE_OK ||
	    archive_write_open(t->archive, t, NULL, on_bytes, NULL) != ARCHIVE_OK)
		return -EIO;
	return 0;
}

int engine_tarball(struct engine *e, const char *caller, const char *id, struct tarball **ret,
		   struct error *err)
{
	struct tarball *t;
	json_t *list;
	int r = engine_files(e, caller, id, &list, err);

	if (r < 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (t) {
		t->files = json_incref(json_object_get(list, "files"));
		t->fd = -EBADF;
		/* None: no file was kept, an empty tar. */
		t->dir_fd = history_files_open(e->o.history, id);
		buf_init(&t->ready, READY_MAX);
	}
	json_decref(list);
	r = t ? set_up(t) : -ENOMEM;
	if (r < 0) {
		(void)tarball_free(t);
		return error_set(err, ERROR_INTERNAL, -r, "cannot make a tar: %s", strerror(-r));
	}
	*ret = t;
	return 0;
}

static int begin_file(struct tarball *t, const char *path)
{
	struct archive_entry *entry;
	int64_t size;
	int r = t->dir_fd < 0 ? -ENOENT : query_open_below(t->dir_fd, path, &size);

	/* Listed, but too much to be kept: what there is goes into the tar. */
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	t->fd = r;
	t->left = size;
	entry = archive_entry_new();
	if (!entry)
		return -ENOMEM;
	archive_entry_set_pathname(entry, path);
	archive_entry_set_size(entry, size);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_mtime(entry, 0, 0);
	r = archive_write_header(t->archive, entry) < ARCHIVE_WARN ? -EIO : 0;
	archive_entry_free(entry);
	return r;
}

static int go_on_file(struct tarball *t)
{
	char piece[PIECE_BYTES / 2];
	ssize_t n = read(t->fd, piece, (size_t)MIN((int64_t)sizeof(piece), t->left));

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n == 0 && t->left > 0)
		return -EIO;
	if (n > 0 && archive_write_data(t->archive, piece, (size_t)n) != n)
		return -EIO;
	t->left -= n;
	if (t->left == 0)
		t->fd = fd_close(t->fd);
	return 0;
}

/* Something more is ready, or everything is. */
static int advance(struct tarball *t)
{
	const char *path;

	t->ready.len = t->taken = 0;
	while (t->ready.len == 0 && !t->closed) {
		int r = 0;

		if (t->fd >= 0) {
			r = go_on_file(t);
		} else if (t->next < json_array_size(t->files)) {
			path = json_string_value(
				json_object_get(json_array_get(t->files, t->next++), "path"));
			r = path ? begin_file(t, path) : 0;
		} else {
			t->closed = true;
			r = archive_write_close(t->archive) == ARCHIVE_OK ? 0 : -EIO;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

ssize_t tarball_read(struct tarball *t, void *bytes, size_t n)
{
	int r = t->taken == t->ready.len ? advance(t) : 0;

	if (r < 0)
		return r;
	n = MIN(n, t->ready.len - t->taken);
	if (n > 0)
		memcpy(bytes, t->ready.data + t->taken, n);
	t->taken += n;
	return (ssize_t)n;
}
