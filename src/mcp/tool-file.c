/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of files: of a live session, or those that an execution wrote. */
#include "base/base64.h"
#include "base/fd.h"
#include "engine/engine.h"
#include "mcp/brief.h"
#include "mcp/images.h"
#include "mcp/session-file.h"
#include "mcp/text-page.h"
#include "mcp/tool-shapes.h"
#include "mcp/tools.h"

#include <string.h>

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

static void run_write(struct mcp_work *w)
{
	_cleanup_free_ char *decoded = NULL;
	const char *path = work_text(w, "path");
	struct span bytes = { 0 };
	struct error err = { 0 };
	int r = given_bytes(w, &decoded, &bytes, &err);

	if (r == 0)
		r = session_file_write(w, path, bytes, &err);
	if (r < 0)
		work_refuse(w, &err);
	else
		work_answer(w, json_pack("{s:s, s:I}", "path", path, "size", (json_int_t)bytes.len),
			    NULL, false);
}

int tool_write_file(struct mcp_call *call, const json_t *arguments)
{
	return tool_begin(call, arguments, "WriteArguments", run_write);
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
	_cleanup_free_ char *bytes = NULL;
	char head[16];
	ssize_t n = text_read(source, 0, head, sizeof(head));
	json_t *block = NULL;

	if (n < (ssize_t)sizeof(head) || !image_type((struct span){ head, sizeof(head) }) ||
	    source->size > IMAGE_BYTES_MAX || json_object_get(w->arguments, "grep"))
		return NULL;
	bytes = malloc((size_t)source->size);
	n = bytes ? text_read(source, 0, bytes, (size_t)source->size) : -1;
	if (n > 0)
		block = image_of_bytes((struct span){ bytes, (size_t)n });
	return block ? json_pack("[o]", block) : NULL;
}

static json_t *image_page(const struct text_source *source)
{
	return json_pack("{s:s, s:n, s:n, s:n, s:n, s:n, s:n, s:I, s:b, s:b, s:s}", "text", "",
			 "first_line", "last_line", "total_lines", "matches", "next_line",
			 "next_offset", "size", (json_int_t)source->size, "complete", 1, "binary",
			 1, "note", "It is an image; it follows.");
}

static void answer_file(struct mcp_work *w, const struct text_source *text)
{
	json_t *images = image_content(w, text), *page;
	struct error err = { 0 };

	if (images) {
		work_answer(w, image_page(text), images, false);
		return;
	}
	page = text_page_of(w, &(struct page_source){ *text, true }, &err);
	if (page)
		work_answer(w, page, NULL, false);
	else if (err.code != ERROR_NONE)
		work_refuse(w, &err);
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

static void run_read(struct mcp_work *w)
{
	const char *path = work_text(w, "path");
	struct engine_file file = { .fd = -EBADF };
	_cleanup_free_ char *bytes = NULL;
	struct error err = { 0 };
	size_t len = 0;
	int r = check_owner(w, &err);

	if (r == 0 && work_text(w, "session_id"))
		r = session_file_read(w, path, &bytes, &len, &err);
	else if (r == 0)
		r = open_execution_file(w, path, &file, &err);
	if (r < 0)
		work_refuse(w, &err);
	else
		answer_file(w, &(struct text_source){ bytes ? -1 : file.fd, bytes,
						      bytes ? (int64_t)len : file.size_bytes });
	(void)fd_close(file.fd);
}

int tool_read_file(struct mcp_call *call, const json_t *arguments)
{
	return tool_begin(call, arguments, "ReadArguments", run_read);
}

/* --- list_files --- */

static int compare_paths(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;

	return strcmp(json_string_value(json_object_get(*x, "path")),
		      json_string_value(json_object_get(*y, "path")));
}

static bool is_file(const json_t *entry)
{
	const char *type = json_string_value(json_object_get(entry, "type"));

	return json_string_value(json_object_get(entry, "path")) &&
	       json_is_integer(json_object_get(entry, "size")) &&
	       (!type || strcmp(type, "directory") != 0);
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

	for (size_t i = 0; sorted && i < n; i++)
		if (is_file(json_array_get(entries, i)))
			sorted[files++] = json_array_get(entries, i);
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

static void run_list(struct mcp_work *w)
{
	json_t *entries = NULL;
	struct error err = { 0 };
	int r = check_owner(w, &err);

	if (r == 0)
		r = work_text(w, "session_id") ? session_file_list(w, &entries, &err)
					       : execution_files(w, &entries, &err);
	if (r < 0)
		work_refuse(w, &err);
	else
		work_answer(w, files_page(entries, work_text(w, "after")), NULL, false);
	json_decref(entries);
}

int tool_list_files(struct mcp_call *call, const json_t *arguments)
{
	return tool_begin(call, arguments, "ListArguments", run_list);
}
