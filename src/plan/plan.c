/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See plan.h. op_table is the only description of each operation: plan_add, plan_print and the decoder (wire.c)
 * use it.
 */
#include "plan/plan.h"

#include "base/foreign.h"
#include "plan/build.h"
#include "plan/filter.h"
#include "plan/relay-book.h"
#include "spec/change.h"

#include <assert.h>
#include <string.h>
#include <sys/resource.h>

#define BYTES_MAX (1LL << 40)
#define COUNT_MAX (1LL << 24)

const struct op_info op_table[_OP_MAX] = {
	[OP_PLACE] = { "place", PHASE_PREPARE, SPAN_NONE, SPAN_TARGET, INT32_MAX, 0, 1 },
	[OP_HOSTNAME] = { "hostname", PHASE_PREPARE, SPAN_NAME, SPAN_NONE, 0, 0, 1 },
	[OP_ROOT] = { "root", PHASE_PREPARE, SPAN_NONE, SPAN_NONE, BYTES_MAX, COUNT_MAX, 1 },
	[OP_DIR] = { "dir", PHASE_PREPARE, SPAN_NONE, SPAN_TARGET, 0, 0, 8192 },
	[OP_SYMLINK] = { "symlink", PHASE_PREPARE, SPAN_TEXT, SPAN_TARGET, 0, 0, 64 },
	[OP_TEXT] = { "text", PHASE_PREPARE, SPAN_BYTES, SPAN_TARGET, 0, 0, 64 },
	[OP_SHOW] = { "show", PHASE_PREPARE, SPAN_SOURCE, SPAN_TARGET, 0, 0, 64 },
	[OP_TMPFS] = { "tmpfs", PHASE_PREPARE, SPAN_NONE, SPAN_TARGET, BYTES_MAX, COUNT_MAX, 8 },
	[OP_SCRATCH] = { "scratch", PHASE_PREPARE, SPAN_NONE, SPAN_NONE, BYTES_MAX, COUNT_MAX, 1 },
	[OP_SCRATCH_DIR] = { "scratch-dir", PHASE_PREPARE, SPAN_NAME, SPAN_TARGET, 0, 0, 4 },
	[OP_WORKSPACE] = { "workspace", PHASE_PREPARE, SPAN_NAME, SPAN_TARGET, 0, 0, 1 },
	[OP_DEV] = { "dev", PHASE_PREPARE, SPAN_NONE, SPAN_TARGET, 0, 0, 1 },
	[OP_DEVPTS] = { "devpts", PHASE_PREPARE, SPAN_NONE, SPAN_TARGET, 1, 0, 1 },
	[OP_PROC] = { "proc", PHASE_PREPARE, SPAN_NONE, SPAN_TARGET, 0, 0, 1 },
	[OP_LOOPBACK] = { "loopback", PHASE_PREPARE, SPAN_NONE, SPAN_NONE, 0, 0, 1 },
	[OP_RELAY] = { "relay", PHASE_PREPARE, SPAN_NONE, SPAN_NONE, INT64_MAX, 0, 1 },
	[OP_ALLOW] = { "allow", PHASE_PREPARE, SPAN_TEXT, SPAN_NONE, UINT16_MAX, 0,
		       RELAY_RULES_MAX },
	[OP_PIVOT] = { "pivot", PHASE_PREPARE, SPAN_NONE, SPAN_NONE, 0, 0, 1 },
	[OP_FILE] = { "file", PHASE_PREPARE, SPAN_BYTES, SPAN_TARGET, 0, 0, 8192 },
	[OP_READONLY] = { "readonly", PHASE_PREPARE, SPAN_NONE, SPAN_TARGET, 0, 0, 8 },
	[OP_RLIMIT] = { "rlimit", PHASE_PREPARE, SPAN_NONE, SPAN_NONE, 15, INT64_MAX, 16 },
	[OP_LANDLOCK] = { "landlock", PHASE_PREPARE, SPAN_NONE, SPAN_TARGET, 7, 1, 192 },
	[OP_REQUIRE] = { "require", PHASE_PREPARE, SPAN_NONE, SPAN_NONE, UINT32_MAX, 0, 1 },
	[OP_SECCOMP] = { "seccomp", PHASE_PREPARE, SPAN_NONE, SPAN_NONE, _FILTER_MAX - 1, 0, 1 },
	[OP_COLLECT] = { "collect", PHASE_LAUNCH, SPAN_NONE, SPAN_NONE, COUNT_MAX, BYTES_MAX, 1 },
	[OP_COMMIT] = { "commit", PHASE_LAUNCH, SPAN_NONE, SPAN_NONE, _COMMIT_WHEN_MAX - 1, 0, 1 },
	[OP_STAGE] = { "stage", PHASE_LAUNCH, SPAN_NAME, SPAN_NONE, 0, 0, PLAN_STAGES_MAX },
	[OP_ARG] = { "arg", PHASE_LAUNCH, SPAN_TEXT, SPAN_NONE, 0, 0, 16384 },
	[OP_ENV] = { "env", PHASE_LAUNCH, SPAN_TEXT, SPAN_NONE, 0, 0, 16384 },
	[OP_STDIN] = { "stdin", PHASE_LAUNCH, SPAN_BYTES, SPAN_NONE, 0, 0, PLAN_STAGES_MAX },
	[OP_LIMIT] = { "limit", PHASE_LAUNCH, SPAN_NONE, SPAN_NONE, _STAGE_LIMIT_MAX - 1, BYTES_MAX,
		       1024 },
	[OP_WARM] = { "warm", PHASE_LAUNCH, SPAN_NAME, SPAN_NONE, _WARM_MAX - 1, 0, 1 },
	[OP_PRELOAD] = { "preload", PHASE_LAUNCH, SPAN_MODULE, SPAN_NONE, 0, 0, 32 },
	[OP_WARM_ARG] = { "warm-arg", PHASE_LAUNCH, SPAN_TEXT, SPAN_NONE, 0, 0, 64 },
	[OP_WARM_ENV] = { "warm-env", PHASE_LAUNCH, SPAN_TEXT, SPAN_NONE, 0, 0, 64 },
	[OP_WARM_FILE] = { "warm-file", PHASE_LAUNCH, SPAN_TEXT, SPAN_NONE, 0, 0, 1 },
};

