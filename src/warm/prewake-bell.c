/* SPDX-License-Identifier: Apache-2.0 */
/* See prewake-bell.h. Following is asked for with each request, so it looks at the serial before it asks the kernel for anything. */
#include "warm/prewake-bell.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>

struct bell bell_new(void)
{
	static uint64_t serial;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? (struct bell){ 0 } : (struct bell){ fd, -1, ++serial };
}

void bell_follow(struct bell *b, const struct bell *other)
{
	int fd;

	b->cpu = other->cpu;
	if (b->serial == other->serial)
		return;
	bell_done(b);
	if (other->serial == 0)
		return;
	fd = fcntl(other->fd, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0)
		*b = (struct bell){ fd, other->cpu, other->serial };
}

void bell_done(struct bell *b)
{
	if (b->serial != 0)
		(void)fd_close(b->fd);
	*b = (struct bell){ 0 };
}
