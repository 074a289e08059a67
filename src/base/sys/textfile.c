/* SPDX-License-Identifier: Apache-2.0 */
/* See textfile.h. */
#include "base/sys/textfile.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"

int textfile_read_at(int dirfd, const char *path, char *ret, size_t size)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, ret + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len += (size_t)n;
		if (n == 0)
			break;
		if (len == size)
			return -EFBIG;
	}
	ret[len] = '\0';
	return (int)len;
}

int textfile_read_i64_at(int dirfd, const char *path, int64_t *ret)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : textfile_read_i64_fd(fd, ret);
}

int textfile_read_i64_fd(int fd, int64_t *ret)
{
	char text[64];
	ssize_t n;

	/* A number comes with one read. */
	do
		n = pread(fd, text, sizeof(text) - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	text[strcspn(text, " \t\n")] = '\0';
	return parse_i64(text, ret);
}

int textfile_read_buf(const char *path, struct buf *b)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return buf_read_fd(b, fd);
}
