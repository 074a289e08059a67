/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product's resources: executions with their output and files, sessions with theirs. Content of more than a megabyte is refused:
 * the tools read_output and read_file read it page by page.
 */
#include "base/base64.h"
#include "base/fd.h"
#include "base/loop/worker.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "mcp/complete-values.h"
#include "mcp/images.h"
#include "mcp/resource.h"
#include "mcp/session-file.h"
#include "mcp/tool-shapes.h"
#include "session/session.h"

#include <string.h>

enum { CONTENT_BYTES_MAX = 1 << 20, LISTED_A_PAGE = 50 };

/* --- answers --- */

/* Text, or base64 for bytes that are none. */
static json_t *contents_of(const struct mcp_work *w, const char *mime_type, struct span bytes)
{
	const char *uri = work_text(w, "uri"), *image = image_type(bytes);
	char *base64;
	json_t *made;

	if (!image && utf8_is_valid(bytes.data, bytes.len))
		return json_pack("{s:[{s:s, s:s, s:s%}]}", "contents", "uri", uri, "mimeType",
				 mime_type, "text", bytes.data, bytes.len);
	base64 = base64_encode(bytes.data, bytes.len);
	made = json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri, "mimeType",
			 image ? image : "application/octet-stream", "blob", base64);
	free(base64);
	return made;
}

static void answer_bytes(struct mcp_work *w, const char *mime_type, struct span bytes)
{
	struct error err = { 0 };

	if (bytes.len <= CONTENT_BYTES_MAX) {
		work_result(w, contents_of(w, mime_type, bytes));
		return;
	}
	(void)error_set(
		&err, ERROR_TOO_LARGE, EFBIG,
		"The resource has %zu bytes; read it page by page with the tool read_output "
		"or read_file.",
		bytes.len);
	work_fail(w, &err);
}

/* Closes the file. */
static void answer_open_file(struct mcp_work *w, const struct engine_file *file)
{
	const size_t size = (size_t)MIN(file->size_bytes, (int64_t)CONTENT_BYTES_MAX + 1);
	const struct text_source source = { .fd = file->fd, .size = file->size_bytes };
	_cleanup_free_ char *bytes = malloc(size + 1);
	ssize_t n = bytes ? text_read(&source, 0, bytes, size) : -ENOMEM;
	struct error err = { 0 };

	(void)fd_close(file->fd);
	if (n == CONTENT_BYTES_MAX + 1) {
		answer_bytes(w, NULL, (struct span){ bytes, (size_t)file->size_bytes });
	} else if (n >= 0) {
		answer_bytes(w, "text/plain", (struct span){ bytes, (size_t)n });
	} else {
		(void)error_set(&err, ERROR_INTERNAL, (int)-n, "the content cannot be read: %s",
				strerror((int)-n));
		work_fail(w, &err);
	}
}

/* Takes over tree. */
static void answer_tree(struct mcp_work *w, json_t *tree)
{
	char *text = tree ? json_dumps(tree, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	struct error err = { 0 };

	json_decref(tree);
	if (text) {
		answer_bytes(w, "application/json", span_of(text));
	} else {
		(void)error_oom(&err);
		work_fail(w, &err);
	}
	free(text);
}

/* --- executions --- */

static void read_execution(struct mcp_work *w)
{
	struct error err = { 0 };
	char *text = NULL;

	if (engine_get_text(w->app->engine, w->viewer, work_text(w, "id"), &text, &err) < 0)
		work_fail(w, &err);
	else
		answer_bytes(w, "application/json", span_of(text));
	free(text);
}

static void read_stream(struct mcp_work *w, enum engine_stream stream)
{
	struct engine_file file = { .fd = -EBADF };
	struct error err = { 0 };

	if (engine_output(w->app->engine, w->viewer,
			  (struct engine_output){ work_text(w, "id"), stream }, &file, &err) < 0)
		work_fail(w, &err);
	else
		answer_open_file(w, &file);
}

static void read_stdout(struct mcp_work *w)
{
	read_stream(w, ENGINE_STDOUT);
}

static void read_stderr(struct mcp_work *w)
{
	read_stream(w, ENGINE_STDERR);
}

static void read_execution_file(struct mcp_work *w)
{
	const struct engine_path which = { work_text(w, "id"), work_text(w, "path") };
	struct engine_file file = { .fd = -EBADF };
	struct error err = { 0 };

	if (engine_file(w->app->engine, w->viewer, which, &file, &err) < 0)
		work_fail(w, &err);
	else
		answer_open_file(w, &file);
}

struct report_writing {
	const json_t *report;
	char *text;
};

static void write_report(void *data)
{
	struct report_writing *r = data;

	r->text = engine_report_markdown(r->report);
}

static void read_report(struct mcp_work *w)
{
	struct error err = { 0 };
	struct report_writing r = { 0 };
	json_t *report = NULL;

	if (engine_debug_report(w->app->engine, w->viewer, work_text(w, "id"), &report, &err) < 0) {
		work_fail(w, &err);
		return;
	}
	r.report = report;
	worker_call(WORKER_ALWAYS, write_report, &r);
	answer_bytes(w, "text/markdown", span_of(r.text ? r.text : ""));
	free(r.text);
	json_decref(report);
}

/* --- sessions --- */

static void read_session(struct mcp_work *w)
{
	struct session *s = NULL;
	struct error err = { 0 };

	if (session_find(w->app->sessions, w->viewer, work_text(w, "id"), &s, &err) < 0)
		work_fail(w, &err);
	else
		answer_tree(w, session_to_json(s));
}

static void read_session_file(struct mcp_work *w)
{
	_cleanup_free_ char *bytes = NULL;
	struct error err = { 0 };
	size_t len = 0;

	(void)json_object_set(w->arguments, "session_id", json_object_get(w->arguments, "id"));
	if (session_file_read(w, work_text(w, "path"), &bytes, &len, &err) < 0)
		work_fail(w, &err);
	else
		answer_bytes(w, "text/plain", (struct span){ bytes, len });
}

/* --- rows --- */

static int begin_read(struct mcp_call *call, const struct mcp_uri *uri,
		      void (*run)(struct mcp_work *w))
{
	json_t *arguments = json_pack("{s:s}", "uri", uri->text);
	int r = arguments ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < uri->n; i++)
		if (json_object_set_new(arguments, uri->variables[i].name,
					json_string(uri->variables[i].value)) < 0)
			r = -EINVAL;
	if (r == 0)
		r = work_begin(call, arguments, run);
	json_decref(arguments);
	if (r != -EINVAL)
		return r;
	mcp_call_no_resource(call, uri->text); /* a value that is not UTF-8 */
	return 0;
}

