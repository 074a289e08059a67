/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner side of a sandbox's relay (src/box/egress). In the sandbox's network namespace every address is made local, so
 * each connection of the program reaches a listening socket of its own namespace. The
 * socket tells which address the program named. The relay, outside, accepts those connections and makes its own where it may. One
 * listening socket serves one port, for IPv4 and IPv6; at other ports the kernel refuses. No packet leaves the namespace.
 */
#include "box/child.h"

#include "base/sys/kernel.h"
#include "plan/relay-book.h"

#include <sys/socket.h>
#include <unistd.h>

/* A full queue drops connections, which the program begins again after a second. */
enum { BACKLOG = 1024 };

/* The relay learns from the port what the socket is for. */
static int hand_over(int relay_fd, int type, uint16_t port)
{
	int fd = sys_bind_any(type, port), r = fd;

	if (fd < 0)
		return fd;
	if (type == SOCK_STREAM)
		r = sys_listen(fd, BACKLOG);
	if (r >= 0)
		r = sys_send_record(relay_fd, &port, sizeof(port), &fd, 1);
	(void)close(fd);
	return r;
}

static int hand_over_ports(const struct op *op, int relay_fd)
{
	uint8_t done[(UINT16_MAX + 1) / 8] = { 0 };
	int r = 0;

	for (; r == 0 && op->kind == OP_ALLOW; op++) {
		const uint16_t port = (uint16_t)op->value;
		const uint8_t bit = (uint8_t)(1U << port % 8);

		if (!(done[port / 8] & bit))
			r = hand_over(relay_fd, SOCK_STREAM, port);
		done[port / 8] |= bit;
	}
	return r;
}

int child_do_relay(struct child *c, const struct op *op)
{
	size_t n_fds = 1;
	int relay_fd = -EBADF, r = child_wait(c, COMMAND_RELAY, &relay_fd, &n_fds);

	if (r < 0)
		return r;
	if (n_fds < 1)
		return -EPIPE;
	r = sys_local_everything();
	if (r == 0)
		r = hand_over(relay_fd, SOCK_DGRAM, RELAY_DNS_PORT);
	/* The pivot, which every plan has, ends the list. */
	if (r == 0)
		r = hand_over_ports(op + 1, relay_fd);
	(void)close(relay_fd);
	return r;
}

int child_do_allow(struct child *c, const struct op *op)
{
	(void)c;
	(void)op;
	return 0;
}
