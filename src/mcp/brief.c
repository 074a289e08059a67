/* SPDX-License-Identifier: Apache-2.0 */
/* See brief.h. */
#include "mcp/brief.h"

#include <stdio.h>

#include "spec/knob.h"
#include "spec/utf8-json.h"

enum {
	SENTENCE_MAX = 600,
	MESSAGE_COST = 1200, /* of an error's message */
	EXCERPT_COST = 2000,
	VALUE_COST = 4000,
	FILES_COST = 1600,
	DISPLAYED_LEAST = 200, /* less is not worth a beginning */
	DENIALS_MAX = 5,
	WHERE_MAX = 160,
};

size_t answer_cost(const json_t *structured)
{
	char *text = json_dumps(structured, JSON_COMPACT);
	size_t cost = 0;

	if (!text)
		return SIZE_MAX;
	for (const char *at = text; *at; at++)
		cost += *at == '"' || *at == '\\' ? 3 : 2;
	free(text);
	return cost;
}

size_t answer_room(const json_t *structured)
{
	size_t cost = answer_cost(structured);
	size_t most = ANSWER_COST_MAX - ANSWER_HEAD_COST;

	return cost < most ? most - cost : 0;
}

static const char *text_of(const json_t *tree, const char *key)
{
	return json_string_value(json_object_get(tree, key));
}

void brief_seconds(double seconds, char *ret, size_t size)
{
	if (seconds < 0.9995)
		(void)snprintf(ret, size, "%.3g ms", seconds * 1000);
	else if (seconds < 60)
		(void)snprintf(ret, size, "%.3g s", seconds);
	else
		(void)snprintf(ret, size, "%d min %d s", (int)seconds / 60, (int)seconds % 60);
}

/* --- texts --- */

/* The part up to the last line end, if that is most of it. */
static size_t whole_lines(const char *text, size_t n)
{
	const char *end = n > 0 ? memrchr(text, '\n', n) : NULL;

	return end && (size_t)(end - text) >= n / 2 ? (size_t)(end - text) + 1 : n;
}

static size_t lines_in(const char *text, size_t n)
{
	const char *at = text, *end = text + n;
	size_t lines = 0;

	while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
		lines++;
		at++;
	}
	return lines;
}

static json_t *head_and_tail(struct span text, size_t max_cost, const char *where)
{
	size_t head = whole_lines(text.data, text_head(text, max_cost / 3));
	size_t tail = text_tail(text, max_cost - max_cost / 3);
	const char *from = text.data + text.len - tail, *line;
	_cleanup_buf_ struct buf out = { 0 };
	int r;

	line = tail > 0 ? memchr(from, '\n', tail / 2) : NULL;
	if (line) {
		tail -= (size_t)(line + 1 - from);
		from = line + 1;
	}
	buf_init(&out, head + tail + 2 * WHERE_MAX);
	r = buf_append(&out, text.data, head);
	if (r == 0)
		r = buf_printf(&out, "%s[… %zu bytes left out; %s with start_line %zu …]\n",
			       head > 0 && text.data[head - 1] != '\n' ? "\n" : "",
			       text.len - head - tail, where, lines_in(text.data, head) + 1);
	if (r == 0)
		r = buf_append(&out, from, tail);
	return r == 0 ? utf8_to_json(out.data, out.len, NULL) : NULL;
}

/* A byte costs two at least: a large text is not looked at. */
static size_t cost_up_to(struct span text, size_t most)
{
	return text.len > most / 2 ? most + 1 : text_cost(text);
}

json_t *brief_text(struct span text, size_t max_cost, const char *where)
{
	const size_t note = 3 * WHERE_MAX;

	if (cost_up_to(text, max_cost) <= max_cost)
		return utf8_to_json(text.data ? text.data : "", text.len, NULL);
	if (max_cost <= note)
		return json_string("");
	return head_and_tail(text, max_cost - note, where);
}

/* The beginning of a text, with a mark where it was cut. NULL becomes null. */
static json_t *cut_text(const json_t *value, size_t max_cost)
{
	struct span text = { json_string_value(value), json_string_length(value) };
	size_t n = text_head(text, max_cost);

	if (!text.data)
		return json_null();
	return n == text.len ? json_stringn(text.data, n)
			     : json_sprintf("%.*s…", (int)n, text.data);
}

/* --- sentences --- */

static int put_error(struct buf *out, const json_t *error)
{
	const char *type = text_of(error, "type"), *message = text_of(error, "message");
	const char *file = text_of(error, "file");
	json_int_t line = json_integer_value(json_object_get(error, "line"));
	int r = buf_printf(out, "%.80s%s%.300s", type ? type : "", type && message ? ": " : "",
			   message ? message : "");

	if (r == 0 && line > 0)
		r = buf_printf(out, " (line %lld%s%.80s)", (long long)line, file ? " of " : "",
			       file ? file : "");
	return r;
}

