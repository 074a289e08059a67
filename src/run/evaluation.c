/* SPDX-License-Identifier: Apache-2.0 */
/* See evaluation.h. Keys that no result has are left out; values of another type count as not given. */
#include "run/evaluation.h"

#include "base/base64.h"
#include "spec/yaml.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_CODE_MAX = 255 };

void evaluation_done(struct evaluation *e)
{
	json_decref(e->done);
	json_decref(e->outputs);
	*e = (struct evaluation){ 0 };
}

/* The runner begins the line of an end with these words. */
static json_t *unreadable_end(struct span line)
{
	char head[48], end;
	int64_t n;

	(void)snprintf(head, sizeof(head), "%.*s", (int)MIN(line.len, sizeof(head) - 1), line.data);
	if (sscanf(head, "{\"op\":\"done\",\"n\":%" SCNd64 "%c", &n, &end) != 2 || end != ',')
		return NULL;
	return json_pack("{s:s, s:I, s:i, s:{s:s, s:s}}", "op", "done", "n", (json_int_t)n,
			 "exit_code", 1, "error", "type", "ValueError", "message",
			 "the value cannot be told: it has too many parts or levels");
}

void evaluation_drop(void *tree)
{
	json_decref(tree);
}

void *evaluation_read(struct span line)
{
	const struct document doc = { "the runner's line", line.data, line.len };
	json_t *tree = NULL;

	/* Cheap, for lines that no runner writes. */
	if (line.len == 0 || line.data[0] != '{')
		return NULL;
	if (!json_has_few_values(line) || json_parse(&doc, &tree, NULL) < 0)
		return unreadable_end(line);
	return tree;
}

json_t *evaluation_add(struct evaluation *e, const json_t *line, size_t bytes)
{
	json_t *data = json_object_get(line, "data"), *metadata, *output;

	if (!json_is_object(data) || json_array_size(e->outputs) >= EVALUATION_OUTPUTS_MAX ||
	    e->outputs_bytes + bytes > EVALUATION_BYTES_MAX)
		return NULL;
	metadata = json_object_get(line, "metadata");
	output = json_pack("{s:O, s:o}", "data", data, "metadata",
			   json_is_object(metadata) ? json_incref(metadata) : json_object());
	if (!e->outputs)
		e->outputs = json_array();
	if (!output || json_array_append_new(e->outputs, output) < 0)
		return NULL;
	e->outputs_bytes += bytes;
	return output;
}

void evaluation_piece(struct evaluation *e, const json_t *line, int64_t most,
		      const struct run_observer *observer)
{
	const json_t *text = json_object_get(line, "base64");
	size_t len = json_string_length(text), n;
	_cleanup_free_ char *bytes = json_is_string(text) ? malloc(base64_decoded_max(len) + 1)
							  : NULL;

	if (!bytes || e->done || base64_decode(json_string_value(text), len, bytes, &n) < 0 ||
	    (int64_t)n > MIN(most, (int64_t)EVALUATION_VALUE_MAX) - e->value_bytes)
		return;
	e->value_bytes += (int64_t)n;
	(void)run_observer_tell(observer, &(struct run_event){ RUN_VALUE, .value = { bytes, n } });
}

void evaluation_end(struct evaluation *e, json_t *done, size_t bytes)
{
	json_decref(e->done);
	e->done = json_incref(done);
	e->done_bytes = bytes;
}

static json_t *text_or_null(const json_t *value)
{
	return json_is_string(value) ? json_incref((json_t *)(uintptr_t)value) : json_null();
}

static json_t *copy_error(const json_t *given)
{
	const json_t *line = json_object_get(given, "line");

	if (!json_is_object(given))
		return NULL;
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o}", "type", text_or_null(json_object_get(given, "type")),
		"message", text_or_null(json_object_get(given, "message")), "file",
		text_or_null(json_object_get(given, "file")), "line",
		json_is_integer(line) ? json_integer(json_integer_value(line)) : json_null(),
		"traceback", text_or_null(json_object_get(given, "traceback")));
}

void evaluation_fill(const struct evaluation *e, struct result *res)
{
	json_t *value = json_object_get(e->done, "value");
	json_t *repr = json_object_get(e->done, "value_repr");
	const char *type = json_string_value(json_object_get(e->done, "value_type"));

	res->value_bytes = MAX(json_integer_value(json_object_get(e->done, "value_bytes")),
			       (json_int_t)0);
	if (res->value_bytes > 0)
		value = NULL;
	else if (!value && json_is_string(repr))
		value = repr;
	if (value && !json_is_null(value))
		res->value = json_incref(value);
	if (json_is_string(repr))
		res->value_repr = json_incref(repr);
	if (e->done)
		res->value_type = strdup(type ? type : "NoneType");
	res->outputs = e->outputs ? json_incref(e->outputs) : json_array();
	res->evaluated_bytes = e->outputs_bytes + e->done_bytes;
	res->error = copy_error(json_object_get(e->done, "error"));
}

int evaluation_exit_code(const struct evaluation *e)
{
	json_int_t code = json_integer_value(json_object_get(e->done, "exit_code"));

	return (int)MIN(MAX(code, (json_int_t)0), (json_int_t)EXIT_CODE_MAX);
}
