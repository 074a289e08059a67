/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many runs at once: threads that run a job for as long as they are told, and threads that each hold a sandbox
 * whose program sleeps. The first thing that goes wrong in any thread is what the caller is told.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "drive.h"

enum { STACK_BYTES = 256 * 1024, OPEN_SECONDS = 120 };

struct crew {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct error problem;
	bool failed;
};

static void crew_init(struct crew *crew)
{
	(void)pthread_mutex_init(&crew->lock, NULL);
	(void)pthread_cond_init(&crew->changed, NULL);
}

static void crew_done(struct crew *crew)
{
	(void)pthread_cond_destroy(&crew->changed);
	(void)pthread_mutex_destroy(&crew->lock);
}

static void crew_fail(struct crew *crew, const struct error *err)
{
	(void)pthread_mutex_lock(&crew->lock);
	if (!crew->failed)
		crew->problem = *err;
	crew->failed = true;
	(void)pthread_cond_broadcast(&crew->changed);
	(void)pthread_mutex_unlock(&crew->lock);
}

static int start_thread(pthread_t *thread, void *(*function)(void *), void *argument,
			struct error *err)
{
	pthread_attr_t attr;
	int r = pthread_attr_init(&attr);

	if (r == 0) {
		(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
		r = pthread_create(thread, &attr, function, argument);
		(void)pthread_attr_destroy(&attr);
	}
	return r == 0 ? 0 : error_set(err, ERROR_INTERNAL, r, "thread: %s", strerror(r));
}

/* --- rate ------------------------------------------------------------------------------------------ */

struct workers {
	struct crew crew;
	const struct job *job;
	const struct place *place;
	const struct rate *wanted;
	pthread_barrier_t ready;
	atomic_int_least64_t runs, end_ns;
	int64_t begin_ns;
};

static int work(struct workers *w, struct lane *lane, struct error *err)
{
	struct sample sample;
	int64_t now, last;
	int r;

	do {
		r = lane_sample(lane, w->job, &sample, err);
		if (r < 0)
			return r;
		now = clock_now_ns();
		if (now >= w->begin_ns)
			atomic_fetch_add(&w->runs, 1);
	} while (now - w->begin_ns < w->wanted->window_ns);
	last = atomic_load(&w->end_ns);
	while (last < now && !atomic_compare_exchange_weak(&w->end_ns, &last, now))
		;
	return 0;
}

static void *worker(void *data)
{
	struct workers *w = data;
	struct error err = { 0 };
	struct lane lane;
	int r = lane_open(&lane, w->place, &err);

	if (pthread_barrier_wait(&w->ready) == PTHREAD_BARRIER_SERIAL_THREAD)
		w->begin_ns = clock_now_ns() + w->wanted->warm_up_ns;
	(void)pthread_barrier_wait(&w->ready);
	if (r < 0) {
		crew_fail(&w->crew, &err);
		return NULL;
	}
	if (work(w, &lane, &err) < 0)
		crew_fail(&w->crew, &err);
	lane_close(&lane);
	return NULL;
}

int load_rate(const struct job *job, const struct place *place, struct rate *rate,
	      struct error *err)
{
	struct workers w = { .job = job, .place = place, .wanted = rate };
	const int threads = rate->threads;
	_cleanup_free_ pthread_t *ids = calloc((size_t)threads, sizeof(*ids));

