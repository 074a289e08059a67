/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions by id and in lists: state or result, events, analysis, reports, comparison, cancelling,
 * statistics.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/timestamp.h"
#include "spec/result.h"
#include "web/routes/api-private.h"

enum { WAIT_MAX_MS = 60 * 1000, PAGE_DEFAULT = 50, PIECE_ROWS = 25, CURSOR_BYTES = 64 };

static int get_execution(struct request_ctx *ctx)
{
	const char *id = request_param(ctx, "id"), *wait = request_query(ctx, "wait");
	int64_t wait_ms;

	if (!wait)
		return respond_state(ctx, id);
	if (parse_time(wait, &wait_ms) < 0 || wait_ms > WAIT_MAX_MS)
		return respond_field(ctx, "wait", "wait: give seconds, at most 60.");
	return respond_result(ctx, id, clock_now_ns() + wait_ms * NS_PER_MS);
}

/* Many results are read from the disk, and a long page takes milliseconds. */
static bool asks_for_many(const struct request_ctx *ctx)
{
	const char *limit = request_query(ctx, "limit");

	return request_query(ctx, "ids") || (limit && strlen(limit) > 2);
}

static int delete_execution(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	const char *id = request_param(ctx, "id");
	const char *only = request_query(ctx, "only");
	struct error err = { 0 };
	bool cancelled = only && strcmp(only, "cancel") == 0;
	int r;

	if (cancelled)
		r = engine_cancel(api->engine, request_viewer(ctx), id, &err);
	else if (!only)
		r = engine_delete(api->engine, request_viewer(ctx), id, &cancelled, &err);
	else if (strcmp(only, "delete") == 0)
		r = engine_remove(api->engine, request_viewer(ctx), id, &err);
	else
		return respond_field(ctx, "only", "only: give cancel or delete.");
	if (r < 0)
		return respond_error(ctx, &err);
	return respond_json(ctx, 200,
			    json_pack("{s:s, s:b, s:b}", "id", id, "cancelled", cancelled,
				      "deleted", !cancelled));
}

/* As it was sent, and as a replay sends it again. */
static int get_request(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct error err = { 0 };
	json_t *body = NULL;
	int r = engine_request(api->engine, request_viewer(ctx), request_param(ctx, "id"), &body,
			       &err);

	return r < 0 ? respond_error(ctx, &err) : respond_json(ctx, 200, body);
}

static int get_analysis(struct request_ctx *ctx)
{
	return respond_asked(ctx, engine_analysis);
}

static int get_report(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct error err = { 0 };
	json_t *tree = NULL;
	bool as_markdown;
	char *text;
	int r;

	if (request_other_form(ctx, (struct other_form){ "markdown", "text/markdown" },
			       &as_markdown) < 0)
		return 0;
	r = engine_debug_report(api->engine, request_viewer(ctx), request_param(ctx, "id"), &tree,
				&err);
	if (r < 0)
		return respond_error(ctx, &err);
	if (!as_markdown)
		return respond_tree(ctx, 200, tree);
	text = engine_report_markdown(tree);
	json_decref(tree);
	return respond_take(ctx, 200, "text/markdown; charset=utf-8", text,
			    text ? strlen(text) : 0);
}

static int get_diff(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	const struct engine_pair ids = { request_param(ctx, "id"), request_param(ctx, "other") };
	struct error err = { 0 };
	json_t *tree = NULL;
	int r = engine_diff(api->engine, request_viewer(ctx), ids, &tree, &err);

	return r < 0 ? respond_error(ctx, &err) : respond_tree(ctx, 200, tree);
}

/* --- lists and statistics --- */

static int read_instant(const struct request_ctx *ctx, const char *name, int64_t *ret,
			struct error *err)
{
	const char *text = request_query(ctx, name);

	if (!text || timestamp_parse(text, ret) == 0)
		return 0;
	return error_field(err, name,
			   "%s: give a time like 2026-11-15T10:00:00Z, or seconds since 1970.",
			   name);
}

static int check_statuses(const struct request_ctx *ctx, struct error *err)
{
	const struct uri *uri = request_uri(ctx);

	for (size_t i = 0; i < uri->n_pairs; i++) {
		const char *word = uri->pairs[i].value;
		bool known = strcmp(uri->pairs[i].name, "status") != 0 ||
			     strcmp(word, "queued") == 0 || strcmp(word, "running") == 0;

		for (int s = 0; s < _STATUS_MAX; s++)
			known = known || strcmp(word, status_name((enum run_status)s)) == 0;
		if (!known)
			return error_field(err, "status",
					   "status: there is no '%.40s'; give queued, running, "
					   "success, error, timeout, limit, cancelled, denied, "
					   "setup_error, interrupted or internal_error, once for "
					   "each.",
					   word);
	}
	return 0;
}

