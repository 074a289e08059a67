/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sandbox: plan, job, loop, outcome. A failure of Atoll becomes an error here; the program's end is left in
 * the job's outcome. Waiting for the end means running the loop, or, on a fiber, waiting while it runs.
 */
#include "run/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/worker.h"
#include "plan/warm-table.h"
#include "plan/wire.h"
#include "run/executor.h"
#include "run/link-keeper.h"
#include "run/toolchain/imports.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { EXECUTE_GRACE_MS = 30000, LATER_MAX = 1024 };

/* Two users each. The broker refuses a number that another sandbox has. */
static uint32_t random_place(const struct host_facts *facts)
{
	uint32_t random = 0;

	(void)!getrandom(&random, sizeof(random), 0);
	return random % MAX(facts->uid_count / 2, 1U);
}

int flow_plan(const struct sandbox_spec *in, struct plan *ret, struct error *err)
{
	const struct plan_input input = {
		.decision = in->decision,
		.stages = in->stages,
		.n_stages = in->n_stages,
		.files = in->files,
		.n_files = in->n_files,
		.collect = in->collect,
		.build_scratch = in->build_scratch,
		.warm = in->warm,
		.kit = in->kit,
		.prelude = in->prelude,
		.place = random_place(in->decision->facts),
	};

	return plan_build(&input, ret, err);
}

struct encoding {
	const struct sandbox_spec *in;
	struct buf *ret;
	struct error *err;
	int r;
};

static void encode_plan(void *data)
{
	_cleanup_(plan_done) struct plan plan = { 0 };
	struct encoding *e = data;

	plan_init(&plan);
	e->r = flow_plan(e->in, &plan, e->err);
	if (e->r < 0)
		return;
	e->r = plan_encode(&plan, e->ret);
	if (e->r < 0)
		(void)error_set(e->err, ERROR_INTERNAL, -e->r, "cannot hand over the plan: %s",
				strerror(-e->r));
}

/* The plan holds the request's files, which may be large. */
static int encode_aside(const struct sandbox_spec *in, struct buf *ret, struct error *err)
{
	struct encoding e = { .in = in, .ret = ret, .err = err };
	size_t bytes = 0;

	buf_init(ret, PLAN_BYTES_MAX + (PLAN_OPS_MAX + 1) * sizeof(struct op));
	for (size_t i = 0; i < in->n_files; i++)
		bytes += in->files[i].data.len;
	worker_call(bytes, encode_plan, &e);
	return e.r;
}

/* A large file, read after the job's end: on a fiber, so that others need not wait. */
struct late_file {
	struct late_file *next;
	struct run_file file;
	char path[];
};

struct sandbox_watch {
	struct local_run *run;
	const struct sandbox_spec *in;
	struct run_control *control; /* of the program's own sandbox, or NULL */
	/* for the program's own sandbox; other sandboxes have no events */
	struct run_observer observer;
	struct fiber *fiber; /* the waiting fiber, or NULL: the loop runs until the end */
	struct job *job;
	struct buf plan; /* until it is sent */
	bool started_notified;
	struct late_file *later;
	size_t n_later;
};

static int notify_started(struct sandbox_watch *w, int64_t at_ns, bool warm)
{
	const struct isolation *isolation = NULL;

	if (w->started_notified)
		return 0;
	w->started_notified = true;
	/* Output may have come before the record that says how the program is isolated. */
	if (w->job && job_outcome(w->job)->started) {
		flow_isolation(w->run, &job_outcome(w->job)->start);
		isolation = &w->run->result->isolation;
	}
	return run_observer_tell(
		&w->observer,
		&(struct run_event){ RUN_STARTED, .started = { at_ns, warm, isolation } });
}

int flow_tell_stage(const struct run_observer *o, const struct result_stage *stage)
{
	return run_observer_tell(
		o, &(struct run_event){ RUN_STAGE, .stage = {
							   .name = stage->name,
							   .status = stage->verdict.status,
							   .exit_code = stage->verdict.exit_code,
							   .duration_us = stage->duration_us,
						   } });
}

