/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See executor.h. An executor is a handle (struct atoll) with the caller's loop and its keeper's link; each of
 * its runs is a struct local_run with a fiber. The caller's commands reach the current job through run.control, or
 * wait there until there is a job.
 */
#include "run/executor.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/fiber.h"
#include "run/doctor.h"
#include "run/link-keeper.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	RETRY_S = 1,
	/* Of a session's output the job keeps this much for the case that the sandbox dies; the session keeps its own. */
	SESSION_KEPT_BYTES = 4096,
};

struct executor {
	struct runner base;
	struct atoll *atoll;
	const char *const *images;
	struct executor_run *runs; /* open ones */
	size_t n_runs;
};

struct executor_run {
	struct run base;
	struct executor_run *next, **at; /* at: the pointer to this entry */
	struct executor *executor;
	struct local_run run;
	struct run_control control;
	struct run_start how;
	/* NULL: the run's end is told as RUN_END. */
	void (*on_life_end)(void *data, struct result *res, const struct error *err);
	bool started, on_stack; /* on_stack: the start has not returned yet */
	bool began, has_stage;	/* RUN_STARTED, RUN_STAGE were told */
	bool overdue;		/* it is to end when it is compiled: RUN_KILL_BUILT */
	/*
	 * Input of an interactive run: this side of a pipe that the job reads, watched once the pipe is full.
	 */
	int stdin_fd, stdin_read_fd;
	struct source *stdin_room;
};

static const struct runner_vtable runner_local;

static int take_presets(struct atoll *a, struct presets *given, struct error *err)
{
	struct presets *own;

	if (!given)
		return 0;
	own = malloc(sizeof(*own));
	if (!own)
		return error_oom(err);
	for (size_t i = 0; i < given->n; i++) {
		struct preset *p = &given->list[i];
		const struct language *lang = NULL;
		int r = registry_find(a->registry, p->name, &lang, err);

		if (r >= 0)
			p->version[0] = '\0';
		else if (r == -ENOPKG && *p->language)
			r = registry_find(a->registry, p->language, &lang, err);
		if (r < 0 && r != -ENOPKG) {
			free(own);
			return r;
		}
		(void)snprintf(p->language, sizeof(p->language), "%s", lang ? lang->name : "");
	}
	*err = (struct error){ 0 };
	*own = *given;
	a->rules.presets = own;
	return 0;
}

static int setup(struct executor *s, struct loop *loop, const struct executor_options *o,
		 struct error *err)
{
	const struct atoll_options options = { .data_dir = o->data_dir,
					       .cache_dir = o->cache_dir,
					       .pool = o->pool ? o->pool : "",
					       .warm = o->warm };
	struct atoll *a = s->atoll;
	int r;

	a->cache_fd = -EBADF;
	if (policy_rules_take(&a->rules, o) < 0)
		return error_oom(err);
	r = broker_choice_init(&a->broker, &options, err);
	if (r >= 0)
		r = atoll_open_data(a, &options, err);
	if (r >= 0)
		r = take_presets(a, o->presets, err);
	if (r >= 0 && !a->broker.path && a->broker.warm)
		r = broker_choice_warm(&a->broker, a->registry, a->data_dir, err);
	if (r < 0)
		return r;
	a->loop = loop;
	return link_keeper_new(a, (struct link_keeper_watch){ o->data, o->on_broker }, err);
}

int executor_new(struct loop *loop, const struct executor_options *options, struct executor **ret,
		 struct error *err)
{
	struct executor *s = calloc(1, sizeof(*s));
	int r;

