/* SPDX-License-Identifier: Apache-2.0 */
/* See names.h. */
#include "box/egress/names.h"

#include "box/egress/dns.h"

#include <fcntl.h>
#include <netdb.h>
#include <string.h>

/* The first address that stands for a name; those below are not used. */
static const uint32_t first_address = 0xc6120100;

static struct name *find_name(struct names *s, const char *host)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->list[i].host, host) == 0)
			return &s->list[i];
	return NULL;
}

/* Keeps the addresses that may be dialled. Returns how many the name has. */
static size_t keep_addresses(const struct judge *judge, const struct addrinfo *all,
			     struct name *name)
{
	size_t n = 0;

	for (const struct addrinfo *at = all; at; at = at->ai_next, n++) {
		struct sockaddr_storage address = { 0 };

		if (at->ai_addrlen > sizeof(address) || name->n == NAME_ADDRESSES_MAX)
			continue;
		memcpy(&address, at->ai_addr, at->ai_addrlen);
		address_unmap(&address);
		if (judge_may_dial(judge, (const struct sockaddr *)&address, 0))
			name->addresses[name->n++] = address;
	}
	return n;
}

/* Asks the host's resolver; takes seconds when that does not answer. */
static enum dns_code resolve_name(struct names *s, const char *host, struct name *name)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *all = NULL;
	int r = getaddrinfo(host, NULL, &hints, &all);

	memset(name, 0, sizeof(*name));
	memcpy(name->host, host, strlen(host) + 1);
	if (r == EAI_AGAIN || r == EAI_SYSTEM || r == EAI_MEMORY)
		return DNS_FAILED;
	if (r != 0)
		return DNS_NO_NAME;
	if (keep_addresses(s->judge, all, name) > 0 && name->n == 0) {
		struct destination destination = { .port = 0 };

		memcpy(destination.host, host, strlen(host) + 1);
		judge_refuse(s->judge, &destination, RELAY_NOT_PUBLIC);
	}
	freeaddrinfo(all);
	return name->n > 0 ? DNS_FOUND : DNS_NO_NAME;
}

/* Another thread may have found the same name meanwhile: the first entry counts. */
static struct name *enter_name(struct names *s, const struct name *name)
{
	struct name *entry;

	(void)pthread_mutex_lock(&s->lock);
	entry = find_name(s, name->host);
	if (!entry) {
		entry = &s->list[s->n++];
		*entry = *name;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return entry;
}

static uint32_t address_of(const struct names *s, const struct name *entry)
{
	return htonl(first_address + (uint32_t)(entry - s->list));
}

/* The entry of the name, or NULL: *may_ask says whether the resolver may be asked for it, and this is counted. */
static struct name *recall_name(struct names *s, const char *host, bool *may_ask)
{
	struct name *entry;

	(void)pthread_mutex_lock(&s->lock);
	entry = find_name(s, host);
	*may_ask = !entry && s->n_asked < NAMES_MAX;
	s->n_asked += *may_ask;
	(void)pthread_mutex_unlock(&s->lock);
	return entry;
}

/* The address that stands for the name. Each question to the resolver counts, also one without an answer: it tells the name to others. */
static enum dns_code look_up(struct names *s, const struct destination *destination, uint32_t *ret)
{
	bool may_ask;
	struct name found, *entry = recall_name(s, destination->host, &may_ask);

	if (!entry && !may_ask) {
		judge_refuse(s->judge, destination, RELAY_TOO_MANY);
		return DNS_FAILED;
	}
	if (!entry) {
		enum dns_code code = resolve_name(s, destination->host, &found);

		if (code == DNS_FAILED)
			return code;
		entry = enter_name(s, &found);
	}
	*ret = address_of(s, entry);
	return entry->n > 0 ? DNS_FOUND : DNS_NO_NAME;
}

/* Only the address of a listed name is ever asked of the host's resolver. */
static enum dns_code answer(struct names *s, const struct dns_query *query, uint32_t *ret)
{
	struct destination destination = { .port = 0 };

	memcpy(destination.host, query->host, sizeof(destination.host));
	if (!query->host[0])
		return DNS_NO_NAME;
	if (!judge_knows_host(s->judge, query->host)) {
		if (query->type == DNS_TYPE_A || query->type == DNS_TYPE_AAAA)
			judge_refuse(s->judge, &destination, RELAY_NOT_LISTED);
		return DNS_NO_NAME;
	}
	/* Connections over IPv4 inside lead to IPv6 outside, too. */
	return query->type == DNS_TYPE_A ? look_up(s, &destination, ret) : DNS_FOUND;
}

/* The control data says where to the query was sent: the answer comes from there. */
static void *serve_names(void *data)
{
	struct names *s = data;

	for (;;) {
		uint8_t query_bytes[DNS_MESSAGE_MAX], answer_bytes[DNS_MESSAGE_MAX];
		_Alignas(struct cmsghdr) char control[256];
		struct sockaddr_storage from;
		struct iovec iov = { query_bytes, sizeof(query_bytes) };
		struct msghdr m = { .msg_name = &from,
				    .msg_namelen = sizeof(from),
				    .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(s->socket_fd, &m, MSG_CMSG_CLOEXEC);
		struct dns_query query;
		uint32_t address = 0;
		enum dns_code code;

		if (n <= 0 || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
		    !dns_read(query_bytes, (size_t)n, &query))
			continue;
		code = answer(s, &query, &address);
		iov = (struct iovec){ answer_bytes,
				      dns_write(query_bytes, &query, code, address, answer_bytes) };
		(void)sendmsg(s->socket_fd, &m, MSG_NOSIGNAL);
	}
	return NULL;
}

int names_start(struct names *s, struct judge *judge, int socket_fd)
{
	int flags = fcntl(socket_fd, F_GETFL), r = 0;

	s->judge = judge;
	s->socket_fd = socket_fd;
	(void)pthread_mutex_init(&s->lock, NULL);
	if (flags < 0 || fcntl(socket_fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return -errno;
	for (int i = 0; r == 0 && i < NAME_THREADS; i++) {
		pthread_t thread;

		r = pthread_create(&thread, NULL, serve_names, s);
	}
	return -r;
}

const struct name *names_of(struct names *s, const struct sockaddr *address)
{
	struct sockaddr_in in;
	const struct name *name = NULL;
	uint32_t index;

	if (address->sa_family != AF_INET)
		return NULL;
	memcpy(&in, address, sizeof(in));
	index = ntohl(in.sin_addr.s_addr) - first_address;
	(void)pthread_mutex_lock(&s->lock);
	if (index < s->n)
		name = &s->list[index];
	(void)pthread_mutex_unlock(&s->lock);
	return name;
}