const char *stage_limit_name(enum stage_limit limit)
{
	static const char *const names[_STAGE_LIMIT_MAX] = {
		[STAGE_WALL_MS] = "wall_ms",	   [STAGE_WALL_MAX_MS] = "wall_max_ms",
		[STAGE_CPU_MS] = "cpu_ms",	   [STAGE_MEMORY_BYTES] = "memory_bytes",
		[STAGE_SWAP_BYTES] = "swap_bytes", [STAGE_CPU_MILLI] = "cpu_milli",
		[STAGE_CPU_SHARES] = "cpu_shares", [STAGE_PIDS] = "pids",
	};

	return limit < _STAGE_LIMIT_MAX ? names[limit] : "?";
}

void plan_init(struct plan *p)
{
	buf_init(&p->ops, PLAN_OPS_MAX * sizeof(struct op));
	buf_init(&p->data, PLAN_BYTES_MAX);
}

void plan_done(struct plan *p)
{
	buf_done(&p->ops);
	buf_done(&p->data);
}

static int plan_add_span(struct plan *p, const char *bytes, size_t len, struct op_span *ret)
{
	struct op_span span = { (uint32_t)p->data.len, (uint32_t)len };
	int r = buf_append(&p->data, bytes, len);

	if (r < 0)
		return r;
	r = buf_append(&p->data, "", 1);
	if (r < 0)
		return r;
	*ret = span;
	return 0;
}

int plan_add(struct plan *p, struct op op, struct op_args args)
{
	int r;

	assert(op.kind != OP_END && op.kind < _OP_MAX);
	if (args.a) {
		r = plan_add_span(p, args.a, args.a_len ? args.a_len : strlen(args.a), &op.a);
		if (r < 0)
			return r;
	}
	if (args.b) {
		r = plan_add_span(p, args.b, strlen(args.b), &op.b);
		if (r < 0)
			return r;
	}
	return buf_append(&p->ops, &op, sizeof(op));
}

