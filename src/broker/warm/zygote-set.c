/* SPDX-License-Identifier: Apache-2.0 */
/* See zygote-set.h. */
#include "broker/warm/zygote-set.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 500, RETRY_SHIFT_MAX = 2 };

static void on_zygote(void *data, struct zygote *z)
{
	struct zygote_slot *slot = data;
	struct zygote_set *f = slot->set;

	if (z->state == ZYGOTE_IS_READY) {
		zygote_retire(slot->serving);
		slot->serving = z;
		slot->coming = NULL;
		f->failures = 0;
	} else if (z == slot->serving) {
		/* The zygote has served, so its runtime works: the next one may start at once. */
		slot->serving = NULL;
		zygote_retire(z);
	} else {
		slot->coming = NULL;
		zygote_retire(z);
		f->retry_ns = clock_now_ns() +
			      ((int64_t)RETRY_MS << MIN(f->failures, (unsigned)RETRY_SHIFT_MAX)) *
				      NS_PER_MS;
		f->failures++;
	}
	f->on_change(f->data);
}

static void start(struct zygote_slot *slot)
{
	struct zygote_set *f = slot->set;
	const struct zygote_options options = { .runtime = f->runtime,
						.modules = (const char *const *)f->modules,
						.guest = f->guest,
						.shape = f->shape.tree ? &f->shape : NULL,
						.on_change = on_zygote,
						.data = slot };

	if (slot->coming || clock_now_ns() < f->retry_ns)
		return;
	if (zygote_start(f->host, &options, &slot->coming) < 0) {
		slot->coming = NULL;
		f->retry_ns = clock_now_ns() + RETRY_MS * NS_PER_MS;
	}
}

static void vacate(struct zygote_slot *slot)
{
	zygote_retire(slot->serving);
	zygote_retire(slot->coming);
	slot->serving = slot->coming = NULL;
}

static char **copy_words(const char *const *words)
{
	size_t n = 0;
	char **copy;

	while (words[n])
		n++;
	copy = calloc(n + 1, sizeof(char *));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(words[i]);
		if (copy[i])
			continue;
		while (i-- > 0)
			free(copy[i]);
		free(copy);
		return NULL;
	}
	return copy;
}

static bool is_of_tiers(const struct warm_runtime *runtime, const char *module)
{
	for (const char *const *const *tier = runtime->tiers; tier && *tier; tier++)
		for (const char *const *m = *tier; *m; m++)
			if (strcmp(*m, module) == 0)
				return true;
	return false;
}

bool zygote_set_would_be_guest(const struct warm_runtime *runtime, const char *const *modules)
{
	for (; *modules; modules++)
		if (!is_of_tiers(runtime, *modules))
			return true;
	return false;
}

int zygote_set_new(struct zygote_set **ret, struct zygote_host *host,
		   const struct warm_bounds *bounds, const struct warm_runtime *runtime,
		   const char *const *modules)
{
	struct zygote_set *f = calloc(1, sizeof(*f));

	if (f)
		f->modules = copy_words(modules);
	if (!f || !f->modules) {
		free(f);
		return -ENOMEM;
	}
	f->host = host;
	f->bounds = bounds;
	f->runtime = runtime;
	f->n_slots = 1;
	f->guest = zygote_set_would_be_guest(runtime, modules);
	for (size_t i = 0; i < ZYGOTE_SLOTS; i++)
		f->slots[i].set = f;
	*ret = f;
	return 0;
}

struct zygote_set *zygote_set_free(struct zygote_set *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < ZYGOTE_SLOTS; i++)
		vacate(&f->slots[i]);
	if (f->shape.tree)
		shape_done(&f->shape);
	for (char **m = f->modules; *m; m++)
		free(*m);
	free(f->modules);
	free(f);
	return NULL;
}

bool zygote_set_is(const struct zygote_set *f, const struct warm_runtime *runtime,
		   const char *const *modules)
{
	size_t i = 0;

	if (f->runtime != runtime)
		return false;
	for (; f->modules[i] && modules[i]; i++)
		if (strcmp(f->modules[i], modules[i]) != 0)
			return false;
	return !f->modules[i] && !modules[i];
}

void zygote_set_serve(struct zygote_set *f, const struct shape *shape)
{
	if (f->shape.tree || !shape->tree)
		return;
	if (shape_init(&f->shape, &shape->view, shape->kind) < 0)
		f->shape.tree = 0;
	else
		f->sources = plan_tree_sources(&f->shape.view);
}

/*
 * Whether the zygote may serve on. Its children have its state in common, so their number and its age are
 * bounded. Its skeleton must be up to date.
 */
static bool is_fresh(const struct zygote_set *f, const struct zygote *z)
{
	uint32_t forks = f->bounds->forks ? f->bounds->forks : WARM_FORKS;
	int64_t age_ms = f->bounds->age_ms ? f->bounds->age_ms : WARM_AGE_MS;

	return z->forks < forks && clock_now_ns() - z->born_ns < age_ms * NS_PER_MS &&
	       (!f->host->sandboxes->facts.privileged ||
		(z->tree == f->shape.tree && z->sources == f->sources));
}

/* Starts the successors of used-up zygotes. An old zygote serves until its successor is READY. */
static void renew(struct zygote_set *f)
{
	for (unsigned i = 0; i < f->n_slots; i++)
		if (!f->slots[i].serving || !is_fresh(f, f->slots[i].serving))
			start(&f->slots[i]);
}

struct zygote *zygote_set_zygote(struct zygote_set *f)
{
	f->used_ns = clock_now_ns();
	renew(f);
	for (unsigned i = 0; i < f->n_slots; i++) {
		struct zygote *z = f->slots[f->turn++ % f->n_slots].serving;

		if (z)
			return z;
	}
	return NULL;
}

void zygote_set_widen(struct zygote_set *f)
{
	unsigned most = MIN(2 * (unsigned)MAX(f->host->sandboxes->facts.cores, 1),
			    (unsigned)ZYGOTE_SLOTS);

	f->wide_ns = clock_now_ns();
	if (!f->guest && f->n_slots < most && f->slots[f->n_slots - 1].serving)
		f->n_slots++;
}

static unsigned zygote_set_count(const struct zygote_set *f)
{
	unsigned n = 0;

	for (size_t i = 0; i < ZYGOTE_SLOTS; i++)
		n += f->slots[i].serving != NULL;
	return n;
}

/*
 * A skeleton is not used any more when its files have changed: until a new zygote has a new one, sandboxes are
 * made without.
 */
static void look_at_sources(struct zygote_set *f)
{
	f->sources = plan_tree_sources(&f->shape.view);
	for (size_t i = 0; i < ZYGOTE_SLOTS; i++)
		if (f->slots[i].serving && f->slots[i].serving->sources != f->sources)
			f->slots[i].serving->skeleton = false;
}

void zygote_set_tick(struct zygote_set *f, int64_t idle_since_ns)
{
	if (f->shape.tree)
		look_at_sources(f);
	if (f->wide_ns < idle_since_ns)
		f->n_slots = 1;
	for (unsigned i = f->n_slots; i < ZYGOTE_SLOTS; i++)
		vacate(&f->slots[i]);
	if (f->used_ns < idle_since_ns)
		vacate(&f->slots[0]);
	else if (zygote_set_count(f) > 0)
		renew(f);
}
