/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked about one execution by its id, whether it lives or lies in the history. */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/fiber.h"
#include "base/loop/worker.h"
#include "base/parse.h"
#include "base/sys/textfile.h"
#include "run/analyse/analyse.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int query_say(struct error *err, int r, enum error_code otherwise)
{
	if (r == -ENOENT)
		return error_set(err, ERROR_NOT_FOUND, ENOENT, "There is no such execution.");
	return error_set(err, otherwise, -r, "the execution cannot be read: %s", strerror(-r));
}

static int not_ended(struct error *err)
{
	return error_set(err, ERROR_NOT_ENDED, EAGAIN,
			 "The execution has not ended yet; ask again when it has.");
}

static void execution_cleanup(struct execution **x)
{
	(void)execution_unref(*x);
}
#define _cleanup_execution_ _cleanup_(execution_cleanup)

static json_t *state_to_json(const struct execution *x)
{
	bool running = x->state >= EXECUTION_RUNNING && x->record.started_ns;
	char created[32], started[32];
	json_t *root;

	clock_format_utc(x->record.created_ns, created, sizeof(created));
	clock_format_utc(x->record.started_ns, started, sizeof(started));
	root = json_pack("{s:s, s:s, s:s?, s:s?, s:s, s:s?, s:I, s:I}", "id", x->id, "status",
			 running ? "running" : "queued", "language",
			 *x->record.language ? x->record.language : NULL, "policy",
			 *x->record.policy ? x->record.policy : NULL, "created_at", created,
			 "started_at", running ? started : NULL, "stdout_bytes",
			 (json_int_t)x->stream.spools[0].size, "stderr_bytes",
			 (json_int_t)x->stream.spools[1].size);
	if (!root)
		return NULL;
	(void)json_object_set_new(root, "usage",
				  running ? execution_usage_json(&x->usage) : json_null());
	if (json_is_object(json_object_get(x->record.body, "labels")))
		(void)json_object_set(root, "labels", json_object_get(x->record.body, "labels"));
	return root;
}

/* One that has left the memory. */
static int load_ended(struct engine *e, const char *caller, const char *id, char **ret_text,
		      json_t **ret_tree, struct error *err)
{
	_cleanup_history_row_ struct history_row row = { 0 };
	const struct text_place place = { .history = e->o.history,
					  .id = id,
					  .which = HISTORY_RESULT };
	int r = history_get(e->o.history, caller, id, &row);

	if (r == 0)
		r = ret_text ? text_load(&place, &row.result, ret_text)
			     : text_load_json(&place, &row.result, ret_tree);
	return r < 0 ? query_say(err, r, ERROR_STORAGE) : 0;
}

int engine_get(struct engine *e, const char *caller, const char *id, json_t **ret,
	       struct error *err)
{
	_cleanup_execution_ struct execution *x = engine_find(e, caller, id);
	json_t *tree;
	int r;

	if (x && !execution_has_ended(x)) {
		tree = state_to_json(x);
	} else if (x && x->record.result_text.data) {
		tree = json_incref(execution_result(x));
	} else {
		r = load_ended(e, caller, id, NULL, &tree, err);
		if (r < 0)
			return r;
	}
	if (!tree)
		return error_oom(err);
	*ret = tree;
	return 0;
}

int engine_get_text(struct engine *e, const char *caller, const char *id, char **ret,
		    struct error *err)
{
	_cleanup_execution_ struct execution *x = engine_find(e, caller, id);
	json_t *state;
	char *text;
	int r;

	if (x && !execution_has_ended(x)) {
		state = state_to_json(x);
		text = state ? json_dumps(state, JSON_COMPACT | result_json_flags(state)) : NULL;
		json_decref(state);
	} else if (x && x->record.result_text.data) {
		text = strdup(x->record.result_text.data);
	} else {
		r = load_ended(e, caller, id, &text, NULL, err);
		if (r < 0)
			return r;
	}
	if (!text)
		return error_oom(err);
	*ret = text;
	return 0;
}