/* The second and further values of a name; the list ends with NULL. */
static void read_more(const struct request_ctx *ctx, const char *name,
		      const char *ret[URI_PAIRS_MAX])
{
	const struct uri *uri = request_uri(ctx);
	const char *first = request_query(ctx, name);
	size_t n = 0;

	for (size_t i = 0; i < uri->n_pairs; i++)
		if (strcmp(uri->pairs[i].name, name) == 0 && uri->pairs[i].value != first)
			ret[n++] = uri->pairs[i].value;
	ret[n] = NULL;
}

typedef int (*ask_fn)(struct request_ctx *ctx, const struct engine_query *query, json_t **ret,
		      struct error *err);

static int answer_query(struct request_ctx *ctx, ask_fn ask)
{
	const char *statuses[URI_PAIRS_MAX], *labels[URI_PAIRS_MAX];
	const char *limit = request_query(ctx, "limit");
	struct engine_query query = {
		.caller = request_viewer(ctx),
		.id = request_query(ctx, "id"),
		.status = request_query(ctx, "status"),
		.language = language_called(request_app(ctx), request_query(ctx, "language")),
		.label = request_query(ctx, "label"),
		.more_statuses = statuses,
		.more_labels = labels,
		.text = request_query(ctx, "text"),
		.cursor = request_query(ctx, "cursor"),
	};
	struct error err = { 0 };
	json_t *tree = NULL;
	int r = check_statuses(ctx, &err);

	read_more(ctx, "status", statuses);
	read_more(ctx, "label", labels);
	if (r == 0)
		r = read_instant(ctx, "since", &query.since_ns, &err);
	if (r == 0)
		r = read_instant(ctx, "until", &query.until_ns, &err);
	if (r == 0 && limit &&
	    (parse_i64(limit, &query.limit) < 0 || query.limit < 1 || query.limit > 1000))
		r = error_field(&err, "limit", "limit: give a whole number from 1 to 1000.");
	if (r == 0)
		r = ask(ctx, &query, &tree, &err);
	return r < 0 ? respond_error(ctx, &err) : respond_tree(ctx, 200, tree);
}

/* A long page in pieces: between two of them others are served. A piece that is not full is the last, also where a cursor follows. */
static int list_in_pieces(struct request_ctx *ctx, const struct engine_query *query, json_t **ret,
			  struct error *err)
{
	struct api *api = request_app(ctx);
	struct engine_query piece = *query;
	int64_t left = query->limit > 0 ? query->limit : PAGE_DEFAULT;
	json_t *rows = json_array(), *page = NULL;
	char cursor[CURSOR_BYTES];
	bool more = true;
	int r = 0;

	while (r == 0 && more) {
		const json_t *found;
		const char *next;

		if (page && !request_pause(ctx))
			break;
		json_decref(page);
		page = NULL;
		piece.limit = MIN(left, (int64_t)PIECE_ROWS);
		r = engine_list(api->engine, &piece, &page, err);
		if (r < 0)
			break;
		found = json_object_get(page, "executions");
		next = json_string_value(json_object_get(page, "next"));
		left -= (int64_t)json_array_size(found);
		more = next && left > 0 && (int64_t)json_array_size(found) == piece.limit;
		(void)snprintf(cursor, sizeof(cursor), "%s", next ? next : "");
		piece.cursor = cursor;
		if (json_array_extend(rows, (json_t *)(uintptr_t)found) < 0)
			r = error_oom(err);
	}
	if (r == 0 && json_object_set(page, "executions", rows) < 0)
		r = error_oom(err);
	json_decref(rows);
	if (r == 0)
		*ret = page;
	else
		json_decref(page);
	return r;
}

static int get_executions(struct request_ctx *ctx)
{
	return request_query(ctx, "ids") ? respond_many(ctx) : answer_query(ctx, list_in_pieces);
}

static bool pause_stats(void *data)
{
	return request_pause(data);
}

static int ask_stats(struct request_ctx *ctx, const struct engine_query *query, json_t **ret,
		     struct error *err)
{
	struct api *api = request_app(ctx);
	struct engine_query asked = *query;

	asked.pause = pause_stats;
	asked.pause_data = ctx;
	return engine_stats(api->engine, &asked, ret, err);
}

static int get_stats(struct request_ctx *ctx)
{
	return answer_query(ctx, ask_stats);
}

/*
 * --- outputs ---
 *
 Outputs of a program: its streams so far (Range works while it runs, too), the list of its files, one file,
 * or all files as a tar that is made while it is sent. The headers make a browser save the bytes, never show
 * them.
 */

#define BYTES "application/octet-stream"