	if (s)
		s->atoll = calloc(1, sizeof(*s->atoll));
	if (!s || !s->atoll) {
		free(s);
		return error_oom(err);
	}
	s->base.vtable = &runner_local;
	s->images = options->images;
	s->atoll->front = options->front;
	r = setup(s, loop, options, err);
	if (r < 0) {
		(void)executor_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct executor *executor_free(struct executor *s)
{
	if (!s)
		return NULL;
	(void)link_keeper_free(s->atoll->keeper);
	/* The caller owns the loop. */
	s->atoll->loop = NULL;
	(void)atoll_free(s->atoll);
	free(s);
	fiber_trim();
	return NULL;
}

struct runner *executor_runner(struct executor *s)
{
	return &s->base;
}

size_t executor_count(const struct executor *s)
{
	return s->n_runs;
}

static int not_met(const struct executor *s, struct error *err)
{
	if (link_keeper_has_met(s->atoll->keeper))
		return 0;
	return error_retry(err,
			   error_set(err, ERROR_NOT_READY, EAGAIN,
				     "the sandbox broker is not there yet; try again"),
			   RETRY_S);
}

/* Compares texts: a user who could put a link there could also put the image there. */
static bool lies_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	return strncmp(path, dir, n) == 0 && (!path[n] || path[n] == '/') && !strstr(path, "/..");
}

/* Before anything on the host is touched: a caller must not learn which paths exist. */
static int check_image(const struct executor *s, const json_t *root, struct error *err)
{
	const char *image = json_string_value(json_object_get(root, "image"));
	bool any = s->images && s->images[0];

	if (!image)
		return 0;
	for (size_t i = 0; any && s->images[i]; i++)
		if (lies_below(image, s->images[i]))
			return 0;
	return error_refuse(
		err, "image",
		any ? "image: this server takes no image from there; name one below a "
		      "directory of its `images` setting"
		    : "image: this server does not take images from callers; leave it "
		      "out, or have its directory added to the server's `images` setting");
}

static void unlink_run(struct executor_run *run)
{
	*run->at = run->next;
	if (run->next)
		run->next->at = run->at;
	assert(run->executor->n_runs > 0);
	run->executor->n_runs--;
}

static void run_free(struct executor_run *run)
{
	run->stdin_room = source_free(run->stdin_room);
	run->stdin_fd = fd_close(run->stdin_fd);
	run->stdin_read_fd = fd_close(run->stdin_read_fd);
	flow_close(&run->run);
	free(run);
}

int executor_open(struct executor *s, json_t *root, struct executor_run **ret, struct error *err)
{
	struct executor_run *run;
	int r = not_met(s, err);

	if (r >= 0)
		r = check_image(s, root, err);
	if (r < 0)
		return r;
	run = calloc(1, sizeof(*run));
	if (!run)
		return error_oom(err);
	run->base.vtable = &runner_local;
	run->executor = s;
	run->stdin_fd = run->stdin_read_fd = -EBADF;
	run->run.atoll = s->atoll;
	run->run.output_fd = -EBADF;
	run->run.control = &run->control;
	run->next = s->runs;
	run->at = &s->runs;
	if (run->next)
		run->next->at = &run->next;
	s->runs = run;
	s->n_runs++;
	r = flow_open(&run->run, root, err);
	if (r < 0) {
		executor_discard(run);
		return r;
	}
	*ret = run;
	return 0;
}

/* The runner's text stands where a request has its code. */
static int add_session_code(struct executor *s, json_t *request, struct error *err)
{
	const json_t *given = json_object_get(request, "language");
	const char *name = given ? json_string_value(given) : "python";
	_cleanup_buf_ struct buf text = { 0 };
	const struct language *lang = NULL;
	int r;

	if (!name)
		return error_field(err, "language", "language: give the name of a language");
	r = registry_find(s->atoll->registry, name, &lang, err);
	if (r < 0)
		return r;
	if (!*lang->session)
		return error_field(err, "language",
				   "language: %s has no sessions; take python, javascript, ruby or "
				   "bash",
				   lang->name);
	r = session_runner(s->atoll, lang, &text, err);
	if (r < 0)
		return r;
	/* Modules that the runner names must not choose the runtime: the caller does. */
	if (!json_object_get(request, "preload") && lang->warm.tiers && lang->warm.tiers[0])
		r = json_object_set_new(request, "preload", json_array());
	if (r < 0 || json_object_set_new(request, "eval", json_true()) < 0 ||
	    json_object_set_new(request, "language", json_string(lang->name)) < 0 ||
	    json_object_set_new(request, "code", json_stringn(text.data, text.len)) < 0)
		return error_oom(err);
	return 0;
}

int executor_open_session(struct executor *s, const json_t *root, struct executor_run **ret,
			  struct error *err)
{
	json_t *request = json_copy((json_t *)(uintptr_t)root);
	int r = request ? not_met(s, err) : error_oom(err);

