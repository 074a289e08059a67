/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See pool.h. One timer makes the missing cells a moment after a request took one, so that refilling does not
 * delay that request. Another timer looks every second for cells and zygotes that are idle, old or too many.
 */
#include "broker/warm/pool.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/memory.h"
#include "box/net.h"
#include "broker/warm/agent-blob.h"
#include "broker/warm/cell-set.h"
#include "broker/warm/reaper.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum {
	CELL_SETS_MAX = 64,
	ZYGOTE_SETS_MAX = 16,
	GUEST_SETS_MAX = 4, /* of them; one zygote each */
	REFILL_MS = 1,
	REFILL_START_MS =
		4, /* the usual run of a started runtime takes REFILL_MS: its reply goes first */
	TICK_MS = 1000,
	TARGET_FIRST = 2,
	WAIT_MS_MAX = 2000, /* a request's wait for a cell; then it makes its own sandbox */
	GROUPS_MS = 4000,   /* well before another atoll takes an empty group for abandoned */
	CELL_KERNEL_BYTES = 512 * 1024, /* kernel memory of a sandbox */
	AVAILABLE_SHARE = 16, /* of all memory: with less available, nothing is kept ready */
};

struct pool {
	struct zygote_host host;
	const struct warm_table *table;
	struct warm_bounds bounds;
	struct nets *nets;
	struct cell_set *cell_sets;
	struct zygote_set *zygote_sets;
	struct reaper *reaper;
	unsigned n_making;    /* cells being made that no request waits for */
	unsigned n_waiting;   /* cells claimed before they were READY */
	bool refilling;	      /* the timer is armed */
	bool pressed;	      /* the host is short of memory */
	int64_t memory_bytes; /* of READY cells that no run has claimed */
	struct source *refill, *tick;
};

static int64_t idle_ns(const struct pool *p)
{
	return (p->bounds.idle_ms ? p->bounds.idle_ms : WARM_IDLE_MS) * NS_PER_MS;
}

static int64_t cell_bytes(const struct cell *cell)
{
	return MAX(cell->base.memory_peak_bytes, 0) + CELL_KERNEL_BYTES;
}

/* An armed timer is left alone: if each request put it off, it would never fire. */
static void refill_in(struct pool *p, int64_t ms)
{
	if (p->refilling)
		return;
	p->refilling = true;
	source_set_time(p->refill, clock_now_ns() + ms * NS_PER_MS);
}

static void refill_soon(struct pool *p)
{
	refill_in(p, REFILL_MS);
}

/* Counts a cell of a set: a READY one by its memory, another one as being made. */
static void count_cell(struct pool *p, const struct cell *cell, int by)
{
	if (cell->ready_ns)
		p->memory_bytes += by * cell_bytes(cell);
	else
		p->n_making += (unsigned)by;
}

static void link_cell(struct pool *p, struct cell_set *s, struct cell *cell)
{
	cell_set_add(s, cell);
	count_cell(p, cell, 1);
}

static void unlink_cell(struct pool *p, struct cell_set *s, struct cell *cell)
{
	if (!cell_set_remove(s, cell))
		return;
	count_cell(p, cell, -1);
}

static struct cell_set *cell_set_of(struct pool *p, const struct cell *cell)
{
	for (struct cell_set *s = p->cell_sets; s; s = s->next)
		if (&s->shape == cell->shape)
			return s;
	return NULL;
}

/* The cell is READY or BROKEN. */
static void on_cell(void *data, struct cell *cell)
{
	struct pool *p = data;
	struct cell_set *s = cell_set_of(p, cell);

	refill_soon(p);
	if (!s)
		return;
	cell_set_note(s, cell->state != CELL_BROKEN);
	if (cell->claimed) {
		p->n_waiting--;
	} else if (cell->state == CELL_READY) {
		p->n_making--;
		count_cell(p, cell, 1);
	} else {
		unlink_cell(p, s, cell);
		reaper_take(p->reaper, cell_discard(cell));
	}
}

static int make_cell(struct pool *p, struct cell_set *s, bool warm_up, struct cell **ret)
{
	const struct cell_options options = {
		.shape = &s->shape,
		.host = &p->host,
		.nets = p->nets,
		.zygote = zygote_set_zygote(s->zygotes),
		.limits = s->limits,
		.warm_up = warm_up,
		.watcher = { on_cell, p },
	};
	struct error err = { 0 };
	int r;

	if (!options.zygote)
		return -EAGAIN;
	r = cell_new(&options, ret, &err);
	if (r < 0)
		cell_set_note(s, false);
	return r;
}

