/* SPDX-License-Identifier: Apache-2.0 */
/* The two DNS messages that the relay reads and writes (RFC 1035): one question, at most one IPv4 address. Pure. */
#pragma once

#include "base/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNS_MESSAGE_MAX = 512 };
enum { DNS_TYPE_A = 1, DNS_TYPE_AAAA = 28 };
enum dns_code { DNS_FOUND = 0, DNS_FAILED = 2, DNS_NO_NAME = 3 };

struct dns_query {
	char host[HOST_NAME_MAX_BYTES + 1]; /* lower case; "": no name that a rule could list */
	uint16_t type;
	size_t len; /* of header and question */
};

/* False: no question that can be answered. */
bool dns_read(const uint8_t *message, size_t len, struct dns_query *ret);
/* address: in network order; 0: the name exists, but has no such record. Returns the answer's length. */
size_t dns_write(const uint8_t *message, const struct dns_query *query, enum dns_code code,
		 uint32_t address, uint8_t ret[DNS_MESSAGE_MAX]);
