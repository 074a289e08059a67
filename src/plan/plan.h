/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan is a decision as an ordered list of operations, as data.
 *
 *   decision ──plan_build──▶ plan ──wire──▶ sealed memfd ──▶ broker: plan_open + plan_check ──▶ sandbox, init
 *
 * Every operation is one fixed-size record with two numbers and two byte spans; its row of op_table says what
 * they mean. The same bytes are built, printed (--explain), sent, checked and executed. The records come in
 * phases, in this order:
 *
 *   prepare  a warm pool can do it ahead of time: file system, namespaces, confinement
 *   launch   added by a request: files, stages with their words, variables and limits
 *
 * Spans point into one data area. A span of kind text is NUL-terminated there, so the child can use it in
 * place: no copy, no heap after clone.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum op_kind {
	OP_END, /* never in a plan; catches zeroed records */
	/* prepare */
	OP_PLACE, /* value: number of a place (PLACE_DIR), b: its work directory. First, in a plan without namespaces */
	OP_HOSTNAME, /* a: name */
	OP_ROOT,     /* value: bytes, value2: inodes; tmpfs that becomes / */
	OP_DIR,	     /* b: target; mode */
	OP_SYMLINK,  /* a: content, b: target */
	OP_TEXT,     /* a: bytes, b: target; mode */
	OP_SHOW,     /* a: host path, b: target; a directory by read-only overlay, a file by copy,
			    a link as a link; one that is missing is skipped when OPTIONAL */
	OP_TMPFS,    /* b: target; value: bytes, value2: inodes; mode */
	OP_SCRATCH, /* value: bytes, value2: inodes; the one tmpfs of work directory and /tmp. In a place: watched */
	OP_SCRATCH_DIR, /* a: name inside scratch, b: target; mode */
	OP_WORKSPACE, /* a: name of a workspace, or with OP_EXACT a path; b: target; seen through a layer on scratch */
	OP_DEV,	     /* b: target */
	OP_DEVPTS,   /* b: target; own instance; value: 1 the program gets a terminal of it */
	OP_PROC,     /* b: target; subset=pid */
	OP_LOOPBACK, /* bring lo up */
	OP_RELAY,    /* value: bytes to carry, 0: no bound; every address leads to the relay */
	OP_ALLOW,    /* a: a host, *.DOMAIN or *, value: port; the relay connects to it */
	OP_PIVOT,    /* the new root becomes /; the old one is gone */
	OP_FILE,     /* a: bytes, b: target below a scratch or tmpfs target; mode */
	OP_READONLY, /* b: mount point that becomes read-only */
	OP_RLIMIT,   /* value: RLIMIT_*, value2: soft and hard */
	OP_LANDLOCK, /* b: path; value: enum landlock_access; OP_OPTIONAL: it may be missing */
	OP_REQUIRE,  /* value: bits of enum layer; fails if one of them does not hold */
	OP_SECCOMP,  /* value: enum filter_profile */
	/* launch */
	OP_STAGE,   /* a: name; the ops after it belong to it, up to the next stage */
	OP_ARG,	    /* a: word */
	OP_ENV,	    /* a: NAME=value */
	OP_STDIN,   /* a: bytes given as standard input instead of the caller's stream */
	OP_LIMIT,   /* value: enum stage_limit, value2: amount */
	OP_COLLECT, /* value: most files, value2: most bytes */
	OP_COMMIT, /* value: enum commit_when: whether the workspace's layer is applied at the end */
	/* launch, before the stage: how the one stage of this plan can be ready ahead */
	OP_WARM,      /* value: enum warm_kind; a: name of the runtime */
	OP_PRELOAD,   /* a: module that the runtime has loaded (WARM_FORK) */
	OP_WARM_ARG,  /* a: word of the command that is started ahead (WARM_START) */
	OP_WARM_ENV,  /* a: NAME=value of that command */
	OP_WARM_FILE, /* a: which of the broker's runners it finds as WARM_FILE_FD */
	_OP_MAX,
};

enum {
	OP_OPTIONAL = 1 << 0, /* a missing source is skipped */
	OP_READABLE = 1 << 1, /* so is a source that the sandbox's user may not read */
	OP_WORKDIR = 1 << 2,  /* for a workspace: programs start there */
	/* A directory of links and small files: a kept copy may be used instead. */
	OP_SMALL = 1 << 3,
	/*
	 * The program may write to it, without changing the host: of ROOT, which then lies on the scratch file
	 * system, of SCRATCH, which then only bounds the growth of that one, and of SHOW.
	 */
	OP_WRITABLE = 1 << 4,
	/*
	 * Of SHOW: the source is a directory, no part of its path is a link, and it has inodes of its own, or is not shown. Of WORKSPACE:
	 * a is the path of such a directory.
	 */
	OP_EXACT = 1 << 5,
};

enum { PLAN_SMALL_DEPTH = 4 }; /* nested directories below such a directory */

/*
 * Where sandboxes without a file system of their own have their files. A place's number is that of its two users: making
 * PLACE_DIR/NUMBER reserves them.
 */
