/* SPDX-License-Identifier: Apache-2.0 */
/* See address.h. Ranges of RFC 6890 and its successors, as tables. */
#include "engine/address.h"

#include "base/parse.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

static const struct {
	uint32_t prefix;
	int bits;
} ranges4[] = {
	{ 0x00000000, 8 },  { 0x0a000000, 8 },	{ 0x64400000, 10 }, { 0x7f000000, 8 },
	{ 0xa9fe0000, 16 }, { 0xac100000, 12 }, { 0xc0000000, 24 }, { 0xc0000200, 24 },
	{ 0xc0586300, 24 }, { 0xc0a80000, 16 }, { 0xc6120000, 15 }, { 0xc6336400, 24 },
	{ 0xcb007100, 24 }, { 0xe0000000, 4 },	{ 0xf0000000, 4 },
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

static bool matches(const char *pattern, const struct callback_target *place, bool *ret_exact)
{
	const char *colon = strrchr(pattern, ':');
	size_t len = strlen(pattern), host_len = strlen(place->host);
	int64_t port;

	/* "::1" has colons too; a port stands behind the only one, or behind a bracket. */
	if (colon && (strchr(pattern, ':') == colon || (colon > pattern && colon[-1] == ']'))) {
		if (parse_i64(colon + 1, &port) < 0 || port != place->port)
			return false;
		len = (size_t)(colon - pattern);
	}
	if (len > 1 && pattern[0] == '[' && pattern[len - 1] == ']') {
		pattern++;
		len -= 2;
	}
	*ret_exact = len < 2 || pattern[0] != '*' || pattern[1] != '.';
	if (*ret_exact)
		return len == host_len && strncasecmp(pattern, place->host, len) == 0;
	pattern++;
	len--;
	return host_len > len && strncasecmp(place->host + host_len - len, pattern, len) == 0;
}

enum place_verdict place_find(const char *const *list, const struct callback_target *place)
{
	enum place_verdict best = PLACE_UNLISTED;

	for (; list && *list; list++) {
		bool exact;

		if (!matches(*list, place, &exact))
			continue;
		if (exact)
			return PLACE_LISTED_EXACTLY;
		best = PLACE_LISTED;
	}
	return best;
}
