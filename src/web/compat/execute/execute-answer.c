/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See execute-002.h: from a result (doc/result.md) to the answer for clients of the NeMo Agent Toolkit and PC-Agent-Claw. The program's
 * own output stays as it is. If the program was ended by a limit or by the server, one more line says why.
 */
#include "web/compat/execute/execute-002.h"

#include <string.h>

enum { DETAIL_MAX = 2048 };

#define TRACEBACK "Traceback (most recent call last):\n"

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool status_is(const json_t *result, const char *status)
{
	return strcmp(text_at(result, "status"), status) == 0;
}

static struct span stream_of(const json_t *result, const char *key)
{
	const json_t *value = json_object_get(result, key);
	const char *text = json_string_value(value);

	return (struct span){ text ? text : "", json_string_length(value) };
}

static int put_stream(struct buf *out, struct span text, int64_t characters)
{
	size_t n = characters >= 0 ? 0 : text.len;
	int r;

	/* Bytes of the first characters of UTF-8 text, or of all if there are fewer. */
	for (; n < text.len; n++)
		if (((unsigned char)text.data[n] & 0xc0) != 0x80 && characters-- == 0)
			break;
	/* Room for the marker and the added lines. */
	buf_init(out, text.len + DETAIL_MAX);
	r = buf_append(out, text.data, n);
	if (r == 0 && n < text.len)
		r = buf_puts(out, "<output cut>");
	return r;
}

/*
 * The start in stderr of Python's report about code that does not compile, after the compiler's warnings; or
 * NULL.
 */
static const char *find_uncompiled(const json_t *result, struct span text)
{
	static const char *const types[] = { "SyntaxError", "IndentationError", "TabError" };
	const json_t *error = json_object_get(result, "error");
	const char *at = NULL, *type = text_at(error, "type");
	char place[128];

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(type, types[i]) == 0)
			at = text.data;
	/* In a session the name of the source has a number. */
	(void)snprintf(place, sizeof(place), "  File \"%.64s\", line %d\n", text_at(error, "file"),
		       (int)json_integer_value(json_object_get(error, "line")));
	if (at)
		at = strstr(at, place);
	if (!at || strstr(text.data, TRACEBACK) || (at > text.data && at[-1] != '\n'))
		return NULL;
	return at;
}

/*
 * Python begins every traceback with a header line, except for code that does not compile. The originals
 * compile the code inside a server, where the header is printed, so it is added here.
 */
static int put_errors(struct buf *out, const json_t *result, int64_t characters)
{
	struct span text = stream_of(result, "stderr");
	const char *at = find_uncompiled(result, text);
	size_t before = at ? (size_t)(at - text.data) : 0;
	_cleanup_buf_ struct buf whole = { 0 };

	if (!at)
		return put_stream(out, text, characters);
	buf_init(&whole, text.len + sizeof(TRACEBACK));
	if (buf_append(&whole, text.data, before) < 0 || buf_puts(&whole, TRACEBACK) < 0 ||
	    buf_append(&whole, at, text.len - before) < 0)
		return -ENOMEM;
	return put_stream(out, (struct span){ whole.data, whole.len }, characters);
}

static int put_line(struct buf *out, const char *prefix, const char *detail)
{
	bool open = out->len > 0 && out->data[out->len - 1] != '\n';
	char first = prefix[0] ? '\0' : detail[0];

	/* The sentence begins with a capital letter. */
	if (first >= 'a' && first <= 'z')
		first = (char)(first - 32);
	return buf_printf(out, "%s%s%.*s%.500s\n", open ? "\n" : "", prefix, first ? 1 : 0, &first,
			  detail + (first ? 1 : 0));
}

/* Why the program ended, if it did not end by itself. */
static int put_cause(struct buf *out, const json_t *result)
{
	const json_t *cause = json_object_get(result, "cause");
	char prefix[64] = "";

	if (status_is(result, "success"))
		return 0;
	if (status_is(result, "error") && !json_is_integer(json_object_get(result, "signal")))
		return 0;
	if (status_is(result, "limit"))
		(void)snprintf(prefix, sizeof(prefix),
			       "Limit exceeded (%.32s): ", text_at(cause, "kind"));
	return put_line(out, prefix, text_at(cause, "detail"));
}

/* The program's files are lost although the program itself may have ended well. */
static int put_refused_commit(struct buf *out, const json_t *result)
{
	const char *why = text_at(result, "apply_error");

	return *why ? put_line(out, "Nothing was kept in the workspace: ", why) : 0;
}

static json_t *answer_text_of(const struct buf *b)
{
	return json_stringn(b->data ? b->data : "", b->len);
}