#define PLACE_DIR "/tmp/atoll"
enum { PLACE_WORK, PLACE_TMP, PLACE_BUILD, _PLACE_DIR_MAX };
extern const char
	*const place_dirs[_PLACE_DIR_MAX]; /* below a place: "/sandbox", … as in other sandboxes */

enum warm_kind {
	WARM_NONE,
	WARM_FORK,  /* forked from an interpreter that the broker keeps */
	WARM_START, /* started in its sandbox ahead of the request */
	_WARM_MAX,
};

enum landlock_access {
	ACCESS_READ = 1,
	ACCESS_WRITE = 2,
	ACCESS_DEVICE = 4,
};

enum stage_limit {
	STAGE_WALL_MS,
	STAGE_CPU_MS,
	STAGE_MEMORY_BYTES,
	STAGE_SWAP_BYTES,
	STAGE_CPU_MILLI,
	STAGE_CPU_SHARES,
	STAGE_PIDS,
	STAGE_WALL_MAX_MS, /* 0, or: waiting that others cause extends STAGE_WALL_MS so far */
	_STAGE_LIMIT_MAX,
};

struct op_span {
	uint32_t offset, len;
};

struct op {
	uint16_t kind, flags;
	uint32_t mode;
	int64_t value, value2;
	struct op_span a, b;
};

enum {
	PLAN_OPS_MAX = 32768,
	PLAN_STAGES_MAX = 40,
	PLAN_BYTES_MAX = 320 << 20,
	PLAN_PATH_MAX = 1024,
	PLAN_DEPTH_MAX = 64,
};

/* A plan that is being built: grows, owns its bytes. */
struct plan {
	struct buf ops;	 /* struct op[] */
	struct buf data; /* spans */
};

/* A plan to read: borrows one contiguous block that plan_check has accepted. */
struct plan_view {
	const struct op *ops;
	uint32_t n_ops;
	const char *data;
	uint64_t data_len;
};

/* The bytes of an op's span. Only after plan_check: bounds are not checked here. */
static inline const char *op_a(const struct plan_view *v, const struct op *op)
{
	return v->data + op->a.offset;
}
static inline const char *op_b(const struct plan_view *v, const struct op *op)
{
	return v->data + op->b.offset;
}

static inline bool plan_root_is_writable(const struct plan_view *v)
{
	for (uint32_t i = 0; i < v->n_ops; i++)
		if (v->ops[i].kind == OP_ROOT)
			return v->ops[i].flags & OP_WRITABLE;
	return false;
}

/* The directory where programs start. Inline, for init and the agent, which link no code of Atoll. */
static inline const char *plan_workdir(const struct plan_view *v)
{
	for (uint32_t i = 0; v && i < v->n_ops; i++)
		if (v->ops[i].kind == OP_PLACE ||
		    (v->ops[i].kind == OP_WORKSPACE && v->ops[i].flags & OP_WORKDIR))
			return op_b(v, &v->ops[i]);
	return "/sandbox";
}

void plan_init(struct plan *p);
void plan_done(struct plan *p);
/* Arguments of plan_add beyond the record's numbers. NULL data: none. */
struct op_args {
	const char *a;
	size_t a_len; /* 0 with a set: strlen(a) */
	const char *b;
};
int plan_add(struct plan *p, struct op op, struct op_args args) _must_check_;

enum op_phase { PHASE_PREPARE, PHASE_LAUNCH };
enum span_kind {
	SPAN_NONE,
	SPAN_TEXT,
	SPAN_BYTES,
	SPAN_TARGET,
	SPAN_SOURCE,
	SPAN_NAME,
	SPAN_MODULE
};
struct op_info {
	const char *name;
	enum op_phase phase;
	enum span_kind a, b;
	int64_t value_max, value2_max; /* each from 0 */
	uint32_t count_max;	       /* how often it may occur in a plan */
};
extern const struct op_info op_table[_OP_MAX];

/* What its first text is. */
static inline enum span_kind plan_span_a(const struct op *op)
{
	return op->kind == OP_WORKSPACE && op->flags & OP_EXACT ? SPAN_SOURCE
								: op_table[op->kind].a;
}
const char *stage_limit_name(enum stage_limit limit);

/* The limits of one stage, from its OP_LIMIT records. */
void plan_stage_limits(const struct plan_view *v, uint32_t stage, int64_t ret[_STAGE_LIMIT_MAX]);
uint32_t plan_stage_count(const struct plan_view *v);
/* The first record of a kind, or NULL; with stage >= 0 only inside that stage. */
const struct op *plan_find(const struct plan_view *v, enum op_kind kind, int stage);
/* Whether the program gets a terminal. */
bool plan_has_terminal(const struct plan_view *v);

/* The text after an operation's name: its words, each after a space. */
int plan_print_op(const struct plan_view *v, const struct op *op, struct buf *out) _must_check_;
/* --explain: one line an operation. */
int plan_print(const struct plan_view *v, struct buf *out) _must_check_;
