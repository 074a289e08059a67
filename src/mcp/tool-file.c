/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools of files: of a live session, or those that an execution wrote; and pages of a text. The runner of a live session reads and writes
 * its files inside its sandbox, between executions.
 */
#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "engine/engine.h"
#include "mcp/brief.h"
#include "mcp/tool-shapes.h"
#include "session/session.h"
#include "spec/utf8-json.h"

#include <string.h>

enum {
	FILE_BYTES_MAX = 32 << 20,
	LINES_DEFAULT = 200,
	PAGE_FRAME_COST = 1500, /* keys and numbers of a page, and what surrounds them */
	PAGE_COST = ANSWER_COST_MAX - PAGE_FRAME_COST,
	PAGE_BYTES = PAGE_COST / 2,
};

/* --- files of a live session --- */

static void on_file(void *data, const json_t *answer, const struct error *err)
{
	work_replied(data,
		     err->code == ERROR_NONE ? json_incref((json_t *)(uintptr_t)answer) : NULL,
		     err);
}

/* *ret: a new reference. */
static int ask_file(struct mcp_work *w, const struct session_file *file, json_t **ret,
		    struct error *err)
{
	struct work_reply reply = { .work = w };
	struct session *s = NULL;
	int r = tool_session(w, &s, err);

	if (r == 0)
		r = session_file(s, file, (struct session_file_reply){ &reply, on_file }, err);
	*ret = work_await(&reply, r, err);
	return r == 0 && reply.err.code != ERROR_NONE ? -EIO : r;
}

int session_file_write(struct mcp_work *w, const char *path, struct span bytes, struct error *err)
{
	const struct session_file file = { .op = SESSION_WRITE, .path = path, .bytes = bytes };
	json_t *answer = NULL;
	int r = ask_file(w, &file, &answer, err);

	json_decref(answer);
	return r;
}

/* One piece of the file behind those in `ret`. 1: there is more. */
static int read_piece(struct mcp_work *w, const char *path, struct buf *ret, struct error *err)
{
	const struct session_file file = { .op = SESSION_READ,
					   .path = path,
					   .offset = (int64_t)ret->len };
	_cleanup_free_ char *bytes = NULL;
	json_t *answer = NULL;
	int64_t size;
	size_t len, n = 0;
	int r = ask_file(w, &file, &answer, err);

	if (r < 0)
		return r;
	len = json_string_length(json_object_get(answer, "base64"));
	size = json_integer_value(json_object_get(answer, "size"));
	bytes = malloc(base64_decoded_max(len) + 1);
	r = bytes && len > 0 ? base64_decode(json_string_value(json_object_get(answer, "base64")),
					     len, bytes, &n)
			     : 0;
	json_decref(answer);
	if (!bytes)
		return error_oom(err);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, EPROTO,
				 "the session answered with something that is no file");
	if (size > FILE_BYTES_MAX || buf_append(ret, bytes, n) < 0)
		return error_set(err, ERROR_TOO_LARGE, EFBIG,
				 "the file is larger than the %d MiB that this tool reads; read a "
				 "part of it by code in the session",
				 FILE_BYTES_MAX >> 20);
	return n > 0 && (int64_t)ret->len < size;
}

int session_file_read(struct mcp_work *w, const char *path, char **ret, size_t *ret_len,
		      struct error *err)
{
	_cleanup_buf_ struct buf bytes = { 0 };
	int r;

	buf_init(&bytes, FILE_BYTES_MAX);
	do
		r = read_piece(w, path, &bytes, err);
	while (r > 0);
	if (r < 0)
		return r;
	*ret_len = bytes.len;
	*ret = bytes.data ? TAKE_PTR(bytes.data) : strdup("");
	bytes = (struct buf){ 0 };
	return *ret ? 0 : error_oom(err);
}