#define READ(name)                                                                                 \
	static int begin_##name(struct mcp_call *call, const struct mcp_uri *uri)                  \
	{                                                                                          \
		return begin_read(call, uri, read_##name);                                         \
	}

READ(execution)
READ(stdout)
READ(stderr)
READ(execution_file)
READ(report)
READ(session)
READ(session_file)

static json_t *listed_execution(const json_t *row)
{
	const char *id = json_string_value(json_object_get(row, "id"));
	const char *language = json_string_value(json_object_get(row, "language"));
	const char *status = json_string_value(json_object_get(row, "status"));
	const char *created = json_string_value(json_object_get(row, "created_at"));

	return json_pack("{s:o, s:s, s:o, s:o, s:s}", "uri",
			 json_sprintf("atoll://executions/%s", id), "name", id, "title",
			 json_sprintf("%s: %s", language ? language : "program", status),
			 "description",
			 json_sprintf("What became of the %s program of %s",
				      language ? language : "", created),
			 "mimeType", "application/json");
}

static int list_executions(struct mcp_call *call, const char *cursor, json_t *list, char **ret_next)
{
	const struct engine_query query = { .caller = mcp_call_viewer(call),
					    .cursor = cursor,
					    .limit = LISTED_A_PAGE };
	struct error err = { 0 };
	json_t *tree = NULL, *row;
	const char *next;
	size_t i;

	if (engine_list(mcp_call_app(call)->engine, &query, &tree, &err) < 0)
		return err.code == ERROR_INPUT ? -EINVAL : 0;
	json_array_foreach(json_object_get(tree, "executions"), i, row)(void)
		json_array_append_new(list, listed_execution(row));
	next = json_string_value(json_object_get(tree, "next"));
	*ret_next = next ? strdup(next) : NULL;
	json_decref(tree);
	return 0;
}

static int complete_execution(struct mcp_call *call, const char *variable, const char *begins,
			      json_t *values)
{
	return strcmp(variable, "id") == 0 ? complete_executions(call, begins, values) : 0;
}

static int complete_session(struct mcp_call *call, const char *variable, const char *begins,
			    json_t *values)
{
	return strcmp(variable, "id") == 0 ? complete_sessions(call, begins, values) : 0;
}

static const char *watched_execution(const struct mcp_uri *uri)
{
	return mcp_uri_value(uri, "id");
}

const struct mcp_resource mcp_product_resources[] = {
	{ "atoll://executions/{id}", "execution", "An execution",
	  "The whole result of an execution, as GET /v1/executions/{id} has it", "application/json",
	  begin_execution, list_executions, complete_execution, watched_execution },
	{ "atoll://executions/{id}/stdout", "stdout", "Standard output",
	  "All that the program printed to standard output", "text/plain", begin_stdout, NULL,
	  complete_execution, watched_execution },
	{ "atoll://executions/{id}/stderr", "stderr", "Standard error",
	  "All that the program printed to standard error", "text/plain", begin_stderr, NULL,
	  complete_execution, watched_execution },
	{ "atoll://executions/{id}/report", "report", "Debug report",
	  "Why the program failed: analysis, limits against peaks, refusals", "text/markdown",
	  begin_report, NULL, complete_execution, watched_execution },
	{ "atoll://executions/{id}/files/{+path}", "execution file", "File of an execution",
	  "A file that the program wrote", NULL, begin_execution_file, NULL, complete_execution,
	  NULL },
	{ "atoll://sessions/{id}", "session", "A session", "The state of a live session",
	  "application/json", begin_session, NULL, complete_session, NULL },
	{ "atoll://sessions/{id}/files/{+path}", "session file", "File of a session",
	  "A file in the work directory of a live session", NULL, begin_session_file, NULL,
	  complete_session, NULL },
	{ 0 },
};