	if (!ids)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	crew_init(&w.crew);
	(void)pthread_barrier_init(&w.ready, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		/* A barrier that too few can reach cannot be left again, so nothing is salvaged. */
		if (start_thread(&ids[i], worker, &w, err) < 0)
			abort();
	}
	for (int i = 0; i < threads; i++)
		(void)pthread_join(ids[i], NULL);
	(void)pthread_barrier_destroy(&w.ready);
	crew_done(&w.crew);
	if (w.crew.failed) {
		*err = w.crew.problem;
		return -EPROTO;
	}
	rate->runs = w.runs;
	rate->ns = w.end_ns - w.begin_ns;
	return 0;
}

/* --- idle ------------------------------------------------------------------------------------------ */

struct idle {
	struct crew crew;
	const struct place *place;
	char *request;
	pthread_t *threads;
	int n_threads, up;
	int cancel_fd;
};

static int idle_is_up(void *data, enum atoll_stream stream, const void *bytes, size_t n)
{
	struct idle *idle = data;

	if (stream != ATOLL_STDOUT || n == 0 || !bytes)
		return 0;
	(void)pthread_mutex_lock(&idle->crew.lock);
	idle->up++;
	(void)pthread_cond_broadcast(&idle->crew.changed);
	(void)pthread_mutex_unlock(&idle->crew.lock);
	return 0;
}

static int idle_run(struct idle *idle, struct lane *lane, struct error *err)
{
	_cleanup_free_ char *result = NULL, *problem = NULL;
	const struct atoll_run_options options = {
		.size = sizeof(options),
		.on_output = idle_is_up,
		.data = idle,
		.use_cancel_fd = 1,
		.cancel_fd = idle->cancel_fd,
	};
	int r = atoll_run(lane->handle, idle->request, &options, &result, &problem);

	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "%s", problem);
	if (!result || !strstr(result, "\"status\":\"cancelled\""))
		return error_set(err, ERROR_INTERNAL, EPROTO,
				 "an idle program ended by itself: %.300s", result ? result : "");
	return 0;
}

static void *idler(void *data)
{
	struct idle *idle = data;
	struct error err = { 0 };
	struct lane lane;

	if (lane_open(&lane, idle->place, &err) < 0) {
		crew_fail(&idle->crew, &err);
		return NULL;
	}
	if (idle_run(idle, &lane, &err) < 0)
		crew_fail(&idle->crew, &err);
	lane_close(&lane);
	return NULL;
}

/* Waits until so many are up: a machine that opens them all at once would only measure its own queue. */
static int idle_await(struct idle *idle, int count, struct error *err)
{
	struct timespec deadline;
	int r = 0;

	(void)clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += OPEN_SECONDS;
	(void)pthread_mutex_lock(&idle->crew.lock);
	while (idle->up < count && !idle->crew.failed && r == 0)
		r = pthread_cond_timedwait(&idle->crew.changed, &idle->crew.lock, &deadline);
	if (idle->crew.failed) {
		*err = idle->crew.problem;
		r = EPROTO;
	} else if (r != 0) {
		(void)error_set(err, ERROR_INTERNAL, r,
				"only %d of %d idle sandboxes came up in %d s", idle->up, count,
				OPEN_SECONDS);
	}
	(void)pthread_mutex_unlock(&idle->crew.lock);
	return -r;
}

int idle_open(const char *request, const struct place *place, int count, struct idle **ret,
	      struct error *err)
{
	const int at_once = 16;
	struct idle *idle = calloc(1, sizeof(*idle));
	int r = 0;

	if (!idle)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	crew_init(&idle->crew);
	idle->place = place;
	idle->request = strdup(request);
	idle->threads = calloc((size_t)count, sizeof(*idle->threads));
	idle->cancel_fd = eventfd(0, EFD_CLOEXEC);
	if (!idle->request || !idle->threads || idle->cancel_fd < 0)
		r = error_set(err, ERROR_INTERNAL, errno, "idle: %s", strerror(errno));
	for (int i = 0; i < count && r == 0; i++) {
		r = start_thread(&idle->threads[i], idler, idle, err);
		if (r == 0) {
			idle->n_threads++;
			r = idle_await(idle, MAX(0, i - at_once), err);
		}
	}
	if (r == 0)
		r = idle_await(idle, count, err);
	if (r < 0) {
		struct error ignored;

		(void)idle_close(idle, &ignored);
		return r;
	}
	*ret = idle;
	return 0;
}

int idle_close(struct idle *idle, struct error *err)
{
	const uint64_t one = 1;
	int r = 0;

	if (write(idle->cancel_fd, &one, sizeof(one)) != sizeof(one))
		r = error_set(err, ERROR_INTERNAL, errno, "eventfd: %s", strerror(errno));
	for (int i = 0; i < idle->n_threads; i++)
		(void)pthread_join(idle->threads[i], NULL);
	if (r == 0 && idle->crew.failed) {
		*err = idle->crew.problem;
		r = -EPROTO;
	}
	idle->cancel_fd = fd_close(idle->cancel_fd);
	crew_done(&idle->crew);
	free(idle->threads);
	free(idle->request);
	free(idle);
	return r;
}
