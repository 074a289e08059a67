/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the host into a request. A directory is walked by descriptors, so a link that appears in
 * the middle of the walk is met by O_NOFOLLOW and refused like any other; what --file names itself
 * may not be one either. The program, FILE, may be reached through links: that the caller meant it
 * is plain.
 */
#include "cli/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "spec/request.h"

#define TREE_BYTES_MAX (256 * MiB)

static int cannot_read(const char *path, int errnum, struct error *err)
{
	if (errnum == ELOOP)
		return error_set(
			err, ERROR_INPUT, ELOOP,
			"'%.300s' is a symbolic link; links are not taken, give the file itself",
			path);
	return error_set(err, ERROR_INPUT, errnum, "cannot read '%.300s': %s", path,
			 strerror(errnum));
}

static int read_open_file(int fd, const char *path, size_t max, struct buf *ret, struct error *err)
{
	int r;

	buf_init(ret, max);
	r = buf_read_fd(ret, fd);
	if (r == -EFBIG)
		return error_set(err, ERROR_INPUT, EFBIG, "'%.300s' is larger than %zu MiB", path,
				 max >> 20);
	return r < 0 ? cannot_read(path, -r, err) : 0;
}

int host_file_read(const char *path, size_t max, struct buf *ret, struct error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	_cleanup_close_ int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
					  : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return cannot_read(path, errno, err);
	if (S_ISDIR(st.st_mode))
		return cannot_read(path, EISDIR, err);
	return read_open_file(fd, path, max, ret, err);
}

static json_t *base64_to_json(const char *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	_cleanup_free_ char *text = malloc(len / 3 * 4 + 8);
	char *p = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t group = (uint32_t)(unsigned char)data[i] << 16;

		group |= left > 1 ? (uint32_t)(unsigned char)data[i + 1] << 8 : 0;
		group |= left > 2 ? (uint32_t)(unsigned char)data[i + 2] : 0;
		*p++ = digits[group >> 18];
		*p++ = digits[group >> 12 & 63];
		*p++ = left > 1 ? digits[group >> 6 & 63] : '=';
		*p++ = left > 2 ? digits[group & 63] : '=';
	}
	return json_pack("{s:s%}", "base64", text, (size_t)(p - text));
}

json_t *bytes_to_json(const char *data, size_t len)
{
	json_t *text = len > 0 && memchr(data, '\0', len) ? NULL : json_stringn(data, len);

	return text ? text : base64_to_json(data, len);
}

/* One walk: where files go, and what has been taken so far. */
struct tree {
	json_t *files;
	int64_t bytes;
	size_t count;
	unsigned depth;
};

/* One file or directory on the way, open, with its two names. */
struct node {
	int fd;
	const char *dest;   /* inside the sandbox, relative */
	const char *source; /* on the host, for messages */
};

static int tree_add_file(struct tree *t, const struct node *n, const struct stat *st,
			 struct error *err)
{
	_cleanup_buf_ struct buf content = { 0 };
	json_t *value;
	int r;

	buf_init(&content, 0);
	if (json_object_get(t->files, n->dest))
		return error_set(err, ERROR_INPUT, EEXIST, "--file gives '%.200s' twice", n->dest);
	if (++t->count > REQUEST_FILES_MAX)
		return error_set(err, ERROR_INPUT, E2BIG, "--file gives more than %d files",
				 REQUEST_FILES_MAX);
	r = read_open_file(n->fd, n->source, (size_t)(TREE_BYTES_MAX - t->bytes), &content, err);
	if (r < 0)
		return r;
	t->bytes += (int64_t)content.len;
	value = bytes_to_json(content.data ? content.data : "", content.len);
	if (value && (st->st_mode & 0100)) {
		if (json_is_string(value))
			value = json_pack("{s:o}", "text", value);
		(void)json_object_set_new(value, "mode", json_string("0755"));
	}
	if (json_object_set_new(t->files, n->dest, value) < 0)
		return error_set(err, ERROR_INPUT, EILSEQ, "the file name '%.200s' is not UTF-8",
				 n->source);
	return 0;
}

static int tree_add_dir(struct tree *t, const struct node *n, struct error *err);

static int tree_add(struct tree *t, const struct node *n, struct error *err)
{
	struct stat st;

	if (fstat(n->fd, &st) < 0)
		return cannot_read(n->source, errno, err);
	if (S_ISDIR(st.st_mode))
		return tree_add_dir(t, n, err);
	if (S_ISREG(st.st_mode))
		return tree_add_file(t, n, &st, err);
	return error_set(err, ERROR_INPUT, EINVAL,
			 "'%.300s' is neither a regular file nor a directory; leave it out",
			 n->source);
}

/* Opens one name of a directory without following a link and adds it. */
static int tree_add_entry(struct tree *t, const struct node *parent, const char *name,
			  struct error *err)
{
	char dest[REQUEST_PATH_MAX + 2], source[PATH_MAX];
	_cleanup_close_ int fd = -EBADF;

	if (snprintf(dest, sizeof(dest), "%s/%s", parent->dest, name) >= (int)sizeof(dest) ||
	    snprintf(source, sizeof(source), "%s/%s", parent->source, name) >= (int)sizeof(source))
		return error_set(err, ERROR_INPUT, ENAMETOOLONG,
				 "a path below '%.200s' is too long", parent->source);
	fd = openat(parent->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return cannot_read(source, errno, err);
	return tree_add(t, &(struct node){ .fd = fd, .dest = dest, .source = source }, err);
}

/* Depth is bounded by REQUEST_DEPTH_MAX, so the recursion is too. */
static int tree_add_dir(struct tree *t, const struct node *n, struct error *err)
{
	int r = 0, fd = openat(n->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return cannot_read(n->source, errno, err);
	dir = fdopendir(fd);
	if (!dir) {
		(void)fd_close(fd);
		return cannot_read(n->source, ENOMEM, err);
	}
	if (++t->depth > REQUEST_DEPTH_MAX)
		r = error_set(err, ERROR_INPUT, ELOOP, "'%.300s' is deeper than %d directories",
			      n->source, REQUEST_DEPTH_MAX);
	while (r == 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = tree_add_entry(t, n, entry->d_name, err);
	}
	t->depth--;
	(void)closedir(dir);
	return r;
}

int host_tree_add(json_t *files, const char *dest, const char *source, struct error *err)
{
	_cleanup_close_ int fd = open(source,
				      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct tree t = { .files = files, .count = json_object_size(files) };

	if (fd < 0)
		return cannot_read(source, errno, err);
	return tree_add(&t, &(struct node){ .fd = fd, .dest = dest, .source = source }, err);
}
