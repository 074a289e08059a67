/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records between broker and sandbox, over one SOCK_SEQPACKET pair. The sandbox's end belongs first to the
 * cloned child that prepares the sandbox and then, across exec, to init. This socket is also the lifeline: when
 * it closes, init ends, and the kernel ends everything else in the pid namespace.
 *
 *   broker                          child, then init
 *                            ◀─     HELLO                                 only of one that a zygote cloned
 *   JOIN + cgroup files      ─▶     (ids are mapped: become the user)
 *   GO + plan + bare copies [+ mounter] ─▶ (prepare)
 *   DEV [+ a mount of /dev]  ─▶     (when the plan has one)
 *   WORKSPACE [+ a mount]    ─▶     (when the plan has one; without a mount the child makes it)
 *   RELAY + a socket         ─▶     (when the plan has one: it takes the listening sockets)
 *   REST + plan              ─▶     (when the first plan was partial: it is this one up to the pivot)
 *                            ◀─     PREPARED + work, tmp [, upper] [, terminal]   or FAILED
 *   ◀─     ADOPTED                               only where the program is there already
 *   START {stage} [+ 0,] + 1, 2 [, ticket] ─▶ (not there: then the program has a socket of its own)
 *   SIGNAL {signo}           ─▶     any time after
 *                            ◀─     SIGNALLED                          the signal is pending, or no stage runs
 *   PARK                     ─▶     any time after: init stays, also when every other process of the sandbox has ended
 *                            ◀─     EXITED {stage, …}                   or EXEC_FAILED {stage, errno}
 */
#pragma once

#include <stdint.h>

/* init's descriptors, set by the child before exec; it has no others. */
enum { INIT_FD_CONTROL = 0, INIT_FD_PLAN = 1 };

/* A word of argv, of an init whose program already runs as its only child. The first child of pid 1 is pid 2. */
#define INIT_ADOPT "adopt"
enum { INIT_ADOPTED_PID = 2 };
/* The same of an init whose program came from another sandbox (box/mover.h): pid 2, but not its child. */
#define INIT_GUEST "guest"
/*
 * The same of an init without a pid namespace (box/place.h). Its user is its own, its group has the number of the program's user, and
 * it has CAP_SETUID.
 */
#define INIT_APART "apart"
/* Another word of argv: no cgroup bounds the processors of the sandbox, so init keeps crowds in the background. */
#define INIT_CROWDS "crowds"

/* How many descriptors beyond 0, 1, 2 START may bring, and the number of the first. */
enum { INIT_EXTRA_MAX = 3, INIT_FD_EXTRA = 100 };

/* Scratch directories that PREPARED hands over: work, tmp. */
enum { INIT_SCRATCH_DIRS = 2 };
/* All descriptors of PREPARED: scratch, the workspace's upper directory, the terminal. */
enum { INIT_REPORT_FDS = INIT_SCRATCH_DIRS + 2 };

enum command_kind {
	COMMAND_JOIN = 1,
	COMMAND_GO,
	COMMAND_DEV,
	COMMAND_WORKSPACE,
	COMMAND_RELAY,
	COMMAND_REST,
	COMMAND_START,
	COMMAND_SIGNAL,
	COMMAND_PARK,
};

struct init_command {
	uint32_t kind;
	/* JOIN */
	uint32_t shared_uid; /* other processes of the host have this uid, too */
	/* GO: what this host supports */
	uint32_t landlock_abi, overlay, proc;
	uint32_t no_cgroup; /* INIT_CROWDS */
	uint32_t partial;   /* the plan ends with the pivot; REST brings the whole plan */
	uint32_t n_bare;    /* descriptors of bare copies (box/layers.h), after the plan */
	/* START */
	uint32_t stage;
	uint32_t no_input; /* 1: descriptor 0 is not sent; it is the sandbox's /dev/null */
	uint32_t n_extra;  /* descriptors after 0, 1, 2 */
	/*
	 * 1: a ticket descriptor comes last; init takes the ticket before the program starts
	 * (broker/broker-proto.h)
	 */
	uint32_t ticket;
	uint32_t tty;	      /* descriptor 0 is a terminal: make it the controlling one */
	uint32_t last;	      /* no further stage: init ends by itself afterwards */
	uint64_t cpu_seconds; /* RLIMIT_CPU of the stage; 0: none */
	/* SIGNAL */
	/* For the stage's main process; negative: for its process group, as ^C at a terminal. Ignored when no stage runs. */
	int32_t signo;
};

enum report_kind {
	REPORT_PREPARED = 1,
	REPORT_FAILED,
	REPORT_EXITED,
	REPORT_EXEC_FAILED,
	REPORT_HELLO,
	REPORT_ADOPTED,
	REPORT_SIGNALLED,
};

struct report {
	uint32_t kind;
	uint32_t stage; /* or, for FAILED, index of the operation */
	int32_t errnum;
	int32_t wait_status;
	int64_t start_ns, at_ns; /* CLOCK_MONOTONIC: the stage's begin, and now */
	/* PREPARED */
	int32_t landlock_abi;
	uint32_t missing;   /* bits of enum layer */
	uint32_t n_scratch; /* descriptors of scratch directories that came along */
	/* the upper directory of the workspace follows them; a terminal comes last */
	uint32_t has_upper;
	char step[32]; /* FAILED outside of operations: the step that failed */
	/* EXITED: sums over all processes that init has reaped so far */
	int64_t user_us, system_us, max_rss_bytes, read_bytes, write_bytes;
};
