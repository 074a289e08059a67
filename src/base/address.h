/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Destinations on the network: a host (a name or an address) and a port, and lists of patterns for them. Used for callbacks
 * and for sandboxes that may reach listed destinations. Pure.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <sys/socket.h>

/* A public address: no loopback, link-local, private, shared, reserved, multicast or documentation range. */
bool address_is_public(const struct sockaddr *address);
/* Whether the text is an IPv4 or IPv6 address; *ret has port 0. IPv4 in IPv6 ("::ffff:1.2.3.4") becomes IPv4. */
bool address_parse(const char *text, struct sockaddr_storage *ret);
/* The text of an address, as address_parse() reads it: one text for one address. */
enum { ADDRESS_TEXT_MAX = 48 };
void address_format(const struct sockaddr *address, char ret[ADDRESS_TEXT_MAX]);
uint16_t address_port(const struct sockaddr_storage *address);
void address_set_port(struct sockaddr_storage *address, uint16_t port);
/* IPv4 in IPv6 becomes IPv4. */
void address_unmap(struct sockaddr_storage *address);

enum { HOST_NAME_MAX_BYTES = 253 };

/* "host", "host:port", "[::1]:port", "*.domain", "*". */
struct destination {
	char host[HOST_NAME_MAX_BYTES +
		  1];  /* lower case, without brackets and final dot; an address in its one text */
	uint16_t port; /* 0: none given */
};
/* -EINVAL: that is no host, or no port. */
int destination_parse(const char *text, struct destination *ret) _must_check_;
/* Whether the pattern's host stands for this host. "*.domain" stands for names below domain. */
bool destination_covers(const struct destination *pattern, const char *host);

enum destination_verdict {
	DESTINATION_UNLISTED,
	DESTINATION_LISTED,	   /* by a pattern */
	DESTINATION_LISTED_EXACTLY /* by name: wherever that leads */
};
/* The best match of a list of patterns; those that cannot be read are skipped. */
enum destination_verdict destination_find(const char *const *list,
					  const struct destination *destination);
