/* SPDX-License-Identifier: Apache-2.0 */
/* See config-file.h. */
#include "atoll/commands/config-file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "atoll/commands/config-text.h"
#include "base/fd.h"

enum { CONTEXT_LINES = 3, BACKUPS_MAX = 10 };

void config_file_done(struct config_file *file)
{
	buf_done(&file->text);
}

static int file_failed(const char *what, const char *path, struct error *err)
{
	int errnum = errno;

	return error_set(err, ERROR_STORAGE, errnum, "cannot %s %s: %s", what, path,
			 strerror(errnum));
}

int config_file_read(struct config_file *file, const char *path, struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat link;
	int r;

	buf_init(&file->text, CONFIG_TEXT_MAX);
	if (buf_puts(&file->text, "") < 0)
		return error_oom(err);
	if (!realpath(path, file->path)) {
		if (errno != ENOENT && errno != ENOTDIR)
			return file_failed("open", path, err);
		if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
			return error_set(err, ERROR_INPUT, ENOENT,
					 "%s is a symbolic link to a file that is not there", path);
		(void)snprintf(file->path, sizeof(file->path), "%s", path);
		return 0;
	}
	fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &file->seen) < 0)
		return file_failed("open", path, err);
	if (!S_ISREG(file->seen.st_mode))
		return error_set(err, ERROR_INPUT, EINVAL, "%s is not a file", path);
	r = buf_read_fd(&file->text, fd);
	if (r < 0) {
		errno = -r;
		return file_failed("read", path, err);
	}
	file->exists = true;
	return 0;
}

/* --- replacing --- */

/* All directories above the file. */
static int make_directories(const char *path, struct error *err)
{
	char dir[PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(dir, 0777) < 0 && errno != EEXIST)
			return file_failed("make the directory", dir, err);
		*slash = '/';
	}
	return 0;
}

/* A new file with the mode and the owner of the old one. Only root can give a file away: for others it is their own already. */
static int write_new(const struct config_file *file, const char *path, const struct buf *text,
		     struct error *err)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return errno == EEXIST ? -EEXIST : file_failed("write beside", file->path, err);
	r = fd_write_all(fd, text->data, text->len);
	if (r == 0 && file->exists && fchown(fd, file->seen.st_uid, file->seen.st_gid) < 0 &&
	    errno != EPERM)
		r = -errno;
	if (r == 0 && fchmod(fd, file->exists ? file->seen.st_mode & 07777 : 0600) < 0)
		r = -errno;
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	(void)unlink(path);
	errno = -r;
	return file_failed("write beside", file->path, err);
}

static int write_backup(const struct config_file *file, char ret[static PATH_MAX],
			struct error *err)
{
	time_t now = time(NULL);
	struct tm utc;
	char stamp[32];
	int r = -EEXIST;

