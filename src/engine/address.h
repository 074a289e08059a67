/* SPDX-License-Identifier: Apache-2.0 */
/* Which places a callback may go to. Pure. */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <sys/socket.h>

/* A public address: no loopback, link-local, private, shared, reserved, multicast or documentation range. */
bool address_is_public(const struct sockaddr *address);

struct callback_target {
	const char *host; /* lower case, without brackets */
	int port;
};
enum place_verdict {
	PLACE_UNLISTED,
	PLACE_LISTED,	     /* by a pattern */
	PLACE_LISTED_EXACTLY /* by name: wherever that leads */
};
/* The best match of a list of "host", "host:port", "*.domain". */
enum place_verdict place_find(const char *const *list, const struct callback_target *place);
