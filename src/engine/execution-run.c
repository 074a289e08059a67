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

/* 1: not all of it was kept. */
static int on_execution_output(struct execution *x, enum output_stream stream, struct span bytes)
{
	enum event_kind kind = stream == OUTPUT_STDERR ? EVENT_STDERR : EVENT_STDOUT;
	const struct spool *s = stream_spool(&x->stream, kind);
	int r = stream_print(&x->stream, kind, bytes);

	if (s->fd < 0 && s->error == 0)
		deadline_printed(x);
	if (r < 0)
		log_say(x->engine->o.log, LOG_WARNING, "output is not kept whole",
			LOG_TEXT("id", x->id), LOG_TEXT("why", strerror(-r)));
	return s->error < 0;
}

static ssize_t read_output(void *data, enum output_stream stream, int64_t offset, void *ret,
			   size_t n)
{
	const struct execution *x = data;

	return spool_read(&x->stream.spools[stream == OUTPUT_STDERR], offset, ret, n);
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
	assert(x->run && execution_is_running(x));
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
	json_t *code;

	switch (event->kind) {
	case RUN_STARTED:
		x->program_ns = event->started.at_ns;
		x->warm = event->started.warm;
		deadline_started(x, x->program_ns);
		if (x->warm)
			x->engine->metrics.warm++;
		else
			x->engine->metrics.cold++;
		break;
	case RUN_OUTPUT:
		return on_execution_output(x, event->output.stream, event->output.bytes);
	case RUN_STAGE:
		code = event->stage.exit_code < 0 ? json_null()
						  : json_integer(event->stage.exit_code);
		stream_add_control(&x->stream, EVENT_STAGE,
				   json_pack("{s:s, s:s, s:o, s:f}", "name", event->stage.name,
					     "status", status_name(event->stage.status),
					     "exit_code", code, "duration",
					     (double)event->stage.duration_us / 1e6));
		break;
	case RUN_USAGE:
		x->usage = *event->usage;
		/* A run that lasts so long gets a row, so that it has a result if this process dies. */
		if (history_health(x->engine->o.history).degraded == 0)
			(void)!execution_ensure_row(x, &(struct error){ 0 });
		stream_add_usage(&x->stream, execution_usage_json(event->usage));
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
		.keeper = { x, read_output },
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
		how.rows = x->rows;
		how.columns = x->columns;
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

/* --- its end --- */

/*
 * The end of an execution: result as JSON and text, files of the streams where that does not hold every byte, the row, and
 * then the waiting caller and the watchers. A result that cannot be written is told all the same, and written when the disk is back. One that
 * could never be written, because neither a row nor our memory can hold it, is made short before it is told.
 */

enum {
	MEAN_WEIGHT = 8,
	SEARCHED_BYTES = 8 << 10, /* of each output, at its beginning */
};

static void keep_streams(struct execution *x)
{
	struct error err = { 0 };

	for (int i = 0; i < 2; i++) {
		struct spool *s = &x->stream.spools[i];
		int64_t bytes = x->record.summary.output[i].bytes;
		bool whole = x->record.summary.output[i].whole;
		int r = 0;

		if (s->fd < 0 && s->error == 0 && s->size > 0 && !whole) {
			r = execution_ensure_row(x, &err);
			if (r == 0)
				r = spool_keep(s);
		}
		/* One that was made only in case this process died, or that has less than the result. Of large ones most are neither. */
		s->spare = s->fd >= 0 && (s->size <= SPOOL_MEMORY_MAX || bytes != s->size) && whole;
		if (bytes != s->size && !s->spare)
			spool_cut(s->fd);
		if (r == 0 && s->fd >= 0 && !s->spare && x->engine->o.full && fdatasync(s->fd) < 0)
			r = -errno;
		if (r < 0)
			log_say(x->engine->o.log, LOG_WARNING, "output is not kept whole",
				LOG_TEXT("id", x->id), LOG_TEXT("why", strerror(-r)));
	}
}

/*
 * Must the log of events be kept? Not if no watcher can know a number, nor if a reader of the stored result counts the same
 * without the log: the start, the output, the stages of the result, which need not be those that were told. A process that died
 * may have told more than it had kept: see readback.c.
 */
static bool needs_log(const struct execution *x)
{
	const struct events *l = &x->stream.events;

	return x->stream.watched && !x->record.no_history &&
	       (x->record.summary.status == STATUS_INTERRUPTED ||
		l->n_controls != 1 + x->record.summary.n_stages || !events_are_plain(l));
}

static void keep_log(struct execution *x)
{
	const struct events *l = &x->stream.events;
	int r = stream_keep_log(&x->stream);

	if (l->log_ended)
		spool_cut(l->log.fd);
	if (r == 0 && x->engine->o.full && l->log.fd >= 0 && fdatasync(l->log.fd) < 0)
		r = -errno;
	if (r < 0)
		log_say(x->engine->o.log, LOG_WARNING, "the order of output is not kept",
			LOG_TEXT("id", x->id), LOG_TEXT("why", strerror(-r)));
}

/* A text that the row can hold, or none: then there is no memory at all. */
static void settle_text(struct execution *x)
{
	struct execution_record *r = &x->record;
	struct run_end end = { .text = r->end_text, .summary = r->summary };

	if (r->result_filed || r->end_text.len <= HISTORY_BODY_MAX)
		return;
	log_say(x->engine->o.log, LOG_WARNING, "a result is too large to be kept",
		LOG_TEXT("id", x->id));
	run_end_strip(&end);
	r->end_text = end.text;
	r->summary = end.summary;
}

void finish_large(struct execution *x)
{
	const struct text_place place = { x->engine->o.history, x->id, HISTORY_RESULT,
					  x->engine->o.full };
	struct execution_record *r = &x->record;

	/* One that cannot be written goes into the row, where all trouble with the disk is seen to. */
	if (r->end_text.len >= TEXT_FILE_BYTES && !r->no_history)
		r->result_filed = text_save(&place, r->end_text) == 0;
	settle_text(x);
}

static void make_text(struct execution *x)
{
	if (x->record.result_text.data)
		return;
	if (!x->record.end_text.data)
		execution_set_nothing(x, STATUS_INTERNAL_ERROR);
	settle_text(x);
	x->record.result_text = x->record.end_text;
	x->record.end_text = (struct span){ 0 };
}

void finish_prepare(struct execution *x)
{
	x->record.ended_ns = clock_realtime_ns();
	make_text(x);
	stream_finish(&x->stream, x->record.ended_ns);
	if (x->record.result_text.data) {
		if (needs_log(x))
			keep_log(x);
		if (!x->record.no_history)
			keep_streams(x);
	}
}

/* What the history can be searched for. *own: the memory of it, if it had to be read. */
static struct span head_of(const struct spool *s, char **own)
{
	ssize_t n;

	if (s->fd < 0)
		return (struct span){ s->memory.data, MIN(s->memory.len, (size_t)SEARCHED_BYTES) };
	*own = malloc(SEARCHED_BYTES);
	n = *own ? spool_read(s, 0, *own, SEARCHED_BYTES) : 0;
	return (struct span){ *own, n > 0 ? (size_t)n : 0 };
}

static int64_t kept_bytes(const struct spool *s)
{
	return s->fd >= 0 && !s->spare ? s->size : 0;
}

int finish_record(struct execution *x, struct error *err)
{
	struct history *h = x->engine->o.history;
	const struct run_summary *s = &x->record.summary;
	const json_t *code = json_object_get(x->record.body, "code");
	struct history_new row;
	struct history_end end;
	_cleanup_free_ char *out = NULL, *err_out = NULL;
	bool ran;

	make_text(x); /* of which there is one, unless there was no memory for any */
	if (!x->record.result_text.data)
		return error_oom(err);
	if ((x->record.no_room && !x->record.row) || x->record.no_history)
		return 0;
	/* A compiler that failed, and tests, too. */
	ran = x->program_ns || s->n_stages > 0 || s->tests_ran;
	end = (struct history_end){
		.status = s->status,
		.exit_code = s->exit_code,
		.ended_ns = x->record.ended_ns,
		.duration_us = ran ? s->duration_us : -1,
		.cpu_us = ran ? s->cpu_us : -1,
		.memory_peak_bytes = ran ? s->memory_peak_bytes : -1,
		.kept_bytes = kept_bytes(&x->stream.spools[0]) + kept_bytes(&x->stream.spools[1]) +
			      x->record.files_bytes + x->record.value_bytes +
			      (needs_log(x) ? x->stream.events.log.filed : 0) +
			      (x->record.result_filed ? (int64_t)x->record.result_text.len : 0),
		.language = *x->record.language ? x->record.language : NULL,
		.policy = *x->record.policy ? x->record.policy : NULL,
		.result = x->record.result_filed ? (struct span){ "", 0 } : x->record.result_text,
		.code = { json_string_value(code), json_string_length(code) },
		.stdout_text = head_of(&x->stream.spools[0], &out),
		.stderr_text = head_of(&x->stream.spools[1], &err_out),
		.error_message = { s->message, s->message ? strlen(s->message) : 0 },
	};
	if (x->record.row)
		return history_finish(h, x->record.row, &end, err);
	row = execution_new_row(x, true);
	/* Its file could not be written, and no row holds it: a request for its body is answered that it is gone. */
	if (row.request.len > HISTORY_BODY_MAX)
		row.request = (struct span){ "", 0 };
	return history_record(h, &row, &end, &x->record.row, err);
}

static void measure_streams(struct execution *x)
{
	struct engine *e = x->engine;
	int64_t total_us = (clock_now_ns() - x->accepted_ns) / 1000;

	metrics_ended(&e->metrics, x->record.language, &x->record.summary);
	histogram_add(&e->metrics.total, total_us);
	if (x->program_ns && x->record.started_ns)
		e->mean_us += ((x->record.ended_ns - x->record.started_ns) / 1000 - e->mean_us) /
			      MEAN_WEIGHT;
}

/* It is on record, or never will be. */
void finish_forget(struct execution *x)
{
	struct error err = { 0 };

	/* The file may have been made only in case this process died. */
	if (x->record.has_end && x->stream.events.log.fd >= 0 && !needs_log(x))
		(void)history_output_delete(x->engine->o.history, x->id, HISTORY_EVENTS);
	/* Present readers have it open. */
	for (int i = 0; i < 2; i++)
		if (x->stream.spools[i].spare)
			(void)history_output_delete(x->engine->o.history, x->id,
						    x->stream.spools[i].stream);
	if (x->record.unwanted)
		(void)!history_delete(x->engine->o.history, NULL, x->id, &err);
	free(TAKE_PTR(x->record.summary.message));
	/* Of a request that may be large, others have no use. */
	json_decref(x->record.body);
	x->record.body = NULL;
	if (x->stream.watchers)
		readback_add(x);
	execution_disown(x);
}

static void tell_refused(struct execution *x)
{
	struct engine *e = x->engine;
	int32_t retry_s = engine_retry_after_s(e);
	struct error err = { 0 };

	metrics_refused(&e->metrics, ERROR_BUSY);
	(void)error_set(&err, ERROR_BUSY, EBUSY,
			"the server has no room for another run; try again in %d s", (int)retry_s);
	(void)error_retry(&err, 0, retry_s);
	if (x->to.on_refused)
		x->to.on_refused(x->to.data, x, &err);
}

void finish_tell(struct execution *x)
{
	struct engine *e = x->engine;
	bool saved = x->record.written == 0 || x->record.written == -EALREADY ||
		     x->record.written == -ENOENT;

	execution_move(x, EXECUTION_TOLD);
	if (x->record.result_text.data)
		stream_end(&x->stream, x->record.result_text, x->record.ended_ns);
	/* A caller that is told may drop its reference; counting and auditing follow. */
	(void)execution_ref(x);
	if (x->record.no_room)
		tell_refused(x);
	else if (x->to.on_end)
		x->to.on_end(x->to.data, x);
	x->to.on_end = NULL;
	x->to.on_refused = NULL;
	x->to.on_timeout = NULL;
	if (x->record.result_text.data)
		watchers_wake(&x->stream);
	else
		watchers_lose(&x->stream); /* there was no memory for a result */
	if (x->callback_url && !x->record.no_room)
		poster_post(e->poster, x);
	if (x->record.result_text.data && !x->record.no_room) {
		measure_streams(x);
		audit_ended(x);
	}
	if (saved) {
		finish_forget(x);
	} else {
		log_say(e->o.log, LOG_ERROR, "a result is not on record yet", LOG_TEXT("id", x->id),
			LOG_TEXT("why", x->record.trouble.text));
		list_add(&e->unsaved, x);
	}
	if (e->queue.count > 0)
		engine_want_commit(e);
	(void)execution_unref(x);
}
