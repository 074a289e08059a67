/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that a program wrote. Descriptors come from the broker once every process is dead, so the files cannot
 * change. Names and bytes are untrusted: in the output directory each step of a path is made and opened without
 * following a link, and a file is written under a private name, then renamed, which replaces a link instead of
 * following it.
 */
#include "run/run.h"

#include "base/fd.h"
#include "base/loop/fiber.h"
#include "base/sha256.h"
#include "run/glob.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_CHUNK = 65536, COPY_TURN = 1 << 20, ANSWER_MAX = 2 << 20 };

int flow_open_output(struct local_run *run, struct error *err)
{
	const char *dir = run->options.output_dir;

	if (!dir)
		return 0;
	run->output_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run->output_fd < 0)
		return error_set(err, ERROR_STORAGE, errno,
				 "cannot open the output directory '%.300s': %s", dir,
				 strerror(errno));
	if (faccessat(run->output_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return error_set(
			err, ERROR_STORAGE, errno,
			"cannot write to the output directory '%.300s': %s; choose another", dir,
			strerror(errno));
	return 0;
}

bool flow_wants_files(const struct local_run *run)
{
	/* Without a writable directory there are no files. */
	if (run->decision.read_only)
		return false;
	return run->full || run->output_fd >= 0 || run->request->invoke_method ||
	       run_observer_wants(&run->observer, RUN_FILE);
}

int flow_read_file(int fd, int64_t size, char **ret)
{
	_cleanup_free_ char *bytes = NULL;
	int64_t got = 0;

	if (size < 0 || size > PLAN_BYTES_MAX)
		return -EFBIG;
	bytes = malloc((size_t)size + 1);
	if (!bytes)
		return -ENOMEM;
	while (got < size) {
		ssize_t n = pread(fd, bytes + got, (size_t)(size - got), got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		got += n;
	}
	bytes[size] = '\0';
	*ret = TAKE_PTR(bytes);
	return 0;
}

/* Lets other fibers run while a large file is copied. */
static void give_way(off_t at)
{
	if (at % COPY_TURN == 0 && fiber_current())
		fiber_yield();
}

static bool holds(int fd, struct span bytes)
{
	_cleanup_free_ char *chunk = malloc(COPY_CHUNK);
	size_t at = 0;

	while (chunk && at < bytes.len) {
		ssize_t n = pread(fd, chunk, MIN(bytes.len - at, (size_t)COPY_CHUNK), (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || memcmp(chunk, bytes.data + at, (size_t)n) != 0)
			return false;
		at += (size_t)n;
		give_way((off_t)at);
	}
	return chunk != NULL;
}

/* An input that the program did not change is no output. */
static bool is_unchanged(const struct local_run *run, const struct run_file *file)
{
	for (size_t i = 0; i < run->n_files; i++) {
		const struct build_file *f = &run->files[i];

		if (strcmp(f->path, file->path) == 0 && strcmp(f->base, SANDBOX_WORK) == 0)
			return (int64_t)f->data.len == file->size && holds(file->fd, f->data);
	}
	return false;
}

/* The directory of path below dir_fd, made step by step; *ret_name is the last component. */
static int open_output_parent(int dir_fd, const char *path, const char **ret_name)
{
	_cleanup_close_ int at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	const char *slash;

	if (at < 0)
		return -errno;
	while ((slash = strchr(path, '/'))) {
		char step[NAME_MAX + 1];
		size_t n = (size_t)(slash - path);
		int next;

		if (n == 0 || n >= sizeof(step))
			return -ENAMETOOLONG;
		memcpy(step, path, n);
		step[n] = '\0';
		if (mkdirat(at, step, 0777) < 0 && errno != EEXIST)
			return -errno;
		next = openat(at, step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		(void)fd_close(at);
		at = next;
		path = slash + 1;
	}
	*ret_name = path;
	return TAKE_FD(at);
}

/* Hashes, and copies to to_fd unless it is negative. */
static int copy_hashed(int fd, int to_fd, char ret_hex[SHA256_HEX])
{
	_cleanup_free_ char *chunk = malloc(COPY_CHUNK);
	struct sha256 hash;
	off_t at = 0;

	if (!chunk)
		return -ENOMEM;
	sha256_init(&hash);
	for (;;) {
		ssize_t n = pread(fd, chunk, COPY_CHUNK, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		sha256_update(&hash, chunk, (size_t)n);
		if (to_fd >= 0) {
			int r = fd_write_all(to_fd, chunk, (size_t)n);

			if (r < 0)
				return r;
		}
		at += n;
		give_way(at);
	}
	sha256_final(&hash, ret_hex);
	return 0;
}

static int put_file(const struct local_run *run, const struct run_file *file,
		    char ret_hex[SHA256_HEX])
{
	_cleanup_close_ int dir_fd = -EBADF, to_fd = -EBADF;
	char part[sizeof(run->result->id) + sizeof(FLOW_PRIVATE)];
	const char *name;
	int r;

	(void)snprintf(part, sizeof(part), FLOW_PRIVATE "%s", run->result->id);
	dir_fd = open_output_parent(run->output_fd, file->path, &name);
	if (dir_fd < 0)
		return dir_fd;
	to_fd = openat(dir_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       file->mode & 0111 ? 0777 : 0666);
	if (to_fd < 0)
		return -errno;
	r = copy_hashed(file->fd, to_fd, ret_hex);
	if (r >= 0 && renameat(dir_fd, part, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, part, 0);
	return r;
}

/* Sorted by path, independent of the directory's order. */
static int list_file(struct result *res, const struct run_file *file, const char *hex)
{
	struct result_file *files = reallocarray(res->files, res->n_files + 1, sizeof(*files));
	size_t at = res->n_files;
	char *path;

	if (!files)
		return -ENOMEM;
	res->files = files;
	path = strdup(file->path);
	if (!path)
		return -ENOMEM;
	for (; at > 0 && strcmp(files[at - 1].path, path) > 0; at--)
		files[at] = files[at - 1];
	files[at] = (struct result_file){ .path = path, .size = file->size };
	memcpy(files[at].sha256, hex, SHA256_HEX);
	res->n_files++;
	return 0;
}

static int take_answer(struct local_run *run, const struct run_file *file)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (file->size > ANSWER_MAX)
		return 0;
	r = flow_read_file(file->fd, file->size, &text);
	if (r < 0)
		return r;
	flow_invoke_answer(run, text, (size_t)file->size);
	return 0;
}

int flow_take_file(struct local_run *run, const struct run_file *file)
{
	struct run_file hashed = *file;
	char hex[SHA256_HEX];
	int r;

	if (run->request->invoke_method && strcmp(file->path, FLOW_INVOKE_ANSWER) == 0)
		return take_answer(run, file);
	if (strncmp(file->path, FLOW_PRIVATE, sizeof(FLOW_PRIVATE) - 1) == 0 ||
	    !glob_any(run->request->collect, file->path) || is_unchanged(run, file))
		return 0;
	if (run->output_fd < 0) {
		r = copy_hashed(file->fd, -EBADF, hex);
	} else {
		r = put_file(run, file, hex);
		if (r < 0) {
			/* The run is not lost: its result reports this as the problem. */
			if (run->output_error.code == ERROR_NONE)
				(void)error_set(&run->output_error, ERROR_STORAGE, -r,
						"cannot write '%.200s' to the output directory: %s",
						file->path, strerror(-r));
			r = copy_hashed(file->fd, -EBADF, hex);
		}
	}
	if (r >= 0)
		r = list_file(run->result, file, hex);
	hashed.sha256 = hex;
	return r < 0 ? r
		     : run_observer_tell(&run->observer,
					 &(struct run_event){ RUN_FILE, .file = &hashed });
}
