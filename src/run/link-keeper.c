/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See link-keeper.h. Everything happens in callbacks of one timer and one port. Links are closed only from the
 * timer, because a link that has just broken may still be notifying its other ports. The timer runs on the
 * loop's own stack, where a broker must be forked.
 */
#include "run/link-keeper.h"

#include "base/clock.h"
#include "base/loop/fiber-queue.h"

#include <string.h>

enum {
	HELLO_MS = 5000,
	AGAIN_MS_MIN = 5,
	AGAIN_MS_MAX = 100,
	LINGER_MS = 20,	  /* between two checks of links that are still in use */
	AWAIT_MS = 15000, /* the longest wait of a run for a broker */
};

struct old_link {
	struct old_link *next;
	struct link *link;
};

struct link_keeper {
	struct atoll *atoll;
	struct link_keeper_watch watch;
	struct source *timer;
	struct link *link; /* the newest, or NULL; atoll.link after its HELLO */
	struct link_port port;
	struct old_link *old;
	struct old_link *next_old;  /* allocated ahead, so that putting a link aside cannot fail */
	struct fiber_queue waiters; /* runs that need a link */
	uint64_t generation;
	bool met;
	int64_t again_ms;
	int64_t hello_until_ns;
};

static void step_at(struct link_keeper *k, int64_t ms)
{
	source_set_time(k->timer, clock_now_ns() + ms * NS_PER_MS);
}

/* The newest link becomes an old one, and a new connection is tried at once. */
static void put_aside(struct link_keeper *k)
{
	struct old_link *o = TAKE_PTR(k->next_old);
	bool was_up = k->atoll->link == k->link;

	link_detach(k->link, &k->port);
	*o = (struct old_link){ .next = k->old, .link = TAKE_PTR(k->link) };
	k->old = o;
	k->atoll->link = NULL;
	step_at(k, was_up ? 0 : k->again_ms);
	if (was_up && k->watch.on_broker)
		k->watch.on_broker(k->watch.data, false);
}

static int on_link_message(void *data, struct link_message *m)
{
	struct link_keeper *k = data;
	struct atoll *a = k->atoll;

	if (!m) {
		put_aside(k);
		return 0;
	}
	if (m->record.kind != RECORD_HELLO || a->link)
		return 0;
	/* HELLO has arrived, so this does not wait. */
	if (link_hello(k->link, &a->facts) < 0)
		return 0;
	a->facts.front = a->front;
	a->probed = k->met = true;
	a->warm = link_is_shared(k->link) ? link_is_warm(k->link) : a->broker.warm;
	a->link = k->link;
	k->again_ms = AGAIN_MS_MIN;
	source_set_time(k->timer, INT64_MAX);
	if (k->old)
		step_at(k, LINGER_MS);
	fiber_queue_wake(&k->waiters);
	if (k->watch.on_broker)
		k->watch.on_broker(k->watch.data, true);
	return 0;
}

static int obtain(struct link_keeper *k)
{
	struct atoll *a = k->atoll;
	struct error err = { 0 };
	int r;

	if (!k->next_old)
		k->next_old = malloc(sizeof(*k->next_old));
	if (!k->next_old)
		return -ENOMEM;
	r = a->broker.path ? link_connect(a->broker.path, &k->link)
			   : broker_start(&a->broker, &k->link, &err);
	if (r < 0)
		return r;
	k->generation++;
	k->port = (struct link_port){ .on_message = on_link_message, .data = k };
	link_attach_keeper(k->link, &k->port);
	r = link_watch(k->link, a->loop);
	if (r < 0) {
		link_detach(k->link, &k->port);
		k->link = link_close(k->link);
	}
	return r;
}

static void close_old(struct link_keeper *k)
{
	for (struct old_link **at = &k->old; *at;) {
		struct old_link *o = *at;

		if (!link_is_idle(o->link)) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		(void)link_close(o->link);
		free(o);
	}
}

static int on_step(void *data, uint32_t events)
{
	struct link_keeper *k = data;
	int64_t now_ns = clock_now_ns();

	(void)events;
	close_old(k);
	if (!k->link && obtain(k) == 0)
		k->hello_until_ns = now_ns + HELLO_MS * NS_PER_MS;
	if (!k->link) {
		step_at(k, k->again_ms);
		k->again_ms = MIN(k->again_ms * 2, (int64_t)AGAIN_MS_MAX);
	} else if (!k->atoll->link && now_ns >= k->hello_until_ns) {
		k->again_ms = AGAIN_MS_MAX;
		link_give_up(k->link); /* this puts it aside */
	} else if (k->old) {
		step_at(k, LINGER_MS);
	} else if (!k->atoll->link) {
		source_set_time(k->timer, k->hello_until_ns);
	}
	return 0;
}

int link_keeper_new(struct atoll *a, struct link_keeper_watch watch, struct error *err)
{
	struct link_keeper *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return error_oom(err);
	k->atoll = a;
	k->watch = watch;
	k->again_ms = AGAIN_MS_MIN;
	r = loop_add_timer(a->loop, 0, (struct handler){ on_step, k }, &k->timer);
	if (r < 0) {
		free(k);
		return error_set(err, ERROR_INTERNAL, -r, "cannot watch for a sandbox broker: %s",
				 strerror(-r));
	}
	a->keeper = k;
	return 0;
}

struct link_keeper *link_keeper_free(struct link_keeper *k)
{
	if (!k)
		return NULL;
	k->watch.on_broker = NULL;
	if (k->link)
		put_aside(k);
	close_old(k);
	k->timer = source_free(k->timer);
	free(k->next_old);
	k->atoll->keeper = NULL;
	free(k);
	return NULL;
}

bool link_keeper_has_met(const struct link_keeper *k)
{
	return k->met;
}

uint64_t link_keeper_generation(const struct link_keeper *k)
{
	return k->generation;
}

void link_keeper_retire(struct link_keeper *k, uint64_t generation)
{
	if (k->link && k->generation == generation)
		put_aside(k);
}

int link_keeper_await(struct link_keeper *k, const bool *give_up, struct error *err)
{
	const struct patience patience = { give_up, clock_now_ns() + AWAIT_MS * NS_PER_MS };

	while (!k->atoll->link || link_is_broken(k->atoll->link)) {
		if (fiber_queue_wait(&k->waiters, &patience))
			continue;
		if (give_up && *give_up)
			return error_set(err, ERROR_INTERNAL, ECANCELED,
					 "it was cancelled before it began");
		return error_set(err, ERROR_LOST, EHOSTUNREACH,
				 "no sandbox broker answers; try again later");
	}
	return 0;
}
