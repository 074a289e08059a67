/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files of the host into a request. A directory is walked by descriptors. A link in it is replaced by what it leads to, if that
 * is in the same directory; other links are refused. The path of --file itself may not be a link.
 * FILE and DIR, the program, may be reached through links, because the caller named them.
 */
#include "atoll/commands/cmd-run.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "atoll/commands/ignore.h"
#include "base/base64.h"
#include "base/fd.h"
#include "spec/request.h"

#define TREE_BYTES_MAX (256 * MiB)

enum { LINK_TRIES = 1000 };

static int cannot_read(const char *path, int errnum, struct error *err)
{
	if (errnum == ELOOP)
		return error_set(err, ERROR_INPUT, ELOOP,
				 "'%.300s' is a symbolic link; give the file itself", path);
	if (errnum == EXDEV)
		return error_set(err, ERROR_INPUT, EXDEV,
				 "'%.300s' is a symbolic link that leads out of the directory; "
				 "give the file itself by another --file",
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

json_t *bytes_to_json(const char *data, size_t len)
{
	json_t *text = len > 0 && memchr(data, '\0', len) ? NULL : json_stringn(data, len);
	_cleanup_free_ char *base64 = text ? NULL : base64_encode(data, len);

	return text ?: json_pack("{s:s}", "base64", base64);
}

/*
 * One walk: the open directories from the top to the current one, and the two names of the current place,
 * inside the sandbox and on the host. Descending appends to the names; ascending cuts them.
 */
struct host_tree {
	const struct host_source *from;
	json_t *files;
	int64_t bytes;
	size_t count,
		n_dirs; /* n_dirs: entered; links can lead to one directory in very many ways */
	struct tree_level {
		DIR *dir;
		size_t dest_len, source_len; /* of the names of this directory */
		struct ignore_file *ignore;  /* its .gitignore, or NULL */
	} levels[REQUEST_DEPTH_MAX];
	size_t depth; /* levels in use */
	char dest[REQUEST_PATH_MAX + 1], source[PATH_MAX];
};

static int tree_add_file(struct host_tree *t, int fd, const struct stat *st, struct error *err)
{
	_cleanup_buf_ struct buf content = { 0 };
	json_t *value;
	int r;

	buf_init(&content, 0);
	if (json_object_get(t->files, t->dest))
		return error_set(err, ERROR_INPUT, EEXIST, "--file gives '%.200s' twice", t->dest);
	if (++t->count > REQUEST_FILES_MAX)
		return error_set(err, ERROR_INPUT, E2BIG, "--file gives more than %d files",
				 REQUEST_FILES_MAX);
	r = read_open_file(fd, t->source, (size_t)(TREE_BYTES_MAX - t->bytes), &content, err);
	if (r < 0)
		return r;
	t->bytes += (int64_t)content.len;
	progress_say(t->from->progress, "reading files: %zu, %lld MiB", t->count,
		     (long long)(t->bytes >> 20));
	value = bytes_to_json(content.data ?: "", content.len);
	if (value && (st->st_mode & 0100)) {
		if (json_is_string(value))
			value = json_pack("{s:o}", "text", value);
		(void)json_object_set_new(value, "mode", json_string("0755"));
	}
	if (json_object_set_new(t->files, t->dest, value) < 0)
		return error_set(err, ERROR_INPUT, EILSEQ, "the file name '%.200s' is not UTF-8",
				 t->source);
	return 0;
}

/* The .gitignore of an open directory. A file of that name that cannot be read, or is too large, leaves nothing out. */
static struct ignore_file *read_ignore(int dir_fd)
{
	_cleanup_close_ int fd = openat(dir_fd, ".gitignore",
					O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	_cleanup_buf_ struct buf text = { .max = IGNORE_BYTES_MAX };

	if (fd < 0 || buf_read_fd(&text, fd) < 0)
		return NULL;
	return ignore_file_new(text.data ?: "", text.len);
}

/* The deepest .gitignore that says something about the current place decides. */
static bool is_left_out(const struct host_tree *t, int dir_fd, const char *name)
{
	enum ignore_verdict verdict = IGNORE_UNSAID;
	struct stat st;

	if (!t->from->ignores || (t->from->keep && strcmp(t->dest, t->from->keep) == 0) ||
	    fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	for (size_t i = t->depth; verdict == IGNORE_UNSAID && i-- > 0;) {
		const struct tree_level *level = &t->levels[i];

		if (level->ignore)
			verdict = ignore_file_says(level->ignore, t->source + level->source_len + 1,
						   S_ISDIR(st.st_mode));
	}
	return verdict == IGNORE_OUT;
}

/* Goes down into an open directory; takes fd over when it succeeds. */
static int tree_enter(struct host_tree *t, int fd, struct error *err)
{
	DIR *dir;

	if (t->depth == REQUEST_DEPTH_MAX)
		return error_set(err, ERROR_INPUT, ELOOP, "'%.300s' is deeper than %d directories",
				 t->source, REQUEST_DEPTH_MAX);
	if (++t->n_dirs > REQUEST_FILES_MAX)
		return error_set(err, ERROR_INPUT, E2BIG,
				 "'%.200s' has more than %d directories, each way by links counted",
				 t->from->path, REQUEST_FILES_MAX);
	dir = fdopendir(fd);
	if (!dir)
		return cannot_read(t->source, errno, err);
	t->levels[t->depth++] = (struct tree_level){ .dir = dir,
						     .dest_len = strlen(t->dest),
						     .source_len = strlen(t->source),
						     .ignore = t->from->ignores ? read_ignore(fd)
										: NULL };
	return 0;
}

/* Opens what a link leads to; -1 with EXDEV: it leads out of the tree. */
static int tree_open_link(const struct host_tree *t)
{
	const struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	const struct tree_level *top = &t->levels[0];
	int fd = -1;

	/* ".." in a link is an error of the moment while any process of the host renames something. */
	for (int tries = 0; fd < 0 && (tries == 0 || errno == EAGAIN) && tries < LINK_TRIES;
	     tries++)
		fd = (int)syscall(SYS_openat2, dirfd(top->dir), t->source + top->source_len + 1,
				  &how, sizeof(how));
	return fd;
}

/* Adds the file, or enters the directory, that the tree's names denote. */
static int tree_visit(struct host_tree *t, int dir_fd, const char *name, struct error *err)
{
	const bool follows = t->depth == 0 && t->from->follows;
	_cleanup_close_ int fd = openat(dir_fd, name,
					O_RDONLY | (follows ? 0 : O_NOFOLLOW) | O_NONBLOCK |
						O_CLOEXEC | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 && errno == ELOOP && t->depth > 0)
		fd = tree_open_link(t);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cannot_read(t->source, errno, err);
	if (S_ISREG(st.st_mode))
		return tree_add_file(t, fd, &st, err);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, ERROR_INPUT, EINVAL,
				 "'%.300s' is neither a regular file nor a directory; leave it out",
				 t->source);
	r = tree_enter(t, fd, err);
	if (r == 0)
		(void)TAKE_FD(fd);
	return r;
}

/* Appends "/name", or name to an empty text, to a name of len bytes; false when it does not fit. */
static bool name_extend(char *text, size_t size, size_t len, const char *name)
{
	return snprintf(text + len, size - len, "%s%s", len > 0 ? "/" : "", name) <
	       (int)(size - len);
}

static void tree_leave(struct host_tree *t)
{
	struct tree_level *level = &t->levels[--t->depth];

	(void)closedir(level->dir);
	(void)ignore_file_free(level->ignore);
}

/* Handles one entry of the deepest open directory; at its end, goes one level up. */
static int tree_step(struct host_tree *t, struct error *err)
{
	const struct tree_level *level = &t->levels[t->depth - 1];
	const struct dirent *entry = readdir(level->dir);

	if (!entry) {
		tree_leave(t);
		return 0;
	}
	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
	    strcmp(entry->d_name, ".git") == 0)
		return 0;
	if (!name_extend(t->dest, sizeof(t->dest), level->dest_len, entry->d_name) ||
	    !name_extend(t->source, sizeof(t->source), level->source_len, entry->d_name))
		return error_set(err, ERROR_INPUT, ENAMETOOLONG, "the path '%.200s…' is too long",
				 t->source);
	if (!is_left_out(t, dirfd(level->dir), entry->d_name))
		return tree_visit(t, dirfd(level->dir), entry->d_name, err);
	/* Names that find no room are not told. */
	if (t->from->left_out)
		(void)!buf_printf(t->from->left_out, "%s%s", t->from->left_out->len > 0 ? ", " : "",
				  t->dest);
	return 0;
}

int host_tree_add(json_t *files, const struct host_source *from, struct error *err)
{
	struct host_tree t = { .from = from, .files = files, .count = json_object_size(files) };
	int r;

	if (snprintf(t.dest, sizeof(t.dest), "%s", from->dest) >= (int)sizeof(t.dest) ||
	    snprintf(t.source, sizeof(t.source), "%s", from->path) >= (int)sizeof(t.source))
		return error_set(err, ERROR_INPUT, ENAMETOOLONG, "the path '%.200s…' is too long",
				 from->path);
	r = tree_visit(&t, AT_FDCWD, from->path, err);
	while (r == 0 && t.depth > 0)
		r = tree_step(&t, err);
	while (t.depth > 0)
		tree_leave(&t);
	progress_clear(from->progress);
	return r;
}
