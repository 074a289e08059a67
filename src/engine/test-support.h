/* SPDX-License-Identifier: Apache-2.0 */
/* An engine over a real executor with a broker of its own, and a history in a directory that goes with the test. */
#pragma once

#include "engine/engine-private.h"

#include "base/clock.h"
#include "base/fd.h"
#include "engine/unpacker.h"
#include "run/executor.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000 };

struct engine_fixture {
	char dir[64];
	struct loop *loop;
	struct executor *executor;
	struct history *history;
	struct callers callers;
	struct engine *engine;
	struct engine_options options;
	struct log log, audit;
	struct source *guard;
	int unpacker_fd; /* one for all tests */
	bool up;
};

static struct engine_fixture fix;

static inline void on_up(void *data, bool up)
{
	struct engine_fixture *f = data;

	f->up = up;
	if (f->engine)
		engine_on_broker(f->engine, up);
	loop_stop(f->loop);
}

static inline int on_guard(void *data, uint32_t events)
{
	(void)data;
	(void)events;
	return -ETIMEDOUT;
}

/* Until the loop is stopped by a callback of the test and *flag is true. */
static inline void run_until(const bool *flag)
{
	source_set_time(fix.guard, clock_now_ns() + PATIENCE_MS * NS_PER_MS);
	while (!*flag)
		assert_int_equal(loop_run(fix.loop), 0);
	source_set_time(fix.guard, INT64_MAX);
}

static inline int on_pause(void *data, uint32_t events)
{
	(void)events;
	*(bool *)data = true;
	loop_stop(fix.loop);
	return 0;
}

static inline void run_for_ms(int64_t ms)
{
	struct source *timer;
	bool over = false;

	assert_int_equal(loop_add_timer(fix.loop, clock_now_ns() + ms * NS_PER_MS,
					(struct handler){ on_pause, &over }, &timer),
			 0);
	run_until(&over);
	(void)source_free(timer);
}

static inline void open_history(void)
{
	struct error err = { 0 };
	const struct history_options options = { .dir = fix.dir, .node = "test" };

	if (history_open(&options, &fix.history, &err) < 0)
		fail_msg("%s", err.text);
}

static inline void open_engine(void)
{
	struct error err = { 0 };

	fix.options.loop = fix.loop;
	fix.options.runner = executor_runner(fix.executor);
	fix.options.history = fix.history;
	fix.options.log = &fix.log;
	fix.options.audit = &fix.audit;
	fix.options.callers = &fix.callers;
	if (engine_new(&fix.options, &fix.engine, &err) < 0)
		fail_msg("%s", err.text);
}

/* As its runner would. Takes over res. */
static inline void set_result(struct execution *x, struct result *res)
{
	const struct run_label label = execution_label(x);
	const struct error none = { 0 };
	struct run_end end = run_end_make(res, &label, &none, true);

	execution_set_end(x, &end);
	assert_non_null(x->record.end_text.data);
}

static inline void set_places(int64_t n)
{
	fix.engine->o.running_max = n;
	engine_set_rules(fix.engine);
}

static inline void close_engine(void)
{
	fix.engine = engine_free(fix.engine);
	fix.history = history_close(fix.history);
}

/* pool: where its broker listens, or NULL: one of its own. */
static inline int setup_service_at(const char *pool)
{
	struct executor_options options = { .on_broker = on_up, .data = &fix, .pool = pool };
	struct error err = { 0 };

	if (fix.unpacker_fd <= 0)
		fix.unpacker_fd = unpacker_start(&unpacker_defaults);
	if (fix.unpacker_fd < 0)
		return -1;
	fix.log = (struct log){ .fd = -EBADF };
	fix.audit = (struct log){ .fd = memfd_create("audit", MFD_CLOEXEC) };
	fix.loop = loop_new();
	if (!fix.loop ||
	    loop_add_timer(fix.loop, INT64_MAX, (struct handler){ on_guard, NULL }, &fix.guard) < 0)
		return -1;
	if (executor_new(fix.loop, &options, &fix.executor, &err) < 0) {
		print_message("# %s\n", err.text);
		return -1;
	}
	run_until(&fix.up);
	return 0;
}