int session_file_list(struct mcp_work *w, json_t **ret, struct error *err)
{
	const struct session_file file = { .op = SESSION_LIST, .path = "." };
	json_t *answer = NULL, *entries;
	int r = ask_file(w, &file, &answer, err);

	if (r < 0)
		return r;
	entries = json_object_get(answer, "entries");
	*ret = entries ? json_incref(entries) : json_array();
	json_decref(answer);
	return 0;
}

/* --- pages --- */

static json_t *number_or_null(int64_t n)
{
	return n > 0 ? json_integer(n) : json_null();
}

static json_t *page_to_json(const struct page_source *source, json_t *text, bool binary)
{
	return json_pack("{s:o, s:n, s:n, s:n, s:n, s:n, s:n, s:I, s:b, s:b, s:n}", "text", text,
			 "first_line", "last_line", "total_lines", "matches", "next_line",
			 "next_offset", "size", (json_int_t)source->text.size, "complete",
			 source->complete, "binary", binary, "note");
}

/* --- lines --- */

static const char *note_of(const struct text_page *page, const struct text_query *query)
{
	if (page->stopped)
		return "The search took too long and stopped; go on at next_line, or give a "
		       "simpler pattern.";
	if (query->grep && page->matches == 0)
		return "No line matches.";
	if (page->first_line == 0 && page->total_lines > 0)
		return "There is no such line; total_lines says how many there are.";
	return NULL;
}

static json_t *lines_to_json(const struct page_source *source, const struct text_query *query,
			     const struct text_page *page)
{
	const char *note = note_of(page, query);
	bool binary = false;
	json_t *text = utf8_to_json(page->text.data ? page->text.data : "", page->text.len,
				    &binary);
	json_t *made = page_to_json(source, text, binary);

	if (!made)
		return NULL;
	(void)json_object_set_new(made, "first_line", number_or_null(page->first_line));
	(void)json_object_set_new(made, "last_line", number_or_null(page->last_line));
	if (!page->stopped)
		(void)json_object_set_new(made, "total_lines", json_integer(page->total_lines));
	if (query->grep)
		(void)json_object_set_new(made, "matches", json_integer(page->matches));
	(void)json_object_set_new(made, "next_line", number_or_null(page->next_line));
	if (note)
		(void)json_object_set_new(made, "note", json_string(note));
	return made;
}

static json_t *read_lines(struct mcp_work *w, const struct page_source *source, struct error *err)
{
	const struct text_query query = {
		.grep = work_text(w, "grep"),
		.ignore_case = json_is_true(json_object_get(w->arguments, "ignore_case")),
		.context = (int)work_number(w, "context", 0),
		.start_line = work_number(w, "start_line", 1),
		.max_lines = work_number(w, "max_lines", LINES_DEFAULT),
		.max_cost = PAGE_COST,
	};
	struct text_scan *scan = NULL;
	json_t *made;

	if (work_scan(w, &source->text, &query, &scan, err) < 0)
		return NULL;
	made = lines_to_json(source, &query, text_scan_page(scan));
	(void)text_scan_free(scan);
	if (!made)
		(void)error_oom(err);
	return made;
}

/* --- bytes --- */

static json_t *read_bytes(const struct page_source *source, int64_t offset, struct error *err)
{
	_cleanup_free_ char *bytes = malloc(PAGE_BYTES);
	const int64_t size = source->text.size;
	int64_t from = offset < 0 ? MAX(size + offset, (int64_t)0) : MIN(offset, size);
	struct span text = { bytes, 0 };
	bool binary = false;
	json_t *made;
	ssize_t n = bytes ? text_read(&source->text, from, bytes, PAGE_BYTES) : -ENOMEM;

	if (n < 0) {
		(void)error_set(err, ERROR_INTERNAL, (int)-n, "the text cannot be read: %s",
				strerror((int)-n));
		return NULL;
	}
	text.len = (size_t)n;
	text.len = text_head(text, PAGE_COST);
	/* Bytes that are no text have no beginning of a character. */
	if (text.len == 0 && n > 0)
		text.len = MIN((size_t)n, (size_t)PAGE_BYTES / 3);
	made = page_to_json(source, utf8_to_json(bytes, text.len, &binary), binary);
	if (!made)
		(void)error_oom(err);
	else if (binary)
		(void)json_object_set_new(made, "binary", json_true());
	if (made && from + (int64_t)text.len < size)
		(void)json_object_set_new(made, "next_offset",
					  json_integer(from + (int64_t)text.len));
	return made;
}

