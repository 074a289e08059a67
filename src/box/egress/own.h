/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an address is one of this host's own: a public one leads to services behind the host's firewall, too. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

/* Asks the kernel's routing table. True also if it cannot be asked. */
bool address_is_own(const struct sockaddr *address);
