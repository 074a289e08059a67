/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See worker.h. Tasks are on the stacks of the fibers that wait for them. The threads share two lists under one
 * lock: tasks to do and tasks done. The worker's thread blocks all signals; the loop's thread handles them.
 */
#include "base/loop/worker.h"

#include "base/fd.h"
#include "base/loop/fiber.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The stack is deep enough for a parser that recurses as deep as documents may nest; sanitizers need more. */
enum { STACK_BYTES = 4 << 20, NICE_BEHIND = 5, TIDY_AFTER_S = 1 };

struct worker_task {
	struct worker_task *next;
	void (*fn)(void *data);
	void *data;
	struct fiber *fiber; /* the fiber that waits */
	bool done;	     /* only the loop's thread reads and writes it */
};

struct tasks {
	struct worker_task *first, *last;
};

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct tasks todo, done;
	bool stop;
	int event_fd;
	struct source *source;
};

static _Thread_local struct worker *own;

static void tasks_add(struct tasks *list, struct worker_task *t)
{
	t->next = NULL;
	if (list->last)
		list->last->next = t;
	else
		list->first = t;
	list->last = t;
}

static void tasks_add_first(struct tasks *list, struct worker_task *t)
{
	t->next = list->first;
	list->first = t;
	if (!list->last)
		list->last = t;
}

static struct worker_task *tasks_take(struct tasks *list)
{
	struct worker_task *t = list->first;

	if (!t)
		return NULL;
	list->first = t->next;
	if (!list->first)
		list->last = NULL;
	return t;
}

/* Waits until there is a task; the lock is held. True: with_limit's time passed without one. */
static bool wait_for_task(struct worker *w, bool with_limit)
{
	struct timespec until;

	if (!with_limit)
		return pthread_cond_wait(&w->changed, &w->lock) != 0;
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TIDY_AFTER_S;
	return pthread_cond_timedwait(&w->changed, &w->lock, &until) == ETIMEDOUT;
}

/* Large tasks fragment the heap. When the worker is idle, free memory goes back to the system. */
static void tidy(struct worker *w)
{
	(void)pthread_mutex_unlock(&w->lock);
	(void)malloc_trim(0);
	(void)pthread_mutex_lock(&w->lock);
}

static void *work(void *data)
{
	struct worker *w = data;
	const uint64_t one = 1;
	bool untidy = false;

	/* Lowers this thread's priority only: all clients wait for the loop's thread, so it goes first. */
	(void)setpriority(PRIO_PROCESS, 0, NICE_BEHIND);
	(void)pthread_mutex_lock(&w->lock);
	for (;;) {
		struct worker_task *t = tasks_take(&w->todo);

		if (!t && w->stop)
			break;
		if (!t) {
			if (wait_for_task(w, untidy)) {
				untidy = false;
				tidy(w);
			}
			continue;
		}
		untidy = true;
		(void)pthread_mutex_unlock(&w->lock);
		t->fn(t->data);
		(void)pthread_mutex_lock(&w->lock);
		tasks_add(&w->done, t);
		/*
		 * The eventfd holds a counter, and any value above 0 wakes the loop. So a full counter is no
		 * failure.
		 */
		(void)!write(w->event_fd, &one, sizeof(one));
	}
	(void)pthread_mutex_unlock(&w->lock);
	return NULL;
}

static int on_done(void *data, uint32_t events)
{
	struct worker *w = data;
	struct tasks done;
	struct worker_task *t;
	uint64_t count;

	(void)events;
	(void)!read(w->event_fd, &count, sizeof(count));
	(void)pthread_mutex_lock(&w->lock);
	done = w->done;
	w->done = (struct tasks){ 0 };
	(void)pthread_mutex_unlock(&w->lock);
	while ((t = tasks_take(&done))) {
		t->done = true;
		fiber_wake(t->fiber);
	}
	return 0;
}

static int start_thread(struct worker *w)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int r = -pthread_attr_init(&attr);

	if (r < 0)
		return r;
	(void)sigfillset(&all);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&w->thread, &attr, work, w);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return r;
}

int worker_new(struct loop *loop, struct worker **ret)
{
	struct worker *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int r;

	assert(!own);
	if (!w)
		return -ENOMEM;
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&w->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = w->event_fd < 0 ? -errno : 0;
	if (r >= 0)
		r = loop_add_fd(loop, w->event_fd, EPOLLIN, (struct handler){ on_done, w },
				&w->source);
	if (r >= 0)
		r = start_thread(w);
	if (r < 0) {
		w->source = source_free(w->source);
		w->event_fd = fd_close(w->event_fd);
		free(w);
		return r;
	}
	own = w;
	*ret = w;
	return 0;
}

struct worker *worker_free(struct worker *w)
{
	if (!w)
		return NULL;
	(void)pthread_mutex_lock(&w->lock);
	assert(!w->todo.first && !w->done.first);
	w->stop = true;
	(void)pthread_cond_signal(&w->changed);
	(void)pthread_mutex_unlock(&w->lock);
	(void)pthread_join(w->thread, NULL);
	w->source = source_free(w->source);
	w->event_fd = fd_close(w->event_fd);
	(void)pthread_cond_destroy(&w->changed);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
	own = NULL;
	return NULL;
}

bool worker_wants(size_t bytes)
{
	return bytes >= WORKER_LARGE_BYTES;
}

void worker_call(size_t bytes, void (*fn)(void *data), void *data)
{
	struct worker_task task = { .fn = fn, .data = data, .fiber = fiber_current() };
	struct worker *w = own;

	if (!w || !task.fiber || !worker_wants(bytes)) {
		fn(data);
		return;
	}
	(void)pthread_mutex_lock(&w->lock);
	if (fiber_visit(task.fiber) > 0)
		tasks_add_first(&w->todo, &task);
	else
		tasks_add(&w->todo, &task);
	(void)pthread_cond_signal(&w->changed);
	(void)pthread_mutex_unlock(&w->lock);
	while (!task.done)
		fiber_wait();
}
