/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See execute-002.h. Texts that Python's json module reads and jansson does not (NaN, numbers out of
 * range) are treated apart from malformed JSON, because clients in Python send them.
 */
#include "web/compat/execute/execute-002.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "spec/yaml.h"
#include "web/compat/execute/unwrap.h"

enum { OK = 200, BAD_REQUEST = 400, LANGUAGE_MAX = 64, DETAIL_MAX = 2048 };

static const double TIMEOUT_MIN = 0.001; /* seconds: the least a run can have */

/* The input of a check, and where it writes its answer. */
struct execute_reading {
	const struct execute_options *options;
	struct execute_call *call;
	const json_t *body; /* NULL: no JSON */
	const char *language;
};

json_t *execute_failure(const struct execute_call *call, const char *text)
{
	if (call->form == EXECUTE_DOCUMENT_002)
		return json_pack("{s:s, s:s, s:s}", "process_status", "error", "stdout", "",
				 "stderr", text);
	return json_pack("{s:b, s:s, s:s, s:s, s:s, s:i, s:f}", "success", 0, "stdout", "",
			 "stderr", "", "output", "", "error", text, "exit_code", -1, "time", 0.0);
}

static double timeout_of(const struct execute_reading *r)
{
	return json_number_value(json_object_get(r->body, "timeout"));
}

static bool language_known(const struct execute_options *options, const char *name)
{
	for (const char *const *l = options->languages; l && *l; l++)
		if (strcmp(*l, name) == 0)
			return true;
	return false;
}

/* Answers with a text. 400: the request is wrong; 200: it is answered like one that ran. */
static int answer_fixed(struct execute_reading *r, int status, const char *text)
{
	r->call->status = status;
	r->call->answer = execute_failure(r->call, text);
	return r->call->answer ? 0 : -ENOMEM;
}

/* The name in 002, whose other checks come behind it. NULL: it may run. */
static const char *judge_language(struct execute_reading *r, char *text, size_t size)
{
	const json_t *value = json_object_get(r->body, "language");
	const char *name = value ? json_string_value(value) : "python";

	/* A name with a NUL inside is no name; a name that is too long would not fit a message. */
	if (value && name && json_string_length(value) != strlen(name))
		name = NULL;
	if (name && strlen(name) > LANGUAGE_MAX)
		name = "of more than 64 characters";
	r->language = name;
	/* read_001() checks it further. */
	if (r->call->form == EXECUTE_DOCUMENT_001)
		return NULL;
	if (!r->options->all_languages)
		return name && strcmp(name, "python") == 0 ? NULL
							   : "Only python execution is supported";
	if (name && language_known(r->options, name))
		return NULL;
	(void)snprintf(text, size, "Unsupported language: %s", name ? name : "null");
	return text;
}

/* In the order in which the originals make their checks; the first one that fails gives the answer. 0: answered; 1: none did. */
static int check_body(struct execute_reading *r)
{
	const json_t *input = json_object_get(r->body, "std_input");
	const json_t *most = json_object_get(r->body, "max_output_characters");
	const json_t *timeout = json_object_get(r->body, "timeout");
	double n = json_number_value(most);
	const char *wrong;
	char text[160];
	bool first;

	if (!r->body || json_is_null(r->body))
		return answer_fixed(r, BAD_REQUEST, "Invalid JSON data");
	/* An array, a text or a number has no fields. */
	first = !json_object_get(r->body, "generated_code");
	if (first && !json_object_get(r->body, "code"))
		return answer_fixed(r, BAD_REQUEST, "Missing required field: generated_code");
	if (first)
		r->call->form = EXECUTE_DOCUMENT_001;
	else if (!timeout)
		return answer_fixed(r, BAD_REQUEST, "Missing required field: timeout");
	wrong = judge_language(r, text, sizeof(text));
	if (wrong)
		return answer_fixed(r, OK, wrong);
	if (!first && (!json_is_number(timeout) || !isfinite(timeout_of(r))))
		return answer_fixed(r, BAD_REQUEST, "Invalid timeout");
	if (!json_is_string(json_object_get(r->body, first ? "code" : "generated_code")))
		return answer_fixed(r, BAD_REQUEST,
				    first ? "Invalid code" : "Invalid generated_code");
	if (input && !json_is_null(input) && !json_is_string(input))
		return answer_fixed(r, BAD_REQUEST, "Invalid std_input");
	if (most && !json_is_null(most)) {
		if (!json_is_number(most) || !(n >= 0) || n > 1e15 || (double)(int64_t)n != n)
			return answer_fixed(r, BAD_REQUEST, "Invalid max_output_characters");
		r->call->characters_max = (int64_t)n;
	}
	if (first || timeout_of(r) > 0)
		return 1;
	r->call->status = OK;
	r->call->answer = execute_timed_out();
	return r->call->answer ? 0 : -ENOMEM;
}

