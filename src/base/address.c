/* SPDX-License-Identifier: Apache-2.0 */
/* See address.h. Ranges of RFC 6890 and its successors, and the metadata address of one cloud that is none of them. */
#include "base/address.h"

#include "base/parse.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

static const struct {
	uint32_t prefix;
	int bits;
} ranges4[] = {
	{ 0x00000000, 8 },  { 0x0a000000, 8 },	{ 0x64400000, 10 }, { 0x7f000000, 8 },
	{ 0xa83f8110, 32 }, { 0xa9fe0000, 16 }, { 0xac100000, 12 }, { 0xc0000000, 24 },
	{ 0xc0000200, 24 }, { 0xc0586300, 24 }, { 0xc0a80000, 16 }, { 0xc6120000, 15 },
	{ 0xc6336400, 24 }, { 0xcb007100, 24 }, { 0xe0000000, 4 },  { 0xf0000000, 4 },
};

static bool is_public4(uint32_t address)
{
	for (size_t i = 0; i < ARRAY_SIZE(ranges4); i++)
		if ((address ^ ranges4[i].prefix) >> (32 - ranges4[i].bits) == 0)
			return false;
	return true;
}

static uint32_t read32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Only 2000::/3 is public; parts of it carry or stand for other addresses. */
static bool is_public6(const uint8_t a[16])
{
	static const uint8_t zero[12], mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t translated[12] = { 0x00, 0x64, 0xff, 0x9b };
	uint32_t first = read32(a);

	if (memcmp(a, mapped, 12) == 0 || memcmp(a, translated, 12) == 0)
		return is_public4(read32(a + 12));
	if (memcmp(a, zero, 12) == 0 || first >> 29 != 1)
		return false;
	if (first >> 16 == 0x2002) /* 6to4 */
		return is_public4(read32(a + 2));
	/* Teredo and other protocol assignments (2001::/23), documentation. */
	return first >> 9 != 0x20010000U >> 9 && first != 0x20010db8 && first >> 12 != 0x3fff0U;
}

bool address_is_public(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, address, sizeof(in));
		return is_public4(ntohl(in.sin_addr.s_addr));
	}
	if (address->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, address, sizeof(in6));
		return is_public6(in6.sin6_addr.s6_addr);
	}
	return false;
}

bool address_parse(const char *text, struct sockaddr_storage *ret)
{
	struct sockaddr_storage out = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
		out.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
		out.ss_family = AF_INET6;
	else
		return false;
	address_unmap(&out);
	*ret = out;
	return true;
}

/* The port of IPv4 and of IPv6 is at one offset. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	       "one offset of the port");

uint16_t address_port(const struct sockaddr_storage *address)
{
	struct sockaddr_in in;

	memcpy(&in, address, sizeof(in));
	return ntohs(in.sin_port);
}

void address_set_port(struct sockaddr_storage *address, uint16_t port)
{
	((struct sockaddr_in *)address)->sin_port = htons(port);
}

void address_unmap(struct sockaddr_storage *address)
{
	const struct sockaddr_in6 in6 = *(const struct sockaddr_in6 *)address;
	struct sockaddr_in *in = (struct sockaddr_in *)address;

	if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return;
	memset(address, 0, sizeof(*address));
	in->sin_family = AF_INET;
	in->sin_port = in6.sin6_port;
	memcpy(&in->sin_addr, in6.sin6_addr.s6_addr + 12, sizeof(in->sin_addr));
}

void address_format(const struct sockaddr *address, char ret[ADDRESS_TEXT_MAX])
{
	const void *bytes =
		address->sa_family == AF_INET6
			? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
			: (const void *)&((const struct sockaddr_in *)address)->sin_addr;

	if (!inet_ntop(address->sa_family, bytes, ret, ADDRESS_TEXT_MAX))
		ret[0] = '\0';
}

/* Labels of letters, digits, '-' and '_', between dots. Resolvers take some names for addresses; their last labels begin with a digit. */
static bool is_host_name(const char *name)
{
	size_t label = 0;
	bool number = false;

	for (const char *c = name; *c; c++) {
		const bool digit = *c >= '0' && *c <= '9';

		if (*c == '.' && label == 0)
			return false;
		if (!digit && !(*c >= 'a' && *c <= 'z') && !strchr("-_.", *c))
			return false;
		if (label == 0)
			number = digit;
		label = *c == '.' ? 0 : label + 1;
		if (label > 63)
			return false;
	}
	return label > 0 && !number;
}

/* Splits "host:port". "::1" has colons, too: a port stands behind the only one, or behind a bracket. */
static int split_port(char *text, struct destination *ret)
{
	char *colon = strrchr(text, ':');
	int64_t port;

	if (!colon || (strchr(text, ':') != colon && colon[-1] != ']'))
		return 0;
	if (parse_i64(colon + 1, &port) < 0 || port < 1 || port > UINT16_MAX)
		return -EINVAL;
	ret->port = (uint16_t)port;
	*colon = '\0';
	return 0;
}

int destination_parse(const char *text, struct destination *ret)
{
	char copy[HOST_NAME_MAX_BYTES + 16];
	struct destination out = { .port = 0 };
	struct sockaddr_storage address;
	const char *host = copy;
	size_t len = strlen(text);

	if (len >= sizeof(copy))
		return -EINVAL;
	for (size_t i = 0; i <= len; i++)
		copy[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + ('a' - 'A'))
							   : text[i];
	if (split_port(copy, &out) < 0)
		return -EINVAL;
	len = strlen(copy);
	if (len > 2 && copy[0] == '[' && copy[len - 1] == ']') {
		copy[len - 1] = '\0';
		host++;
		if (!strchr(host, ':'))
			return -EINVAL;
	}
	if (address_parse(host, &address)) {
		address_format((const struct sockaddr *)&address, out.host);
		*ret = out;
		return 0;
	}
	if (len > 1 && copy[len - 1] == '.' && copy[len - 2] != '*')
		copy[--len] = '\0';
	if (len > HOST_NAME_MAX_BYTES || host != copy ||
	    (strcmp(copy, "*") != 0 &&
	     !is_host_name(strncmp(copy, "*.", 2) == 0 ? copy + 2 : copy)))
		return -EINVAL;
	memcpy(out.host, copy, len + 1);
	*ret = out;
	return 0;
}

bool destination_covers(const struct destination *pattern, const char *host)
{
	const char *suffix = pattern->host + 1;
	size_t len = strlen(host), tail = strlen(suffix);

	if (strcmp(pattern->host, "*") == 0)
		return true;
	if (pattern->host[0] != '*')
		return strcmp(pattern->host, host) == 0;
	return len > tail && strcmp(host + len - tail, suffix) == 0;
}

enum destination_verdict destination_find(const char *const *list,
					  const struct destination *destination)
{
	enum destination_verdict best = DESTINATION_UNLISTED;

	for (; list && *list; list++) {
		struct destination pattern;

		if (destination_parse(*list, &pattern) < 0 ||
		    (pattern.port && pattern.port != destination->port) ||
		    !destination_covers(&pattern, destination->host))
			continue;
		if (pattern.host[0] != '*')
			return DESTINATION_LISTED_EXACTLY;
		best = DESTINATION_LISTED;
	}
	return best;
}
