/* SPDX-License-Identifier: Apache-2.0 */
/* See shape.h. Two plans have one shape when the records that belong to it are equal, one by one, bytes included. */
#include "broker/warm/shape.h"

#include "agent/zygote-proto.h"
#include "base/fd.h"
#include "base/sys/textfile.h"
#include "box/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RUNNER_BYTES_MAX = 1 << 20 };

/* Walks the records of a plan that belong to a shape. */
struct shape_walk {
	const struct plan_view *v;
	enum warm_kind kind;
	uint32_t at;
	bool pivoted;
};

static bool belongs(const struct shape_walk *w, const struct op *op)
{
	if (w->kind == WARM_NONE)
		return !w->pivoted;
	if (rlimit_is_late(op))
		return false;
	/* Directories behind the pivot are those of the caller's files. */
	if (op->kind == OP_FILE || (op->kind == OP_DIR && w->pivoted))
		return false;
	return op_table[op->kind].phase == PHASE_PREPARE || op->kind >= OP_WARM;
}

static const struct op *walk_next(struct shape_walk *w)
{
	while (w->at < w->v->n_ops) {
		const struct op *op = &w->v->ops[w->at++];
		bool ours;

		/* Warm records stand ahead of the stage. */
		if (op->kind == OP_STAGE)
			return NULL;
		ours = belongs(w, op);
		if (op->kind == OP_PIVOT)
			w->pivoted = true;
		if (ours)
			return op;
		if (w->kind == WARM_NONE)
			return NULL;
	}
	return NULL;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

static uint64_t mix_bytes(uint64_t hash, const char *bytes, size_t n)
{
	uint64_t word;

	for (; n >= sizeof(word); bytes += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = mix(hash, word);
	}
	word = 0;
	memcpy(&word, bytes, n);
	return mix(hash, word ^ (uint64_t)n << 56);
}

uint64_t shape_hash(const struct plan_view *v, enum warm_kind kind)
{
	struct shape_walk w = { .v = v, .kind = kind };
	uint64_t hash = kind;

	for (const struct op *op = walk_next(&w); op; op = walk_next(&w)) {
		hash = mix(hash, (uint64_t)op->kind << 48 | (uint64_t)op->flags << 32 | op->mode);
		hash = mix(hash, (uint64_t)op->value);
		hash = mix(hash, (uint64_t)op->value2);
		hash = mix_bytes(hash, op_a(v, op), op->a.len);
		hash = mix_bytes(hash, op_b(v, op), op->b.len);
	}
	return hash;
}

/*
 * A hash of the records that put something into the root, without the sizes of mounts. 0: a skeleton cannot
 * serve, because a shown path lies below its place.
 */
static uint64_t tree_hash(const struct plan_view *v)
{
	uint64_t hash = 1;

	for (uint32_t i = 0; i < v->n_ops && v->ops[i].kind != OP_PIVOT; i++) {
		const struct op *op = &v->ops[i];

		if (op_table[op->kind].a == SPAN_SOURCE &&
		    strncmp(op_a(v, op), CHILD_SKELETON_PLACE, sizeof(CHILD_SKELETON_PLACE) - 1) ==
			    0)
			return 0;
		hash = mix(hash, (uint64_t)op->kind << 48 | (uint64_t)op->flags << 32 | op->mode);
		hash = mix_bytes(hash, op_a(v, op), op->a.len);
		hash = mix_bytes(hash, op_b(v, op), op->b.len);
	}
	return hash ? hash : 1;
}

static uint64_t mix_stat(uint64_t hash, const struct stat *st)
{
	hash = mix(hash, st->st_ino);
	return mix(hash,
		   (uint64_t)st->st_ctim.tv_sec * 1000000000U + (uint64_t)st->st_ctim.tv_nsec);
}

/*
 * Mixes in the files and directories of a copied directory. A link needs no look: it cannot change without its
 * directory. Takes dir_fd over.
 */
static uint64_t mix_tree(uint64_t hash, int dir_fd, int depth)
{
	DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	const struct dirent *e;

	if (!dir)
		(void)fd_close(dir_fd);
	while (dir && (e = readdir(dir))) {
		struct stat st;

		if ((e->d_type != DT_REG && e->d_type != DT_DIR) || strcmp(e->d_name, "..") == 0 ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		hash = mix_stat(hash, &st);
		if (e->d_type == DT_DIR && strcmp(e->d_name, ".") != 0 && depth > 0)
			hash = mix_tree(hash,
					openat(dirfd(dir), e->d_name,
					       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
					depth - 1);
	}
	if (dir)
		(void)closedir(dir);
	return hash;
}

uint64_t plan_tree_sources(const struct plan_view *v)
{
	uint64_t hash = 1;

	for (uint32_t i = 0; i < v->n_ops && v->ops[i].kind != OP_PIVOT; i++) {
		const struct op *op = &v->ops[i];
		struct stat st = { 0 };

		if (op->kind != OP_SHOW)
			continue;
		(void)lstat(op_a(v, op), &st);
		hash = mix(hash, st.st_mode);
		/*
		 * Small directories are copied. Others are shown as they are, so their content does not count.
		 */
		if (!S_ISDIR(st.st_mode))
			hash = mix_stat(hash, &st);
		else if (op->flags & OP_SMALL)
			hash = mix_tree(
				hash,
				open(op_a(v, op), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
				PLAN_SMALL_DEPTH);
	}
	return hash;
}

static bool same_bytes(const char *a, struct op_span a_span, const char *b, struct op_span b_span)
{
	return a_span.len == b_span.len && memcmp(a, b, a_span.len) == 0;
}

bool shape_fits(const struct shape *s, const struct plan_view *v, enum warm_kind kind)
{
	struct shape_walk w = { .v = v, .kind = kind };
	uint32_t i = 0;

	if (s->kind != kind)
		return false;
	for (const struct op *op = walk_next(&w); op; op = walk_next(&w), i++) {
		const struct op *own = &s->view.ops[i];

		if (i >= s->view.n_ops || own->kind != op->kind || own->flags != op->flags ||
		    own->mode != op->mode || own->value != op->value || own->value2 != op->value2)
			return false;
		if (!same_bytes(op_a(&s->view, own), own->a, op_a(v, op), op->a) ||
		    !same_bytes(op_b(&s->view, own), own->b, op_b(v, op), op->b))
			return false;
	}
	return i == s->view.n_ops || s->view.ops[i].kind == OP_STAGE;
}

static int add_shape_op(struct plan *p, const struct op *op, const char *a, const char *b)
{
	const struct op_info *info = &op_table[op->kind];
	struct op copy = *op;

	copy.a = copy.b = (struct op_span){ 0 };
	return plan_add(p, copy,
			(struct op_args){ .a = info->a == SPAN_NONE ? NULL : a,
					  .a_len = op->a.len,
					  .b = info->b == SPAN_NONE ? NULL : b });
}

/* The agent is loaded ahead of all libraries and takes both variables out of the environment again. */
static const char *const agent_env[] = { AGENT_PRELOAD, AGENT_VARIABLE "=" AGENT_PROGRAM };

/*
 * The command of the runtime that is started ahead becomes the stage of the shape's plan, which init executes.
 */
static int add_command(struct shape *s, const struct plan_view *v)
{
	const struct op stage = { .kind = OP_STAGE }, env = { .kind = OP_ENV };
	int r = plan_add(&s->plan, stage, (struct op_args){ .a = "warm" });

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(agent_env); i++)
		r = plan_add(&s->plan, env, (struct op_args){ .a = agent_env[i] });

	for (uint32_t i = 0; r == 0 && i < v->n_ops; i++) {
		struct op op = v->ops[i];

		if (op.kind != OP_WARM_ARG && op.kind != OP_WARM_ENV)
			continue;
		op.kind = op.kind == OP_WARM_ARG ? OP_ARG : OP_ENV;
		r = add_shape_op(&s->plan, &op, op_a(v, &v->ops[i]), NULL);
	}
	return r;
}

static int build_shape(struct shape *s, const struct plan_view *v)
{
	struct shape_walk w = { .v = v, .kind = s->kind };
	int r = 0;

	for (const struct op *op = walk_next(&w); r == 0 && op; op = walk_next(&w)) {
		r = add_shape_op(&s->plan, op, op_a(v, op), op_b(v, op));
		s->loopback |= op->kind == OP_LOOPBACK;
	}
	return r == 0 && s->kind == WARM_START ? add_command(s, v) : r;
}

/* The plan is complete, so pointers into it stay valid. */
static int point_into(struct shape *s)
{
	size_t n = 0;

	s->view = plan_as_view(&s->plan);
	s->modules = calloc(s->view.n_ops + 1, sizeof(char *));
	if (!s->modules)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->view.n_ops; i++) {
		const struct op *op = &s->view.ops[i];

		if (op->kind == OP_WARM)
			s->runtime = op_a(&s->view, op);
		else if (op->kind == OP_PRELOAD)
			s->modules[n++] = op_a(&s->view, op);
	}
	return 0;
}

int shape_init(struct shape *s, const struct plan_view *v, enum warm_kind kind)
{
	_cleanup_buf_ struct buf bytes = { 0 };
	int r;

	*s = (struct shape){ .hash = shape_hash(v, kind), .kind = kind, .plan_fd = -EBADF };
	/*
	 * If a sandbox is complete only with its request, the request may put things into its root behind the
	 * pivot.
	 */
	s->tree = kind == WARM_NONE ? 0 : tree_hash(v);
	plan_init(&s->plan);
	buf_init(&s->runner, RUNNER_BYTES_MAX);
	buf_init(&bytes, PLAN_BYTES_MAX);
	r = build_shape(s, v);
	if (r == 0)
		r = point_into(s);
	if (r == 0)
		r = plan_encode(&s->plan, &bytes);
	if (r == 0) {
		s->plan_fd = fd_sealed_memfd("atoll-shape", bytes.data, bytes.len);
		r = s->plan_fd < 0 ? s->plan_fd : 0;
	}
	if (r < 0)
		shape_done(s);
	return r;
}

int shape_read_runner(struct shape *s, const char *runners)
{
	const struct op *op = plan_find(&s->view, OP_WARM_FILE, -1);
	const char *name = op ? op_a(&s->view, op) : NULL;
	char path[PATH_MAX];

	if (!op)
		return 0;
	/* A caller chose the name. */
	if (!runners || name[0] == '/' || strstr(name, "..") ||
	    snprintf(path, sizeof(path), "%s/%s", runners, name) >= (int)sizeof(path))
		return -EINVAL;
	return textfile_read_buf(path, &s->runner);
}

void shape_done(struct shape *s)
{
	free(s->modules);
	s->modules = NULL;
	s->plan_fd = fd_close(s->plan_fd);
	buf_done(&s->runner);
	plan_done(&s->plan);
}

enum warm_kind plan_warm_kind(const struct plan_view *v)
{
	const struct op *op = plan_find(v, OP_WARM, -1);

	return op ? (enum warm_kind)op->value : WARM_NONE;
}
