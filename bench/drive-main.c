/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-drive: does the timing for bench.py, which is too slow and too busy itself. Reads one JSON object a line on
 * standard input and answers each with one line:
 *
 *	{"do": "define", "job": NAME, "argv": […], "request": "…" or "http": "…", "expected": "…", …}	{}
 *	{"do": "round", "jobs": [[NAME, microseconds to rest afterwards], …]}	{"samples": [[NAME, ns, bytes], …]}
 *	{"do": "rate", "job": NAME, "threads": 8, "warm_up": 1, "seconds": 2}	{"runs": 1234, "ns": 2001234567}
 *	{"do": "offer", "job": NAME, "connections": 256, "rate": 5000, "seconds": 2}	counts and times by status
 *	{"do": "first", "job": NAME, "count": 100, "rest": 2000}	{"samples": [ns, …]}
 *	{"do": "idle", "request": "…", "count": 100}	{}
 *	{"do": "release"}	{}
 *
 * or with {"wrong": "one sentence"}. A round is timed as a whole before the answer is written, so that bench.py
 * does not wake up between two samples. Usage: bench-drive DATA_DIR [SOCKET OF A POOL]
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/buf.h"
#include "drive.h"

enum { JOBS_MAX = 128, THREADS_MAX = 4096 };

struct driver {
	struct place place;
	struct lane lane;
	struct job jobs[JOBS_MAX];
	char *names[JOBS_MAX];
	size_t n_jobs;
	struct idle *idle;
};

static struct job *find_job(struct driver *d, const char *name, struct error *err)
{
	for (size_t i = 0; name && i < d->n_jobs; i++) {
		if (strcmp(d->names[i], name) == 0)
			return &d->jobs[i];
	}
	(void)error_set(err, ERROR_INPUT, ENOENT, "no job \"%s\"", name ? name : "");
	return NULL;
}

static int do_define(struct driver *d, json_t *command, json_t *answer _unused_, struct error *err)
{
	const char *name = json_string_value(json_object_get(command, "job"));
	struct job job;
	int r;

	if (!name || d->n_jobs == JOBS_MAX)
		return error_set(err, ERROR_INPUT, EINVAL, "a job without a name, or too many");
	r = job_define(command, &job, err);
	if (r < 0)
		return r;
	d->names[d->n_jobs] = strdup(name);
	if (!d->names[d->n_jobs]) {
		job_done(&job);
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	}
	d->jobs[d->n_jobs++] = job;
	return 0;
}

static void rest(int64_t us)
{
	const struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	/* No pause at all: even a sleep of 0 gives the processor away. */
	if (us > 0)
		(void)nanosleep(&t, NULL);
}

static int do_round(struct driver *d, json_t *command, json_t *answer, struct error *err)
{
	json_t *jobs = json_object_get(command, "jobs"), *samples = json_array(), *row;
	size_t i;

	(void)json_object_set_new(answer, "samples", samples);
	json_array_foreach(jobs, i, row)
	{
		const char *name = json_string_value(json_array_get(row, 0));
		struct job *job = find_job(d, name, err);
		struct sample sample;
		int r;

		if (!job)
			return -ENOENT;
		r = lane_sample(&d->lane, job, &sample, err);
		if (r < 0)
			return error_wrap(err, r, "%s", name);
		(void)json_array_append_new(samples,
					    json_pack("[s, I, I]", name, (json_int_t)sample.ns,
						      (json_int_t)sample.memory_bytes));
		rest(json_integer_value(json_array_get(row, 1)));
	}
	return 0;
}

static int64_t seconds(json_t *command, const char *key)
{
	return (int64_t)(json_number_value(json_object_get(command, key)) * (double)NS_PER_SEC);
}

static int do_rate(struct driver *d, json_t *command, json_t *answer, struct error *err)
{
	const char *name = json_string_value(json_object_get(command, "job"));
	struct job *job = find_job(d, name, err);
	json_int_t threads = json_integer_value(json_object_get(command, "threads"));
	struct rate rate = {
		.threads = (int)threads,
		.warm_up_ns = seconds(command, "warm_up"),
		.window_ns = seconds(command, "seconds"),
	};
	int r;

	if (!job)
		return -ENOENT;
	if (threads < 1 || threads > THREADS_MAX)
		return error_set(err, ERROR_INPUT, EINVAL, "threads: 1 to %d", THREADS_MAX);
	r = load_rate(job, &d->place, &rate, err);
	if (r < 0)
		return error_wrap(err, r, "%s", name);
	(void)json_object_set_new(answer, "runs", json_integer(rate.runs));
	(void)json_object_set_new(answer, "ns", json_integer(rate.ns));
	return 0;
}

