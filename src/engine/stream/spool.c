/* SPDX-License-Identifier: Apache-2.0 */
/* See spool.h. A write that fails ends the spool for good: a stream never has a hole. */
#include "engine/stream/spool.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void spool_init(struct spool *s, struct history *history, const char *id,
		enum history_stream stream)
{
	*s = (struct spool){ .history = history, .id = id, .stream = stream, .fd = -EBADF };
	buf_init(&s->memory, SPOOL_MEMORY_MAX);
}

void spool_done(struct spool *s)
{
	buf_done(&s->memory);
	s->fd = fd_close(s->fd);
}

bool spool_needs_file(const struct spool *s, size_t n)
{
	return s->fd < 0 && s->memory.len + n > SPOOL_MEMORY_MAX;
}

int spool_keep(struct spool *s)
{
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (s->fd >= 0)
		return 0;
	fd = s->nameless ? history_output_nameless(s->history, s->id, s->stream)
			 : history_output_create(s->history, s->id, s->stream);
	if (fd < 0)
		return fd;
	r = s->memory.len > 0 ? fd_write_all(fd, s->memory.data, s->memory.len) : 0;
	if (r < 0) {
		(void)history_output_delete(s->history, s->id, s->stream);
		return r;
	}
	s->fd = TAKE_FD(fd);
	buf_done(&s->memory);
	buf_init(&s->memory, SPOOL_MEMORY_MAX);
	return 0;
}

static size_t fail_spool(struct spool *s, int error)
{
	s->error = error;
	return 0;
}

static size_t write_some(struct spool *s, const char *bytes, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t w = pwrite(s->fd, bytes + done, n - done, s->size + (int64_t)done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			(void)fail_spool(s, w < 0 ? -errno : -EIO);
			break;
		}
		done += (size_t)w;
	}
	s->size += (int64_t)done;
	return done;
}

size_t spool_append(struct spool *s, const void *bytes, size_t n)
{
	int r;

	if (s->error < 0)
		return 0;
	if (spool_needs_file(s, n)) {
		r = spool_keep(s);
		if (r < 0)
			return fail_spool(s, r);
	}
	if (s->fd >= 0)
		return write_some(s, bytes, n);
	r = buf_append(&s->memory, bytes, n);
	if (r < 0)
		return fail_spool(s, r);
	s->size += (int64_t)n;
	return n;
}

ssize_t spool_read(const struct spool *s, int64_t offset, void *ret, size_t n)
{
	ssize_t got;

	if (offset < 0 || offset >= s->size)
		return 0;
	n = (size_t)MIN((int64_t)n, s->size - offset);
	if (s->fd < 0) {
		memcpy(ret, s->memory.data + offset, n);
		return (ssize_t)n;
	}
	do {
		got = pread(s->fd, ret, n, offset);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

void spool_cut(int fd)
{
	if (fd >= 0)
		(void)!fchmod(fd, S_IRUSR);
}

bool spool_is_cut(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || !(st.st_mode & S_IWUSR);
}

int spool_open(const struct spool *s)
{
	if (s->fd < 0)
		return fd_sealed_memfd("atoll-output", s->memory.data ? s->memory.data : "",
				       s->memory.len);
	return fd_open_again(s->fd);
}

int spool_set(struct spool *s, const char *bytes, size_t n)
{
	int r;

	buf_done(&s->memory);
	/* The reader of a result bounds its text. */
	buf_init(&s->memory, n);
	r = n > 0 ? buf_append(&s->memory, bytes, n) : 0;
	if (r == 0)
		s->size = (int64_t)n;
	return r;
}
