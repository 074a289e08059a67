/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay of one sandbox: the program that the broker starts beside a sandbox that may reach other machines
 * (broker/task-relay.c). Its caller has taken all rights from it. It holds two descriptors (plan/relay-book.h), no file and
 * nothing of other sandboxes. The broker kills it when the sandbox is dead.
 */
#include "box/egress/names.h"
#include "box/egress/relay.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static struct judge judge;
static struct names names;
static struct relay relay;

/* The next socket of the sandbox, or negative: that was all. */
static int next_socket(uint16_t *ret_port)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { ret_port, sizeof(*ret_port) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	const struct cmsghdr *c;
	ssize_t n = recvmsg(RELAY_FD_SOCKET, &m, MSG_CMSG_CLOEXEC);
	int fd;

	c = CMSG_FIRSTHDR(&m);
	if (n != sizeof(*ret_port) || !c || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static int take_sockets(void)
{
	uint16_t port;
	int fd = next_socket(&port), r;

	if (fd < 0 || port != RELAY_DNS_PORT)
		return -EPROTO;
	r = names_start(&names, &judge, fd);
	while (r == 0 && (fd = next_socket(&port)) >= 0)
		r = relay_listen(&relay, fd);
	return r;
}

int main(void)
{
	struct relay_book *book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED,
				       RELAY_FD_BOOK, 0);
	int r;

	if (book == MAP_FAILED || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return EXIT_FAILURE;
	judge_init(&judge, book);
	r = relay_init(&relay, &judge, &names);
	if (r == 0)
		r = take_sockets();
	if (r == 0)
		r = relay_serve(&relay);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
