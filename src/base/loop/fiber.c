/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See fiber.h. Each fiber has a timer in its loop. Waking a fiber makes its timer due, so a fiber always runs
 * from the loop, never inside the function that woke it, and no list of ready fibers is needed. Stacks are
 * mappings with a guard page below. The struct is at the top of its own stack. The stacks of ended fibers are
 * kept for new ones, up to a bound.
 */
#include "base/loop/fiber.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#ifdef FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
enum { STACK_BYTES = 4 * FIBER_STACK_BYTES };
#else
enum { STACK_BYTES = FIBER_STACK_BYTES };
#endif

enum { GUARD_BYTES = 64 << 10 }; /* at least one page on every architecture */

/* The stack as AddressSanitizer knows it, and the fiber as ThreadSanitizer knows it. */
struct extent {
	const void *bottom;
	size_t size;
	void *fake;
	void *thread;
};

struct fiber {
	ucontext_t here, back; /* where it waits; where its resumer goes on */
	struct fiber *resumer; /* NULL: it was resumed from a plain stack */
	struct fiber *next;    /* in the list of kept stacks */
	struct source *timer;
	void (*fn)(void *data);
	void *data;
	char *map; /* guard and stack */
	bool waiting, woken, over;
	unsigned visits;
	struct extent own, other;
};

static _Thread_local struct fiber *current, *kept;
static _Thread_local size_t n_kept, n_alive;

/* Before a switch to another stack, and after the switch that comes back (or starts a fiber). */
static void leaving(struct extent *from, const struct extent *to, bool for_good)
{
#ifdef FIBER_ASAN
	__sanitizer_start_switch_fiber(for_good ? NULL : &from->fake, to->bottom, to->size);
#elif defined(__SANITIZE_THREAD__)
	(void)from;
	(void)for_good;
	__tsan_switch_to_fiber(to->thread, 0);
#else
	(void)from;
	(void)to;
	(void)for_good;
#endif
}

static void arrived(const struct extent *at, struct extent *ret_from)
{
#ifdef FIBER_ASAN
	const void *bottom;
	size_t size;

	__sanitizer_finish_switch_fiber(at->fake, &bottom, &size);
	if (ret_from)
		*ret_from =
			(struct extent){ .bottom = bottom, .size = size, .fake = ret_from->fake };
#else
	(void)at;
	(void)ret_from;
#endif
}

static void thread_begin(struct fiber *f)
{
#ifdef __SANITIZE_THREAD__
	f->own.thread = __tsan_create_fiber(0);
#else
	(void)f;
#endif
}

static void thread_end(struct fiber *f)
{
#ifdef __SANITIZE_THREAD__
	__tsan_destroy_fiber(f->own.thread);
#else
	(void)f;
#endif
}

static void stack_free(struct fiber *f)
{
	(void)munmap(f->map, GUARD_BYTES + STACK_BYTES);
}

static struct fiber *stack_new(void)
{
	const size_t room = (sizeof(struct fiber) + 63) & ~(size_t)63;
	struct fiber *f = kept;
	char *map;

	if (f) {
		kept = f->next;
		n_kept--;
		return f;
	}
	map = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	if (mprotect(map + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE) < 0) {
		(void)munmap(map, GUARD_BYTES + STACK_BYTES);
		return NULL;
	}
	f = (struct fiber *)(void *)(map + GUARD_BYTES + STACK_BYTES - room);
	f->map = map;
	f->own = (struct extent){ .bottom = map + GUARD_BYTES,
				  .size = (size_t)((char *)f - (map + GUARD_BYTES)) };
	return f;
}

static void stack_keep(struct fiber *f)
{
	if (n_kept >= FIBER_STACKS_KEPT) {
		stack_free(f);
		return;
	}
	f->next = kept;
	kept = f;
	n_kept++;
}

void fiber_trim(void)
{
	while (kept) {
		struct fiber *f = kept;

		kept = f->next;
		stack_free(f);
	}
	n_kept = 0;
}

static void enter_fiber(void)
{
	struct fiber *f = current;

	arrived(&f->own, &f->other);
	f->fn(f->data);
	f->over = true;
	leaving(&f->own, &f->other, true);
	(void)setcontext(&f->back);
}

static void resume(struct fiber *f)
{
	struct extent mine = { 0 };

#ifdef __SANITIZE_THREAD__
	f->other.thread = __tsan_get_current_fiber();
#endif
	f->resumer = current;
	current = f;
	leaving(&mine, &f->own, false);
	(void)swapcontext(&f->back, &f->here);
	arrived(&mine, NULL);
	current = f->resumer;
	if (!f->over)
		return;
	f->timer = source_free(f->timer);
	n_alive--;
	thread_end(f);
	stack_keep(f);
}

static int on_due(void *data, uint32_t events)
{
	(void)events;
	resume(data);
	return 0;
}

/* Its own function: getcontext() may return twice, so a compiler may keep little across the call. */
static int set_out(struct fiber *f)
{
	if (getcontext(&f->here) < 0)
		return -errno;
	f->here.uc_stack.ss_sp = f->map + GUARD_BYTES;
	f->here.uc_stack.ss_size = f->own.size;
	f->here.uc_link = NULL;
	makecontext(&f->here, enter_fiber, 0);
	return 0;
}

int fiber_start(struct loop *loop, void (*fn)(void *data), void *data)
{
	struct fiber *f = stack_new();
	int r;

	if (!f)
		return -ENOMEM;
	f->fn = fn;
	f->data = data;
	f->waiting = f->woken = f->over = false;
	f->visits = 0;
	f->own.fake = NULL;
	r = loop_add_timer(loop, INT64_MAX, (struct handler){ on_due, f }, &f->timer);
	if (r >= 0) {
		r = set_out(f);
		if (r < 0)
			f->timer = source_free(f->timer);
	}
	if (r < 0) {
		stack_keep(f);
		return r;
	}
	n_alive++;
	thread_begin(f);
	resume(f);
	return 0;
}

struct fiber *fiber_current(void)
{
	return current;
}

unsigned fiber_visit(struct fiber *f)
{
	return f->visits++;
}

size_t fiber_count(void)
{
	return n_alive;
}

static void rest_until(struct fiber *f, int64_t at_ns)
{
	assert(f && !f->waiting);
	f->waiting = true;
	source_set_time(f->timer, at_ns);
	leaving(&f->own, &f->other, false);
	(void)swapcontext(&f->here, &f->back);
	arrived(&f->own, &f->other);
	f->waiting = false;
}

void fiber_wait_until(int64_t at_ns)
{
	if (!current->woken)
		rest_until(current, at_ns);
	current->woken = false;
}

void fiber_wait(void)
{
	fiber_wait_until(INT64_MAX);
}

void fiber_yield(void)
{
	/*
	 * Not 0, which would put this fiber before all other due timers. A pending wake-up stays for the next
	 * wait.
	 */
	rest_until(current, clock_now_ns());
}

void fiber_wake(struct fiber *f)
{
	assert(!f->over);
	f->woken = true;
	if (f->waiting)
		source_set_time(f->timer, 0);
}

void fiber_go_on(struct fiber *f)
{
	assert(!current && f->waiting && !f->over);
	f->woken = true;
	source_set_time(f->timer, INT64_MAX);
	resume(f);
}