static int notify_stage(struct sandbox_watch *w, size_t index)
{
	struct result_stage stage;

	if (index >= w->in->n_stages || job_outcome(w->job)->error.code != ERROR_NONE)
		return 0;
	flow_stage(job_outcome(w->job), index, &w->in->stages[index], &stage);
	return flow_tell_stage(&w->observer, &stage);
}

static int keep_for_later(struct sandbox_watch *w, const struct run_file *file)
{
	size_t n = strlen(file->path) + 1;
	struct late_file *later = malloc(sizeof(*later) + n);

	if (!later)
		return -ENOMEM;
	later->next = w->later;
	later->file = *file;
	later->file.path = memcpy(later->path, file->path, n);
	later->file.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
	if (later->file.fd < 0) {
		free(later);
		return -errno;
	}
	w->later = later;
	w->n_later++;
	return 0;
}

static int take_file(struct sandbox_watch *w, const struct run_file *file)
{
	if (w->fiber && file->size > EXECUTOR_FILE_INLINE && w->n_later < LATER_MAX &&
	    keep_for_later(w, file) == 0)
		return 0;
	return w->in->take_file(w->run, file);
}

static int on_job_event(void *data, const struct run_event *event)
{
	struct sandbox_watch *w = data;

	switch (event->kind) {
	case RUN_STARTED:
		return notify_started(w, event->started.at_ns, event->started.warm);
	case RUN_OUTPUT:
		/* The record of the start can be late: a program that prints has begun. */
		if (!w->started_notified)
			(void)notify_started(w, clock_now_ns(), false);
		return run_observer_tell(&w->observer, event);
	case RUN_STAGE:
		return notify_stage(w, event->stage.index);
	case RUN_FILE:
		return take_file(w, event->file);
	default:
		return run_observer_tell(&w->observer, event);
	}
}

/* Handles postponed files; after a failure only frees them. */
static int take_later(struct sandbox_watch *w, int r)
{
	while (w->later) {
		struct late_file *later = w->later;

		w->later = later->next;
		if (r >= 0)
			r = w->in->take_file(w->run, &later->file);
		(void)fd_close(later->file.fd);
		free(later);
	}
	return r;
}

static int on_job_end(void *data)
{
	struct sandbox_watch *w = data;

	if (w->fiber)
		fiber_wake(w->fiber);
	else
		loop_stop(w->run->atoll->loop);
	return 0;
}

static int64_t patience_ms(const struct sandbox_spec *in)
{
	int64_t ms = EXECUTE_GRACE_MS;

	for (size_t i = 0; i < in->n_stages; i++)
		ms += in->stages[i].limits->timeout_ms * (in->stages[i].judged ? WALL_EXTENDED : 1);
	return ms;
}

/* Files go to the sandbox's take_file, other events to the run's observer. */
static struct run_observer observe_job(struct sandbox_watch *w)
{
	uint32_t file = run_event_bit(RUN_FILE);
	uint32_t wants = (w->observer.wants & ~file) | (w->in->take_file ? file : 0);

	return (struct run_observer){ w, wants, on_job_event };
}

static struct job_input job_input(const struct local_run *run, const struct sandbox_spec *in,
				  struct sandbox_watch *watcher)
{
	const struct atoll_run_options *o = &run->options;
	const struct limits *l = &in->decision->limits;
	struct job_input input = {
		.run_fds = &run->atoll->run_fds,
		.tty = in->decision->tty,
		.merge_stderr = in->merge_stderr,
		.quiet = !run_observer_wants(&watcher->observer, RUN_OUTPUT),
		.stdin_data = in->stdin_data,
		.stdin_fd = in->caller_input && o->use_stdin_fd ? o->stdin_fd : -EBADF,
		.channel_fd = in->live ? run->channel_fd : 0,
		.given_stdin = in->given_stdin,
		.given_stdout = in->given_stdout,
		.cancel_fd = o->use_cancel_fd ? o->cancel_fd : -EBADF,
		.terminal_fd = o->use_terminal_fd ? o->terminal_fd : -EBADF,
		.resize_fd = o->use_resize_fd ? o->resize_fd : -EBADF,
		.output_bytes = l->output_bytes,
		.output_total_bytes = l->output_total_bytes,
		.idle_timeout_ms = l->idle_timeout_ms,
		.patience_ms = patience_ms(in),
		.observer = observe_job(watcher),
		.keeper = in->live ? run->keeper : (struct run_keeper){ 0 },
		.on_end = on_job_end,
	};