static int do_offer(struct driver *d, json_t *command, json_t *answer, struct error *err)
{
	const char *name = json_string_value(json_object_get(command, "job"));
	struct job *job = find_job(d, name, err);
	const struct offer offer = {
		.connections = (int)json_integer_value(json_object_get(command, "connections")),
		.rate = json_number_value(json_object_get(command, "rate")),
		.window_ns = seconds(command, "seconds"),
	};

	if (!job)
		return -ENOENT;
	if (!job->http || offer.connections < 1 || offer.connections > THREADS_MAX)
		return error_set(err, ERROR_INPUT, EINVAL, "offer: HTTP over 1 to %d connections",
				 THREADS_MAX);
	return offer_run(job, &offer, answer, err);
}

static int do_first(struct driver *d, json_t *command, json_t *answer, struct error *err)
{
	const char *name = json_string_value(json_object_get(command, "job"));
	json_int_t count = json_integer_value(json_object_get(command, "count"));
	struct job *job = find_job(d, name, err);
	json_t *samples = json_array();

	(void)json_object_set_new(answer, "samples", samples);
	if (!job)
		return -ENOENT;
	for (json_int_t i = 0; i < count; i++) {
		int64_t ns;
		int r = http_first_byte(job, &ns, err);

		if (r < 0)
			return error_wrap(err, r, "%s", name);
		(void)json_array_append_new(samples, json_integer(ns));
		rest(json_integer_value(json_object_get(command, "rest")));
	}
	return 0;
}

static int do_idle(struct driver *d, json_t *command, json_t *answer _unused_, struct error *err)
{
	const char *request = json_string_value(json_object_get(command, "request"));
	json_int_t count = json_integer_value(json_object_get(command, "count"));

	if (d->idle || !request || count < 1 || count > THREADS_MAX)
		return error_set(err, ERROR_INPUT, EINVAL, "idle: release first; 1 to %d",
				 THREADS_MAX);
	return idle_open(request, &d->place, (int)count, &d->idle, err);
}

static int do_release(struct driver *d, json_t *command _unused_, json_t *answer _unused_,
		      struct error *err)
{
	return d->idle ? idle_close(TAKE_PTR(d->idle), err) : 0;
}

static const struct {
	const char *name;
	int (*run)(struct driver *d, json_t *command, json_t *answer, struct error *err);
} commands[] = {
	{ "define", do_define },   { "round", do_round }, { "rate", do_rate },
	{ "offer", do_offer },	   { "first", do_first }, { "idle", do_idle },
	{ "release", do_release },
};

static int dispatch(struct driver *d, json_t *command, json_t *answer, struct error *err)
{
	const char *name = json_string_value(json_object_get(command, "do"));

	for (size_t i = 0; name && i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].run(d, command, answer, err);
	}
	return error_set(err, ERROR_INPUT, EINVAL, "no such command");
}

static int serve(struct driver *d)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		json_t *command = json_loads(line, 0, NULL), *answer = json_object();
		struct error err = { 0 };

		if (dispatch(d, command, answer, &err) < 0) {
			(void)json_object_clear(answer);
			(void)json_object_set_new(answer, "wrong", json_string(err.text));
		}
		(void)json_dumpf(answer, stdout, JSON_COMPACT);
		(void)putchar('\n');
		(void)fflush(stdout);
		json_decref(answer);
		json_decref(command);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct driver d;
	struct error err = { 0 };
	struct rlimit files;

	if (argc < 2)
		return 2;
	d.place = (struct place){ .data_dir = argv[1], .pool = argc > 2 ? argv[2] : "" };
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	if (lane_open(&d.lane, &d.place, &err) < 0) {
		(void)fprintf(stderr, "bench-drive: %s\n", err.text);
		return 1;
	}
	(void)serve(&d);
	(void)do_release(&d, NULL, NULL, &err);
	for (size_t i = 0; i < d.n_jobs; i++) {
		job_done(&d.jobs[i]);
		free(d.names[i]);
	}
	lane_close(&d.lane);
	return 0;
}
