/* SPDX-License-Identifier: Apache-2.0 */
/* See text-page.h. */
#include "mcp/text-page.h"

#include "mcp/brief.h"
#include "spec/utf8-json.h"

enum {
	LINES_DEFAULT = 200,
	PAGE_FRAME_COST = 1500, /* keys and numbers of a page, and what surrounds them */
	PAGE_COST = ANSWER_COST_MAX - PAGE_FRAME_COST,
	PAGE_BYTES = PAGE_COST / 2,
};

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