json_t *text_page_of(struct mcp_work *w, const struct page_source *source, struct error *err)
{
	const json_t *offset = json_object_get(w->arguments, "offset");

	return offset ? read_bytes(source, json_integer_value(offset), err)
		      : read_lines(w, source, err);
}

/* --- write_file --- */

static int given_bytes(const struct mcp_work *w, char **ret_decoded, struct span *ret,
		       struct error *err)
{
	const json_t *text = json_object_get(w->arguments, "content");
	const json_t *base64 = json_object_get(w->arguments, "base64");
	size_t len = json_string_length(base64);

	if (!text == !base64)
		return error_field(err, "content", "content: give content (a text) or base64");
	if (text) {
		*ret = (struct span){ json_string_value(text), json_string_length(text) };
		return 0;
	}
	*ret_decoded = malloc(base64_decoded_max(len) + 1);
	if (!*ret_decoded)
		return error_oom(err);
	ret->data = *ret_decoded;
	if (base64_decode(json_string_value(base64), len, *ret_decoded, &ret->len) < 0)
		return error_field(err, "base64", "base64: it is not base64");
	return 0;
}

json_t *run_write_file(struct mcp_work *w, struct error *err)
{
	_cleanup_free_ char *decoded = NULL;
	const char *path = work_text(w, "path");
	struct span bytes = { 0 };

	if (given_bytes(w, &decoded, &bytes, err) < 0 ||
	    session_file_write(w, path, bytes, err) < 0)
		return NULL;
	return json_pack("{s:s, s:I}", "path", path, "size", (json_int_t)bytes.len);
}

/* --- read_file --- */

static int check_owner(const struct mcp_work *w, struct error *err)
{
	if (!work_text(w, "session_id") == !work_text(w, "execution_id"))
		return error_field(err, "session_id",
				   "session_id: give session_id or execution_id, one of them");
	return 0;
}

/* An image is shown as one, as long as no lines are asked for. */
static json_t *image_content(const struct mcp_work *w, const struct text_source *source)
{
	char head[16];
	json_t *block;

	if (json_object_get(w->arguments, "grep") ||
	    text_read(source, 0, head, sizeof(head)) < (ssize_t)sizeof(head) ||
	    !image_type((struct span){ head, sizeof(head) }))
		return NULL;
	block = image_of_source(source);
	return block ? json_pack("[o]", block) : NULL;
}

static json_t *answer_file(struct mcp_work *w, const struct text_source *text, struct error *err)
{
	w->images = image_content(w, text);
	if (!w->images)
		return text_page_of(w, &(struct page_source){ *text, true }, err);
	return json_pack("{s:s, s:n, s:n, s:n, s:n, s:n, s:n, s:I, s:b, s:b, s:s}", "text", "",
			 "first_line", "last_line", "total_lines", "matches", "next_line",
			 "next_offset", "size", (json_int_t)text->size, "complete", 1, "binary", 1,
			 "note", "It is an image; it follows.");
}

static int open_execution_file(const struct mcp_work *w, const char *path, struct engine_file *ret,
			       struct error *err)
{
	const char *id = work_text(w, "execution_id");
	int r = engine_file(w->app->engine, w->viewer, (struct engine_path){ id, path }, ret, err);

	if (r < 0 && err->code == ERROR_NOT_FOUND)
		return error_set(
			err, ERROR_NOT_FOUND, ENOENT,
			"The execution %.40s has written no file '%.120s'; list_files shows "
			"what it wrote. Files are kept for runs without a session.",
			id, path);
	return r;
}

