/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See wire.h. An attacker may have written the bytes: the decoder reads nothing before its bounds are known,
 * keeps no state, and refuses with the index of the bad record.
 */
#include "plan/wire.h"

#include "base/path.h"
#include "plan/filter.h"

#include <stdio.h>
#include <string.h>

static const char plan_magic[8] = "ATOLLPL1";

int plan_encode(const struct plan *p, struct buf *ret)
{
	struct plan_header h = { .n_ops = (uint32_t)(p->ops.len / sizeof(struct op)),
				 .data_len = p->data.len };
	int r;

	memcpy(h.magic, plan_magic, sizeof(h.magic));
	r = buf_append(ret, &h, sizeof(h));
	if (r == 0)
		r = buf_append(ret, p->ops.data, p->ops.len);
	if (r == 0)
		r = buf_append(ret, p->data.data, p->data.len);
	return r;
}

struct plan_view plan_as_view(const struct plan *p)
{
	return (struct plan_view){
		.ops = (const struct op *)(const void *)p->ops.data,
		.n_ops = (uint32_t)(p->ops.len / sizeof(struct op)),
		.data = p->data.data,
		.data_len = p->data.len,
	};
}

static int wire_refuse(struct error *err, uint32_t index, const char *why)
{
	return error_set(err, ERROR_INPUT, EBADMSG, "the plan's record %u is refused: %s", index,
			 why);
}

/* Absolute, normal form: starts with one slash, no empty, "." or ".." component, bounded. */
static bool path_is_normal(const char *path, size_t len)
{
	size_t depth = 0;

	if (len == 0 || len >= PLAN_PATH_MAX || path[0] != '/')
		return false;
	if (len == 1)
		return true;
	for (size_t i = 1; i <= len;) {
		const char *slash = memchr(path + i, '/', len - i);
		size_t n = (slash ? (size_t)(slash - path) : len) - i;

		if (n == 0 || n > 255 || ++depth > PLAN_DEPTH_MAX)
			return false;
		if (path[i] == '.' && (n == 1 || (n == 2 && path[i + 1] == '.')))
			return false;
		i += n + 1;
	}
	return true;
}