	if (watcher->control) {
		const struct run_control *c = watcher->control;

		input.quiet = input.quiet || c->quiet;
		input.rows = c->rows;
		input.columns = c->columns;
	}
	return input;
}

static void job_cleanup(struct job **job)
{
	(void)job_free(*job);
}

/* The broker of a run. When the run ends, the handle may have another one. */
struct broker_used {
	bool can_go; /* it may end on its own: it is shared, or the keeper replaces it */
	uint64_t generation;
};

static int use_broker(struct local_run *run, struct broker_used *ret, struct error *err)
{
	struct atoll *a = run->atoll;
	int r = a->keeper ? link_keeper_await(a->keeper,
					      run->control ? &run->control->killed : NULL, err)
			  : atoll_link(a, err);

	if (r < 0)
		return r;
	*ret = (struct broker_used){ .can_go = a->keeper || link_is_shared(a->link),
				     .generation = a->keeper ? link_keeper_generation(a->keeper)
							     : 0 };
	return 0;
}

/*
 * If a broker ends, runs that had not begun are sent to another one. Not if the caller's own input was already
 * passed on, or RUN_STARTED was reported.
 */
static bool lost_with_broker(const struct broker_used *used, struct job *job)
{
	const struct job_outcome *o = job_outcome(job);

	return used->can_go && !o->started && !o->took_input && o->error.code == ERROR_LOST;
}

void run_kill(struct run_control *c, enum cause_kind cause)
{
	if (c->killed)
		return;
	c->killed = true;
	c->kill_cause = cause;
	if (c->job)
		job_kill(c->job, cause);
	else if (c->fiber)
		fiber_wake(c->fiber);
}

static int await(struct local_run *run, struct sandbox_watch *w)
{
	struct run_control *c = run->control;

	if (!w->fiber) {
		/*
		 * The broker has its part of the run, and this processor is idle meanwhile: makes the next run's descriptors, and brings
		 * the code that writes a result into the caches.
		 */
		if (w->in->live && w->in->warm) {
			(void)sched_yield();
			(void)!run_fds_make(&run->atoll->run_fds);
			free(result_to_text(run->result));
		}
		return loop_run(run->atoll->loop);
	}
	if (c) {
		c->job = w->job;
		c->live = w->in->live;
	}
	/* It was killed before there was a job. */
	if (c && c->killed)
		job_kill(w->job, c->kill_cause);
	if (run->language && run->language->warm.kind != WARMTH_NONE)
		(void)!run_fds_make(&run->atoll->run_fds);
	while (!job_has_ended(w->job))
		fiber_wait();
	if (c)
		c->job = NULL;
	return 0;
}

/* Sends it and waits. -EPIPE, with a message in the outcome: the broker was gone before. */
static int send_and_wait(struct local_run *run, struct sandbox_watch *w, struct job_input *input,
			 struct error *err)
{
	int r;

	input->plan = (struct span){ w->plan.data, w->plan.len };
	/* Not before: the process may have been named while the worker encoded the plan. */
	if (w->in->live) {
		input->copy = run->copy;
		input->keep = run->keep;
	}
	r = job_new(run->atoll->link, run->atoll->loop, input, &w->job);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot start the run: %s", strerror(-r));
	r = job_start(w->job, err);
	/* The broker has its copy; this one is freed while the program runs. */
	buf_done(&w->plan);
	if (r == -EPIPE)
		job_outcome(w->job)->error = *err;
	return r < 0 ? r : await(run, w);
}