	(void)gmtime_r(&now, &utc);
	(void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
	for (int i = 0; r == -EEXIST && i < BACKUPS_MAX; i++) {
		char number[8] = "";

		if (i > 0)
			(void)snprintf(number, sizeof(number), "-%d", i);
		if (snprintf(ret, PATH_MAX, "%s.%s%s.bak", file->path, stamp, number) >= PATH_MAX)
			return error_set(err, ERROR_INPUT, ENAMETOOLONG, "%s is too long a name",
					 file->path);
		r = write_new(file, ret, &file->text, err);
	}
	if (r < 0)
		ret[0] = '\0';
	return r == -EEXIST ? error_set(err, ERROR_STORAGE, EEXIST,
					"%s has too many copies beside it", file->path)
			    : r;
}

/* The client may have written its file since it was read. */
static int check_unchanged(const struct config_file *file, struct error *err)
{
	struct stat now;
	bool there = stat(file->path, &now) == 0;

	if (there != file->exists ||
	    (there && (now.st_ino != file->seen.st_ino || now.st_size != file->seen.st_size ||
		       now.st_mtim.tv_sec != file->seen.st_mtim.tv_sec ||
		       now.st_mtim.tv_nsec != file->seen.st_mtim.tv_nsec)))
		return error_set(
			err, ERROR_CONFLICT, EBUSY,
			"%s was changed by another program meanwhile; run the command again",
			file->path);
	return 0;
}

int config_file_replace(const struct config_file *file, const struct buf *text,
			char backup[static PATH_MAX], struct error *err)
{
	char fresh[PATH_MAX];
	int r = 0;

	backup[0] = '\0';
	if (snprintf(fresh, sizeof(fresh), "%s.%d.new", file->path, (int)getpid()) >= PATH_MAX)
		return error_set(err, ERROR_INPUT, ENAMETOOLONG, "%s is too long a name",
				 file->path);
	if (!file->exists)
		r = make_directories(file->path, err);
	(void)unlink(fresh); /* of a process of this number that was killed */
	if (r == 0)
		r = write_new(file, fresh, text, err);
	if (r < 0)
		return r;
	if (file->exists)
		r = write_backup(file, backup, err);
	if (r == 0)
		r = check_unchanged(file, err);
	if (r == 0 && rename(fresh, file->path) < 0)
		r = file_failed("replace", file->path, err);
	if (r < 0) {
		(void)unlink(fresh);
		if (*backup)
			(void)unlink(backup);
	}
	return r;
}

/* --- what would change --- */

/* One version of the text, and how much of it both have, in bytes. */
struct diff_side {
	struct span text;
	size_t begin, end; /* of what differs: whole lines */
};

/* The offset n lines before `at`, which is the begin of a line. */
static size_t lines_before(struct span text, size_t at, int n)
{
	for (; n > 0 && at > 0; n--)
		for (at--; at > 0 && text.data[at - 1] != '\n';)
			at--;
	return at;
}

static size_t lines_behind(struct span text, size_t at, int n)
{
	for (; n > 0 && at < text.len; n--) {
		const char *end = memchr(text.data + at, '\n', text.len - at);

		at = end ? (size_t)(end - text.data) + 1 : text.len;
	}
	return at;
}

static int lines_between(struct span text, size_t from, size_t to)
{
	int n = 0;

	for (; from < to; n++)
		from = lines_behind(text, from, 1);
	return n;
}

static void find_difference(struct diff_side *a, struct diff_side *b)
{
	size_t most = MIN(a->text.len, b->text.len), same = 0, tail = 0;

	while (same < most && a->text.data[same] == b->text.data[same])
		same++;
	while (same > 0 && a->text.data[same - 1] != '\n')
		same--;
	while (tail < most - same &&
	       a->text.data[a->text.len - tail - 1] == b->text.data[b->text.len - tail - 1])
		tail++;
	while (tail > 0 && ((tail < a->text.len && a->text.data[a->text.len - tail - 1] != '\n') ||
			    (tail < b->text.len && b->text.data[b->text.len - tail - 1] != '\n')))
		tail--;
	a->begin = b->begin = same;
	a->end = a->text.len - tail;
	b->end = b->text.len - tail;
}

static int put_lines(struct buf *out, char mark, struct span text, size_t from, size_t to)
{
	int r = 0;

	while (r == 0 && from < to) {
		size_t end = lines_behind(text, from, 1);

		r = buf_printf(out, "%c", mark);
		if (r == 0)
			r = buf_append(out, text.data + from, end - from);
		if (r == 0 && text.data[end - 1] != '\n')
			r = buf_puts(out, "\n\\ No newline at end of file\n");
		from = end;
	}
	return r;
}

static int put_range(struct buf *out, char mark, const struct diff_side *side, size_t from,
		     size_t to)
{
	int n = lines_between(side->text, from, to), first = lines_between(side->text, 0, from);

	return buf_printf(out, " %c%d,%d", mark, n > 0 ? first + 1 : first, n);
}

int config_file_diff(const struct config_file *file, struct span text, struct buf *out)
{
	struct diff_side a = { .text = { file->text.data, file->text.len } }, b = { .text = text };
	size_t from, a_to, b_to;
	int r;

	find_difference(&a, &b);
	from = lines_before(a.text, a.begin, CONTEXT_LINES);
	a_to = lines_behind(a.text, a.end, CONTEXT_LINES);
	b_to = lines_behind(b.text, b.end, CONTEXT_LINES);
	r = buf_printf(out, "--- %s\n+++ %s\n@@", file->exists ? file->path : "/dev/null",
		       file->path);
	if (r == 0)
		r = put_range(out, '-', &a, from, a_to);
	if (r == 0)
		r = put_range(out, '+', &b, from, b_to);
	if (r == 0)
		r = buf_puts(out, " @@\n");
	if (r == 0)
		r = put_lines(out, ' ', a.text, from, a.begin);
	if (r == 0)
		r = put_lines(out, '-', a.text, a.begin, a.end);
	if (r == 0)
		r = put_lines(out, '+', b.text, b.begin, b.end);
	return r < 0 ? r : put_lines(out, ' ', b.text, b.end, b_to);
}
