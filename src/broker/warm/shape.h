/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shape: the part of a plan that many requests have in common, as a plan of its own. Sandboxes are made from a
 * shape before their requests. A shape holds nothing of a request: no files, words, variables or limits.
 *
 *   program executed by init (WARM_NONE)    the records up to the pivot; the rest follows with the request (COMMAND_REST)
 *   program forked or started ahead         all records of the preparation but files and some limits, which the program puts in
 *                                           place itself; for a started runtime, its command as well
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "plan/wire.h"

struct shape {
	uint64_t hash;
	enum warm_kind kind;
	struct plan plan;      /* as built */
	struct plan_view view; /* the same */
	int plan_fd;	       /* the same, sealed */
	struct buf runner; /* OP_WARM_FILE's bytes, for each cell a file of its own; empty: none */
	uint64_t tree;	   /* names the skeleton it needs; 0: no skeleton serves */
	bool loopback;	   /* its network namespace has lo up and may be one made ahead */
	const char *runtime;  /* WARM_FORK: points into plan */
	const char **modules; /* WARM_FORK: NULL-terminated; point into plan */
};

/* A number that equal shapes share. */
uint64_t shape_hash(const struct plan_view *v, enum warm_kind kind);
/* Whether a sandbox of this shape serves that plan. */
bool shape_fits(const struct shape *s, const struct plan_view *v, enum warm_kind kind);
int shape_init(struct shape *s, const struct plan_view *v, enum warm_kind kind) _must_check_;
/* Reads the runner that OP_WARM_FILE names, if any, from the runners' directory. */
int shape_read_runner(struct shape *s, const char *runners) _must_check_;
void shape_done(struct shape *s);
/* A number for the state of the files that a plan's skeleton has copies of: equal numbers, equal files. */
uint64_t plan_tree_sources(const struct plan_view *v);
/* The way in which the one stage of a plan can run before its request. */
enum warm_kind plan_warm_kind(const struct plan_view *v);
