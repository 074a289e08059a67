/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records between front and broker, over SOCK_SEQPACKET: fixed size, no pointers, fds by SCM_RIGHTS.
 *
 *   front                                   broker
 *                                      ◀─ HELLO {version, facts}                  first of all, once
 *   RUN {job} [+ stdin,] + stdout, stderr, ─▶ a small plan is bytes behind the record, another one a
 *       ticket [, plan]                      sealed memfd
 *   RUN {job, parent} …                 ─▶ the same for a copy of a process of the running job `parent` (box/mover.h)
 *   COPY {job, pid}                       ─▶ that copy, when it is there; RUN can bring it, too. With the job `parent`: there is no
 *                                            sandbox for that copy, and it ends
 *                                      ◀─ STARTED {job, isolation} [+ terminal]   or FAILED {job, error}; may come with DONE
 *                                      ◀─ STAGE {job, index, wait status, usage}  for each ended stage; the last may come with DONE
 *   KILL {job, cause}                     ─▶ any time
 *   SIGNAL {job, number}                  ─▶ to the main process of the running stage, a negative one to its process
 *                                            group; dropped when none runs
 *                                      ◀─ SIGNALLED {job}                         it is pending there, or was dropped; one for
 *                                            each SIGNAL, until DONE
 *   INHERIT {job, from}                   ─▶ a RUN with `keep` has left its work directory (DONE: kept), which that of
 *                                            the running job gets as a copy
 *                                      ◀─ INHERITED {job, errno}                  it has, or why not; the kept one is gone
 *   FORGET {job}                          ─▶ so it is now, too
 *   PARK {job}                            ─▶ every process of the sandbox but pid 1 is killed; its copies live on
 *   USAGE {job}                           ─▶
 *                                      ◀─ USAGE {job, usage}
 *                                      ◀─ FILE {job, path, size} + fd             if the plan asks for files
 *                                      ◀─ NETWORK {job} + fd                    if the plan has a relay: its book
 *                                      ◀─ DONE {job, …} [+ changes]               exactly one DONE or FAILED a RUN
 *   the socket closes: the broker kills every run that came over it; a forked broker then ends.
 *
 * The ticket is an eventfd with the value 1. Only the first reader gets it: the sandbox, just before the program begins; or the
 * front, if its broker is gone and the front wants to send the run to another broker. So a run begins at most once.
 */
#pragma once

#include "base/error.h"
#include "base/sys/host-facts.h"
#include "plan/plan.h"
#include "spec/usage.h"

#include <errno.h>
#include <stdbool.h>

enum record_kind {
	RECORD_HELLO = 1,
	RECORD_RUN,
	RECORD_KILL,
	RECORD_USAGE,
	RECORD_STARTED,
	RECORD_STAGE,
	RECORD_FILE,
	RECORD_DONE,
	RECORD_FAILED,
	RECORD_SIGNAL,
	RECORD_PARK,
	RECORD_COPY,
	RECORD_NETWORK,
	RECORD_INHERIT,
	RECORD_INHERITED,
	RECORD_FORGET,
	RECORD_SIGNALLED,
};

/* RECORD_PLAN_MAX: a plan up to this size comes as bytes behind its RUN, which is faster than a sealed file. */
enum { RECORD_FDS_MAX = 5, RECORD_PLAN_MAX = 8192 };

/*
 * Both ends are the same program, unless a front of another version connects to a listening broker. So a change of meaning
 * takes another number here. Added operations change _OP_MAX; records of another size are refused by their size.
 */
enum { PROTO_VERSION = 15 << 16 | _OP_MAX };

struct record_hello {
	uint32_t version;	 /* PROTO_VERSION */
	uint8_t warm;		 /* the broker keeps runtimes ready */
	struct host_facts facts; /* the abilities of the broker, not of the front */
};

/* parent not 0: the program is a process of the running job `parent`, and is moved into a sandbox of its own. */
struct record_copy {
	uint32_t parent;
	int32_t pid; /* in the broker's pid namespace; 0: COPY will tell it */
};

struct record_run {
	int32_t terminal_size; /* rows << 16 | columns; ignored without a terminal */
	uint32_t no_input;     /* 1: RUN brings no stdin, and the program has nothing to read */
	uint32_t keep;	       /* 1: its work directory may be inherited */
	struct record_copy copy;
};