/* Flask's rule: application/json or application/…+json, with any parameters. */
static bool is_json_type(const char *type)
{
	struct span name;
	size_t n;

	if (!type)
		return false;
	name = unwrap_trim((struct span){ type, strcspn(type, ";") });
	n = name.len;
	if (n == strlen("application/json") && strncasecmp(name.data, "application/json", n) == 0)
		return true;
	return n > strlen("application/+json") && strncasecmp(name.data, "application/", 12) == 0 &&
	       strncasecmp(name.data + n - 5, "+json", 5) == 0;
}

static json_t *load_body(struct span body, json_error_t *problem)
{
	return json_loadb(body.data ? body.data : "", body.len,
			  JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, problem);
}

static json_t *decode_body(struct span body, bool *overflow)
{
	/* Replaced by null, which is neither a number nor a text and is refused where one is needed. */
	static const char *const nulls[JSON_CONSTANTS] = { "null", "null", "null" };
	_cleanup_buf_ struct buf plain = { 0 };
	json_error_t problem;
	json_t *root;

	/* Python's json module skips a byte order mark. */
	if (body.len >= 3 && memcmp(body.data, "\xef\xbb\xbf", 3) == 0)
		body = (struct span){ body.data + 3, body.len - 3 };
	root = load_body(body, &problem);
	*overflow = !root && json_error_code(&problem) == json_error_numeric_overflow;
	if (root || *overflow || json_replace_constants(body, nulls, &plain) < 0)
		return root;
	return load_body((struct span){ plain.data, plain.len }, &problem);
}

