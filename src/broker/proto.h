/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records between front and broker, over SOCK_SEQPACKET: fixed size, no pointers, fds by SCM_RIGHTS.
 *
 *   front                                   broker
 *                                      ◀─ HELLO {version, facts}                  first of all, once
 *   RUN {job} + plan, stdin, stdout, stderr ─▶
 *                                      ◀─ STARTED {job, isolation} [+ terminal]   or FAILED {job, error}
 *                                      ◀─ STAGE {job, index, wait status, usage}  for each stage that ended; the last may come with DONE
 *   KILL {job, cause}                     ─▶ any time
 *   USAGE {job}                           ─▶
 *                                      ◀─ USAGE {job, usage}
 *                                      ◀─ FILE {job, path, size} + fd             when collection was asked for
 *                                      ◀─ DONE {job, …}                           exactly one DONE or FAILED a RUN
 *   the socket closes: the broker kills every run that came over it; one that was forked for it ends.
 */
#pragma once

#include "base/error.h"
#include "plan/plan.h"
#include "spec/usage.h"
#include "sys/facts.h"

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
};

enum { RECORD_FDS_MAX = 4 };

/*
 * Both ends are one program, except where a broker stays and another version comes: a change of meaning takes another
 * number here. Operations that were added, and records of another size, tell themselves.
 */
enum { PROTO_VERSION = 1 << 16 | _OP_MAX };

struct record_hello {
	uint32_t version;	 /* PROTO_VERSION */
	uint8_t warm;		 /* it keeps runtimes ready */
	struct host_facts facts; /* what holds is what the broker can do, not what the front can */
};

struct record_started {
	int64_t at_ns; /* CLOCK_MONOTONIC, just before the first program was let go */
	int32_t landlock_abi;
	uint8_t user_unique;
	uint8_t cgroup;	  /* enum cgroup_kind */
	uint8_t proc;	  /* procfs is there */
	uint32_t missing; /* bits of enum layer, found while setting up */
	char seccomp[48];
};

struct record_stage {
	uint32_t index;
	int32_t wait_status; /* of the main process, as wait4 gives it */
	int32_t exec_errno;  /* not 0: it could not be executed at all */
	int32_t killed_for;  /* enum cause_kind, or -1 */
	int64_t start_ns, end_ns;
	struct usage usage;
	uint8_t last; /* no further stage will run */
};

struct record_file {
	char path[PLAN_PATH_MAX]; /* relative to the work directory, raw bytes */
	int64_t size;
	uint32_t mode;
};

struct record_done {
	uint32_t stages_run;
	uint8_t files_truncated; /* collection hit a bound */
	uint8_t settled; /* all output is in the pipes: whoever still holds their ends is dying */
	uint32_t files_skipped; /* links, devices, fifos, sockets, unreadable names */
	int64_t largest_file_bytes;
	struct usage usage;
	uint8_t has_stage; /* the last STAGE comes along and not by itself */
	struct record_stage stage;
};

struct record {
	uint32_t kind;
	uint32_t job;
	union {
		struct record_hello hello;
		int32_t kill_cause; /* enum cause_kind */
		struct record_started started;
		struct record_stage stage;
		struct record_file file;
		struct record_done done;
		struct error failed;
		struct usage usage;
	};
};