static int has_ended(struct error *err)
{
	return error_set(err, ERROR_ENDED, EALREADY,
			 "The execution has ended already; it was left as it is.");
}

int engine_cancel(struct engine *e, const char *caller, const char *id, struct error *err)
{
	_cleanup_history_row_ struct history_row row = { 0 };
	_cleanup_execution_ struct execution *x = engine_find(e, caller, id);
	int r;

	if (x)
		return execution_cancel(x) < 0 ? has_ended(err) : 0;
	r = history_get(e->o.history, caller, id, &row);
	return r < 0 ? query_say(err, r, ERROR_STORAGE) : has_ended(err);
}

int engine_remove(struct engine *e, const char *caller, const char *id, struct error *err)
{
	_cleanup_execution_ struct execution *x = engine_find(e, caller, id);

	if (x && x->state < EXECUTION_ENDING)
		return not_ended(err);
	if (x) { /* it ends in this very moment */
		x->record.unwanted = true;
		return 0;
	}
	return history_delete(e->o.history, caller, id, err);
}

int engine_delete(struct engine *e, const char *caller, const char *id, bool *ret_cancelled,
		  struct error *err)
{
	_cleanup_execution_ struct execution *x = engine_find(e, caller, id);
	bool cancelled = x && execution_cancel(x) == 0;
	int r = cancelled ? 0 : engine_remove(e, caller, id, err);

	if (r == 0)
		*ret_cancelled = cancelled;
	return r;
}

/* request and result as JSON; *ret_result NULL where it has not ended. */
static int load_pair(struct engine *e, const char *caller, const char *id, json_t *ret[2],
		     struct error *err)
{
	struct text_place place = { .history = e->o.history, .id = id, .which = HISTORY_REQUEST };
	_cleanup_history_row_ struct history_row row = { 0 };
	_cleanup_execution_ struct execution *x = engine_find(e, caller, id);
	int r;

	if (x && x->record.body && !execution_has_ended(x)) {
		ret[0] = json_incref(x->record.body);
		ret[1] = NULL;
		return 0;
	}
	r = history_get(e->o.history, caller, id, &row);
	if (r < 0)
		return query_say(err, r, ERROR_STORAGE);
	ret[0] = ret[1] = NULL;
	/* What cannot be read back is missing, no more. */
	(void)!text_load_json(&place, &row.request, &ret[0]);
	place.which = HISTORY_RESULT;
	(void)!text_load_json(&place, &row.result, &ret[1]);
	return 0;
}

int engine_request(struct engine *e, const char *caller, const char *id, json_t **ret,
		   struct error *err)
{
	json_t *pair[2];
	int r = load_pair(e, caller, id, pair, err);

	if (r < 0)
		return r;
	json_decref(pair[1]);
	if (!pair[0])
		return error_set(err, ERROR_STORAGE, EIO, "its request cannot be read back");
	*ret = pair[0];
	return 0;
}

/* What is made of one execution or of two; on the worker. */
struct view_making {
	enum { MAKE_ANALYSIS, MAKE_REPORT, MAKE_DIFF } what;
	json_t *a[2], *b[2]; /* request and result */
	json_t *made;
};

static void make(void *data)
{
	struct view_making *m = data;

	switch (m->what) {
	case MAKE_ANALYSIS:
		m->made = analysis_make(m->a[0], m->a[1]);
		break;
	case MAKE_REPORT:
		m->made = debug_report_make(
			&(struct report_input){ .request = m->a[0], .result = m->a[1] });
		break;
	case MAKE_DIFF:
		m->made = history_diff(&(struct history_side){ m->a[0], m->a[1] },
				       &(struct history_side){ m->b[0], m->b[1] });
		break;
	}
	for (int i = 0; i < 2; i++) {
		json_decref(m->a[i]);
		json_decref(m->b[i]);
	}
}