static json_t *summary_of(const json_t *result)
{
	_cleanup_buf_ struct buf out = { 0 };
	const char *status = text_of(result, "status");
	const json_t *error = json_object_get(result, "error");
	const char *detail = text_of(json_object_get(result, "cause"), "detail");
	const json_t *duration = json_object_get(result, "duration");
	char took[32] = "";
	int r;

	if (!status || strcmp(status, "queued") == 0 || strcmp(status, "running") == 0)
		return json_sprintf("It is %s; ask again later.", status ? status : "unknown");
	buf_init(&out, SENTENCE_MAX);
	brief_seconds(json_number_value(duration), took, sizeof(took));
	if (strcmp(status, "success") == 0)
		r = buf_puts(&out, "Succeeded");
	else if (strcmp(status, "error") == 0 && json_is_object(error))
		r = put_error(&out, error);
	else
		r = buf_printf(&out, "Failed (%s): %.300s", status, detail ? detail : "no detail");
	if (r == 0)
		r = buf_printf(&out, json_is_number(duration) ? ", after %s." : ".%.0s", took);
	return r == 0 ? utf8_to_json(out.data, out.len, NULL) : NULL;
}

/* A limit that the program hit: where a larger one can be given. */
static const struct {
	const char *key, *advice;
} limit_advice[] = {
	{ "timeout", "give a timeout of %s, or make the code faster" },
	{ "cpu_time", "run_in_session takes limits {\"cpu_time\": \"%s\"}; or compute less" },
	{ "output_total", "print less, or write to a file; limits {\"output_total\": \"%s\"}" },
	{ "memory", "create_session takes limits {\"memory\": \"%s\"}; or use less memory" },
	{ "disk", "create_session takes limits {\"disk\": \"%s\"}; or write less" },
	{ "pids", "create_session takes limits {\"pids\": %s}; or start fewer processes" },
};

static bool put_limit_advice(struct buf *out, const json_t *cause)
{
	const char *key = text_of(cause, "limit_key");
	const json_t *suggest = json_object_get(cause, "suggest");
	const struct knob *k = key ? knob_find(key) : NULL;
	char text[32];
	int64_t value;

	if (!k || !json_is_number(suggest) || knob_parse_json(k, suggest, &value, NULL) < 0)
		return false;
	knob_flag_text(k, value, text, sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(limit_advice); i++) {
		const char *advice = limit_advice[i].advice, *at = strstr(advice, "%s");

		if (strcmp(limit_advice[i].key, key) != 0)
			continue;
		return buf_printf(out, "Retry: %.*s%s%s.", (int)(at - advice), advice, text,
				  at + 2) == 0;
	}
	return false;
}

static json_t *suggestion_of(const struct brief_view *view)
{
	const char *advice = text_of(view->analysis, "suggestion");
	const char *state = text_of(json_object_get(view->result, "session"), "state");
	_cleanup_buf_ struct buf out = { 0 };
	bool any;

	buf_init(&out, SENTENCE_MAX + 200);
	any = put_limit_advice(&out, json_object_get(view->result, "cause"));
	if (!any && advice)
		any = buf_printf(&out, "%.500s", advice) == 0;
	if (state && strcmp(state, "lost") == 0)
		any = buf_printf(&out,
				 "%sThe session's variables are lost; its next run begins anew.",
				 any ? " " : "") == 0;
	return any ? utf8_to_json(out.data, out.len, NULL) : json_null();
}

/* --- parts --- */

static json_t *error_of(const struct brief_view *view)
{
	const json_t *error = json_object_get(view->result, "error");
	json_t *line = json_object_get(error, "line");

	if (!json_is_object(error))
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:O, s:o}", "type",
			 cut_text(json_object_get(error, "type"), MESSAGE_COST), "message",
			 cut_text(json_object_get(error, "message"), MESSAGE_COST), "file",
			 cut_text(json_object_get(error, "file"), MESSAGE_COST), "line",
			 json_is_integer(line) ? line : json_null(), "excerpt",
			 cut_text(json_object_get(view->analysis, "excerpt"), EXCERPT_COST));
}

/* jansson's writer, which stops when there is enough to show. */
static int put_value(const char *bytes, size_t n, void *data)
{
	struct buf *text = data;
	size_t room = text->max - text->len;

	return buf_append(text, bytes, MIN(n, room)) < 0 || n > room ? -1 : 0;
}

/* As the language prints it; otherwise as JSON. */
static json_t *value_of(const json_t *result)
{
	const json_t *value = json_object_get(result, "value");
	const json_t *repr = json_object_get(result, "value_repr");
	_cleanup_buf_ struct buf text = { 0 };
	bool cut;
	size_t n;

	if (json_is_true(json_object_get(result, "value_truncated")))
		return cut_text(repr, VALUE_COST);
	if (!value || json_is_null(value))
		return json_null();
	if (json_is_string(repr) || json_is_string(value))
		return cut_text(json_is_string(repr) ? repr : value, VALUE_COST);
	buf_init(&text, VALUE_COST);
	cut = json_dump_callback(value, put_value, &text,
				 JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17)) < 0;
	n = text_head((struct span){ text.data, text.len }, VALUE_COST);
	return json_sprintf("%.*s%s", (int)n, text.data ? text.data : "",
			    cut || n < text.len ? "…" : "");
}

