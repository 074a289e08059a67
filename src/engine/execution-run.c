/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution while it runs: a run of the runner, whose events fill spools and the event log and are told to the watchers at
 * once. Its end puts it on the list of what has ended; the rest is the turn's. Events may come on a fiber's stack.
 */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/fiber.h"
#include "run/analyse/analyse.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	COPY_BYTES = 128 << 10,
	FILE_INLINE = 1 << 20, /* larger files are copied piece by piece, on a fiber */
};

struct run_label execution_label(const struct execution *x)
{
	const struct adaptive_timeout *chosen = x->record.timeout_chosen;

	return (struct run_label){
		.id = x->id,
		/* The row's time, not the runner's. */
		.created_realtime_ns = x->record.created_ns,
		.node = x->engine->o.node,
		.via = "daemon",
		.no_history = x->record.no_history,
		.language = x->record.language,
		.policy = x->record.policy,
		.labels = json_object_get(x->record.body, "labels"),
		.timeout_chosen_ms = chosen ? chosen->timeout_ms : 0,
		.timeout_reason = chosen ? chosen->reason : NULL,
	};
}

void execution_set_end(struct execution *x, struct run_end *end)
{
	struct execution_record *r = &x->record;

	assert(!r->end_text.data && !r->summary.message);
	r->has_end = true;
	r->summary = end->summary;
	r->end_text = end->text;
	end->summary.message = NULL;
	end->text = (struct span){ 0 };
}

void execution_set_nothing(struct execution *x, enum run_status status)
{
	static const struct {
		enum cause_kind kind;
		const char *detail;
	} causes[_STATUS_MAX] = {
		[STATUS_CANCELLED] = { CAUSE_CANCELLED, "cancelled before it ran" },
		[STATUS_TIMEOUT] = { CAUSE_TIMEOUT, "its time was over before its turn came" },
		[STATUS_INTERRUPTED] = { CAUSE_INTERRUPTED,
					 "the server stopped before it ran; run it again" },
		[STATUS_INTERNAL_ERROR] = { CAUSE_INTERNAL, "the server ran out of memory" },
	};
	const struct run_label label = execution_label(x);
	struct run_end end = run_end_unbegun(&label, status, causes[status].kind,
					     causes[status].detail);

	execution_set_end(x, &end);
}

/* The end is written with the next round. */
static void list_end(struct execution *x)
{
	execution_charge_nothing(x);
	list_add(&x->engine->finishing, x);
	engine_want_commit(x->engine);
}

void execution_end(struct execution *x)
{
	execution_move(x, EXECUTION_ENDING);
	list_end(x);
}

void execution_end_early(struct execution *x, enum run_status status)
{
	execution_set_nothing(x, status);
	execution_end(x);
}

static void on_execution_started(struct execution *x, int64_t at_ns, bool warm)
{
	x->program_ns = at_ns;
	x->warm = warm;
	deadline_started(x, at_ns);
	if (warm)
		x->engine->metrics.warm++;
	else
		x->engine->metrics.cold++;
}

static void on_execution_output(struct execution *x, enum output_stream stream, struct span bytes)
{
	enum event_kind kind = stream == OUTPUT_STDERR ? EVENT_STDERR : EVENT_STDOUT;
	const struct spool *s = stream_spool(&x->stream, kind);
	int r = stream_print(&x->stream, kind, bytes);

	if (s->fd < 0 && s->error == 0)
		deadline_printed(x);
	if (r < 0)
		log_say(x->engine->o.log, LOG_WARNING, "output is not kept whole",
			LOG_TEXT("id", x->id), LOG_TEXT("why", strerror(-r)));
}

static void on_execution_stage(struct execution *x, const struct run_event *event)
{
	int code = event->stage.exit_code;
	json_t *body = json_pack("{s:s, s:s, s:o, s:f}", "name", event->stage.name, "status",
				 status_name(event->stage.status), "exit_code",
				 code < 0 ? json_null() : json_integer(code), "duration",
				 (double)event->stage.duration_us / 1e6);

	stream_add_control(&x->stream, EVENT_STAGE, body);
}