static int make_view(struct engine *e, const char *caller, const char *id, bool report,
		     struct execution_view *view)
{
	struct view_making m = { .what = report ? MAKE_REPORT : MAKE_ANALYSIS };
	json_t *pair[2];
	int r = load_pair(e, caller, id, pair, view->err);

	if (r < 0)
		return r;
	if (!pair[1]) {
		json_decref(pair[0]);
		return not_ended(view->err);
	}
	memcpy(m.a, pair, sizeof(pair));
	worker_call(WORKER_ALWAYS, make, &m);
	if (!m.made)
		return error_oom(view->err);
	*view->ret = m.made;
	return 0;
}

int engine_analysis(struct engine *e, const char *caller, const char *id, json_t **ret,
		    struct error *err)
{
	return make_view(e, caller, id, false, &(struct execution_view){ ret, err });
}

int engine_debug_report(struct engine *e, const char *caller, const char *id, json_t **ret,
			struct error *err)
{
	return make_view(e, caller, id, true, &(struct execution_view){ ret, err });
}

struct markdown {
	const json_t *report;
	char *text;
};

static void write_markdown(void *data)
{
	struct markdown *m = data;

	m->text = debug_report_markdown(m->report);
}

char *engine_report_markdown(const json_t *report)
{
	struct markdown m = { .report = report };

	worker_call(WORKER_ALWAYS, write_markdown, &m);
	return m.text;
}

int engine_diff(struct engine *e, const char *caller, struct engine_pair ids, json_t **ret,
		struct error *err)
{
	struct view_making m = { .what = MAKE_DIFF };
	int r = load_pair(e, caller, ids.a, m.a, err);

	if (r == 0)
		r = load_pair(e, caller, ids.b, m.b, err);
	if (r == 0 && (!m.a[1] || !m.b[1]))
		r = not_ended(err);
	if (r == 0) {
		worker_call(WORKER_ALWAYS, make, &m);
		*ret = m.made;
		return m.made ? 0 : error_oom(err);
	}
	for (int i = 0; i < 2; i++) {
		json_decref(m.a[i]);
		json_decref(m.b[i]);
	}
	return r;
}

/* Is there one, and is it the caller's? */
static int check_there(struct engine *e, const char *caller, const char *id)
{
	_cleanup_execution_ struct execution *x = engine_find(e, caller, id);
	_cleanup_history_row_ struct history_row row = { 0 };

	return x ? 0 : history_get(e->o.history, caller, id, &row);
}

/* Then the last that was printed may not have been kept. */
static bool was_interrupted(const char *status)
{
	return status && strcmp(status, status_name(STATUS_INTERRUPTED)) == 0;
}

struct stream_keys { /* of a result */
	const char *text, *bytes, *truncated, *binary;
};

static const struct stream_keys *keys_of(enum engine_stream stream)
{
	static const struct stream_keys keys[] = {
		[ENGINE_STDOUT] = { "stdout", "stdout_bytes", "stdout_truncated", "stdout_binary" },
		[ENGINE_STDERR] = { "stderr", "stderr_bytes", "stderr_truncated", "stderr_binary" },
	};

	return &keys[stream];
}

/* Does a result hold less of the stream than the program wrote, when it holds `size` bytes? */
static bool is_cut_in_result(const json_t *result, enum engine_stream stream, int64_t size)
{
	const struct stream_keys *keys = keys_of(stream);

	return json_integer_value(json_object_get(result, keys->bytes)) != size ||
	       json_is_true(json_object_get(result, keys->truncated)) ||
	       json_is_true(json_object_get(result, keys->binary));
}

/* A stream that has no file: its bytes are in the result. */
static int open_in_result(struct engine *e, struct history_row *row, enum engine_stream stream,
			  struct engine_file *ret)
{
	const struct text_place place = { .history = e->o.history,
					  .id = row->id,
					  .which = HISTORY_RESULT };
	const json_t *text;
	json_t *result;
	int r = text_load_json(&place, &row->result, &result);

