/* SPDX-License-Identifier: Apache-2.0 */
/* See control.h. */
#include "atoll/daemon/control.h"

#include "base/fd.h"
#include "base/sys/kernel.h"

#include <stdio.h>

int control_send(int sock, enum control_kind kind, const char *text, int fd)
{
	struct control_record record = { .kind = kind };

	(void)snprintf(record.text, sizeof(record.text), "%s", text ?: "");
	return sys_send_record(sock, &record, sizeof(record), &fd, fd >= 0 ? 1 : 0);
}

int control_receive(int sock, struct control_record *ret, int *ret_fd)
{
	struct control_record record;
	int fd = -EBADF;
	size_t n_fds = 1;
	ssize_t n = sys_recv_record(sock, &record, sizeof(record), &fd, &n_fds);

	if (n == 0 || n == -ECONNRESET)
		return 0;
	if (n < 0)
		return (int)n;
	if (n_fds == 0)
		fd = -EBADF;
	if (n != sizeof(record) || record.kind == 0 || record.kind >= _CONTROL_MAX) {
		(void)fd_close(fd);
		return -EPROTO;
	}
	record.text[sizeof(record.text) - 1] = '\0';
	*ret = record;
	*ret_fd = fd;
	return 1;
}
