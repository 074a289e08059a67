/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits what Atoll's own processes may do, so that a process that hostile input has taken over can do little.
 * A role names the system calls (confine-table.c) and the capabilities that a process keeps; confine_root()
 * limits the files that the front sees. plan/filter-table.h compiles the filters, as it does for programs.
 *
 *   front      HTTP, history, queue: an allow-list; what only an attacker would call kills it
 *   broker     what programs may call, without looking at arguments, and what making sandboxes takes. Sandboxes inherit it, and
 *              rows that look at no argument cost nothing: the kernel answers them from a bitmap
 *   unpacker   waits for archives and forks one process for each (engine/unpacker.h)
 *   archive    that process: memory, one socket, and its own end; any other call kills it
 *   relay      connections of one sandbox (box/egress/): sockets, names, threads, and its own exec, which comes after this
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
	CONFINE_RELAY,
	_CONFINE_MAX,
};

/* Pure: the verdict for a call in a role, and the role's filter. */
enum target confine_target(enum confine_role role, const struct syscall_row *row);
int confine_build(enum confine_role role, enum machine machine, struct filter *ret) _must_check_;
/* 0: each name in the tables is a call's name, and the tables are sorted. For tests. */
int confine_check_names(void);
/* Capabilities that a role keeps if the process has them, as bits. */
uint64_t confine_caps(enum confine_role role);

/* A list ends with a NULL path. A path that does not exist is skipped. */
struct confine_path {
	const char *path;
	enum confine_access { CONFINE_READ, CONFINE_STORE, CONFINE_DEVICE } access;
	bool as_link; /* a symbolic link stays a link; otherwise it is followed */
};

enum { CONFINE_PATHS_MAX = 128 };

/*
 * Gives this process, which has CAP_SYS_ADMIN, a mount namespace whose root holds these paths and nothing else.
 * They are read-only; a store is writable, without set-user-id, devices and programs. Directory descriptors
 * opened before still lead out: close them.
 */
int confine_root(const struct confine_path *paths) _must_check_;

/*
 * Landlock: this thread and the threads and processes it starts reach these files only; NULL: none.
 * -EOPNOTSUPP: the kernel has no Landlock.
 */
int confine_files(const struct confine_path *paths) _must_check_;
/* Limits the memory of this process. A sanitizer reserves terabytes, so a sanitized build is not limited. */
int confine_memory(uint64_t bytes) _must_check_;
/*
 * Puts this thread, and what it starts afterwards, into a role: no_new_privs, capabilities (as root),
 * non-dumpable if the role can be (a rootless broker cannot: it writes id maps of children that inherit the
 * flag), and last the filter. Negative: not all of it holds.
 */
int confine_enter(enum confine_role role) _must_check_;