static void on_execution_usage(struct execution *x, const struct usage *usage)
{
	struct error err = { 0 };

	x->usage = *usage;
	/* A run that lasts so long gets a row, so that it has a result if this process dies. */
	if (history_health(x->engine->o.history).degraded == 0)
		(void)!execution_ensure_row(x, &err);
	stream_add_usage(&x->stream, execution_usage_json(usage));
}

/* A counter that the host does not have is null, as in results. */
static json_t *count_or_null(int64_t n)
{
	return n < 0 ? json_null() : json_integer(n);
}

json_t *execution_usage_json(const struct usage *u)
{
	return json_pack("{s:f, s:f, s:f, s:o, s:o, s:o, s:o}", "cpu_time",
			 (double)(u->user_us + u->system_us) / 1e6, "user",
			 (double)u->user_us / 1e6, "system", (double)u->system_us / 1e6,
			 "memory_peak", count_or_null(u->memory_peak_bytes), "pids_peak",
			 count_or_null(u->pids_peak), "io_read", count_or_null(u->io_read_bytes),
			 "io_write", count_or_null(u->io_write_bytes));
}

/* The directory that a file of this path goes into, made as needed; names were checked. */
static int open_file_parent(int root_fd, const char *path, const char **ret_name)
{
	_cleanup_close_ int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
	const char *slash;

	while (fd >= 0 && (slash = strchr(path, '/'))) {
		char name[256];
		int next;

		if ((size_t)(slash - path) >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, path, (size_t)(slash - path));
		name[slash - path] = '\0';
		if (mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		(void)fd_close(fd);
		fd = next;
		path = slash + 1;
	}
	*ret_name = path;
	return fd < 0 ? -errno : TAKE_FD(fd);
}

static int copy_bytes(const struct run_file *file, int to_fd)
{
	_cleanup_free_ char *piece = malloc(COPY_BYTES);
	int64_t offset = 0;

	if (!piece)
		return -ENOMEM;
	for (;;) {
		ssize_t n = pread(file->fd, piece, COPY_BYTES, offset);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = fd_write_all(to_fd, piece, (size_t)n);
		if (r < 0)
			return r;
		offset += n;
		if (file->size > FILE_INLINE && fiber_current())
			fiber_yield();
	}
}

static int keep_file(struct execution *x, const struct run_file *file)
{
	_cleanup_close_ int parent = -EBADF, fd = -EBADF;
	struct error err = { 0 };
	const char *name = NULL;
	int r = request_check_path(file->path, strlen(file->path), NULL);

	if (r < 0)
		return r;
	if (x->record.files_fd < 0) {
		r = execution_ensure_row(x, &err);
		if (r < 0)
			return r;
		x->record.files_fd = history_files_create(x->engine->o.history, x->id);
		if (x->record.files_fd < 0)
			return x->record.files_fd;
	}
	parent = open_file_parent(x->record.files_fd, file->path, &name);
	if (parent < 0)
		return parent;
	fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = copy_bytes(file, fd);
	if (r == 0)
		x->record.files_bytes += file->size;
	return r;
}

static void on_execution_file(struct execution *x, const struct run_file *file)
{
	int r = x->record.files_error;

	if (x->record.no_history)
		return; /* the result lists it */
	if (r == 0)
		r = keep_file(x, file);

	if (r < 0 && x->record.files_error == 0)
		log_say(x->engine->o.log, LOG_WARNING, "files are not kept", LOG_TEXT("id", x->id),
			LOG_TEXT("why", strerror(-r)));
	/* A name that cannot be kept concerns that file; a full disk concerns all further files. */
	if (r < 0 && r != -EINVAL && r != -ENAMETOOLONG)
		x->record.files_error = r;
}

static int keep_value(struct execution *x, struct span piece)
{
	struct execution_record *record = &x->record;
	struct history *h = x->engine->o.history;
	struct error err = { 0 };
	int r = 0;

	if (record->value_fd < 0) {
		r = record->no_history ? 0 : execution_ensure_row(x, &err);
		if (r >= 0)
			r = record->no_history ? history_output_nameless(h, x->id, HISTORY_VALUE)
					       : history_output_create(h, x->id, HISTORY_VALUE);
		if (r < 0)
			return r;
		record->value_fd = r;
	}
	r = fd_write_all(record->value_fd, piece.data, piece.len);
	record->value_bytes += r < 0 ? 0 : (int64_t)piece.len;
	return r;
}

/* A part of a value is of no use: without room nothing of it is kept. */
static void on_execution_value(struct execution *x, struct span piece)
{
	int r = x->record.value_error == 0 ? keep_value(x, piece) : 0;

	if (r >= 0)
		return;
	x->record.value_error = r;
	x->record.value_fd = fd_close(x->record.value_fd);
	x->record.value_bytes = 0;
	(void)history_output_delete(x->engine->o.history, x->id, HISTORY_VALUE);
	log_say(x->engine->o.log, LOG_WARNING, "a large value is not kept", LOG_TEXT("id", x->id),
		LOG_TEXT("why", strerror(-r)));
}

/* Nothing has begun, and the waiting caller can be told so: then nothing is kept. */
static bool is_refused(const struct execution *x, const struct run_end *end)
{
	return run_lacks_room(&end->error, x->program_ns != 0) &&
	       end->error.code != ERROR_INTERNAL && x->to.on_refused &&
	       x->state != EXECUTION_OVERDUE && !x->cancel_wanted && !end->summary.tests_ran;
}

static void on_execution_end(struct execution *x, struct run_end *end)
{
	x->run = NULL;
	x->record.no_room = is_refused(x, end);
	x->record.unwanted = x->record.unwanted || (x->record.no_room && x->record.row);
	if (end->error.code == ERROR_INTERNAL || end->error.code == ERROR_BUSY)
		log_say(x->engine->o.log, LOG_ERROR, "a run failed", LOG_TEXT("id", x->id),
			LOG_TEXT("why", end->error.text));
	execution_set_end(x, end);
	execution_move(x, EXECUTION_ENDING);
	finish_large(x);
	list_end(x);
}

static int on_execution_event(void *data, const struct run_event *event)
{
	struct execution *x = data;

	switch (event->kind) {
	case RUN_STARTED:
		on_execution_started(x, event->started.at_ns, event->started.warm);
		break;
	case RUN_OUTPUT:
		on_execution_output(x, event->output.stream, event->output.bytes);
		break;
	case RUN_STAGE:
		on_execution_stage(x, event);
		break;
	case RUN_USAGE:
		on_execution_usage(x, event->usage);
		break;
	case RUN_FILE:
		on_execution_file(x, event->file);
		break;
	case RUN_STDIN_ROOM:
		watchers_stdin(&x->stream);
		break;
	case RUN_RICH:
		stream_add_control(&x->stream, EVENT_OUTPUT, json_incref(event->body));
		break;
	case RUN_HOST_CALL:
		stream_add_control(&x->stream, EVENT_HOST_CALL, json_incref(event->body));
		break;
	case RUN_VALUE:
		on_execution_value(x, event->value);
		break;
	case RUN_END:
		on_execution_end(x, event->end);
		break;
	case RUN_SIGNALLED:
	case RUN_INHERITED: /* of a session's sandbox, not of an execution */
		break;
	}
	return 0;
}

/* A job that waited comes with little: what it needs is made again. */
static int open_again(struct execution *x, struct error *err)
{
	const struct text_place place = { .history = x->engine->o.history,
					  .id = x->id,
					  .which = HISTORY_REQUEST };
	_cleanup_history_row_ struct history_row row = { 0 };
	/* A reference of our own: an execution that is cancelled meanwhile drops its body. */
	json_t *body = json_incref(x->record.body);
	struct prepared p = { 0 };
	int r;

	if (!body) {
		r = history_get(x->engine->o.history, NULL, x->id, &row);
		if (r == 0)
			(void)!text_load_json(&place, &row.request, &body);
		if (!body)
			return error_set(err, ERROR_STORAGE, EIO,
					 "its request cannot be read back");
		if (x->state < EXECUTION_ENDING)
			x->record.body = json_incref(body);
	}
	/* One that the last process accepted comes without. */
	r = prepare_callback(x, body, err);
	if (r >= 0)
		r = prepare_body(x->engine, body, &p, err);
	if (r >= 0)
		r = prepare_run(x, &p, err);
	prepared_done(&p);
	json_decref(body);
	return r;
}

static void announce(struct execution *x)
{
	char created[32];
	json_t *body;

	clock_format_utc(x->record.created_ns, created, sizeof(created));
	body = json_pack("{s:s, s:s*, s:s}", "id", x->id, "language",
			 *x->record.language ? x->record.language : NULL, "created_at", created);
	stream_add_control(&x->stream, EVENT_START, body);
}

/* A watcher may attach to a job without input of its own and write to it. */
static bool waits_for_input(const struct execution *x)
{
	const json_t *input = json_object_get(x->record.body, "stdin");

	return execution_is_job(x) && x->input == INPUT_GIVEN && (!input || json_is_null(input)) &&
	       !json_object_get(x->record.body, "tests");
}

static void drop_run(struct execution *x)
{
	if (x->run)
		run_discard(TAKE_PTR(x->run));
}

static void begin_execution(struct execution *x)
{
	struct run_start how = {
		.observer = { x, RUN_EVENTS_ALL, on_execution_event },
		.accepted_ns = x->accepted_ns,
		.places = execution_places(x),
		/* No reader needs events before the end. */
		.quiet = x->mode == SUBMIT_WAITED && !x->stream.watchers,
	};
	struct error err = { 0 };
	struct run_end end;
	int r = x->run ? 0 : open_again(x, &err);
	bool cancelled = false;

	/* Cancelled while it was prepared: it has its end. */
	if (x->state >= EXECUTION_ENDING) {
		drop_run(x);
		return;
	}
	if (r >= 0) {
		execution_move(x, EXECUTION_RUNNING);
		/* Now its body is there, also that of a job that waited. */
		if (waits_for_input(x))
			x->input = INPUT_ATTACHABLE;
		how.interactive = x->input != INPUT_GIVEN;
		if (!x->record.started_ns)
			x->record.started_ns = clock_realtime_ns();
		histogram_add(&x->engine->metrics.wait, (clock_now_ns() - x->accepted_ns) / 1000);
		announce(x);
		/* A watcher that was told of the start may have cancelled it. */
		cancelled = x->cancel_wanted;
		how.label = execution_label(x);
		if (!cancelled)
			r = x->run->vtable->start(x->run, &how, &err);
	}
	if (r >= 0 && !cancelled)
		return;
	drop_run(x);
	if (cancelled) {
		execution_end_early(x, STATUS_CANCELLED);
		return;
	}
	audit_refused(x->engine, x->caller->name, &err);
	how.label = execution_label(x);
	end = run_end_refused(&how.label, &err);
	execution_set_end(x, &end);
	execution_end(x);
}

static void begin_on_fiber(void *data)
{
	struct execution *x = data;

	begin_execution(x);
	if (execution_is_running(x))
		audit_created(x);
	x->engine->fibers--;
	(void)execution_unref(x);
}

/* What has to be read again takes time, and so does judging it: a runtime is asked for its version, an archive is unpacked. */
static bool is_quick(const struct execution *x)
{
	const char *language = json_string_value(json_object_get(x->record.body, "language"));

	return x->run || (x->record.body && !(language && strchr(language, '@')) &&
			  !json_object_get(x->record.body, "archive"));
}

bool execution_begin(struct execution *x)
{
	if (is_quick(x)) {
		begin_execution(x);
		return execution_is_running(x);
	}
	execution_move(x, EXECUTION_PREPARING);
	x->engine->fibers++;
	if (fiber_start(x->engine->o.loop, begin_on_fiber, execution_ref(x)) == 0)
		return false;
	x->engine->fibers--;
	(void)execution_unref(x);
	execution_end_early(x, STATUS_INTERNAL_ERROR);
	return false;
}
