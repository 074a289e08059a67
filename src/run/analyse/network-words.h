/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which destinations a program names in its error messages when it had no network. These are the program's own words: they cost
 * nothing while it runs, and a program that lies misleads its own caller only.
 */
#pragma once

#include "base/address.h"
#include "base/span.h"

enum { NETWORK_ATTEMPTS_MAX = 8 };

struct network_attempt {
	struct destination destination; /* host "": the message names none; port 0: no port */
	bool lookup;			/* a name was asked for; otherwise a connection */
	int64_t count;			/* of messages */
};

/* How many there are, in the order of the messages. */
size_t network_attempts(struct span text, struct network_attempt ret[NETWORK_ATTEMPTS_MAX]);