/* Room for the cells being made and one more, each as large as a READY one of this set. */
static bool has_room(const struct pool *p, const struct cell_set *s)
{
	const struct cell *made = s->cells;
	int64_t each;

	while (made && !made->ready_ns)
		made = made->next;
	each = made ? cell_bytes(made) : CELL_KERNEL_BYTES;
	return p->memory_bytes + (int64_t)(p->n_making + 1) * each <= p->bounds.memory_bytes;
}

static bool wants_more(const struct pool *p, const struct cell_set *s)
{
	return s->n_cells < s->target && cell_set_may_grow(s) && !p->pressed && has_room(p, s);
}

static int on_refill(void *data, uint32_t events)
{
	struct pool *p = data;
	unsigned most = MAX((unsigned)p->host.sandboxes->facts.cores, 1U);

	(void)events;
	p->refilling = false;
	/* Requests that wait for a cell come first: cells are made ahead while a processor is left for it. */
	if (p->n_waiting >= most)
		return 0;
	for (struct cell_set *s = p->cell_sets; s && p->n_making < most; s = s->next) {
		struct cell *cell;

		if (!wants_more(p, s) || make_cell(p, s, true, &cell) < 0)
			continue;
		link_cell(p, s, cell);
		/* One cell at a time: requests that came in meanwhile go first. */
		refill_soon(p);
		break;
	}
	return 0;
}

static void drop_cells(struct pool *p, struct cell_set *s, unsigned keep)
{
	while (s->n_cells > keep) {
		struct cell *cell = s->cells;

		unlink_cell(p, s, cell);
		reaper_take(p->reaper, cell_discard(cell));
	}
}