static bool name_is_plain(const char *name, size_t len)
{
	if (len == 0 || len > 63)
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] == '/' || (unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return false;
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/*
 * Words with dots between them. A zygote loads such a module outside of any sandbox, and some runtimes make a
 * path of it. So a name may not lead to a directory that others can write to, nor name a program to run.
 */
static bool name_is_module(const char *name, size_t len)
{
	if (len == 0 || len > 63 || strstr(name, "__main__"))
		return false;
	for (size_t i = 0; i < len; i++) {
		bool first = i == 0 || name[i - 1] == '.';
		bool letter = (name[i] >= 'A' && name[i] <= 'Z') ||
			      (name[i] >= 'a' && name[i] <= 'z') || name[i] == '_';

		if (!letter && (first || !((name[i] >= '0' && name[i] <= '9') || name[i] == '.')))
			return false;
	}
	return name[len - 1] != '.';
}

static const char *span_fault(const struct plan_view *v, enum span_kind kind, struct op_span span)
{
	const char *text;

	if (kind == SPAN_NONE)
		return span.len || span.offset ? "it has a span it must not have" : NULL;
	if (span.offset >= v->data_len || span.len >= v->data_len - span.offset)
		return "a span leaves the data";
	text = v->data + span.offset;
	if (text[span.len] != '\0')
		return "a span is not terminated";
	if (kind == SPAN_BYTES)
		return NULL;
	if (memchr(text, '\0', span.len))
		return "text holds a NUL";
	if ((kind == SPAN_TARGET || kind == SPAN_SOURCE) && !path_is_normal(text, span.len))
		return "a path is not absolute and in normal form";
	/* They have a meaning in overlay's option string. */
	if (kind == SPAN_SOURCE && strpbrk(text, ":,\\\""))
		return "a host path holds one of : , \\ \"";
	if (kind == SPAN_NAME && !name_is_plain(text, span.len))
		return "a name is empty, too long or not plain";
	if (kind == SPAN_MODULE && !name_is_module(text, span.len))
		return "that is not the name of a module";
	return NULL;
}

static const char *op_fault(const struct plan_view *v, const struct op *op)
{
	const struct op_info *info = &op_table[op->kind];
	const char *fault;

	if (op->value < 0 || op->value > info->value_max)
		return "its first number is out of bounds";
	if (op->value2 < 0 || op->value2 > info->value2_max)
		return "its second number is out of bounds";
	if (op->mode & ~0777U)
		return "its mode has more than permission bits";
	if (op->flags &
	    ~(OP_OPTIONAL | OP_READABLE | OP_WORKDIR | OP_SMALL | OP_WRITABLE | OP_EXACT))
		return "it has an unknown flag";
	if (op->flags & OP_EXACT && op->kind != OP_SHOW && op->kind != OP_WORKSPACE)
		return "it has an unknown flag";
	/* For tmpfs, 0 means no bound. */
	if ((op->kind == OP_ROOT || op->kind == OP_TMPFS || op->kind == OP_SCRATCH) &&
	    (op->value == 0 || op->value2 == 0))
		return "it is a file system without a bound";
	/* A remount of the root does not reach what is mounted over it. */
	if (op->kind == OP_WORKSPACE && op->b.len <= 1)
		return "a workspace cannot be the root";
	fault = span_fault(v, plan_span_a(op), op->a);
	return fault ? fault : span_fault(v, info->b, op->b);
}

/*
 * Before the pivot an absolute link leads to the host, so nothing may be made through one. A shown path may
 * turn out to be a link, which only the child can see, and a workspace may hold links that programs made.
 */
static bool target_may_pass_link(const struct plan_view *v, uint32_t index)
{
	const char *target = op_b(v, &v->ops[index]);

	for (uint32_t i = 0; i < index; i++) {
		const struct op *op = &v->ops[i];
		bool below = (op->kind == OP_SYMLINK || op->kind == OP_SHOW ||
			      op->kind == OP_WORKSPACE) &&
			     path_is_below(target, op_b(v, op));

		if (below && (op->kind == OP_SYMLINK || strcmp(target, op_b(v, op)) != 0))
			return true;
	}
	return false;
}

static bool wire_is_placed(const struct plan_view *v)
{
	return v->n_ops > 0 && v->ops[0].kind == OP_PLACE;
}

struct place_text {
	char text[64];
};

static struct place_text wire_place(const struct plan_view *v, const char *below)
{
	struct place_text place;

	(void)snprintf(place.text, sizeof(place.text), PLACE_DIR "/%lld%s",
		       (long long)v->ops[0].value, below);
	return place;
}

static bool wire_is_in_place(const struct plan_view *v, const char *path)
{
	return path_is_below(path, wire_place(v, "").text);
}

/*
 * Without namespaces, what the records name is the host's: files are made and may be written in the place only, and no other
 * filter keeps programs inside.
 */
static const char *place_fault(const struct plan_view *v, const struct op *op)
{
	switch (op->kind) {
	case OP_PLACE:
		return strcmp(op_b(v, op), wire_place(v, place_dirs[PLACE_WORK]).text) == 0
			       ? NULL
			       : "it is not where the place is";
	case OP_DIR:
	case OP_FILE:
		return wire_is_in_place(v, op_b(v, op)) ? NULL : "its target leaves the place";
	case OP_LANDLOCK:
		return op->value & ACCESS_WRITE && !wire_is_in_place(v, op_b(v, op))
			       ? "it may be written outside of the place"
		       : op->value & ACCESS_DEVICE && !path_is_below(op_b(v, op), "/dev")
			       ? "it is no device"
			       : NULL;
	case OP_SECCOMP:
		return op->value == FILTER_MINIMAL ? NULL : "it is another filter's";
	case OP_SCRATCH:
	case OP_RLIMIT:
	case OP_REQUIRE:
		return NULL;
	default:
		return "it needs a namespace";
	}
}

/* Checks the order: what the records before this one allow. */
static const char *order_fault(const struct plan_view *v, uint32_t index, const uint32_t counts[])
{
	const struct op *op = &v->ops[index];
	bool has_target = op_table[op->kind].b == SPAN_TARGET, pivoted = counts[OP_PIVOT] > 0;

	if (op_table[op->kind].phase == PHASE_LAUNCH) {
		const bool of_plan = op->kind == OP_STAGE || op->kind == OP_COLLECT ||
				     op->kind == OP_COMMIT;

		if (wire_is_placed(v) && (op->kind >= OP_WARM || op->kind == OP_COMMIT))
			return "it needs a namespace";
		if (op->kind >= OP_WARM)
			return counts[OP_STAGE] > 0 ? "it stands behind a stage" : NULL;
		return !of_plan && counts[OP_STAGE] == 0 ? "it belongs to no stage" : NULL;
	}
	if (counts[OP_SECCOMP] > 0)
		return "it stands after the filter";
	if (wire_is_placed(v))
		return place_fault(v, op);
	if (op->kind == OP_PLACE)
		return "it stands behind others";
	if (has_target && counts[OP_ROOT] == 0)
		return "it stands before the root";
	/* Directories may be made before and after the pivot. */
	if (op->kind != OP_DIR && op->kind != OP_PIVOT && (op->kind > OP_PIVOT) != pivoted)
		return pivoted ? "it stands after the pivot" : "it stands before the pivot";
	if (has_target && !pivoted && target_may_pass_link(v, index))
		return "its target may lie behind a link";
	return NULL;
}

static int wire_check_ops(const struct plan_view *v, struct error *err)
{
	static const enum op_kind full[] = { OP_ROOT,	  OP_SCRATCH, OP_SCRATCH_DIR, OP_PIVOT,
					     OP_LANDLOCK, OP_SECCOMP, OP_STAGE,	      OP_END },
				  placed[] = { OP_SCRATCH, OP_LANDLOCK, OP_SECCOMP, OP_STAGE,
					       OP_END };
	uint32_t counts[_OP_MAX] = { 0 };
	enum op_phase phase = PHASE_PREPARE;

	for (uint32_t i = 0; i < v->n_ops; i++) {
		const struct op *op = &v->ops[i];
		const char *fault;

		if (op->kind == OP_END || op->kind >= _OP_MAX)
			return wire_refuse(err, i, "unknown kind");
		if (op_table[op->kind].phase < phase)
			return wire_refuse(err, i, "prepare after launch");
		phase = op_table[op->kind].phase;
		fault = op_fault(v, op);
		if (!fault)
			fault = order_fault(v, i, counts);
		if (!fault && ++counts[op->kind] > op_table[op->kind].count_max)
			fault = "too many of its kind";
		if (fault)
			return wire_refuse(err, i, fault);
	}
	for (const enum op_kind *needed = wire_is_placed(v) ? placed : full; *needed; needed++)
		if (counts[*needed] == 0)
			return error_set(err, ERROR_INPUT, EBADMSG,
					 "the plan is refused: it lacks a record of kind %s",
					 op_table[*needed].name);
	return 0;
}

int plan_decode(const void *bytes, size_t len, struct plan_view *ret, struct error *err)
{
	struct plan_header h;
	struct plan_view v;
	int r;

	if (len < sizeof(h) || len > PLAN_BYTES_MAX)
		return error_set(err, ERROR_INPUT, EBADMSG, "the plan is refused: bad size");
	memcpy(&h, bytes, sizeof(h));
	if (memcmp(h.magic, plan_magic, sizeof(h.magic)) != 0 || h.reserved != 0)
		return error_set(err, ERROR_INPUT, EBADMSG, "the plan is refused: bad header");
	if (h.n_ops > PLAN_OPS_MAX || h.n_ops > (len - sizeof(h)) / sizeof(struct op) ||
	    h.data_len != len - sizeof(h) - (uint64_t)h.n_ops * sizeof(struct op))
		return error_set(err, ERROR_INPUT, EBADMSG, "the plan is refused: bad lengths");
	v.ops = (const struct op *)(const void *)((const char *)bytes + sizeof(h));
	v.n_ops = h.n_ops;
	v.data = (const char *)(v.ops + h.n_ops);
	v.data_len = h.data_len;
	r = wire_check_ops(&v, err);
	if (r < 0)
		return r;
	*ret = v;
	return 0;
}

static bool source_is_allowed(const char *path, const struct plan_ceilings *c)
{
	for (const char *const *top = c->sources; *top; top++)
		if (path_is_below(path, *top))
			return true;
	return false;
}

static const char *ceiling_fault(const struct plan_view *v, const struct op *op,
				 const struct plan_ceilings *c)
{
	if (op->kind == OP_PLACE && !c->places)
		return "this broker makes no sandboxes without namespaces";
	if (op->kind == OP_SHOW && !source_is_allowed(op_a(v, op), c))
		return "that host path may not be shown";
	if (op->kind == OP_LANDLOCK && op->value == ACCESS_READ && wire_is_placed(v) &&
	    !wire_is_in_place(v, op_b(v, op)) && !source_is_allowed(op_b(v, op), c))
		return "that host path may not be read";
	if (op->kind == OP_LIMIT && op->value2 > c->limits[op->value])
		return "a limit is above the broker's ceiling";
	if (op->kind == OP_SCRATCH && (op->value > c->disk_bytes || op->value2 > c->files))
		return "its disk space is above the broker's ceiling";
	/* Root and tmpfs are in memory: their sizes count. */
	if ((op->kind == OP_ROOT || op->kind == OP_TMPFS) &&
	    op->value > c->limits[STAGE_MEMORY_BYTES])
		return "a file system is above the broker's ceiling of memory";
	return NULL;
}

/* A limit of 0 is no limit: the two that protect the host must be present for every stage. */
static bool stage_is_bounded(const struct plan_view *v, uint32_t index)
{
	int64_t memory_bytes = 0, pids = 0;

	for (uint32_t i = index + 1; i < v->n_ops && v->ops[i].kind != OP_STAGE; i++) {
		const struct op *op = &v->ops[i];

		if (op->kind == OP_LIMIT && op->value == STAGE_MEMORY_BYTES)
			memory_bytes = op->value2;
		if (op->kind == OP_LIMIT && op->value == STAGE_PIDS)
			pids = op->value2;
	}
	return memory_bytes > 0 && pids > 0;
}

int plan_check(const struct plan_view *v, const struct plan_ceilings *c, struct error *err)
{
	for (uint32_t i = 0; i < v->n_ops; i++) {
		const struct op *op = &v->ops[i];
		const char *fault = ceiling_fault(v, op, c);

		if (!fault && op->kind == OP_STAGE && !stage_is_bounded(v, i))
			fault = "the stage has no limit of memory or of processes";
		if (fault)
			return wire_refuse(err, i, fault);
	}
	return 0;
}