/* 0: the job ended; 1: to be repeated. */
static int execute_once(struct local_run *run, const struct sandbox_spec *in, struct job **ret,
			struct error *err)
{
	struct sandbox_watch watcher = { .run = run,
					 .in = in,
					 .control = in->live ? run->control : NULL,
					 .observer = in->live ? run->observer
							      : (struct run_observer){ 0 },
					 .fiber = fiber_current() };
	struct job_input input = job_input(run, in, &watcher);
	_cleanup_(job_cleanup) struct job *job = NULL;
	struct broker_used used = { 0 };
	/*
	 * On a fiber encoding may take time, so the broker is chosen afterwards. Without a fiber, a broker
	 * starts meanwhile.
	 */
	int r = watcher.fiber ? encode_aside(in, &watcher.plan, err) : 0;

	if (r >= 0)
		r = use_broker(run, &used, err);
	if (r >= 0 && !watcher.fiber)
		r = encode_aside(in, &watcher.plan, err);
	if (r >= 0)
		r = send_and_wait(run, &watcher, &input, err);
	buf_done(&watcher.plan);
	job = watcher.job;
	if (r < 0 && !job)
		return r;
	/* With the ticket taken, sandboxes of the dead broker cannot begin the run. */
	if (job && lost_with_broker(&used, job) && job_recall(job)) {
		if (run->atoll->keeper)
			link_keeper_retire(run->atoll->keeper, used.generation);
		else
			link_give_up(run->atoll->link);
		(void)take_later(&watcher, -ECANCELED);
		return 1;
	}
	if (job && in->live && job_outcome(job)->done.kept)
		run->estate = (struct estate_ref){ used.generation, job_outcome(job)->number };
	if (r >= 0 && take_later(&watcher, 0) < 0)
		(void)error_set(&job_outcome(job)->error, ERROR_INTERNAL, EIO,
				"cannot keep what the program wrote");
	if (r < 0 && err->code == ERROR_NONE)
		return error_set(err, ERROR_INTERNAL, -r, "the run was lost: %s", strerror(-r));
	if (r < 0)
		return r;
	*ret = TAKE_PTR(job);
	return 0;
}

int flow_execute(struct local_run *run, const struct sandbox_spec *in, struct job **ret,
		 struct error *err)
{
	int r = execute_once(run, in, ret, err);

	if (r == 1) {
		*err = (struct error){ 0 };
		r = execute_once(run, in, ret, err);
	}
	return r <= 0 ? r
		      : error_set(err, ERROR_LOST, EPIPE,
				  "two sandbox brokers ended before the run could begin");
}

int flow_job_error(struct job *job, struct error *err)
{
	const struct error *why = &job_outcome(job)->error;

	if (why->code == ERROR_NONE)
		return 0;
	*err = *why;
	return -why->errnum;
}

/* A program that could not be executed ends as in a shell: 127 or 126. */
static void not_executed(const struct stage_spec *spec, int errnum, struct verdict *ret)
{
	*ret = (struct verdict){
		.status = STATUS_ERROR,
		.exit_code = errnum == ENOENT || errnum == ENOTDIR ? 127 : 126,
		.cause = { .kind = CAUSE_SETUP, .limit = -1, .peak = -1, .suggest = -1 },
	};
	(void)snprintf(ret->cause.detail, sizeof(ret->cause.detail), "cannot execute %.140s: %s",
		       spec->argv[0], strerror(errnum));
}