	if (r < 0)
		return r;
	text = json_object_get(result, keys_of(stream)->text);
	r = fd_sealed_memfd("atoll-output", json_is_string(text) ? json_string_value(text) : "",
			    json_string_length(text));
	if (r >= 0)
		*ret = (struct engine_file){
			.fd = r,
			.size_bytes = (int64_t)json_string_length(text),
			.cut = was_interrupted(row->status) ||
			       is_cut_in_result(result, stream, (int64_t)json_string_length(text)),
		};
	json_decref(result);
	return MIN(r, 0);
}

/* One stream of an execution that has ended. Neither the other stream nor the events are read for it. */
static int open_stored(struct engine *e, const char *caller, const char *id,
		       enum engine_stream stream, struct engine_file *ret)
{
	_cleanup_history_row_ struct history_row row = { 0 };
	_cleanup_close_ int fd = -EBADF;
	struct stat st;
	int r = history_get(e->o.history, caller, id, &row);

	if (r < 0 || !row.result)
		return r < 0 ? r : -ENOENT;
	fd = history_output_open(e->o.history, id,
				 stream == ENGINE_STDERR ? HISTORY_STDERR : HISTORY_STDOUT);
	if (fd < 0)
		return open_in_result(e, &row, stream, ret);
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct engine_file){ .size_bytes = st.st_size,
				     .cut = spool_is_cut(fd) || was_interrupted(row.status) };
	ret->fd = TAKE_FD(fd);
	return 0;
}

/* The execution has ended, and is still in memory: has the spool all that the program wrote? */
static bool is_cut(struct execution *x, enum engine_stream stream)
{
	const struct spool *s = &x->stream.spools[stream == ENGINE_STDERR];
	const json_t *result = execution_result(x);

	if (was_interrupted(json_string_value(json_object_get(result, "status"))))
		return true;
	return s->fd >= 0 ? spool_is_cut(s->fd) : is_cut_in_result(result, stream, s->size);
}

int engine_output(struct engine *e, const char *caller, struct engine_output which,
		  struct engine_file *ret, struct error *err)
{
	_cleanup_execution_ struct execution *x = engine_find(e, caller, which.id);
	enum engine_stream stream = which.stream;
	const struct spool *s;
	int r;

	if (!x) {
		r = open_stored(e, caller, which.id, stream, ret);
		return r < 0 ? query_say(err, r, ERROR_INTERNAL) : 0;
	}
	/* What a client has seen outlives this process. */
	if (execution_is_running(x))
		execution_keep_output(x);
	s = &x->stream.spools[stream == ENGINE_STDERR];
	r = spool_open(s);
	if (r < 0)
		return query_say(err, r, ERROR_INTERNAL);
	*ret = (struct engine_file){ .fd = r,
				     .size_bytes = s->size,
				     .growing = !execution_has_ended(x),
				     .cut = execution_has_ended(x) && is_cut(x, stream) };
	return 0;
}

/* A new reference; NULL, and 0: the execution has not ended. */
static int load_result(struct engine *e, const char *caller, const char *id, json_t **ret)
{
	const struct text_place place = { .history = e->o.history,
					  .id = id,
					  .which = HISTORY_RESULT };
	_cleanup_execution_ struct execution *x = engine_find(e, caller, id);
	_cleanup_history_row_ struct history_row row = { 0 };
	int r;

	if (x) {
		*ret = json_incref(execution_result(x));
		return 0;
	}
	r = history_get(e->o.history, caller, id, &row);
	return r < 0 ? r : text_load_json(&place, &row.result, ret);
}

/* The file of a large value. */
static int open_value(struct engine *e, const char *caller, const char *id)
{
	_cleanup_execution_ struct execution *x = engine_find(e, caller, id);

	if (!x)
		return history_output_open(e->o.history, id, HISTORY_VALUE);
	return x->record.value_fd < 0 ? -ENOENT : fd_open_again(x->record.value_fd);
}