	if (r >= 0)
		r = add_session_code(s, request, err);
	if (r >= 0)
		r = executor_open(s, request, ret, err);
	json_decref(request);
	return r;
}

void executor_discard(struct executor_run *run)
{
	assert(!run->started);
	unlink_run(run);
	run_free(run);
}

const struct decision *executor_decision(const struct executor_run *run)
{
	return &run->run.decision;
}

char *executor_version(struct executor_run *run)
{
	return flow_known_version(&run->run);
}

/* The result after the time was over does not count: on record is what the caller was told then. */
static void took_too_long(struct result *res, struct error *err)
{
	struct verdict *v = &res->verdict;

	if (err->code == ERROR_LOST || run_lacks_room(err, false))
		*err = (struct error){ 0 };
	if (v->status == STATUS_TIMEOUT)
		return;
	res->refusal = ERROR_NONE;
	*v = (struct verdict){
		.status = STATUS_TIMEOUT,
		.exit_code = -1,
		.cause = { .kind = CAUSE_TIMEOUT, .limit = -1, .peak = -1, .suggest = -1 },
	};
	(void)snprintf(v->cause.detail, sizeof(v->cause.detail),
		       "its time was over before it was compiled");
}

/* The fiber of a run, from the first step to the last. */
static void go(void *data)
{
	struct executor_run *run = data;
	struct result *res = NULL;
	struct error err = { 0 };
	struct run_end end;

	run->control.fiber = fiber_current();
	if (flow_run_open(&run->run, &res, &err) >= 0)
		err = (struct error){ 0 };
	if (!res)
		res = flow_refusal(&run->run, &err);
	if (run->overdue && res)
		took_too_long(res, &err);
	/* The end must not come before the start has returned. */
	while (run->on_stack)
		fiber_yield();
	unlink_run(run);
	if (run->on_life_end) {
		run->on_life_end(run->how.observer.data, res, &err);
	} else {
		end = run_end_make(res, &run->how.label, &err, run->began);
		(void)run->how.observer.on_event(run->how.observer.data,
						 &(struct run_event){ RUN_END, .end = &end });
		run_end_done(&end);
	}
	run_free(run);
}

static int make_stdin(struct executor_run *run)
{
	int pair[2];

	/* A run that could not start may be tried again. */
	if (run->stdin_fd >= 0)
		return 0;
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	run->stdin_read_fd = pair[0];
	run->stdin_fd = pair[1];
	run->run.options.use_stdin_fd = 1;
	run->run.options.stdin_fd = pair[0];
	return 0;
}

/* The limits of one execution are not those of the sandbox in which many follow one another. */
static void outlive_turns(struct executor_run *run, const struct executor_life *life)
{
	struct limits *l = &run->run.decision.limits;

	run->on_life_end = life->on_end;
	run->run.channel_fd = life->channel_fd;
	run->run.decision.forkable = life->forkable;
	run->run.keep = life->keep;
	l->timeout_ms = life->life_ms;
	l->cpu_time_ms = 0;
	l->idle_timeout_ms = 0;
	l->output_bytes = SESSION_KEPT_BYTES;
	l->output_total_bytes = INT64_MAX;
}

/* The listener is told; what the contract needs to know is kept here. */
static int on_run_event(void *data, const struct run_event *event)
{
	struct executor_run *run = data;
	int r;

	run->began = run->began || event->kind == RUN_STARTED;
	run->has_stage = run->has_stage || event->kind == RUN_STAGE;
	r = run_observer_tell(&run->how.observer, event);
	/* It is built, and that was all there was time for. */
	if (event->kind == RUN_STAGE && run->overdue)
		run_kill(&run->control, CAUSE_TIMEOUT);
	return r;
}

static int take_options(struct executor_run *run, const struct run_start *how)
{
	struct run_control *c = &run->control;
	uint32_t own = run_event_bit(RUN_STARTED) | run_event_bit(RUN_STAGE);

	run->how = *how;
	run->run.observer = (struct run_observer){ run, how->observer.wants | own, on_run_event };
	run->run.keeper = how->keeper;
	run->run.places = how->places;
	c->quiet = how->quiet;
	c->rows = how->rows ? how->rows : 24;
	c->columns = how->columns ? how->columns : 80;
	run->run.full = !how->brief;
	run->run.accepted_ns = how->accepted_ns ? how->accepted_ns : clock_now_ns();
	if (how->label.id)
		(void)snprintf(run->run.id, sizeof(run->run.id), "%s", how->label.id);
	return how->interactive ? make_stdin(run) : 0;
}

static struct job *live_job(const struct executor_run *run)
{
	return run->control.live ? run->control.job : NULL;
}

static int start_fiber(struct executor_run *run, int r, struct error *err)
{
	assert(!run->started);
	if (r >= 0) {
		run->started = run->on_stack = true;
		r = fiber_start(run->executor->atoll->loop, go, run);
		if (r < 0)
			run->started = false;
		run->on_stack = false;
	}
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "cannot start the run: %s", strerror(-r))
		     : 0;
}