void flow_stage(const struct job_outcome *o, size_t index, const struct stage_spec *spec,
		struct result_stage *ret)
{
	/* Killed before this stage was reported: only the reason is known. */
	const struct record_stage unreported = {
		.wait_status = SIGKILL,
		.killed_for = o->killed_for >= 0 ? o->killed_for : (int)CAUSE_INTERNAL,
		.usage = o->done.usage,
	};
	const struct record_stage *s = index < o->n_stages ? &o->stages[index] : &unreported;
	const struct ending end = {
		.wait_status = s->wait_status,
		.killed_for = s->killed_for,
		.usage = s->usage,
		.largest_file_bytes = o->done.largest_file_bytes,
		.output_bytes = MAX(o->out.bytes, o->err.bytes),
		.duration_us = (s->end_ns - s->start_ns) / 1000,
		.extended_us = s->extended_us,
	};

	*ret = (struct result_stage){ .duration_us = end.duration_us, .usage = s->usage };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", spec->name);
	if (s->exec_errno != 0)
		not_executed(spec, s->exec_errno, &ret->verdict);
	else
		classify(&end, spec->limits, &ret->verdict);
}

/* --- words of a language --- */

/*
 * Turns words of a language file into words of a program. A word may hold {source}, {source_dir}, {work}, {build}, {class},
 * {stem}, {prelude}, {memory_mb}, {memory_90_mb}, {stack_kb} and {cpus}; words of a `warm` section also their runner's
 * placeholders, and variables of a zygote {usual}. Any other brace stands for itself. A word that begins with {unless TEXT} is left out if the caller's options for the
 * runtime hold that text; {unless TEXT|TEXT}: one of them.
 */

enum { WORD_MAX = REQUEST_WORD_MAX, NUMBER_MAX = 24, STEM_MAX = 256 };

/* Java takes no larger one for a thread. */
#define STACK_BYTES_MAX GiB

struct placeholder {
	const char *name;
	const char *value;
};

static const struct placeholder *match(const struct placeholder *table, const char *p)
{
	for (; table->name; table++) {
		if (table->value && strncmp(p, table->name, strlen(table->name)) == 0)
			return table;
	}
	return NULL;
}

/* "/sandbox/dir/main.ts" -> "main" */
static void stem_of(const char *path, char ret[STEM_MAX])
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	size_t n = dot && dot > name ? (size_t)(dot - name) : strlen(name);

	n = MIN(n, (size_t)STEM_MAX - 1);
	memcpy(ret, name, n);
	ret[n] = '\0';
}

const char *flow_expand(struct arena *arena, const char *word, const struct word_context *c)
{
	char memory_mb[NUMBER_MAX], memory_90_mb[NUMBER_MAX], stack_kb[NUMBER_MAX],
		cpus[NUMBER_MAX], stem[STEM_MAX], source_dir[PATH_MAX];
	const int64_t mib = MAX(c->limits->memory_bytes / (int64_t)MiB, (int64_t)1);
	const struct placeholder table[] = {
		{ "{source}", c->source },
		{ "{source_dir}", source_dir },
		{ "{work}", SANDBOX_WORK },
		{ "{build}", c->build },
		{ "{class}", c->class_name },
		{ "{stem}", stem },
		{ "{prelude}", SANDBOX_PRELUDE },
		{ "{memory_mb}", memory_mb },
		{ "{memory_90_mb}", memory_90_mb },
		{ "{stack_kb}", stack_kb },
		{ "{cpus}", cpus },
		{ "{runner}", c->runner },
		{ "{runner_text}", c->runner_text },
		{ "{runner_fd}", c->runner_fd },
		{ "{usual}", c->usual },
		{ NULL, NULL },
	};
	_cleanup_buf_ struct buf out = { 0 };

	if (!strchr(word, '{'))
		return word;
	stem_of(c->source, stem);
	(void)snprintf(source_dir, sizeof(source_dir), "%.*s",
		       (int)(strrchr(c->source, '/') ? strrchr(c->source, '/') - c->source : 0),
		       c->source);
	(void)snprintf(memory_mb, sizeof(memory_mb), "%" PRId64, mib);
	(void)snprintf(memory_90_mb, sizeof(memory_90_mb), "%" PRId64, mib * 9 / 10);
	(void)snprintf(stack_kb, sizeof(stack_kb), "%" PRId64,
		       (int64_t)(MIN(c->limits->stack_bytes, STACK_BYTES_MAX) / KiB));
	(void)snprintf(cpus, sizeof(cpus), "%" PRId64, plan_cpus(c->limits));
	buf_init(&out, WORD_MAX);
	while (*word) {
		const struct placeholder *p = *word == '{' ? match(table, word) : NULL;
		int r = p ? buf_puts(&out, p->value) : buf_append(&out, word, 1);

		if (r < 0)
			return NULL;
		word += p ? strlen(p->name) : 1;
	}
	return arena_strndup(arena, out.data ? out.data : "", out.len);
}