static void cell_set_free(struct pool *p, struct cell_set *s)
{
	for (struct cell_set **at = &p->cell_sets; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	drop_cells(p, s, 0);
	shape_done(&s->shape);
	free(s);
}

/* Halves an idle set once per idle time: a pause of a few seconds does not cost all its cells. */
static void shrink(struct pool *p, struct cell_set *s, int64_t now_ns)
{
	if (now_ns - MAX(s->used_ns, s->shrunk_ns) < idle_ns(p))
		return;
	s->shrunk_ns = now_ns;
	s->failures = 0;
	s->target /= 2;
	drop_cells(p, s, s->target);
	if (s->target == 0 && p->n_waiting == 0)
		cell_set_free(p, s);
}

static int on_pool_tick(void *data, uint32_t events)
{
	struct pool *p = data;
	int64_t now_ns = clock_now_ns();

	(void)events;
	p->pressed = memory_is_short(AVAILABLE_SHARE);
	for (struct cell_set *s = p->cell_sets, *next; s; s = next) {
		next = s->next;
		if (p->pressed || p->memory_bytes > p->bounds.memory_bytes)
			drop_cells(p, s, s->n_cells / 2);
		shrink(p, s, now_ns);
	}
	group_reuse_tidy(&p->host.sandboxes->groups, now_ns - GROUPS_MS * NS_PER_MS);
	/* A zygote takes longest to make, so it ends last. */
	for (struct zygote_set *f = p->zygote_sets; f; f = f->next)
		zygote_set_tick(f, now_ns - 4 * idle_ns(p));
	refill_soon(p);
	source_set_time(p->tick, now_ns + TICK_MS * NS_PER_MS);
	return 0;
}

static void on_zygote_set(void *data)
{
	refill_soon(data);
}

static const struct warm_runtime *find_runtime(const struct pool *p, const char *name)
{
	for (size_t i = 0; p->table && i < p->table->n_runtimes; i++)
		if (strcmp(p->table->runtimes[i].name, name) == 0)
			return &p->table->runtimes[i];
	return NULL;
}

static bool zygote_set_is_used(const struct pool *p, const struct zygote_set *f)
{
	for (const struct cell_set *s = p->cell_sets; s; s = s->next)
		if (s->zygotes == f)
			return true;
	return false;
}

/*
 * Makes room for one more zygote set, if need be by ending one that no cell set uses. Only a few sets
 * (GUEST_SETS_MAX) may have modules that callers chose. Such a set takes only another such set's place, so no
 * caller pushes out the zygotes that all callers use.
 */
static bool make_pool_room(struct pool *p, bool guest)
{
	struct zygote_set **victim = NULL;
	unsigned n = 0, n_guests = 0;

	for (struct zygote_set **at = &p->zygote_sets; *at; at = &(*at)->next, n++) {
		n_guests += (*at)->guest;
		if (!zygote_set_is_used(p, *at) && (!guest || (*at)->guest))
			victim = at;
	}
	if (n < ZYGOTE_SETS_MAX && (!guest || n_guests < GUEST_SETS_MAX))
		return true;
	if (victim) {
		struct zygote_set *f = *victim;

		*victim = f->next;
		(void)zygote_set_free(f);
	}
	return victim != NULL;
}

static struct zygote_set *find_zygote_set(struct pool *p, const struct shape *shape)
{
	bool bare = shape->kind != WARM_FORK;
	const struct warm_runtime *runtime = bare ? NULL : find_runtime(p, shape->runtime);
	const char *const none[] = { NULL };
	const char *const *modules = bare ? none : shape->modules;
	struct zygote_set *f;

	if (!bare && !runtime)
		return NULL;
	for (f = p->zygote_sets; f; f = f->next)
		if (zygote_set_is(f, runtime, modules)) {
			zygote_set_serve(f, shape);
			return f;
		}
	if (!make_pool_room(p, zygote_set_would_be_guest(runtime, modules)) ||
	    zygote_set_new(&f, &p->host, &p->bounds, runtime, modules) < 0)
		return NULL;
	f->on_change = on_zygote_set;
	f->data = p;
	zygote_set_serve(f, shape);
	f->next = p->zygote_sets;
	p->zygote_sets = f;
	return f;
}

static void evict_oldest(struct pool *p)
{
	struct cell_set *oldest = NULL;
	unsigned n = 0;

	for (struct cell_set *s = p->cell_sets; s; s = s->next, n++)
		if (!oldest || s->used_ns < oldest->used_ns)
			oldest = s;
	/* A cell that a request waits for points to the shape in its set. */
	if (n >= CELL_SETS_MAX && p->n_waiting == 0)
		cell_set_free(p, oldest);
}

static struct cell_set *new_cell_set(struct pool *p, const struct plan_view *plan,
				     enum warm_kind kind)
{
	struct cell_set *s;
	unsigned n = 0;

	evict_oldest(p);
	for (s = p->cell_sets; s; s = s->next)
		n++;
	s = n < CELL_SETS_MAX ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return NULL;
	if (shape_init(&s->shape, plan, kind) < 0) {
		free(s);
		return NULL;
	}
	if (shape_read_runner(&s->shape, p->host.runners) == 0)
		s->zygotes = find_zygote_set(p, &s->shape);
	if (!s->zygotes) {
		shape_done(&s->shape);
		free(s);
		return NULL;
	}
	s->next = p->cell_sets;
	p->cell_sets = s;
	return s;
}

static struct cell_set *find_cell_set(struct pool *p, const struct plan_view *plan,
				      enum warm_kind kind)
{
	uint64_t hash = shape_hash(plan, kind);

	for (struct cell_set *s = p->cell_sets; s; s = s->next)
		if (s->shape.hash == hash && shape_fits(&s->shape, plan, kind))
			return s;
	return new_cell_set(p, plan, kind);
}

/* Makes no cell with a started runtime: the request would wait as long as without a cell. */
static struct cell *make_for_request(struct pool *p, struct cell_set *s)
{
	struct cell *cell;

	if (s->shape.kind == WARM_START || !cell_set_may_grow(s) ||
	    make_cell(p, s, false, &cell) < 0)
		return NULL;
	if (p->n_waiting > 0)
		zygote_set_widen(s->zygotes);
	return cell;
}

static struct cell *claim(struct pool *p, const struct plan_view *plan, enum warm_kind kind)
{
	struct cell_set *s = find_cell_set(p, plan, kind);
	struct cell *cell;

	if (!s)
		return NULL;
	s->used_ns = clock_now_ns();
	plan_stage_limits(plan, 0, s->limits);
	cell = cell_set_best(s);
	/* If the set is only a substitute for one of the request's own kind, it does not grow. */
	if (kind == plan_warm_kind(plan) && (!cell || cell->state != CELL_READY))
		s->target = MIN(MAX(s->target * 2, (unsigned)TARGET_FIRST), p->bounds.spares);
	if (cell)
		unlink_cell(p, s, cell);
	else
		cell = make_for_request(p, s);
	return cell;
}

struct cell *pool_claim(struct pool *p, const struct plan_view *plan)
{
	enum warm_kind kind = plan_warm_kind(plan);
	struct cell *cell;

	/*
	 * Without privilege, the clone itself mounts the workspace and must know its place. A zygote's clone
	 * does not know it.
	 */
	if (plan_find(plan, OP_WORKSPACE, -1) && !p->host.sandboxes->facts.privileged)
		return NULL;
	/* The relay's listening sockets are made in a namespace that is the sandbox's own. */
	if (plan_find(plan, OP_RELAY, -1))
		return NULL;
	cell = claim(p, plan, kind);
	if (!cell && kind != WARM_NONE)
		cell = claim(p, plan, WARM_NONE);
	refill_in(p, cell && kind == WARM_START ? REFILL_START_MS : REFILL_MS);
	if (!cell)
		return NULL;
	cell->claimed = true;
	if (cell->state != CELL_READY) {
		p->n_waiting++;
		cell_hurry(cell, WAIT_MS_MAX);
	}
	return cell;
}

void pool_reap(struct pool *p, struct sandbox *sb)
{
	reaper_take(p->reaper, sb);
}

void pool_discard(struct pool *p, struct cell *cell)
{
	if (cell->state != CELL_READY && cell->state != CELL_BROKEN)
		p->n_waiting--;
	reaper_take(p->reaper, cell_discard(cell));
}

static void pool_cleanup(struct pool **p)
{
	(void)pool_free(*p);
}

int pool_new(const struct pool_options *options, struct pool **ret)
{
	_cleanup_(pool_cleanup) struct pool *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->host = (struct zygote_host){
		.runners = options->table ? options->table->runners : NULL,
		.sandboxes = options->sandboxes,
		.loop = options->loop,
		.agent_fd = fd_sealed_program("agent", agent_blob,
					      (size_t)(agent_blob_end - agent_blob)),
		.bare_fd = fd_sealed_program("bare-zygote", bare_zygote_blob,
					     (size_t)(bare_zygote_blob_end - bare_zygote_blob))
	};
	p->table = options->table;
	p->bounds = options->bounds;
	if (p->host.agent_fd < 0 || p->host.bare_fd < 0)
		return MIN(p->host.agent_fd, p->host.bare_fd);
	if (options->sandboxes->facts.privileged)
		p->nets = nets_new();
	options->sandboxes->groups.on = true;
	r = reaper_new(options->loop, &p->reaper);
	p->host.reaper = p->reaper;
	if (r == 0)
		r = loop_add_timer(options->loop, INT64_MAX, (struct handler){ on_refill, p },
				   &p->refill);
	if (r == 0)
		r = loop_add_timer(options->loop, clock_now_ns() + TICK_MS * NS_PER_MS,
				   (struct handler){ on_pool_tick, p }, &p->tick);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	/* Dying sandboxes leave the background as well: no request is left that should come first. */
	sandbox_host_lift(p->host.sandboxes);
	p->bounds.spares = 0;
	for (struct cell_set *s = p->cell_sets; s; s = s->next) {
		s->target = 0;
		drop_cells(p, s, 0);
	}
}

struct pool *pool_free(struct pool *p)
{
	if (!p)
		return NULL;
	p->refill = source_free(p->refill);
	p->tick = source_free(p->tick);
	while (p->cell_sets) {
		struct cell_set *s = p->cell_sets;

		p->cell_sets = s->next;
		for (struct cell *cell = s->cells, *next; cell; cell = next) {
			next = cell->next;
			reaper_take(p->reaper, cell_discard(cell));
		}
		shape_done(&s->shape);
		free(s);
	}
	while (p->zygote_sets) {
		struct zygote_set *f = p->zygote_sets;

		p->zygote_sets = f->next;
		(void)zygote_set_free(f);
	}
	zygote_host_done(&p->host);
	p->reaper = reaper_free(p->reaper);
	p->nets = nets_free(p->nets);
	p->host.agent_fd = fd_close(p->host.agent_fd);
	p->host.bare_fd = fd_close(p->host.bare_fd);
	free(p);
	return NULL;
}