json_t *run_read_file(struct mcp_work *w, struct error *err)
{
	const char *path = work_text(w, "path");
	struct engine_file file = { .fd = -EBADF };
	_cleanup_free_ char *bytes = NULL;
	json_t *made = NULL;
	size_t len = 0;
	int r = check_owner(w, err);

	if (r == 0 && work_text(w, "session_id"))
		r = session_file_read(w, path, &bytes, &len, err);
	else if (r == 0)
		r = open_execution_file(w, path, &file, err);
	if (r == 0)
		made = answer_file(w,
				   &(struct text_source){ bytes ? -1 : file.fd, bytes,
							  bytes ? (int64_t)len : file.size_bytes },
				   err);
	(void)fd_close(file.fd);
	return made;
}

/* --- list_files --- */

static int compare_paths(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;

	return strcmp(json_string_value(json_object_get(*x, "path")),
		      json_string_value(json_object_get(*y, "path")));
}

/* The sorted files behind `after`, as many as an answer holds. */
static int fill_page(const json_t *const *sorted, size_t n, const char *after, json_t *made)
{
	json_t *files = json_object_get(made, "files");
	size_t room = answer_room(made), cost = 0, i;

	for (i = 0; i < n; i++) {
		json_t *path = json_object_get(sorted[i], "path");
		struct span text = { json_string_value(path), json_string_length(path) };

		if (after && strcmp(text.data, after) <= 0)
			continue;
		cost += 70 + text_cost(text);
		if (cost + text_cost(text) > room && json_array_size(files) > 0)
			break;
		if (json_array_append_new(files, json_pack("{s:O, s:O}", "path", path, "size",
							   json_object_get(sorted[i], "size"))) < 0)
			return -ENOMEM;
	}
	if (i < n)
		return json_object_set(
			made, "next",
			json_object_get(json_array_get(files, json_array_size(files) - 1), "path"));
	return 0;
}

static json_t *files_page(const json_t *entries, const char *after)
{
	const size_t n = json_array_size(entries);
	_cleanup_free_ const json_t **sorted = calloc(n + 1, sizeof(const json_t *));
	json_t *made;
	size_t files = 0;

	for (size_t i = 0; sorted && i < n; i++) {
		const json_t *entry = json_array_get(entries, i);
		const char *type = json_string_value(json_object_get(entry, "type"));

		if (json_string_value(json_object_get(entry, "path")) &&
		    json_is_integer(json_object_get(entry, "size")) &&
		    (!type || strcmp(type, "directory") != 0))
			sorted[files++] = entry;
	}
	made = sorted ? json_pack("{s:[], s:I, s:n}", "files", "total", (json_int_t)files, "next")
		      : NULL;
	if (!made)
		return NULL;
	qsort(sorted, files, sizeof(const json_t *), compare_paths);
	if (fill_page(sorted, files, after, made) == 0)
		return made;
	json_decref(made);
	return NULL;
}

static int execution_files(const struct mcp_work *w, json_t **ret, struct error *err)
{
	const char *id = work_text(w, "execution_id");
	json_t *tree = NULL;
	int r = engine_files(w->app->engine, w->viewer, id, &tree, err);

	if (r < 0)
		return err->code == ERROR_NOT_FOUND ? tool_no_execution(id, err) : r;
	*ret = json_incref(json_object_get(tree, "files"));
	json_decref(tree);
	return 0;
}

json_t *run_list_files(struct mcp_work *w, struct error *err)
{
	json_auto_t *entries = NULL;
	int r = check_owner(w, err);

	if (r == 0)
		r = work_text(w, "session_id") ? session_file_list(w, &entries, err)
					       : execution_files(w, &entries, err);
	return r < 0 ? NULL : files_page(entries, work_text(w, "after"));
}
