/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Atoll's own processes may do. A process that has been taken over by the bytes it handles must find little: a role names
 * the system calls (table.c) and the capabilities it keeps, and root.c the files the front sees. The filters are made by the
 * compiler of programs' filters (plan/filter-table.h).
 *
 *   front      HTTP, history, queue: an allow-list; what only an attacker would call kills it
 *   broker     what programs may call, without looking at arguments, and what making sandboxes takes. Sandboxes inherit it, and
 *              rows that look at no argument cost nothing: the kernel answers them from a bitmap
 *   unpacker   waits for archives and forks one process for each (engine/unpacker.h)
 *   archive    that process: memory, one socket, and its own end; any other call kills it
 */
#pragma once

#include "plan/filter-table.h"

#include <stdint.h>

enum confine_role {
	CONFINE_FRONT,
	CONFINE_BROKER,
	CONFINE_UNPACKER,
	CONFINE_ARCHIVE,
	_CONFINE_MAX,
};

/* Pure: where a call leads in a role, and the role's filter. */
enum target confine_target(enum confine_role role, const struct syscall_row *row);
int confine_build(enum confine_role role, enum machine machine, struct filter *ret) _must_check_;
/* 0: each name of the tables is a call's, and they stand in the order in which they are looked for. For tests. */
int confine_check_names(void);
/* Capabilities that a role keeps if it has them, as bits. */
uint64_t confine_caps(enum confine_role role);

/*
 * Puts this thread, and what it starts from here on, into a role: no_new_privs, capabilities (as root), non-dumpable where the
 * role can be (a rootless broker cannot: it writes id maps of children that inherit the flag), and last the filter. Negative:
 * not all of it holds.
 */
int confine_enter(enum confine_role role) _must_check_;