int engine_value(struct engine *e, const char *caller, const char *id, struct engine_file *ret,
		 struct error *err)
{
	_cleanup_free_ char *text = NULL;
	json_t *result;
	struct stat st;
	int fd, r = load_result(e, caller, id, &result);

	if (r < 0)
		return query_say(err, r, ERROR_STORAGE);
	if (!result)
		return not_ended(err);
	if (json_is_true(json_object_get(result, "value_truncated"))) {
		fd = open_value(e, caller, id);
	} else {
		text = json_dumps(json_object_get(result, "value"),
				  JSON_COMPACT | JSON_ENCODE_ANY | result_json_flags(result));
		fd = text ? fd_sealed_memfd("atoll-value", text, strlen(text)) : -ENOENT;
	}
	json_decref(result);
	if (fd < 0)
		return error_set(err, ERROR_NOT_FOUND, ENOENT,
				 "the whole value was not kept: it is larger than output_total or "
				 "128 MiB, or there was no room; let the program write a file");
	if (fstat(fd, &st) < 0) {
		(void)fd_close(fd);
		return query_say(err, -errno, ERROR_STORAGE);
	}
	*ret = (struct engine_file){ .fd = fd, .size_bytes = st.st_size };
	return 0;
}

int engine_files(struct engine *e, const char *caller, const char *id, json_t **ret,
		 struct error *err)
{
	json_t *result;
	int r = load_result(e, caller, id, &result);

	if (r < 0)
		return query_say(err, r, ERROR_STORAGE);
	if (!result)
		return not_ended(err);
	*ret = json_pack("{s:s, s:O?, s:b}", "id", id, "files", json_object_get(result, "files"),
			 "truncated", json_is_true(json_object_get(result, "files_truncated")));
	json_decref(result);
	return *ret ? 0 : error_oom(err);
}

/* Only files below dir_fd, and no link: the names are the program's. */
int query_open_below(int dir_fd, const char *path, int64_t *ret_size)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	_cleanup_close_ int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	struct stat st;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EXDEV || errno == ELOOP
			       ? -ENOENT
			       : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	*ret_size = st.st_size;
	return TAKE_FD(fd);
}

static int open_result_file(struct engine *e, const char *caller, struct engine_path which,
			    struct engine_file *ret)
{
	_cleanup_close_ int dir = -EBADF;
	int64_t size;
	int r = check_there(e, caller, which.id);

	if (r == 0)
		r = request_check_path(which.path, strlen(which.path), NULL) < 0 ? -ENOENT : 0;
	if (r < 0)
		return r;
	dir = history_files_open(e->o.history, which.id);
	if (dir < 0)
		return dir;
	r = query_open_below(dir, which.path, &size);
	if (r < 0)
		return r;
	*ret = (struct engine_file){ .fd = r, .size_bytes = size };
	return 0;
}

int engine_file(struct engine *e, const char *caller, struct engine_path which,
		struct engine_file *ret, struct error *err)
{
	int r = open_result_file(e, caller, which, ret);

	if (r == -ENOENT)
		return error_set(err, ERROR_NOT_FOUND, ENOENT, "There is no such file.");
	return r < 0 ? query_say(err, r, ERROR_INTERNAL) : 0;
}

/* --- lists --- */

/* What is asked about many executions: pages, statistics, metrics; and the end of all of a caller's. */

enum { PAGE_DEFAULT = 50, CLEANUP_WAIT_MS = 5000, CLEANUP_POLL_MS = 5, LABELS_MAX = 16 };

/* What runs and has no row yet gets one: a list shows everything. */
static void write_all_rows(struct engine *e)
{
	struct error err = { 0 };

	if (history_health(e->o.history).degraded < 0 || engine_used(e, SLOT_PLACES) == 0)
		return;
	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (struct execution *x = e->table[i]; x; x = x->table_next)
			if (execution_is_running(x))
				(void)!execution_ensure_row(x, &err);
}

static json_t *time_to_json(int64_t ns)
{
	char text[32];

	if (ns == 0)
		return json_null();
	clock_format_utc(ns, text, sizeof(text));
	return json_string(text);
}

