/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product's resources: executions with their output and files, sessions with theirs. Content of more than a megabyte is refused:
 * the tools read_output and read_file read it page by page.
 */
#include "base/base64.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "mcp/prompt.h"
#include "mcp/resource.h"
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

static json_t *answer_bytes(const struct mcp_work *w, const char *mime_type, struct span bytes,
			    struct error *err)
{
	if (bytes.len <= CONTENT_BYTES_MAX)
		return contents_of(w, mime_type, bytes);
	(void)error_set(
		err, ERROR_TOO_LARGE, EFBIG,
		"The resource has %zu bytes; read it page by page with the tool read_output "
		"or read_file.",
		bytes.len);
	return NULL;
}

/* Closes the file. r: whether it could be opened. */
static json_t *answer_open_file(const struct mcp_work *w, int r, const struct engine_file *file,
				struct error *err)
{
	const size_t size = (size_t)MIN(file->size_bytes, (int64_t)CONTENT_BYTES_MAX + 1);
	const struct text_source source = { .fd = file->fd, .size = file->size_bytes };
	_cleanup_free_ char *bytes = r < 0 ? NULL : malloc(size + 1);
	ssize_t n = bytes ? text_read(&source, 0, bytes, size) : -ENOMEM;

	if (r < 0)
		return NULL;
	(void)fd_close(file->fd);
	if (n == CONTENT_BYTES_MAX + 1)
		n = (ssize_t)file->size_bytes;
	if (n >= 0)
		return answer_bytes(w, "text/plain", (struct span){ bytes, (size_t)n }, err);
	(void)error_set(err, ERROR_INTERNAL, (int)-n, "the content cannot be read: %s",
			strerror((int)-n));
	return NULL;
}

/* --- executions --- */

static json_t *read_execution(struct mcp_work *w, struct error *err)
{
	_cleanup_free_ char *text = NULL;

	if (engine_get_text(w->app->engine, w->viewer, work_text(w, "id"), &text, err) < 0)
		return NULL;
	return answer_bytes(w, "application/json", span_of(text), err);
}

static json_t *read_stream(struct mcp_work *w, struct error *err)
{
	const char *uri = work_text(w, "uri");
	const bool is_stderr = strcmp(uri + strlen(uri) - 6, "stderr") == 0;
	const struct engine_output which = { work_text(w, "id"),
					     is_stderr ? ENGINE_STDERR : ENGINE_STDOUT };
	struct engine_file file = { .fd = -EBADF };
	int r = engine_output(w->app->engine, w->viewer, which, &file, err);

	return answer_open_file(w, r, &file, err);
}

static json_t *read_execution_file(struct mcp_work *w, struct error *err)
{
	const struct engine_path which = { work_text(w, "id"), work_text(w, "path") };
	struct engine_file file = { .fd = -EBADF };
	int r = engine_file(w->app->engine, w->viewer, which, &file, err);

	return answer_open_file(w, r, &file, err);
}

static json_t *read_report(struct mcp_work *w, struct error *err)
{
	json_auto_t *report = NULL;
	_cleanup_free_ char *text = NULL;

	if (engine_debug_report(w->app->engine, w->viewer, work_text(w, "id"), &report, err) < 0)
		return NULL;
	text = engine_report_markdown(report);
	return answer_bytes(w, "text/markdown", span_of(text ? text : ""), err);
}

/* --- sessions --- */

static json_t *read_session(struct mcp_work *w, struct error *err)
{
	struct session *s = NULL;
	_cleanup_free_ char *text = NULL;
	json_auto_t *tree = NULL;

	if (session_find(w->app->sessions, w->viewer, work_text(w, "id"), &s, err) < 0)
		return NULL;
	tree = session_to_json(s);
	text = tree ? json_dumps(tree, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	return text ? answer_bytes(w, "application/json", span_of(text), err) : NULL;
}

static json_t *read_session_file(struct mcp_work *w, struct error *err)
{
	_cleanup_free_ char *bytes = NULL;
	size_t len = 0;

	(void)json_object_set(w->arguments, "session_id", json_object_get(w->arguments, "id"));
	if (session_file_read(w, work_text(w, "path"), &bytes, &len, err) < 0)
		return NULL;
	return answer_bytes(w, "text/plain", (struct span){ bytes, len }, err);
}

/* --- rows --- */

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

const struct mcp_resource mcp_product_resources[] = {
	{ "atoll://executions/{id}", "execution", "An execution",
	  "The whole result of an execution, as GET /v1/executions/{id} has it", "application/json",
	  read_execution, list_executions, complete_executions, true, NULL },
	{ "atoll://executions/{id}/stdout", "stdout", "Standard output",
	  "All that the program printed to standard output", "text/plain", read_stream, NULL,
	  complete_executions, true, NULL },
	{ "atoll://executions/{id}/stderr", "stderr", "Standard error",
	  "All that the program printed to standard error", "text/plain", read_stream, NULL,
	  complete_executions, true, NULL },
	{ "atoll://executions/{id}/report", "report", "Debug report",
	  "Why the program failed: analysis, limits against peaks, refusals", "text/markdown",
	  read_report, NULL, complete_executions, true, NULL },
	{ "atoll://executions/{id}/files/{+path}", "execution file", "File of an execution",
	  "A file that the program wrote", NULL, read_execution_file, NULL, complete_executions,
	  false, NULL },
	{ "atoll://sessions/{id}", "session", "A session", "The state of a live session",
	  "application/json", read_session, NULL, complete_sessions, false, NULL },
	{ "atoll://sessions/{id}/files/{+path}", "session file", "File of a session",
	  "A file in the work directory of a live session", NULL, read_session_file, NULL,
	  complete_sessions, false, NULL },
	{ 0 },
};
