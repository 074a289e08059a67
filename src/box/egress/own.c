/* SPDX-License-Identifier: Apache-2.0 */
/* See own.h. */
#include "box/egress/own.h"

#include "base/macro.h"

#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

struct route_query {
	struct nlmsghdr head;
	struct rtmsg body;
	struct rtattr attribute;
	uint8_t address[16];
};

struct route_answer {
	struct nlmsghdr head;
	struct rtmsg body;
	char rest[1024]; /* of the route; or of an error, which has no route */
};

static void make_query(const struct sockaddr *address, struct route_query *q)
{
	const bool six = address->sa_family == AF_INET6;
	const void *bytes = six ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
				: (const void *)&((const struct sockaddr_in *)address)->sin_addr;
	const uint8_t len = six ? 16 : 4;

	*q = (struct route_query){
		.head = { .nlmsg_len = (uint32_t)(offsetof(struct route_query, address) + len),
			  .nlmsg_type = RTM_GETROUTE,
			  .nlmsg_flags = NLM_F_REQUEST },
		.body = { .rtm_family = (uint8_t)address->sa_family,
			  .rtm_dst_len = (uint8_t)(len * 8) },
		.attribute = { .rta_len = (uint16_t)RTA_LENGTH(len), .rta_type = RTA_DST },
	};
	memcpy(q->address, bytes, len);
}

bool address_is_own(const struct sockaddr *address)
{
	struct route_query query;
	struct route_answer answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;

	if (fd < 0)
		return true;
	make_query(address, &query);
	if (send(fd, &query, query.head.nlmsg_len, 0) > 0)
		n = recv(fd, &answer, sizeof(answer), 0);
	(void)close(fd);
	if (n < (ssize_t)offsetof(struct route_answer, rest))
		return true;
	/* An error says that no route leads there. What is no other machine's is local, anycast or broadcast. */
	return answer.head.nlmsg_type == RTM_NEWROUTE && answer.body.rtm_type != RTN_UNICAST;
}
