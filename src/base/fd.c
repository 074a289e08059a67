/* SPDX-License-Identifier: Apache-2.0 */
/* See fd.h. */
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int fd_close(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		/* Linux releases the descriptor even if close() fails. */
		(void)close(fd);
		errno = saved;
	}
	return -EBADF;
}

int fd_write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n > 0) {
		ssize_t written = write(fd, p, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		p += written;
		n -= (size_t)written;
	}
	return 0;
}

int fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

static int seal(int memfd, const void *data, size_t n)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	_cleanup_close_ int fd = memfd;
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, data, n);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int fd_sealed_memfd(const char *name, const void *data, size_t n)
{
	return seal(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), data, n);
}

int fd_sealed_program(const char *name, const void *data, size_t n)
{
	/* since Linux 6.3; older kernels refuse the flag and do not need it */
	const unsigned mfd_exec = 0x10;
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | mfd_exec);

	if (fd < 0 && errno == EINVAL)
		return fd_sealed_memfd(name, data, n);
	return seal(fd, data, n);
}

int fd_open_again(int fd)
{
	char path[40];
	int again;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	return again < 0 ? -errno : again;
}