static json_t *seconds_to_json(int64_t us)
{
	return us < 0 ? json_null() : json_real((double)us / 1e6);
}

static json_t *row_to_json(const struct history_row *row, bool with_caller)
{
	json_t *labels = row->labels ? json_loads(row->labels, JSON_ALLOW_NUL, NULL) : NULL;
	bool ended = row->ended_ns != 0;

	return json_pack(
		"{s:s, s:s, s:s?, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:o, s:s*}", "id",
		row->id, "status", row->status, "language", row->language, "policy", row->policy,
		"exit_code",
		ended && row->exit_code >= 0 ? json_integer(row->exit_code) : json_null(),
		"created_at", time_to_json(row->created_ns), "started_at",
		time_to_json(row->started_ns), "ended_at", time_to_json(row->ended_ns), "duration",
		seconds_to_json(row->duration_us), "cpu_time", seconds_to_json(row->cpu_us),
		"memory_peak",
		row->memory_peak_bytes < 0 ? json_null() : json_integer(row->memory_peak_bytes),
		"code_sha256", *row->code_sha256 ? row->code_sha256 : NULL, "labels",
		labels ? labels : json_object(), "caller", with_caller ? row->caller : NULL);
}

static json_t *page_to_json(const struct history_page *page, bool with_caller)
{
	json_t *list = json_array();

	for (size_t i = 0; i < page->n; i++)
		if (json_array_append_new(list, row_to_json(&page->rows[i], with_caller)) < 0) {
			json_decref(list);
			return NULL;
		}
	return json_pack("{s:o, s:s?}", "executions", list, "next",
			 *page->next ? page->next : NULL);
}

/* The labels of a query taken apart, ending with an empty one. */
struct labels {
	struct history_label list[LABELS_MAX + 1];
	char *texts[LABELS_MAX];
	size_t n;
};

static void labels_done(struct labels *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->texts[i]);
}

static int add_label(struct labels *l, const char *text, struct error *err)
{
	const char *equals = strchr(text, '=');
	char *copy;

	if (!equals)
		return error_field(err, "label", "label: '%.60s' is not name=value", text);
	if (l->n == LABELS_MAX)
		return error_field(err, "label", "label: there are more than %d", LABELS_MAX);
	copy = strdup(text);
	if (!copy)
		return error_oom(err);
	copy[equals - text] = '\0';
	l->list[l->n] = (struct history_label){ copy, copy + (equals - text) + 1 };
	l->texts[l->n++] = copy;
	return 0;
}

static int read_labels(const struct engine_query *q, struct labels *ret, struct error *err)
{
	int r = q->label ? add_label(ret, q->label, err) : 0;

	for (const char *const *more = q->more_labels; r == 0 && more && *more; more++)
		r = add_label(ret, *more, err);
	return r;
}

int engine_list(struct engine *e, const struct engine_query *q, json_t **ret, struct error *err)
{
	_cleanup_history_page_ struct history_page page = { 0 };
	_cleanup_(labels_done) struct labels labels = { 0 };
	struct history_filter filter = {
		.caller = q->caller,
		.id = q->id,
		.status = q->status,
		.more_statuses = q->more_statuses,
		.language = q->language,
		.text = q->text,
		.since_ns = q->since_ns,
		.until_ns = q->until_ns,
		.cursor = q->cursor,
		.limit = (size_t)(q->limit ? q->limit : PAGE_DEFAULT),
	};
	int r = read_labels(q, &labels, err);

	if (r < 0)
		return r;
	if (q->limit < 0 || q->limit > HISTORY_PAGE_MAX)
		return error_field(err, "limit", "limit: it is not from 1 to %d", HISTORY_PAGE_MAX);
	filter.label_name = labels.list[0].name;
	filter.label_value = labels.list[0].value;
	filter.more_labels = labels.n > 1 ? labels.list + 1 : NULL;
	write_all_rows(e);
	r = history_list(e->o.history, &filter, &page, err);
	if (r < 0)
		return r;
	*ret = page_to_json(&page, !q->caller);
	return *ret ? 0 : error_oom(err);
}