struct word_context flow_words(struct local_run *run, const char *build,
			       const struct limits *limits)
{
	size_t size = sizeof(SANDBOX_WORK) + 1 + sizeof(run->source);
	char *source = arena_alloc(&run->memory, size);

	if (source)
		(void)snprintf(source, size, SANDBOX_WORK "/%s", run->source);
	return (struct word_context){
		.source = source ? source : "",
		.build = build,
		.limits = limits,
		.class_name = run->class_name,
	};
}

/* One of these texts, with | between them, is in the caller's options for the runtime. */
static bool has_option(const struct local_run *run, const char *texts, const char *end)
{
	while (texts < end) {
		size_t len = strcspn(texts, "|}");

		for (const char **name = run->language->options; *name; name++)
			for (size_t i = 0; i < run->request->n_env; i++) {
				const struct request_var *v = &run->request->env[i];

				if (strcmp(v->name, *name) == 0 &&
				    memmem(v->value, strlen(v->value), texts, len))
					return true;
			}
		texts += len + 1;
	}
	return false;
}

/* The word behind its condition, if it has one; NULL: it is left out. */
static const char *take_condition(const struct local_run *run, const char *word)
{
	static const char head[] = "{unless ";
	const char *text = word + sizeof(head) - 1;
	const char *end = strncmp(word, head, sizeof(head) - 1) == 0 ? strchr(text, '}') : NULL;

	if (!end)
		return word;
	return has_option(run, text, end) ? NULL : end + 1;
}

const char **flow_expand_all(struct local_run *run, const char *const *words,
			     const struct word_context *c, size_t spare)
{
	const char **list;
	size_t n = 0;

	while (words[n])
		n++;
	list = arena_alloc(&run->memory, (n + spare + 1) * sizeof(char *));
	if (!list)
		return NULL;
	for (n = 0; *words; words++) {
		const char *word = take_condition(run, *words);

		if (!word)
			continue;
		list[n] = flow_expand(&run->memory, word, c);
		if (!list[n++])
			return NULL;
	}
	return list;
}

static const char *variable(struct arena *memory, const struct request_var *v)
{
	size_t size = strlen(v->name) + 1 + strlen(v->value) + 1;
	char *word = arena_alloc(memory, size);

	if (word)
		(void)snprintf(word, size, "%s=%s", v->name, v->value);
	return word;
}

