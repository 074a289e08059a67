/* SPDX-License-Identifier: Apache-2.0 */
/* The part of kernel.h about a network namespace that leads nowhere: addresses, routes and listening sockets on lo. */
#include "base/sys/kernel.h"

#include "base/sys/fault.h"

#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LO_INDEX = 1 }; /* of every network namespace */

/* Neither loopback's nor any network's (RFC 2544): getaddrinfo(AI_ADDRCONFIG) looks for an address outside of 127.0.0.0/8. */
static const uint8_t own_address[4] = { 198, 18, 0, 1 };

struct address_message {
	struct nlmsghdr head;
	struct ifaddrmsg body;
	struct rtattr attribute;
	uint8_t value[4];
};

struct route_message {
	struct nlmsghdr head;
	struct rtmsg body;
	struct rtattr attribute;
	uint32_t value;
};

/* Sends one message and reads the kernel's answer. */
static int ask_kernel(int fd, const struct nlmsghdr *m)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[sizeof(struct route_message)];
	} answer = { 0 };
	int fault = fault_point();
	ssize_t n;

	if (fault)
		return -fault;
	if (send(fd, m, m->nlmsg_len, 0) < 0)
		return -errno;
	do
		n = recv(fd, &answer, sizeof(answer), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return answer.head.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}

static int add_address(int fd)
{
	struct address_message m = {
		.head = { .nlmsg_len = sizeof(m),
			  .nlmsg_type = RTM_NEWADDR,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.body = { .ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = LO_INDEX },
		.attribute = { .rta_len = RTA_LENGTH(sizeof(m.value)), .rta_type = IFA_LOCAL },
	};

	memcpy(m.value, own_address, sizeof(m.value));
	return ask_kernel(fd, &m.head);
}

static int add_route(int fd, uint8_t family)
{
	const struct route_message m = {
		.head = { .nlmsg_len = sizeof(m),
			  .nlmsg_type = RTM_NEWROUTE,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.body = { .rtm_family = family,
			  .rtm_table = RT_TABLE_LOCAL,
			  .rtm_protocol = RTPROT_BOOT,
			  .rtm_scope = RT_SCOPE_HOST,
			  .rtm_type = RTN_LOCAL },
		.attribute = { .rta_len = RTA_LENGTH(sizeof(m.value)), .rta_type = RTA_OIF },
		.value = LO_INDEX,
	};

	return ask_kernel(fd, &m.head);
}

int sys_local_everything(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), r;

	if (fd < 0)
		return -errno;
	r = add_address(fd);
	if (r == 0)
		r = add_route(fd, AF_INET);
	/* Without IPv6, or where it is switched off (EACCES), IPv6 addresses lead nowhere. */
	if (r == 0) {
		r = add_route(fd, AF_INET6);
		r = r == -EOPNOTSUPP || r == -EAFNOSUPPORT || r == -EACCES ? 0 : r;
	}
	(void)close(fd);
	return r;
}

static int set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* An IPv6 socket serves IPv4, too; of a datagram the receiver learns where to it was sent. */
static int bind_both(int fd, int type, uint16_t port)
{
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int r = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);

	if (r == 0 && type == SOCK_DGRAM)
		r = set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	if (r == 0 && bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0)
		r = -errno;
	return r;
}

static int bind_ipv4(int fd, int type, uint16_t port)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int r = type == SOCK_DGRAM ? set_option(fd, IPPROTO_IP, IP_PKTINFO, 1) : 0;

	return r == 0 && bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0 ? -errno : r;
}

int sys_bind_any(int type, uint16_t port)
{
	int fault = fault_point(), fd, r;

	if (fault)
		return -fault;
	fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0) {
		r = bind_both(fd, type, port);
	} else {
		fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		r = fd < 0 ? -errno : bind_ipv4(fd, type, port);
	}
	if (r == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return r;
}

int sys_listen(int fd, int backlog)
{
	int fault = fault_point();

	if (fault)
		return -fault;
	return listen(fd, backlog) < 0 ? -errno : 0;
}
