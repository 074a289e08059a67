/* SPDX-License-Identifier: Apache-2.0 */
/* What build.c and build-minimal.c share. */
#pragma once

#include "plan/build.h"

/* A path of sandboxes, and where that is in this plan. */
struct place_path {
	const char *from; /* NULL: the end of a list */
	const char *to;
};
enum { PLACE_PATHS_MAX = _PLACE_DIR_MAX + 3 }; /* directories of a place, kit, prelude, the end */

/* Remembers the first failure, so that a list of adds needs no checks. */
struct plan_builder {
	struct plan *plan;
	int r;
	const struct place_path *places; /* NULL: words name the paths of sandboxes */
	struct place_path place_paths[PLACE_PATHS_MAX];
	char place_text[_PLACE_DIR_MAX][64];
	char prelude[96]; /* the path of the prelude in the place */
};

void build_op(struct plan_builder *b, struct op op, struct op_args args);
/* Makes the directories above a file, except those in its first `skip` bytes. The child skips repeats. */
void build_parents(struct plan_builder *b, const char *path, size_t skip);
/* pids: of the program, and other processes of its user. */
void build_rlimits(struct plan_builder *b, const struct decision *d, int64_t pids,
		   int64_t file_bytes);
/* The right to read one entry of /etc, if the host has it. */
void build_etc_access(struct plan_builder *b, const char *name);
void build_landlock(struct plan_builder *b, const char *path, int64_t access, bool no_tcp);

/* build-minimal.c: the prepare part of a plan without namespaces. */
void build_minimal(struct plan_builder *b, const struct plan_input *in);
/* The word with every path of a sandbox replaced. */
int build_place_word(const struct place_path *places, const char *word,
		     struct buf *ret) _must_check_;