static size_t count_words(const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

static const char *const no_words[] = { NULL };

/* The additions of the language's section `workspace` to this run. */
static const struct language_workspace *in_workspace(const struct local_run *run)
{
	const struct language *lang = run->language;

	return lang && lang->workspace.words && run->request->workspace_cwd ? &lang->workspace
									    : NULL;
}

const char **flow_run_words(struct local_run *run, const struct word_context *c, size_t spare)
{
	const struct language_workspace *workspace = in_workspace(run);
	const char *const *own = (const char *const *)run->language->run_argv;
	const char *const *more = workspace ? (const char *const *)workspace->words : no_words;
	size_t n_more = count_words(more);
	const char **words = flow_expand_all(run, own, c, n_more + spare);

	if (!words)
		return NULL;
	memmove(words + 1 + n_more, words + 1,
		(count_words((const char *const *)words) - 1) * sizeof(*words));
	memcpy(words + 1, more, n_more * sizeof(*words));
	return words;
}

const char **flow_env(struct local_run *run, const struct request_stage *stage,
		      const struct word_context *c)
{
	const struct language_workspace *workspace = in_workspace(run);
	const char *const *base = run->language ? (const char *const *)run->language->env
						: no_words;
	const char *const *more = workspace ? (const char *const *)workspace->env : no_words;
	const struct request *req = run->request;
	size_t n_stage = stage ? stage->n_env : 0, n = count_words(base);
	const char **env = flow_expand_all(run, base, c, count_words(more) + req->n_env + n_stage);

	if (!env)
		return NULL;
	for (; *more; more++)
		env[n++] = *more;
	for (size_t i = 0; i < req->n_env + n_stage; i++) {
		const struct request_var *v = i < req->n_env ? &req->env[i]
							     : &stage->env[i - req->n_env];

		env[n] = variable(&run->memory, v);
		if (!env[n++])
			return NULL;
	}
	return env;
}

/* --- the choice of a running runtime --- */

/*
 * Whether a run can be warm, and in which runtime. The result is only a hint: a broker without such a runtime
 * starts the stage cold, with the same result. So every doubtful case stays cold, and nothing here fails.
 */

enum { WARM_WORDS_MAX = 64 }; /* as many as a plan holds of each kind */

static size_t count_module_words(const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* A module's name up to its first dot. */
static size_t top_len(const char *module)
{
	return strcspn(module, ".");
}

struct wanted_modules {
	const struct language_warm *warm;
	uint32_t hits[WARM_TIERS_MAX + 1]; /* the modules of each tier that are imported, as bits */
	bool beyond_light;		   /* a module that is not light is imported */
};
_Static_assert(WARM_MODULES_MAX <= 32, "a bit a module");

/* The bits of the modules with this top-level name: the first of them is enough. */
static uint32_t bit_of(const char *const *modules, const char *name, size_t len)
{
	for (size_t m = 0; modules[m]; m++)
		if (top_len(modules[m]) == len && memcmp(modules[m], name, len) == 0)
			return UINT32_C(1) << m;
	return 0;
}

static void want(void *data, const char *name, size_t len)
{
	struct wanted_modules *w = data;

	for (size_t t = 0; w->warm->tiers[t]; t++)
		w->hits[t] |= bit_of((const char *const *)w->warm->tiers[t], name, len);
	if (!bit_of((const char *const *)w->warm->light, name, len))
		w->beyond_light = true;
}

/*
 * The light tier, if the program imports nothing else. Otherwise the smallest of the tiers that have most of the
 * imported modules; NULL: no tier has any.
 */
static const char *const *tier_of_code(const struct language *lang, struct span code)
{
	const struct language_warm *warm = &lang->warm;
	struct wanted_modules w = { .warm = warm };
	const char *const *best = NULL;
	int best_hits = 0;

	if (!warm->tiers[0] || !language_has_extension(lang, "py") || !code.data)
		return NULL;
	imports_scan(code.data, code.len, want, &w);
	if (warm->light[0] && !w.beyond_light)
		return (const char *const *)warm->light;
	for (size_t t = 0; warm->tiers[t]; t++) {
		const char *const *tier = (const char *const *)warm->tiers[t];
		int hits = warm->tiers[t] == warm->light ? 0 : __builtin_popcount(w.hits[t]);

		if (hits > best_hits || (hits && hits == best_hits &&
					 count_module_words(tier) < count_module_words(best))) {
			best = tier;
			best_hits = hits;
		}
	}
	return best;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_all(const char *const *list, const char *const *words)
{
	for (; *words; words++) {
		const char *const *at = list;

		while (*at && strcmp(*at, *words) != 0)
			at++;
		if (!*at)
			return false;
	}
	return true;
}

/* The modules that the request names, sorted: another order means the same runtime. */
static const char *const *named_modules(const struct local_run *run)
{
	const char **named = run->request->preload;
	const char *const *const *tiers = (const char *const *const *)run->language->warm.tiers;
	size_t n = count_module_words((const char *const *)named);

	for (size_t t = 0; tiers[t]; t++)
		if (count_module_words(tiers[t]) == n &&
		    has_all(tiers[t], (const char *const *)named))
			return tiers[t];
	qsort(named, n, sizeof(*named), by_text);
	return (const char *const *)named;
}

bool flow_is_shadowed(const struct local_run *run, const char *module)
{
	size_t n = top_len(module);

	for (size_t i = 0; i < run->n_files; i++) {
		const char *path = run->files[i].path;

		if (strncmp(path, module, n) == 0 && (path[n] == '.' || path[n] == '/'))
			return true;
	}
	return false;
}

static bool is_any_shadowed(const struct local_run *run, const char *const *modules)
{
	while (*modules && !flow_is_shadowed(run, *modules))
		modules++;
	return *modules;
}

static const char *const *choose_modules(const struct local_run *run)
{
	return run->request->preload ? named_modules(run) : tier_of_code(run->language, run->code);
}

static bool uses(const char *const *words, const char *mark)
{
	for (; *words; words++)
		if (strstr(*words, mark))
			return true;
	return false;
}

/* The command that is started ahead: of the request only its limits may be in it. */
static bool describe_start(struct local_run *run, const struct word_context *words,
			   struct plan_warm *ret)
{
	const struct language *lang = run->language;
	const char *const *argv = (const char *const *)lang->warm.argv;
	size_t n_env = count_module_words((const char *const *)lang->env),
	       n_warm = count_module_words((const char *const *)lang->warm.env);
	struct word_context c = *words;
	const char **env, **on_top;
	struct span runner = { 0 };
	char path[32];

	if (lang->warm.runner &&
	    registry_runner(run->atoll->registry, lang->warm.runner, &runner) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", WARM_FILE_FD);
	c.runner_text = runner.data;
	c.runner_fd = path;
	ret->argv = (const char *const *)flow_expand_all(run, argv, &c, 0);
	env = flow_expand_all(run, (const char *const *)lang->env, &c, n_warm);
	on_top = flow_expand_all(run, (const char *const *)lang->warm.env, &c, 0);
	if (!ret->argv || !env || !on_top || count_module_words(ret->argv) > WARM_WORDS_MAX ||
	    count_module_words(plan_base_env) + n_env + n_warm > WARM_WORDS_MAX)
		return false;
	memcpy(env + n_env, on_top, n_warm * sizeof(*env));
	ret->env = (const char *const *)env;
	if (uses(argv, "{runner_fd}"))
		ret->file = lang->warm.runner;
	return true;
}

/*
 * If the work directory is read-only, a finished sandbox cannot be given the program; a root that only one program may write to is not
 * kept ready.
 */
static bool can_be_warm(const struct local_run *run)
{
	const struct request *req = run->request;

	if (!run->atoll->warm || run->language->warm.kind == WARMTH_NONE || run->decision.tty ||
	    run->decision.read_only || run->decision.writable_root ||
	    run->decision.libraries_only || req->image || req->n_mounts > 0)
		return false;
	for (size_t i = 0; i < req->n_env; i++)
		if (language_wants_cold(run->language, req->env[i].name))
			return false;
	return true;
}

const struct plan_warm *flow_warm(struct local_run *run, const struct word_context *c)
{
	const char *const *modules;
	struct plan_warm *warm;

	if (!can_be_warm(run))
		return NULL;
	warm = arena_alloc(&run->memory, sizeof(*warm));
	if (!warm)
		return NULL;
	warm->name = run->language->name;
	if (run->language->warm.kind == WARMTH_FORK) {
		warm->kind = WARM_FORK;
		modules = choose_modules(run);
		if (modules && !is_any_shadowed(run, modules))
			warm->modules = modules;
		return warm;
	}
	warm->kind = WARM_START;
	return describe_start(run, c, warm) ? warm : NULL;
}