static json_t *files_of(const json_t *files)
{
	json_t *list = json_array(), *one;
	size_t room = FILES_COST, i;

	json_array_foreach(files, i, one)
	{
		json_t *path = json_object_get(one, "path"), *size = json_object_get(one, "size");
		size_t cost = 60 + text_cost((struct span){ json_string_value(path),
							    json_string_length(path) });

		if (cost > room || json_array_append_new(list, json_pack("{s:O, s:O}", "path", path,
									 "size", size)) < 0)
			break;
		room -= cost;
	}
	return list;
}

/* The text of rich outputs that are no image: tables, mostly. */
static json_t *displayed_of(const json_t *outputs)
{
	json_t *list = json_array(), *one;
	size_t room = VALUE_COST, i;

	json_array_foreach(outputs, i, one)
	{
		const json_t *data = json_object_get(one, "data");
		const json_t *text = json_object_get(data, "text/plain");
		struct span span = { json_string_value(text), json_string_length(text) };

		if (!span.data || json_object_get(data, "image/png") || room < DISPLAYED_LEAST)
			continue;
		if (json_array_append_new(list, cut_text(text, room)) < 0)
			break;
		room -= MIN(room, cost_up_to(span, room));
	}
	return list;
}

static json_t *denials_of(const json_t *denials)
{
	json_t *list = json_array(), *one;
	size_t i;

	json_array_foreach(denials, i, one)
	{
		const char *what = text_of(one, "what"), *hint = text_of(one, "hint");

		if (i == DENIALS_MAX)
			break;
		(void)json_array_append_new(list, json_sprintf("%.120s was refused%s%.120s",
							       what ? what : "a call",
							       hint ? "; " : "", hint ? hint : ""));
	}
	return list;
}

/* --- what was printed --- */

static struct span stream_text(const json_t *result, const char *stream)
{
	const json_t *text = json_object_get(result, stream);

	return (struct span){ json_string_value(text), json_string_length(text) };
}

static json_t *printed_of(const json_t *result, const char *stream, size_t max_cost)
{
	const struct span text = stream_text(result, stream);
	const char *id = text_of(result, "id");
	char where[WHERE_MAX], key[32];
	bool whole = cost_up_to(text, max_cost) <= max_cost;
	json_t *shown;

	(void)snprintf(where, sizeof(where), "read_output of %.40s, stream %s,", id ? id : "?",
		       stream);
	(void)snprintf(key, sizeof(key), "%s_bytes", stream);
	shown = brief_text(text, max_cost, where);
	if (!shown)
		return NULL;
	json_t *bytes = json_object_get(result, key);

	(void)snprintf(key, sizeof(key), "%s_truncated", stream);
	return json_pack("{s:o, s:O, s:b}", "text", shown, "bytes", bytes ? bytes : json_null(),
			 "truncated", !whole || json_is_true(json_object_get(result, key)));
}

/* The two share the room; what explains a failure gets more of it. */
static int add_streams(json_t *made, const json_t *result)
{
	const size_t room = answer_room(made);
	const bool failed = json_is_false(json_object_get(result, "success"));
	const char *first = failed ? "stderr" : "stdout", *second = failed ? "stdout" : "stderr";
	size_t cost = cost_up_to(stream_text(result, second), room);
	size_t rest = MIN(cost, room / 3);

	if (json_object_set_new(made, first, printed_of(result, first, room - rest)) < 0)
		return -ENOMEM;
	rest = MIN(answer_room(made), room);
	return json_object_set_new(made, second, printed_of(result, second, rest));
}

static json_t *or_null(json_t *value)
{
	return value ? json_incref(value) : json_null();
}

json_t *brief_result(const struct brief_view *view)
{
	const json_t *result = view->result;
	const json_t *session = json_object_get(result, "session");
	json_t *made = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "execution_id",
		or_null(json_object_get(result, "id")), "status",
		or_null(json_object_get(result, "status")), "summary", summary_of(result),
		"suggestion", suggestion_of(view), "exit_code",
		or_null(json_object_get(result, "exit_code")), "error", error_of(view), "value",
		value_of(result), "stdout", json_object(), "stderr", json_object(), "files",
		files_of(json_object_get(result, "files")), "files_total",
		json_integer((json_int_t)json_array_size(json_object_get(result, "files"))));

	if (!made ||
	    json_object_update_new(
		    made, json_pack("{s:o, s:o, s:i, s:o, s:o, s:o, s:o}", "displayed",
				    displayed_of(json_object_get(result, "outputs")), "denials",
				    denials_of(json_object_get(result, "denials")), "images",
				    view->images, "session_id",
				    or_null(json_object_get(session, "id")), "session_state",
				    or_null(json_object_get(session, "state")), "duration",
				    or_null(json_object_get(result, "duration")), "memory_peak",
				    or_null(json_object_get(result, "memory_peak")))) < 0 ||
	    add_streams(made, result) < 0) {
		json_decref(made);
		return NULL;
	}
	return made;
}
