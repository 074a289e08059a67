/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the broker and a zygote, and between the broker and a program that waits for its request.
 *
 *   broker                                          zygote (its socket is WARM_FD)
 *                                              ◀─   READY                              once: warmed, one thread, no shared memory
 *   FORK {owner, …} + control [, program, net, cgroup] ─▶   (the clone greets over its control socket: box/init/init.h)
 *
 *   broker                                          program (its socket is WARM_FD, too; messages are text but LAUNCH)
 *                                              ◀─   "P"                                the program waits
 *   LAUNCH {…} [+ 0,] + 1, 2, ticket [, plan]  ─▶    a small plan comes as bytes behind the record
 *                                                   the agent takes the ticket, and the program begins;
 *                                              ◀─   or struct report FAILED
 *                                              ◀─   decimal exit code, as the last message; only from the process that sent "P"
 */
#pragma once

#include "plan/plan.h"
#include "plan/warm-table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* This variable gives the agent its role in a process. The agent removes it before main(). */
#define AGENT_VARIABLE "ATOLL_AGENT"
#define AGENT_ZYGOTE   "zygote"
#define AGENT_PROGRAM  "program"
/* Loads the agent from WARM_AGENT_FD. */
#define AGENT_PRELOAD "LD_PRELOAD=/proc/self/fd/101"

/* The descriptor of init in a zygote. */
enum { ZYGOTE_INIT_FD = 103 };

enum { ZYGOTE_READY = 0x52454459, ZYGOTE_FORK = 0x464f524b, PROGRAM_LAUNCH = 0x4c4e4348 };

struct zygote_record {
	uint32_t kind;
	uint32_t owner;	  /* uid that owns the new user namespace; 0: the zygote's own */
	uint32_t program; /* the program's end of its socket comes along */
	uint32_t net;	  /* a network namespace comes along */
	uint32_t cgroup;  /* a cgroup to be cloned into comes along */
	uint32_t warm_up; /* no request waits yet: warm up before parking */
	uint32_t
		skeleton; /* FORK: the zygote's skeleton serves the plan; READY: the zygote has a skeleton */
};

struct launch_record {
	uint32_t kind;
	uint32_t no_input; /* 1: descriptor 0 does not come along, it is the sandbox's /dev/null */
	uint64_t cpu_seconds; /* RLIMIT_CPU; 0: none */
	int64_t files_ns; /* modification time of the caller's files: a file with another time was written to */
};

/* The message of a program that waits, and the length of the longest message after its launch. */
#define PROGRAM_PARKED	    "P"
#define PROGRAM_PARKED_TEXT "T" /* the same; the file for its text is made, with TEXT_BLOCK bytes */
enum { TEXT_BLOCK = 4096, PROGRAM_WORD_MAX = 4 };

/*
 * Limits that hold from the launch on: until then a process needs descriptors of high numbers, and may put its
 * heap far away. The other limits hold from the sandbox's beginning.
 */
static inline bool rlimit_is_late(const struct op *op)
{
	return op->kind == OP_RLIMIT && (op->value == RLIMIT_NOFILE || op->value == RLIMIT_DATA ||
					 op->value == RLIMIT_AS || op->value == RLIMIT_STACK);
}

/*
 * A program sends no message when it begins, so that the broker is not woken: the broker checks whether the
 * ticket (broker/broker-proto.h) is taken. The agent closes the ticket before the program begins.
 */
enum { LAUNCH_PLAN_MAX = 8192, LAUNCH_FDS_MAX = 5 };