/*
 * Puts each descriptor of a RUN in its place: stdin, stdout, stderr, ticket, plan; -EBADF: none. False: RUN brought more or fewer
 * descriptors than it must.
 */
static inline bool record_place_fds(const struct record_run *run, bool plan_is_bytes,
				    int fds[RECORD_FDS_MAX], size_t n_fds)
{
	if (run->no_input > 1 || n_fds != RECORD_FDS_MAX - plan_is_bytes - run->no_input)
		return false;
	if (run->no_input) {
		for (size_t i = n_fds; i > 0; i--)
			fds[i] = fds[i - 1];
		fds[0] = -EBADF;
	}
	if (plan_is_bytes)
		fds[RECORD_FDS_MAX - 1] = -EBADF;
	return true;
}

struct record_started {
	int64_t at_ns; /* CLOCK_MONOTONIC, just before the first program began */
	int32_t landlock_abi;
	uint8_t user_unique;
	uint8_t cgroup;	  /* enum cgroup_kind */
	uint8_t proc;	  /* the sandbox has procfs */
	uint8_t warm;	  /* the program's runtime was started ahead */
	uint8_t copy;	  /* the program was copied from another sandbox, whose uid it has */
	uint32_t missing; /* bits of enum layer, found while setting up */
	char seccomp[48];
};

struct record_stage {
	uint32_t index;
	int32_t wait_status; /* of the main process, as wait4 gives it */
	int32_t exec_errno;  /* not 0: the program could not be executed */
	int32_t killed_for;  /* enum cause_kind, or -1 */
	int64_t start_ns, end_ns;
	int64_t extended_us; /* its wall time was extended by this: it had waited for others */
	struct usage usage;
	uint8_t last; /* no further stage will run */
};

struct record_file {
	char path[PLAN_PATH_MAX]; /* relative to the work directory, raw bytes */
	int64_t size;
	uint32_t mode;
};

/* The outcome of a run's changes to its workspace. */
enum commit_result {
	COMMIT_NONE,	  /* the run had no writable workspace */
	COMMIT_APPLIED,	  /* also if there were no changes */
	COMMIT_DISCARDED, /* as the request asks */
	COMMIT_OVER_QUOTA,
	COMMIT_NO_ROOM, /* on the host's disk */
	COMMIT_BROKEN,	/* errnum */
	_COMMIT_RESULT_MAX,
};

struct record_commit {
	uint32_t result; /* enum commit_result */
	int32_t errnum;
	uint32_t omitted; /* changes that are not in the list; at least 1 if the list is lost */
	/* OVER_QUOTA: the size that the workspace would have, and its limits. */
	int64_t bytes, inodes, quota_bytes, quota_inodes;
};

struct record_done {
	uint32_t stages_run;
	uint8_t files_truncated; /* collection hit a bound */
	uint8_t kept;		 /* the work directory waits for INHERIT or FORGET */
	uint8_t settled; /* all output is in the pipes: any process that holds an end is dying */
	uint32_t files_skipped; /* links, devices, fifos, sockets, unreadable names */
	int64_t largest_file_bytes;
	struct usage usage;
	/* STARTED and the last STAGE may be part of DONE: then the front is woken once. */
	uint8_t has_started, has_stage;
	struct record_started started;
	struct record_stage stage;
	/* DONE brings a descriptor if there is a list of changes (spec/change.h). */
	struct record_commit commit;
};

struct record_inherited {
	int32_t errnum; /* 0: everything was copied but `skipped` entries; otherwise a part or nothing */
	uint32_t skipped; /* pipes, sockets, devices */
};

struct record {
	uint32_t kind;
	uint32_t job;
	union {
		struct record_hello hello;
		struct record_run run;
		int32_t kill_cause; /* enum cause_kind */
		int32_t signo;
		int32_t copy_pid;
		uint32_t inherit_from; /* a job */
		struct record_inherited inherited;
		struct record_started started;
		struct record_stage stage;
		struct record_file file;
		struct record_done done;
		struct error failed;
		struct usage usage;
	};
};