int engine_stats(struct engine *e, const struct engine_query *q, json_t **ret, struct error *err)
{
	struct history_window window = { .caller = q->caller,
					 .since_ns = q->since_ns,
					 .until_ns = q->until_ns,
					 .language = q->language,
					 .label = q->label,
					 .pause = q->pause,
					 .pause_data = q->pause_data };
	struct history_health health = history_health(e->o.history);
	json_t *root, *now;
	int r = history_stats(e->o.history, &window, &root, err);

	if (r < 0)
		return r;
	now = json_pack("{s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:b}", "queued",
			(json_int_t)e->queue.count, "running",
			(json_int_t)engine_used(e, SLOT_PLACES), "running_max",
			(json_int_t)e->o.running_max, "queue_max", (json_int_t)e->o.queue_max,
			"uptime", (double)(clock_now_ns() - e->started_ns) / 1e9, "pool_hits",
			(json_int_t)e->metrics.warm, "pool_misses", (json_int_t)e->metrics.cold,
			"storage_ok", health.degraded == 0);
	if (json_object_set_new(root, "now", now) < 0) {
		json_decref(root);
		return error_oom(err);
	}
	*ret = root;
	return 0;
}

static int64_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int64_t n = -3; /* ., .. and the directory itself */

	while (dir && readdir(dir))
		n++;
	if (dir)
		(void)closedir(dir);
	return MAX(n, (int64_t)0);
}

static int64_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long long size, resident = 0;

	if (f && fscanf(f, "%lld %lld", &size, &resident) != 2)
		resident = 0;
	if (f)
		(void)fclose(f);
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

void engine_metrics(struct engine *e, struct metric_text *out)
{
	struct history_health health = history_health(e->o.history);
	const struct metric_row rows[] = {
		{ "atoll_queue_depth", "Executions that wait.", METRIC_GAUGE,
		  (double)e->queue.count },
		{ "atoll_running", "Executions that run.", METRIC_GAUGE,
		  (double)engine_used(e, SLOT_PLACES) },
		{ "atoll_running_max", "Executions that may run at once.", METRIC_GAUGE,
		  (double)e->o.running_max },
		{ "atoll_broker_up", "Whether a broker answers.", METRIC_GAUGE,
		  (double)e->o.runner->vtable->is_ready(e->o.runner) },
		{ "atoll_broker_restarts_total", "Times the broker was lost.", METRIC_COUNTER,
		  (double)e->broker_losses },
		{ "atoll_history_rows", "Executions on record.", METRIC_GAUGE,
		  (double)health.rows },
		{ "atoll_history_bytes", "Bytes on record.", METRIC_GAUGE, (double)health.bytes },
		{ "atoll_storage_degraded", "Whether nothing new can be stored.", METRIC_GAUGE,
		  health.degraded < 0 },
		{ "atoll_history_damaged",
		  "Damaged histories: put aside and not repaired, or still in use.", METRIC_GAUGE,
		  (double)health.aside + health.unsound },
		{ "atoll_results_unsaved", "Results that wait for the disk.", METRIC_GAUGE,
		  (double)e->unsaved.n },
		{ "process_resident_memory_bytes", "Resident memory of the front.", METRIC_GAUGE,
		  (double)resident_bytes() },
		{ "process_open_fds", "Open descriptors of the front.", METRIC_GAUGE,
		  (double)open_fds() },
	};

	metrics_put(&e->metrics, out);
	metric_rows_put(out, rows, ARRAY_SIZE(rows));
}

/* On a fiber: history rows go in steps, the loop goes round in between. */
struct cleanup_pass {
	struct engine *engine;
	char *caller;
	struct engine_cleanup_done done;
	int64_t cancelled;
};