static int get_stream(struct request_ctx *ctx)
{
	const enum engine_stream stream = (enum engine_stream)request_route(ctx)->which;
	struct api *api = request_app(ctx);
	struct engine_file file = { .fd = -EBADF };
	const struct engine_output which = { request_param(ctx, "id"), stream };
	struct error err = { 0 };
	int r = engine_output(api->engine, request_viewer(ctx), which, &file, &err);

	if (r < 0)
		return respond_error(ctx, &err);
	/* Whether these are all bytes that the stream will ever have. */
	(void)!response_header(ctx, "Atoll-Complete", file.growing || file.cut ? "false" : "true");
	return respond_file(ctx, &(struct file_body){ file.fd, file.size_bytes, BYTES });
}

static int get_value(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct engine_file file = { .fd = -EBADF };
	struct error err = { 0 };

	if (engine_value(api->engine, request_viewer(ctx), request_param(ctx, "id"), &file, &err) <
	    0)
		return respond_error(ctx, &err);
	return respond_file(ctx,
			    &(struct file_body){ file.fd, file.size_bytes, "application/json" });
}

/* --- all files as a tar --- */

static ssize_t read_tar(void *data, void *bytes, size_t n)
{
	return tarball_read(data, bytes, n);
}

static void free_tar(void *data)
{
	(void)tarball_free(data);
}

static int respond_tar(struct request_ctx *ctx)
{
	static const struct piece_head head = { 200, "application/x-tar", -1 };
	struct api *api = request_app(ctx);
	struct tarball *tarball = NULL;
	struct error err = { 0 };
	int r = engine_tarball(api->engine, request_viewer(ctx), request_param(ctx, "id"), &tarball,
			       &err);

	if (r < 0)
		return respond_error(ctx, &err);
	(void)!response_attachment(ctx, "files.tar");
	return respond_pieces(ctx, &head, (struct piece_source){ tarball, read_tar, free_tar });
}

static int get_files(struct request_ctx *ctx)
{
	bool as_tar;

	if (request_other_form(ctx, (struct other_form){ "tar", "application/x-tar" }, &as_tar) < 0)
		return 0;
	return as_tar ? respond_tar(ctx) : respond_asked(ctx, engine_files);
}

static int get_file(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	const struct engine_path which = { request_param(ctx, "id"), request_param(ctx, "path") };
	struct engine_file file = { .fd = -EBADF };
	struct error err = { 0 };
	int r = engine_file(api->engine, request_viewer(ctx), which, &file, &err);

	if (r < 0)
		return respond_error(ctx, &err);
	(void)!response_attachment(ctx, which.path);
	return respond_file(ctx, &(struct file_body){ file.fd, file.size_bytes, BYTES });
}

/* --- cleanup --- */

struct cleanup_answer {
	struct request_ctx *ctx; /* NULL: the server is gone */
	int64_t sessions;
};

static json_t *cleanup_json(const struct engine_cleanup_count *count, int64_t sessions)
{
	return json_pack("{s:I, s:I, s:I}", "cancelled", (json_int_t)count->cancelled, "deleted",
			 (json_int_t)count->deleted, "sessions", (json_int_t)sessions);
}

static void on_cleaned(void *data, struct engine_cleanup_count count)
{
	struct cleanup_answer *c = data;

	if (c->ctx)
		(void)respond_json(c->ctx, 200, cleanup_json(&count, c->sessions));
	free(c);
}

/* What post_cleanup() would say now. */
static int get_cleanup(struct request_ctx *ctx)
{
	const char *caller = request_principal(ctx)->name;
	struct api *api = request_app(ctx);
	struct engine_cleanup_count count;
	struct error err = { 0 };

	if (engine_cleanup_count(api->engine, caller, &count, &err) < 0)
		return respond_error(ctx, &err);
	return respond_json(ctx, 200,
			    cleanup_json(&count, sessions_count_of(api->sessions, caller)));
}

static int post_cleanup(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	/* A caller that names a choice must not lose everything. */
	const char *asked = json_object_iter_key(json_object_iter(request_json(ctx)));
	struct cleanup_answer *c;
	struct error err = { 0 };
	int r;

	if (request_json(ctx) && !json_is_object(request_json(ctx)))
		return respond_problem(ctx, 400, "unexpected_body",
				       "A cleanup is of everything: send no body, or {}.");
	if (asked)
		return respond_field(
			ctx, asked,
			"%.64s: a cleanup is of everything and takes no choice; remove "
			"single ones with DELETE /v1/executions/{id}.",
			asked);
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->ctx = ctx;
	c->sessions = sessions_close_of(api->sessions, request_principal(ctx)->name);
	r = engine_cleanup(api->engine, request_principal(ctx)->name,
			   (struct engine_cleanup_done){ c, on_cleaned }, &err);
	if (r < 0) {
		free(c);
		return respond_error(ctx, &err);
	}
	response_forget(ctx, &c->ctx);
	return 0;
}

