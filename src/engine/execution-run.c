/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution while it runs: a run of the executor, whose events fill spools and the event log and are told to the watchers at
 * once. Its end puts it on the list of what has ended; the rest is the turn's. Events may come on a fiber's stack.
 */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/fiber.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 128 << 10 };

struct result *execution_nothing(enum run_status status)
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
	struct result *res = result_new();

	if (!res)
		return NULL;
	res->verdict.status = status;
	res->verdict.exit_code = -1;
	res->verdict.cause.kind = causes[status].kind;
	(void)snprintf(res->verdict.cause.detail, sizeof(res->verdict.cause.detail), "%s",
		       causes[status].detail);
	return res;
}

/* The end is written with the next round. */
static void list_end(struct execution *x)
{
	execution_charge_nothing(x);
	list_add(&x->engine->finishing, x);
	engine_want_commit(x->engine);
}

void execution_end(struct execution *x, struct result *res)
{
	execution_move(x, EXECUTION_ENDING);
	x->record.ended = res;
	list_end(x);
}

void execution_end_early(struct execution *x, enum run_status status)
{
	execution_end(x, execution_nothing(status));
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

static void on_execution_stage(struct execution *x, const struct result_stage *stage)
{
	int code = stage->verdict.exit_code;
	json_t *body = json_pack("{s:s, s:s, s:o, s:f}", "name", stage->name, "status",
				 status_name(stage->verdict.status), "exit_code",
				 code < 0 ? json_null() : json_integer(code), "duration",
				 (double)stage->duration_us / 1e6);

	stream_add_control(&x->stream, EVENT_STAGE, body);
	/* It is built, and that was all there was time for. */
	if (x->state == EXECUTION_OVERDUE)
		x->carrier->kill(x->run, CAUSE_TIMEOUT);
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
		if (file->size > EXECUTOR_FILE_INLINE && fiber_current())
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
		on_execution_stage(x, event->stage.result);
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
	case RUN_SIGNALLED:
	case RUN_INHERITED: /* of a session's sandbox, not of an execution */
		break;
	}
	return 0;
}

/* The broker has no room. EMFILE: the program may have begun without a record of it. */
static bool lacks_room(const struct execution *x, const struct error *err)
{
	return !x->program_ns && (err->code == ERROR_BUSY || err->code == ERROR_NOT_READY ||
				  (err->code == ERROR_INTERNAL && err->errnum == EMFILE));
}

/* What failed it was not the program: it can be run again as it is. */
static void lost_its_broker(const struct execution *x, struct result *res, const struct error *err)
{
	struct cause *cause = &res->verdict.cause;
	bool none_died = err->errnum == EHOSTUNREACH || lacks_room(x, err);
	const char *why = none_died ? err->text
			  : x->program_ns
				  ? "the sandbox broker died while this was running: run it again"
				  : "the sandbox broker died before this could begin: run it again";

	res->refusal = ERROR_NONE;
	res->verdict.status = STATUS_INTERRUPTED;
	cause->kind = CAUSE_INTERRUPTED;
	cause->retryable = true;
	(void)snprintf(cause->detail, sizeof(cause->detail), "%s", why);
}

/* What could be judged when it was accepted and cannot be now is none of its own doing: it can be run again, too. */
static void refuse_execution(struct execution *x, const struct error *err)
{
	struct result *res = result_from_error(err);

	audit_refused(x->engine, x->caller->name, err);
	if (res && err->code == ERROR_LOST)
		lost_its_broker(x, res, err);
	else if (res && lacks_room(x, err))
		res->verdict.cause.retryable = true;
	execution_end(x, res);
}

/* What it came to after that is of no account: on record is what was answered. */
static void took_too_long(struct result *res)
{
	struct verdict *v = &res->verdict;

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

/* Nothing has begun, and the waiting caller can be told so: then nothing is kept. */
static bool is_refused(const struct execution *x, const struct result *res, const struct error *err)
{
	return lacks_room(x, err) && err->code != ERROR_INTERNAL && x->to.on_refused &&
	       x->state != EXECUTION_OVERDUE && !x->cancel_wanted && !finish_tests_ran(res);
}

static void on_execution_end(void *data, struct result *res, const struct error *err)
{
	struct execution *x = data;
	bool overdue = x->state == EXECUTION_OVERDUE;

	x->run = NULL;
	x->record.no_room = res && is_refused(x, res, err);
	x->record.unwanted = x->record.unwanted || (x->record.no_room && x->record.row);
	if (res && (err->code == ERROR_LOST || lacks_room(x, err)))
		lost_its_broker(x, res, err);
	if (err->code == ERROR_INTERNAL || err->code == ERROR_BUSY)
		log_say(x->engine->o.log, LOG_ERROR, "a run failed", LOG_TEXT("id", x->id),
			LOG_TEXT("why", err->text));
	x->record.ended = res ? res : result_from_error(err);
	if (overdue && x->record.ended)
		took_too_long(x->record.ended);
	execution_move(x, EXECUTION_ENDING);
	if (x->record.ended)
		finish_large(x);
	list_end(x);
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
		x->carrier->discard(x->run);
	x->run = NULL;
}

static void begin_execution(struct execution *x)
{
	struct executor_start_options options = {
		.observer = { x, RUN_EVENTS_ALL, on_execution_event },
		.on_end = on_execution_end,
		.id = x->id,
		.accepted_ns = x->accepted_ns,
		.places = execution_places(x),
		/* No reader needs events before the end. */
		.quiet = x->mode == SUBMIT_WAITED && !x->stream.watchers,
	};
	struct error err = { 0 };
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
		options.interactive = x->input != INPUT_GIVEN;
		if (!x->record.started_ns)
			x->record.started_ns = clock_realtime_ns();
		histogram_add(&x->engine->metrics.wait, (clock_now_ns() - x->accepted_ns) / 1000);
		announce(x);
		/* A watcher that was told of the start may have cancelled it. */
		cancelled = x->cancel_wanted;
		if (!cancelled)
			r = x->carrier->start(x->run, &options, &err);
	}
	if (r >= 0 && !cancelled)
		return;
	drop_run(x);
	if (cancelled)
		execution_end_early(x, STATUS_CANCELLED);
	else
		refuse_execution(x, &err);
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