static int add_member(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

/* The part that the requests of both documents share. */
static json_t *native_request(const struct execute_reading *r, const char *language,
			      struct span code)
{
	json_t *input = json_object_get(r->body, "std_input");
	json_t *request = json_pack("{s:s, s:s%}", "language", language, "code", code.data,
				    code.len);
	int e = request ? 0 : -ENOMEM;

	if (e == 0 && json_is_string(input))
		e = add_member(request, "stdin", json_incref(input));
	if (e == 0 && r->options->policy)
		e = add_member(request, "policy", json_string(r->options->policy));
	if (e == 0)
		return request;
	json_decref(request);
	return NULL;
}

/*
 * Interpreters stop at a NUL, skip it or cut the line there. Each would run something else than was sent, so it
 * is refused.
 */
static int refuse_nul(struct execute_reading *r, struct span code, const char *language)
{
	const char *nul = memchr(code.data, '\0', code.len);
	char text[160];
	int line = 1;

	for (const char *c = code.data; c < nul; c++)
		line += *c == '\n';
	if (unwrap_names_python((struct span){ language, strlen(language) }))
		(void)snprintf(text, sizeof(text),
			       "Traceback (most recent call last):\n"
			       "  File \"" EXECUTE_SOURCE "\", line %d\n"
			       "SyntaxError: source code cannot contain null bytes\n",
			       line);
	else
		(void)snprintf(text, sizeof(text), "The code has a NUL character in line %d\n",
			       line);
	return answer_fixed(r, OK, text);
}

static int read_002(struct execute_reading *r)
{
	const struct execute_options *o = r->options;
	const json_t *text = json_object_get(r->body, "generated_code");
	const struct span wrapped = { json_string_value(text), json_string_length(text) };
	const bool python = unwrap_names_python((struct span){ r->language, strlen(r->language) });
	struct unwrapped u = { 0 };
	json_t *request;
	int e = unwrap(wrapped, python, &u);

	if (e < 0)
		return e;
	if (u.code.len > 0 && memchr(u.code.data, '\0', u.code.len)) {
		e = refuse_nul(r, u.code, r->language);
		unwrapped_done(&u);
		return e;
	}
	request = native_request(r, r->language, u.code);
	unwrapped_done(&u);
	if (!request ||
	    add_member(request, "limits",
		       json_pack("{s:f, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "timeout",
				 MIN(MAX(timeout_of(r), TIMEOUT_MIN), o->timeout_max), "memory",
				 (json_int_t)o->memory_bytes, "cpus", o->cpus, "pids",
				 (json_int_t)o->pids, "output", (json_int_t)o->output_bytes, "disk",
				 (json_int_t)o->disk_bytes, "file_size", (json_int_t)o->disk_bytes,
				 "files", (json_int_t)o->files)) < 0 ||
	    add_member(request, "workspace",
		       json_pack("{s:s, s:b}", "name", o->workspace, "cwd", 1)) < 0) {
		json_decref(request);
		return -ENOMEM;
	}
	r->call->request = request;
	return 0;
}

/* "Supported: bash, c, …", in the order of the list. */
static int refuse_001(struct execute_reading *r, struct span name)
{
	_cleanup_buf_ struct buf text = { 0 };
	int e;

	buf_init(&text, 4096);
	e = buf_printf(&text, "Unsupported language: %.*s. Supported:", (int)name.len, name.data);
	for (const char *const *l = r->options->languages; e == 0 && l && *l; l++)
		e = buf_printf(&text, "%s %s", l == r->options->languages ? "" : ",", *l);
	if (e < 0)
		return -ENOMEM;
	return answer_fixed(r, OK, text.data);
}

/*
 * Names of PC-Agent-Claw are trimmed, and case is ignored. Limits are the native defaults, except for a timeout in the request. A timeout
 * that is no time counts as none.
 */
static int read_001(struct execute_reading *r)
{
	const json_t *code = json_object_get(r->body, "code");
	struct span name = r->language
				   ? unwrap_trim((struct span){ r->language, strlen(r->language) })
				   : (struct span){ "null", 4 };
	char lower[LANGUAGE_MAX + 1];
	struct span text;
	json_t *request;
	double timeout = timeout_of(r);
	size_t n = MIN(name.len, LANGUAGE_MAX);

	for (size_t i = 0; i < n; i++)
		lower[i] = name.data[i] >= 'A' && name.data[i] <= 'Z' ? (char)(name.data[i] + 32)
								      : name.data[i];
	lower[n] = '\0';
	if (!language_known(r->options, lower))
		return refuse_001(r, name);
	text = (struct span){ json_string_value(code), json_string_length(code) };
	if (memchr(text.data, '\0', text.len))
		return refuse_nul(r, text, lower);
	request = native_request(r, lower, text);
	if (!request || add_member(request, "read_only", json_true()) < 0 ||
	    (timeout > 0 && isfinite(timeout) &&
	     add_member(request, "limits",
			json_pack("{s:f}", "timeout",
				  MIN(MAX(timeout, TIMEOUT_MIN), r->options->timeout_max))) < 0)) {
		json_decref(request);
		return -ENOMEM;
	}
	r->call->request = request;
	return 0;
}

int execute_read(const struct execute_input *in, const struct execute_options *options,
		 struct execute_call *ret)
{
	struct execute_call call = { .characters_max = -1 };
	struct execute_reading r = { .options = options, .call = &call };
	json_t *body = NULL;
	bool overflow = false;
	int e;

	if (!is_json_type(in->content_type)) {
		e = answer_fixed(&r, BAD_REQUEST, "Request must be JSON");
	} else {
		r.body = body = decode_body(in->body, &overflow);
		/* The only number of a request is its timeout, so a number out of range is an invalid timeout. */
		e = overflow ? answer_fixed(&r, BAD_REQUEST, "Invalid timeout") : check_body(&r);
		if (e == 1)
			e = call.form == EXECUTE_DOCUMENT_001 ? read_001(&r) : read_002(&r);
	}
	json_decref(body);
	if (e < 0)
		execute_done(&call);
	else
		*ret = call;
	return e;
}

void execute_done(struct execute_call *call)
{
	json_decref(call->request);
	json_decref(call->answer);
	call->request = call->answer = NULL;
}

/*
 * --- from a result to the answer ---
 *
 * The program's own output stays as it is. If the program was ended by a limit or by the server, one more line says why.
 */

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