/* --- repair --- */

static int post_repair(struct request_ctx *ctx)
{
	const char *asked = json_object_iter_key(json_object_iter(request_json(ctx)));
	struct api *api = request_app(ctx);
	struct error err = { 0 };
	json_t *report = NULL;

	if (asked)
		return respond_field(ctx, asked, "%.64s: a repair takes no choice; send no body.",
				     asked);
	return engine_repair(api->engine, &report, &err) < 0 ? respond_error(ctx, &err)
							     : respond_json(ctx, 200, report);
}

const struct route execution_routes[] = {
	{ HTTP_GET, "/v1/executions", get_executions, "listExecutions",
	  "List executions, newest first", .response_schema = "ExecutionPage",
	  .is_slow = asks_for_many },
	{ HTTP_GET, "/v1/executions/{id}", get_execution, "getExecution",
	  "Result of an execution, or its state while it is queued or running", .flags = ROUTE_SLOW,
	  .response_schema = "Execution" },
	{ HTTP_DELETE, "/v1/executions/{id}", delete_execution, "deleteExecution",
	  "Cancel a queued or running execution, or delete an ended one",
	  .response_schema = "Cancelled" },
	{ HTTP_GET, "/v1/executions/{id}/events", stream_get_events, "streamExecutionEvents",
	  "Events of an execution as they happen", .flags = ROUTE_STREAMS | ROUTE_SLOW },
	{ HTTP_GET, "/v1/executions/{id}/attach", attach_get, "attachToExecution",
	  "WebSocket: takes input, signals and window size, sends events",
	  .flags = ROUTE_UPGRADES | ROUTE_SLOW },
	{ HTTP_GET, "/v1/executions/{id}/request", get_request, "getExecutionRequest",
	  "The request of an execution", .flags = ROUTE_SLOW, .response_schema = "ExecuteRequest" },
	{ HTTP_GET, "/v1/executions/{id}/analysis", get_analysis, "getExecutionAnalysis",
	  "Explain the failure of an execution", .flags = ROUTE_SLOW,
	  .response_schema = "Analysis" },
	{ HTTP_GET, "/v1/executions/{id}/debug-report", get_report, "getExecutionDebugReport",
	  "Debug report of an execution, as JSON or Markdown", .flags = ROUTE_SLOW,
	  .response_schema = "DebugReport" },
	{ HTTP_GET, "/v1/executions/{id}/diff/{other}", get_diff, "compareExecutions",
	  "Compare two executions", .flags = ROUTE_SLOW, .response_schema = "Diff" },
	{ HTTP_GET, "/v1/cleanup", get_cleanup, "countCleanUp",
	  "Count what a cleanup would end and remove now; nothing is changed",
	  .response_schema = "Cleanup" },
	{ HTTP_POST, "/v1/cleanup", post_cleanup, "cleanUp",
	  "End all sessions of the caller; end and remove all of its executions",
	  .flags = ROUTE_JSON_OPTIONAL, .response_schema = "Cleanup" },
	{ HTTP_POST, "/v1/history/repair", post_repair, "repairHistory",
	  "Take over what can be read of damaged histories that were put aside",
	  .flags = ROUTE_OPERATOR | ROUTE_SLOW | ROUTE_JSON_OPTIONAL, .response_schema = "Repair" },
	{ HTTP_GET, "/v1/stats", get_stats, "getStats", "Counts, rates and latencies of executions",
	  .flags = ROUTE_SLOW, .response_schema = "Stats" },
	{ HTTP_GET, "/v1/executions/{id}/stdout", get_stream, "getExecutionStdout",
	  "Whole standard output of an execution", .which = ENGINE_STDOUT, .flags = ROUTE_SLOW },
	{ HTTP_GET, "/v1/executions/{id}/stderr", get_stream, "getExecutionStderr",
	  "Whole standard error of an execution", .which = ENGINE_STDERR, .flags = ROUTE_SLOW },
	{ HTTP_GET, "/v1/executions/{id}/value", get_value, "getExecutionValue",
	  "Whole value of an execution as JSON, also one that is too large for its "
	  "result",
	  .flags = ROUTE_SLOW },
	{ HTTP_GET, "/v1/executions/{id}/files", get_files, "listExecutionFiles",
	  "Files that the program wrote: a list, or all as a tar", .flags = ROUTE_SLOW,
	  .response_schema = "Files" },
	{ HTTP_GET, "/v1/executions/{id}/files/{path...}", get_file, "getExecutionFile",
	  "One file that the program wrote", .flags = ROUTE_SLOW },
	{ 0 },
};