int executor_start_life(struct executor_run *run, const struct run_start *how,
			const struct executor_life *life, struct error *err)
{
	int r = take_options(run, how);
	struct job *parent = life->parent ? live_job(life->parent) : NULL;

	outlive_turns(run, life);
	if (parent)
		run->run.copy = (struct record_copy){ job_outcome(parent)->number, 0 };
	if (r >= 0 && life->parent && !run->run.copy.parent)
		r = -ESRCH;
	return start_fiber(run, r, err);
}

void executor_kill(struct executor_run *run, enum cause_kind cause)
{
	if (run->started)
		run_kill(&run->control, cause);
}

void executor_kill_all(struct executor *s, enum cause_kind cause)
{
	for (struct executor_run *run = s->runs; run; run = run->next)
		executor_kill(run, cause);
}

int executor_signal(struct executor_run *run, int signo)
{
	if (signo <= 0 || signo >= NSIG)
		return -EINVAL;
	return live_job(run) ? job_signal(live_job(run), signo) : -ESRCH;
}

int executor_interrupt(struct executor_run *run)
{
	return live_job(run) ? job_signal(live_job(run), -SIGINT) : -ESRCH;
}

int executor_name_copy(struct executor_run *run, int32_t pid)
{
	if (live_job(run))
		return job_name_copy(live_job(run), pid);
	/* It is not sent yet: RUN will name it. */
	run->run.copy.pid = pid;
	return 0;
}

void executor_drop_copy(struct executor_run *run, int32_t pid)
{
	if (live_job(run))
		job_drop_copy(live_job(run), pid);
}

struct estate_ref executor_estate(const struct executor_run *run)
{
	return run->run.estate;
}

/* Only the broker that has it knows its number. */
static bool has_estate(const struct executor *s, struct estate_ref estate)
{
	const struct atoll *a = s->atoll;

	return estate.job != 0 && a->link && link_keeper_generation(a->keeper) == estate.generation;
}

int executor_inherit(struct executor_run *run, struct estate_ref estate)
{
	if (!has_estate(run->executor, estate))
		return -ESTALE;
	return live_job(run) ? job_inherit(live_job(run), estate.job) : -ESRCH;
}

void executor_forget(struct executor *s, struct estate_ref estate)
{
	const struct record record = { .kind = RECORD_FORGET, .job = estate.job };

	if (has_estate(s, estate))
		(void)!link_send(s->atoll->link, &record, NULL, 0);
}

int executor_park(struct executor_run *run)
{
	return live_job(run) ? job_park(live_job(run)) : -ESRCH;
}

void executor_take_output(struct executor_run *run)
{
	if (live_job(run))
		job_take_output(live_job(run));
}

int executor_ask_usage(struct executor_run *run)
{
	return live_job(run) ? job_ask_usage(live_job(run)) : -ESRCH;
}

/* A question on its own fiber. */
struct inquiry {
	struct executor *executor;
	enum executor_question question;
	struct executor_asker asker;
};

static void inquire(void *data)
{
	struct inquiry q = *(struct inquiry *)data;
	struct atoll *a = q.executor->atoll;
	struct prober prober = atoll_prober(a, NULL);
	struct error err = { 0 };
	json_t *tree = NULL;

	free(data);
	/* As for a run: not before executor_ask() has returned. */
	fiber_yield();
	if (q.question == EXECUTOR_DOCTOR)
		(void)!doctor_examine(a->registry, &prober, &a->facts, &tree, &err);
	else
		(void)!registry_to_json(a->registry, &prober, &tree, &err);
	q.executor->n_runs--;
	q.asker.done(q.asker.data, tree, &err);
}

int executor_ask(struct executor *s, enum executor_question question, struct executor_asker asker,
		 struct error *err)
{
	struct inquiry *q;
	int r = not_met(s, err);

	if (r < 0)
		return r;
	q = malloc(sizeof(*q));
	if (!q)
		return error_oom(err);
	*q = (struct inquiry){ s, question, asker };
	/* Counts as a run: the executor is needed until the answer. */
	s->n_runs++;
	r = fiber_start(s->atoll->loop, inquire, q);
	if (r >= 0)
		return 0;
	s->n_runs--;
	free(q);
	return error_set(err, ERROR_INTERNAL, -r, "cannot find out: %s", strerror(-r));
}