static inline int setup_dir(void)
{
	(void)snprintf(fix.dir, sizeof(fix.dir), "/tmp/test-engine-XXXXXX");
	/* What runs of other tests have learned of the runtimes is not known here. */
	return mkdtemp(fix.dir) && setenv("XDG_CACHE_HOME", fix.dir, 1) == 0 ? 0 : -1;
}

static inline int setup_service(void **state)
{
	(void)state;
	return setup_dir() < 0 ? -1 : setup_service_at(NULL);
}

static inline int teardown_service(void **state)
{
	char *argv[] = { (char *)(uintptr_t) "rm", (char *)(uintptr_t) "-rf", fix.dir, NULL };
	pid_t pid;

	(void)state;
	fix.executor = executor_free(fix.executor);
	fix.guard = source_free(fix.guard);
	fix.loop = loop_free(fix.loop);
	fix.audit.fd = fd_close(fix.audit.fd);
	pid = fork();
	if (pid == 0) {
		(void)execv("/bin/rm", argv);
		_exit(1);
	}
	return pid > 0 && waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

static inline int setup_engine(void **state)
{
	(void)state;
	fix.options = (struct engine_options){ .unpacker_fd = fix.unpacker_fd,
					       .running_max = 4,
					       .queue_max = 100,
					       .queue_per_caller = 50,
					       .callback_timeout_ms = 2000,
					       .callback_attempts = 2 };
	open_history();
	open_engine();
	return 0;
}

static inline int teardown_engine(void **state)
{
	(void)state;
	close_engine();
	return 0;
}

/* One submission and what was heard of it. */
struct submitter {
	struct execution *x;
	struct submitted submitted;
	struct error err; /* why it was refused, at once or later */
	bool accepted, ended;
	char status[24];
	json_t *result;
};

static inline void client_accepted(void *data, struct execution *x, const struct error *err)
{
	struct submitter *c = data;

	(void)x;
	c->accepted = true;
	if (err)
		c->err = *err;
	loop_stop(fix.loop);
}

static inline void client_ended(void *data, struct execution *x)
{
	struct submitter *c = data;

	assert_true(execution_has_ended(x));
	assert_non_null(execution_result_text(x).data);
	c->result = json_incref(execution_result(x));
	(void)snprintf(c->status, sizeof(c->status), "%s",
		       json_string_value(json_object_get(c->result, "status")));
	c->ended = true;
	loop_stop(fix.loop);
}

static inline int submit(struct submitter *c, const char *text, struct submission in)
{
	json_t *body = json_loads(text, JSON_DECODE_ANY, NULL);
	int r;

	assert_non_null(body);
	*c = (struct submitter){ 0 };
	in.caller = in.caller ? in.caller : "test";
	in.request = body;
	in.data = c;
	in.on_accepted = client_accepted;
	in.on_end = client_ended;
	r = engine_submit(fix.engine, &in, &c->submitted, &c->err);
	json_decref(body);
	c->x = c->submitted.execution;
	return r;
}

static inline void client_done(struct submitter *c)
{
	c->x = execution_unref(c->x);
	json_decref(c->result);
	c->result = NULL;
}

/* Accepted, and nothing more. */
static inline struct execution *make_one(void)
{
	struct execution *x = execution_new(fix.engine, "test", NULL);

	assert_non_null(x);
	x->record.body = json_pack("{s:s}", "code", "#");
	x->record.text = (struct span){ strdup("{}"), 2 };
	x->record.created_ns = clock_realtime_ns();
	execution_own(x);
	return x;
}

static inline const char *text_at(const json_t *root, const char *key)
{
	return json_string_value(json_object_get(root, key));
}