static size_t living(const struct engine *e, const char *caller)
{
	size_t n = 0;

	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (const struct execution *x = e->table[i]; x; x = x->table_next)
			n += !execution_has_ended(x) && x->record.unwanted &&
			     execution_is_callers(x, caller);
	return n;
}

static void clean(void *data)
{
	struct cleanup_pass c = *(struct cleanup_pass *)data;
	int64_t until_ns = clock_now_ns() + CLEANUP_WAIT_MS * NS_PER_MS, deleted = 0;
	struct error err = { 0 };
	int r = 1;

	free(data);
	/* done comes from the loop, after engine_cleanup() has returned. */
	fiber_yield();
	while (living(c.engine, c.caller) > 0 && clock_now_ns() < until_ns)
		fiber_wait_until(clock_now_ns() + CLEANUP_POLL_MS * NS_PER_MS);
	while (r > 0) {
		r = history_delete_some(c.engine->o.history, c.caller, &err);
		deleted += MAX(r, 0);
		fiber_yield();
	}
	c.engine->fibers--;
	c.done.fn(c.done.data, (struct engine_cleanup_count){ c.cancelled, deleted + c.cancelled });
	free(c.caller);
}

int engine_cleanup_count(struct engine *e, const char *caller, struct engine_cleanup_count *ret,
			 struct error *err)
{
	const struct history_filter all = { .caller = caller };
	struct history_count rows = { 0 };
	int64_t live = 0;
	int r;

	write_all_rows(e);
	r = history_count(e->o.history, &all, &rows, err);
	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (const struct execution *x = e->table[i]; x; x = x->table_next)
			live += !execution_has_ended(x) && execution_is_callers(x, caller);
	*ret = (struct engine_cleanup_count){ live, MAX(rows.n, live) };
	return r;
}

int engine_cleanup(struct engine *e, const char *caller, struct engine_cleanup_done done,
		   struct error *err)
{
	struct cleanup_pass *c = calloc(1, sizeof(*c));
	int r;

	if (c)
		c->caller = caller ? strdup(caller) : NULL;
	if (!c || (caller && !c->caller)) {
		free(c);
		return error_oom(err);
	}
	c->engine = e;
	c->done = done;
	/* Cancelling changes lists, not the table. */
	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (struct execution *x = e->table[i]; x; x = x->table_next)
			if (!execution_has_ended(x) && execution_is_callers(x, caller)) {
				x->record.unwanted = true;
				c->cancelled += execution_cancel(x) == 0;
			}
	e->fibers++;
	r = fiber_start(e->o.loop, clean, c);
	if (r == 0)
		return 0;
	e->fibers--;
	free(c->caller);
	free(c);
	return error_set(err, ERROR_INTERNAL, -r, "cannot clean up: %s", strerror(-r));
}

int engine_repair(struct engine *e, json_t **ret, struct error *err)
{
	struct history_repair *repair = NULL;
	json_t *report = NULL;
	int r = history_health(e->o.history).unsound
			? error_set(err, ERROR_CONFLICT, EUCLEAN,
				    "the history in use is damaged; start the daemon again, which "
				    "puts "
				    "it aside, then repair it")
			: history_repair_new(e->o.history, &repair, err);

	while (r >= 0 && (r = history_repair_step(repair, err)) > 0) {
		fiber_yield();
		if (e->draining)
			r = error_set(
				err, ERROR_STOPPING, ESHUTDOWN,
				"the server is stopping; repair the history when it is back, it "
				"goes on where it was");
	}
	if (r == 0)
		report = history_repair_report(repair);
	if (r == 0 && !report)
		r = error_oom(err);
	(void)history_repair_free(repair);
	if (r < 0)
		return r;
	log_say(e->o.log, LOG_INFO, "the history is repaired",
		LOG_I64("files", (int64_t)json_array_size(json_object_get(report, "files"))),
		LOG_I64("taken", json_integer_value(json_object_get(report, "taken"))));
	*ret = report;
	return 0;
}