int executor_policies(struct executor *s, json_t **ret, struct error *err)
{
	int r = not_met(s, err);

	return r < 0 ? r : policies_to_json(s->atoll, ret, err);
}

int executor_explain(struct executor *s, json_t *root, json_t **ret, struct error *err)
{
	struct executor_run *run = NULL;
	json_t *rows;
	int r = executor_open(s, root, &run, err);

	if (r < 0)
		return r;
	rows = explain_rows(executor_decision(run));
	executor_discard(run);
	*ret = rows;
	return rows ? 0 : error_oom(err);
}

/* --- the contract --- */

static struct executor_run *of_run(struct run *base)
{
	return (struct executor_run *)base;
}

static bool is_local_ready(const struct runner *base)
{
	return ((const struct executor *)base)->atoll->link != NULL;
}

static int open_local(struct runner *base, json_t *request, struct run **ret, struct error *err)
{
	struct executor_run *run;
	int r = executor_open((struct executor *)base, request, &run, err);
	const struct decision *d;
	struct admission *a;

	if (r < 0)
		return r;
	d = &run->run.decision;
	a = &run->base.admission;
	*a = (struct admission){
		.language = d->language ? d->language->name : "",
		.policy = d->policy->name,
		.limits = d->limits,
		.timeout_max_ms = d->policy->ceilings.timeout_ms,
		.labels = d->request->labels,
	};
	/* With an entry, but no code, it is that file's. */
	admission_hash(a, run->run.code);
	*ret = &run->base;
	return 0;
}

static int start_local(struct run *base, const struct run_start *how, struct error *err)
{
	struct executor_run *run = of_run(base);

	return start_fiber(run, take_options(run, how), err);
}

static void discard_local(struct run *base)
{
	executor_discard(of_run(base));
}

static int kill_local(struct run *base, enum cause_kind cause, enum run_kill when)
{
	struct executor_run *run = of_run(base);

	if (when == RUN_KILL_BUILT) {
		if (!run->started || run->control.killed || run->began || run->has_stage ||
		    !flow_is_compiled(&run->run))
			return -ESRCH;
		run->overdue = true;
		return 0;
	}
	executor_kill(run, cause);
	return 0;
}

static int on_stdin_room(void *data, uint32_t events)
{
	struct executor_run *run = data;

	(void)events;
	run->stdin_room = source_free(run->stdin_room);
	(void)run_observer_tell(&run->run.observer, &(struct run_event){ .kind = RUN_STDIN_ROOM });
	return 0;
}

static ssize_t write_stdin(struct executor_run *run, struct span bytes)
{
	ssize_t written;
	int r;

	if (run->stdin_fd < 0)
		return -EPIPE;
	do {
		/* This process holds the read end, too, so there is no SIGPIPE. */
		written = write(run->stdin_fd, bytes.data, bytes.len);
	} while (written < 0 && errno == EINTR);
	if (written < 0 && errno != EAGAIN)
		return -errno;
	if (written == (ssize_t)bytes.len || run->stdin_room)
		return MAX(written, (ssize_t)0);
	r = loop_add_fd(run->executor->atoll->loop, run->stdin_fd, EPOLLOUT,
			(struct handler){ on_stdin_room, run }, &run->stdin_room);
	return r < 0 && written <= 0 ? r : MAX(written, (ssize_t)0);
}

static ssize_t input_local(struct run *base, struct span bytes, bool end)
{
	struct executor_run *run = of_run(base);
	ssize_t n = bytes.len > 0 ? write_stdin(run, bytes) : 0;

	if (end && n == (ssize_t)bytes.len) {
		run->stdin_room = source_free(run->stdin_room);
		run->stdin_fd = fd_close(run->stdin_fd);
	}
	return n;
}

static int signal_local(struct run *base, int signo)
{
	return executor_signal(of_run(base), signo);
}

static void resize_local(struct run *base, uint16_t rows, uint16_t columns)
{
	struct executor_run *run = of_run(base);

	run->control.rows = rows;
	run->control.columns = columns;
	if (live_job(run))
		job_resize(live_job(run), rows, columns);
}

static const struct runner_vtable runner_local = {
	.is_ready = is_local_ready,
	.open = open_local,
	.start = start_local,
	.discard = discard_local,
	.kill = kill_local,
	.input = input_local,
	.signal = signal_local,
	.resize = resize_local,
};
