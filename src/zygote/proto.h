/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker says to a zygote and to a program that waits for its request, and what these answer.
 *
 *   broker                                          zygote (its socket is WARM_FD)
 *                                              ◀─   READY                              once, single-threaded and warmed
 *   FORK {owner, …} + control [, program, net, cgroup] ─▶   (the clone greets over its control socket: init/init.h)
 *
 *   broker                                          program (its socket is WARM_FD, too; messages are text but LAUNCH)
 *                                              ◀─   "P"                                it waits
 *   LAUNCH {…} + plan, 0, 1, 2                 ─▶
 *                                              ◀─   "L", and its program begins        or struct report FAILED
 *                                              ◀─   decimal exit code: its last word
 */
#pragma once

#include "zygote/warm.h"

#include <stdint.h>

/* The role of the agent in a process, by this variable; it is gone before main(). */
#define AGENT_VARIABLE "ATOLL_AGENT"
#define AGENT_ZYGOTE   "zygote"
#define AGENT_PROGRAM  "program"
/* How it is loaded: from WARM_AGENT_FD. */
#define AGENT_PRELOAD "LD_PRELOAD=/proc/self/fd/101"

/* Where a zygote finds init. */
enum { ZYGOTE_INIT_FD = 103 };

enum { ZYGOTE_READY = 0x52454459, ZYGOTE_FORK = 0x464f524b, PROGRAM_LAUNCH = 0x4c4e4348 };

struct zygote_record {
	uint32_t kind;
	uint32_t owner;	  /* uid that owns the new user namespace; 0: the zygote's own */
	uint32_t program; /* the program's end of its socket comes along */
	uint32_t net;	  /* a network namespace comes along */
	uint32_t cgroup;  /* a cgroup to be cloned into comes along */
	uint32_t warm_up; /* nobody waits yet: warm up before parking */
};

struct launch_record {
	uint32_t kind;
	uint32_t reserved;
	uint64_t cpu_seconds; /* RLIMIT_CPU; 0: none */
	int64_t files_ns; /* modification time of the caller's files: one that differs was written to */
};

/* What a program says when it waits and when it begins, and the longest thing it has to say after that. */
#define PROGRAM_PARKED	 "P"
#define PROGRAM_LAUNCHED "L"
enum { PROGRAM_WORD_MAX = 4 };