/* A name is a caller's: quoted, and cut at a bound, before a character. */
static int plan_print_quoted(struct buf *out, const char *text, size_t len)
{
	const size_t shown_max = 120;
	size_t n = MIN(len, shown_max);
	int r;

	while (n < len && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	r = foreign_put(out, text, n, FOREIGN_QUOTED);
	return r == 0 && n < len ? buf_puts(out, "…") : r;
}

static int plan_print_span(const struct plan_view *v, enum span_kind kind, struct op_span span,
			   struct buf *out)
{
	int r;

	switch (kind) {
	case SPAN_NONE:
		return 0;
	case SPAN_BYTES:
		return buf_printf(out, " <%u bytes>", span.len);
	default:
		r = buf_puts(out, kind == SPAN_TARGET ? " → " : " ");
		return r < 0 ? r : plan_print_quoted(out, v->data + span.offset, span.len);
	}
}

static const char *rlimit_name(int64_t resource)
{
	static const char *const names[] = {
		[RLIMIT_AS] = "as",
		[RLIMIT_CORE] = "core",
		[RLIMIT_CPU] = "cpu",
		[RLIMIT_DATA] = "data",
		[RLIMIT_FSIZE] = "fsize",
		[RLIMIT_LOCKS] = "locks",
		[RLIMIT_MEMLOCK] = "memlock",
		[RLIMIT_MSGQUEUE] = "msgqueue",
		[RLIMIT_NICE] = "nice",
		[RLIMIT_NOFILE] = "nofile",
		[RLIMIT_NPROC] = "nproc",
		[RLIMIT_RSS] = "rss",
		[RLIMIT_RTPRIO] = "rtprio",
		[RLIMIT_RTTIME] = "rttime",
		[RLIMIT_SIGPENDING] = "sigpending",
		[RLIMIT_STACK] = "stack",
	};

	return resource >= 0 && (size_t)resource < ARRAY_SIZE(names) ? names[resource] : "?";
}

static int plan_print_numbers(const struct op *op, const struct op_info *info, struct buf *out)
{
	switch (op->kind) {
	case OP_LIMIT:
		return buf_printf(out, " %s %lld", stage_limit_name((enum stage_limit)op->value),
				  (long long)op->value2);
	case OP_RLIMIT:
		return buf_printf(out, " %s %lld", rlimit_name(op->value), (long long)op->value2);
	case OP_LANDLOCK:
		return buf_printf(out, "%s%s%s%s", op->value & ACCESS_READ ? " read" : "",
				  op->value & ACCESS_WRITE ? " write" : "",
				  op->value & ACCESS_DEVICE ? " device" : "",
				  op->value2 ? ", no tcp" : "");
	case OP_WARM:
		return buf_puts(out, op->value == WARM_FORK ? " fork" : " start");
	case OP_COMMIT:
		return buf_printf(out, " %s", commit_when_name((enum commit_when)op->value));
	case OP_SECCOMP:
		return buf_printf(out, " %s", filter_profile_name((enum filter_profile)op->value));
	default:
		if (info->value_max == 0)
			return 0;
		return buf_printf(out, info->value2_max > 0 ? " %lld %lld" : " %lld",
				  (long long)op->value, (long long)op->value2);
	}
}

int plan_print_op(const struct plan_view *v, const struct op *op, struct buf *out)
{
	static const struct {
		uint16_t flag;
		const char *word;
	} flags[] = { { OP_OPTIONAL, " optional" },
		      { OP_WORKDIR, " workdir" },
		      { OP_EXACT, " exact" },
		      { OP_SMALL, " small" },
		      { OP_WRITABLE, " writable" } };
	const struct op_info *info = &op_table[op->kind];
	int r = plan_print_span(v, plan_span_a(op), op->a, out);

	if (r == 0)
		r = plan_print_span(v, info->b, op->b, out);
	if (r == 0)
		r = plan_print_numbers(op, info, out);
	if (r == 0 && op->mode)
		r = buf_printf(out, " %04o", op->mode);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(flags); i++)
		if (op->flags & flags[i].flag)
			r = buf_puts(out, flags[i].word);
	return r;
}

int plan_print(const struct plan_view *v, struct buf *out)
{
	static const char *const titles[] = { "prepare:\n", "launch:\n" };
	int phase = -1;

	for (uint32_t i = 0; i < v->n_ops; i++) {
		const struct op *op = &v->ops[i];
		int r = 0;

		if ((int)op_table[op->kind].phase != phase) {
			phase = (int)op_table[op->kind].phase;
			r = buf_puts(out, titles[phase]);
		}
		if (r == 0)
			r = buf_printf(out, "  %-11s", op_table[op->kind].name);
		if (r == 0)
			r = plan_print_op(v, op, out);
		if (r == 0)
			r = buf_puts(out, "\n");
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- lookups in a plan that plan_check() has accepted --- */

const char *const place_dirs[_PLACE_DIR_MAX] = {
	[PLACE_WORK] = SANDBOX_WORK,
	[PLACE_TMP] = "/tmp",
	[PLACE_BUILD] = SANDBOX_BUILD,
};

const struct op *plan_find(const struct plan_view *v, enum op_kind kind, int stage)
{
	int current = -1;

	for (uint32_t i = 0; i < v->n_ops; i++) {
		if (v->ops[i].kind == OP_STAGE)
			current++;
		if (v->ops[i].kind == kind && (stage < 0 || stage == current))
			return &v->ops[i];
	}
	return NULL;
}

bool plan_has_terminal(const struct plan_view *v)
{
	const struct op *op = plan_find(v, OP_DEVPTS, -1);

	return op && op->value != 0;
}

uint32_t plan_stage_count(const struct plan_view *v)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < v->n_ops; i++)
		count += v->ops[i].kind == OP_STAGE;
	return count;
}

void plan_stage_limits(const struct plan_view *v, uint32_t stage, int64_t ret[_STAGE_LIMIT_MAX])
{
	uint32_t current = UINT32_MAX;

	memset(ret, 0, sizeof(int64_t) * _STAGE_LIMIT_MAX);
	for (uint32_t i = 0; i < v->n_ops; i++) {
		const struct op *op = &v->ops[i];

		if (op->kind == OP_STAGE) {
			current++;
		} else if (op->kind == OP_LIMIT && current == stage) {
			assert(op->value >= 0 && op->value < _STAGE_LIMIT_MAX);
			ret[op->value] = op->value2;
		}
	}
}
