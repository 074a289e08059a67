/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records with descriptors over SOCK_SEQPACKET: one message is one record, so there is no framing and no
 * partial state. If a record has more descriptors than the receiver has room for, it is an error, and all of
 * them are closed.
 */
#include "base/sys/kernel.h"

#include "base/fd.h"
#include "base/sys/fault.h"

#include <string.h>
#include <sys/socket.h>

enum { FDS_MAX = 16 };

union control {
	struct cmsghdr header;
	/* Credentials come with the record if the socket has SO_PASSCRED. */
	char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX) + CMSG_SPACE(sizeof(struct ucred))];
};

int sys_send_parts(int sock, const struct record_parts *parts, const int *fds, size_t n_fds)
{
	union control control = { 0 };
	struct iovec iov[] = { { parts->head, parts->head_len }, { parts->tail, parts->tail_len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = parts->tail_len > 0 ? 2 : 1 };
	size_t n = parts->head_len + parts->tail_len;
	int fault = fault_point();

	if (fault)
		return -fault;
	if (n_fds > FDS_MAX)
		return -EINVAL;
	if (n_fds > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	for (;;) {
		ssize_t sent = sendmsg(sock, &msg, MSG_NOSIGNAL);

		if (sent >= 0)
			return (size_t)sent == n ? 0 : -EIO;
		if (errno != EINTR)
			return -errno;
	}
}

int sys_send_record(int sock, const void *record, size_t n, const int *fds, size_t n_fds)
{
	const struct record_parts parts = { .head = (void *)(uintptr_t)record, .head_len = n };

	return sys_send_parts(sock, &parts, fds, n_fds);
}

/* How many came; those beyond the capacity are closed at once. */
static size_t take_fds(struct msghdr *msg, int *fds, size_t capacity)
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (count++ < capacity)
				fds[count - 1] = fd;
			else
				(void)fd_close(fd);
		}
	}
	return count;
}

/* Receives one message and its control data, which msg points into afterwards. */
static ssize_t receive_record(int sock, const struct record_parts *parts, union control *control,
			      struct msghdr *msg)
{
	struct iovec iov[] = { { parts->head, parts->head_len }, { parts->tail, parts->tail_len } };
	ssize_t r;

	*msg = (struct msghdr){ .msg_iov = iov,
				.msg_iovlen = parts->tail_len > 0 ? 2 : 1,
				.msg_control = control->bytes,
				.msg_controllen = sizeof(control->bytes) };
	do
		r = recvmsg(sock, msg, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	msg->msg_iov = NULL;
	return r < 0 ? -errno : r;
}

ssize_t sys_recv_parts(int sock, const struct record_parts *parts, int *fds, size_t *n_fds)
{
	union control control;
	struct msghdr msg;
	int fault = fault_point();
	size_t capacity = n_fds ? *n_fds : 0;
	size_t count;
	ssize_t r;

	if (n_fds)
		*n_fds = 0;
	if (fault)
		return -fault;
	r = receive_record(sock, parts, &control, &msg);
	if (r < 0)
		return r;
	count = take_fds(&msg, fds, capacity);
	if (count > capacity || msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < MIN(count, capacity); i++)
			(void)fd_close(fds[i]);
		/* The array had room, but this process's descriptor table did not. */
		return count < capacity && !(msg.msg_flags & MSG_TRUNC) ? -EMFILE : -EBADMSG;
	}
	if (n_fds)
		*n_fds = count;
	return r;
}

ssize_t sys_recv_record(int sock, void *record, size_t n, int *fds, size_t *n_fds)
{
	const struct record_parts parts = { .head = record, .head_len = n };

	return sys_recv_parts(sock, &parts, fds, n_fds);
}

ssize_t sys_recv_from(int sock, void *record, size_t n, pid_t *ret_pid)
{
	/* Room for credentials only: descriptors in the message are dropped by the kernel. */
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = { record, n };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct ucred sender = { 0 };
	struct cmsghdr *c;
	ssize_t r;

	do
		r = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
		memcpy(&sender, CMSG_DATA(c), sizeof(sender));
	*ret_pid = sender.pid;
	return r;
}
