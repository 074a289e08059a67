/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Atoll's own processes may do. A process that has been taken over by the bytes it handles must find little: a role names
 * the system calls (confine-table.c) and the capabilities it keeps, and confine-root.c the files the front sees. The filters are made by the
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

#include <stdbool.h>
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

/* A list of paths is ended by a NULL path. One that is not there is passed over. */
struct confine_path {
	const char *path;
	enum confine_access { CONFINE_READ, CONFINE_STORE, CONFINE_DEVICE } access;
	bool as_link; /* where it is a link it stays one; others are followed */
};

enum { CONFINE_PATHS_MAX = 128 };

/*
 * Gives this process, which has CAP_SYS_ADMIN, a mount namespace whose root holds these paths and nothing else: read-only, or for a
 * store without set-user-id, devices and programs. Descriptors of directories from before still lead out: close them.
 */
int confine_root(const struct confine_path *paths) _must_check_;

/* Landlock: this thread, and what it starts, reaches these files and no others; NULL: none at all. -EOPNOTSUPP: there is no Landlock. */
int confine_files(const struct confine_path *paths) _must_check_;
/* So much memory of its own, for this process. A sanitizer reserves terabytes, so a sanitized build is not bounded. */
int confine_memory(uint64_t bytes) _must_check_;
/*
 * Puts this thread, and what it starts from here on, into a role: no_new_privs, capabilities (as root), non-dumpable where the
 * role can be (a rootless broker cannot: it writes id maps of children that inherit the flag), and last the filter. Negative:
 * not all of it holds.
 */
int confine_enter(enum confine_role role) _must_check_;