json_t *execute_timed_out(void)
{
	return json_pack("{s:s, s:s, s:s}", "process_status", "timeout", "stdout", "", "stderr",
			 "Timed out\n");
}

static json_t *answer_002(const struct execute_call *call, const json_t *result)
{
	const char *status = status_is(result, "success") ? "completed" : "error";
	_cleanup_buf_ struct buf out = { 0 }, err = { 0 };

	if (status_is(result, "timeout"))
		return execute_timed_out();
	if (put_stream(&out, stream_of(result, "stdout"), call->characters_max) < 0 ||
	    put_errors(&err, result, call->characters_max) < 0 || put_cause(&err, result) < 0 ||
	    put_refused_commit(&err, result) < 0)
		return NULL;
	return json_pack("{s:s, s:o, s:o}", "process_status", status, "stdout",
			 answer_text_of(&out), "stderr", answer_text_of(&err));
}

static int put_error_001(struct buf *out, const json_t *result)
{
	double limit = json_number_value(
		json_object_get(json_object_get(result, "cause"), "limit"));
	char text[64];

	if (!status_is(result, "timeout"))
		return put_cause(out, result);
	(void)snprintf(text, sizeof(text), "Execution timed out after %gs", limit);
	return put_line(out, "", text);
}

static json_t *answer_001(const struct execute_call *call, const json_t *result)
{
	_cleanup_buf_ struct buf out = { 0 }, err = { 0 }, error = { 0 };
	double duration = json_number_value(json_object_get(result, "duration"));
	const json_t *code = json_object_get(result, "exit_code");

	if (put_stream(&out, stream_of(result, "stdout"), call->characters_max) < 0 ||
	    put_errors(&err, result, call->characters_max) < 0 ||
	    put_errors(&error, result, call->characters_max) < 0 ||
	    put_error_001(&error, result) < 0 || put_refused_commit(&error, result) < 0)
		return NULL;
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:i, s:f}", "success",
			 status_is(result, "success"), "stdout", answer_text_of(&out), "stderr",
			 answer_text_of(&err), "output", answer_text_of(&out), "error",
			 /* PC-Agent-Claw has -1 if nothing ran. */
			 answer_text_of(&error), "exit_code",
			 json_is_integer(code) ? (int)json_integer_value(code) : -1, "time",
			 (double)(int64_t)(duration * 1000 + 0.5) / 1000);
}

json_t *execute_answer(const struct execute_call *call, const json_t *result)
{
	return call->form == EXECUTE_DOCUMENT_001 ? answer_001(call, result)
						  : answer_002(call, result);
}

json_t *execute_refusal(const struct execute_call *call, const struct error *err, int *ret_status)
{
	/* A request that is wrong in itself is answered like one that ran (200). Every other code: the server failed (500). */
	static const struct {
		int status;
		const char *text; /* NULL: the error's own */
	} failed = { 500, "The server failed; its log says why." }, kinds[_ERROR_MAX] = {
		[ERROR_INPUT] = { 200, NULL },
		[ERROR_POLICY] = { 200, NULL },
		[ERROR_CALLBACKS_OFF] = { 200, NULL },
		[ERROR_RUNTIME] = { 200, NULL },
		[ERROR_TOO_LARGE] = { 200, NULL },
		[ERROR_BUSY] = { 429, NULL },
		[ERROR_NO_ROOM] = { 503, NULL },
		[ERROR_NOT_READY] = { 503, NULL },
		[ERROR_STOPPING] = { 503, NULL },
		[ERROR_STORAGE] = { 503, "Storage is full or not writable; try again when there "
					 "is room." },
	};
	bool known = err->code > ERROR_NONE && err->code < _ERROR_MAX && kinds[err->code].status;
	const char *text = known && err->field[0] ? NULL
			   : known		  ? kinds[err->code].text
						  : failed.text;

	*ret_status = known ? kinds[err->code].status : failed.status;
	return execute_failure(call, text ? text : err->text);
}

int execute_write(const json_t *body, struct buf *out)
{
	/* ASCII, because some clients guess the encoding; "time" has three decimals. */
	char *text = json_dumps(body, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));
	int r = text ? buf_puts(out, text) : -ENOMEM;

	free(text);
	return r < 0 ? r : buf_puts(out, "\n");
}

int64_t execute_memory(int64_t host_bytes, int64_t ceiling_bytes)
{
	int64_t bytes = 10 * GiB;

	if (host_bytes > 0)
		bytes = MIN(bytes, host_bytes);
	return ceiling_bytes > 0 ? MIN(bytes, ceiling_bytes) : bytes;
}
