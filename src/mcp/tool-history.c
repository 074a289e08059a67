/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of past executions: one by its id, its output page by page, and the search for others. */
#include "base/fd.h"
#include "base/loop/fiber.h"
#include "base/timestamp.h"
#include "engine/engine.h"
#include "mcp/brief.h"
#include "mcp/tool-shapes.h"
#include "spec/utf8-json.h"

enum { FOUND_DEFAULT = 10, CODE_COST = 500 };

/* --- get_execution --- */

/* What is not known of an execution that has not ended is absent from its state. */
static bool has_failed(const json_t *result)
{
	return json_is_false(json_object_get(result, "success"));
}

json_t *run_get_execution(struct mcp_work *w, struct error *err)
{
	const char *id = work_text(w, "execution_id");
	json_auto_t *result = NULL, *analysis = NULL;
	struct brief_view view;

	if (engine_get(w->app->engine, w->viewer, id, &result, err) < 0) {
		if (err->code == ERROR_NOT_FOUND)
			(void)tool_no_execution(id, err);
		return NULL;
	}
	if (has_failed(result))
		(void)!engine_analysis(w->app->engine, w->viewer, id, &analysis, NULL);
	w->images = images_of_result(w, result);
	/* Where it is the answer to the run itself; reading about a failure is no failure. */
	w->is_error = w->run == run_run_recall && has_failed(result);
	view = (struct brief_view){ result, analysis, (int)json_array_size(w->images) };
	return brief_result(&view);
}

json_t *run_run_recall(struct mcp_work *w, struct error *err)
{
	return run_get_execution(w, err);
}

/* --- read_output --- */

json_t *run_read_output(struct mcp_work *w, struct error *err)
{
	const char *stream = work_text(w, "stream"), *id = work_text(w, "execution_id");
	const struct engine_output which = { id, stream && strcmp(stream, "stderr") == 0
							 ? ENGINE_STDERR
							 : ENGINE_STDOUT };
	struct engine_file file = { .fd = -EBADF };
	json_t *page = NULL;

	if (engine_output(w->app->engine, w->viewer, which, &file, err) == 0)
		page = text_page_of(w,
				    &(struct page_source){ { file.fd, NULL, file.size_bytes },
							   !file.growing && !file.cut },
				    err);
	else if (err->code == ERROR_NOT_FOUND)
		(void)tool_no_execution(id, err);
	(void)fd_close(file.fd);
	return page;
}

/* --- search_history --- */

static int read_time(const struct mcp_work *w, const char *key, int64_t *ret, struct error *err)
{
	const char *text = work_text(w, key);

	if (!text || timestamp_parse(text, ret) == 0)
		return 0;
	return error_field(err, key, "%s: give a time like 2026-11-15T10:00:00Z", key);
}

/* The beginning of the code; null where there is none. */
static json_t *code_of(struct mcp_work *w, const char *id)
{
	json_t *request = NULL, *code, *text;
	struct span span;

	if (engine_request(w->app->engine, w->viewer, id, &request, NULL) < 0)
		return json_null();
	code = json_object_get(request, "code");
	span = (struct span){ json_string_value(code), json_string_length(code) };
	text = span.data ? utf8_to_json(span.data, text_head(span, CODE_COST), NULL) : json_null();
	json_decref(request);
	return text;
}

static json_t *found_row(struct mcp_work *w, const json_t *row)
{
	static const char *const keys[] = { "status", "language", "exit_code", "created_at",
					    "duration" };
	json_t *labels = json_object_get(row, "labels");
	json_t *made = json_pack("{s:O}", "execution_id", json_object_get(row, "id"));

	for (size_t i = 0; made && i < ARRAY_SIZE(keys); i++)
		(void)json_object_set(made, keys[i], json_object_get(row, keys[i]));
	/* Labels may be large. */
	(void)json_object_set_new(made, "labels",
				  labels && answer_cost(labels) < CODE_COST ? json_incref(labels)
									    : json_object());
	(void)json_object_set_new(made, "code",
				  code_of(w, json_string_value(json_object_get(row, "id"))));
	return made;
}

static json_t *found_page(struct mcp_work *w, const json_t *tree)
{
	json_t *list = json_array(), *next = json_object_get(tree, "next"), *row;
	size_t i;

	json_array_foreach(json_object_get(tree, "executions"), i, row)
	{
		fiber_yield(); /* each one is read and parsed */
		if (json_array_append_new(list, found_row(w, row)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return json_pack("{s:o, s:O}", "executions", list, "next", next);
}

json_t *run_search_history(struct mcp_work *w, struct error *err)
{
	struct engine_query query = {
		.caller = w->viewer,
		.status = work_text(w, "status"),
		.language = work_text(w, "language"),
		.label = work_text(w, "label"),
		.text = work_text(w, "text"),
		.cursor = work_text(w, "cursor"),
		.limit = work_number(w, "limit", FOUND_DEFAULT),
	};
	json_auto_t *tree = NULL;

	if (read_time(w, "since", &query.since_ns, err) < 0 ||
	    read_time(w, "until", &query.until_ns, err) < 0 ||
	    engine_list(w->app->engine, &query, &tree, err) < 0)
		return NULL;
	return found_page(w, tree);
}
