/* SPDX-License-Identifier: Apache-2.0 */
/* Which process listens on a TCP port, for the message that the port is taken. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct port_owner {
	pid_t pid;
	char name[32];
};
/* False: none that this user may see. */
bool port_owner_find(uint16_t port, struct port_owner *ret);
