/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See execute-002.h. The checks are in a table, in the order in which the originals make them; the first one
 * that fails gives the answer. Texts that Python's json module reads and jansson does not (NaN, numbers out of
 * range) are treated apart from malformed JSON, because clients in Python send them.
 */
#include "web/compat/execute/execute-002.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "spec/constants.h"
#include "web/compat/execute/fence.h"
#include "web/compat/execute/unwrap.h"

enum { OK = 200, BAD_REQUEST = 400, LANGUAGE_MAX = 64 };

static const double TIMEOUT_MIN = 0.001; /* seconds: the least a run can have */

/* The input of a check, and where it writes its answer. */
struct execute_reading {
	const struct execute_options *options;
	struct execute_call *call;
	const json_t *body; /* NULL: no JSON */
	const char *language;
	char text[160]; /* room for a message */
};

/* A fixed answer; text NULL: the check has passed. */
struct verdict_002 {
	int status;
	const char *process_status, *text;
};
static const struct verdict_002 passed = { 0 };

static json_t *answer_002(const char *process_status, const char *out, const char *err)
{
	return json_pack("{s:s, s:s, s:s}", "process_status", process_status, "stdout", out,
			 "stderr", err);
}

static json_t *answer_001(const char *text)
{
	return json_pack("{s:b, s:s, s:s, s:s, s:s, s:i, s:f}", "success", 0, "stdout", "",
			 "stderr", "", "output", "", "error", text, "exit_code", -1, "time", 0.0);
}

json_t *execute_failure(const struct execute_call *call, const char *text)
{
	return call->form == EXECUTE_DOCUMENT_001 ? answer_001(text)
						  : answer_002("error", "", text);
}

static struct verdict_002 refuse_execute(const char *text)
{
	return (struct verdict_002){ BAD_REQUEST, "error", text };
}

static struct verdict_002 check_json(struct execute_reading *r)
{
	return r->body && !json_is_null(r->body) ? passed : refuse_execute("Invalid JSON data");
}

/* An array, a text or a number has no fields. */
static struct verdict_002 check_code_given(struct execute_reading *r)
{
	if (json_object_get(r->body, "generated_code"))
		return passed;
	if (json_object_get(r->body, "code")) {
		r->call->form = EXECUTE_DOCUMENT_001;
		return passed;
	}
	return refuse_execute("Missing required field: generated_code");
}

static struct verdict_002 check_timeout_given(struct execute_reading *r)
{
	if (r->call->form == EXECUTE_DOCUMENT_001 || json_object_get(r->body, "timeout"))
		return passed;
	return refuse_execute("Missing required field: timeout");
}

static bool language_known(const struct execute_options *options, const char *name)
{
	for (const char *const *l = options->languages; l && *l; l++)
		if (strcmp(*l, name) == 0)
			return true;
	return false;
}

static struct verdict_002 check_language(struct execute_reading *r)
{
	const json_t *value = json_object_get(r->body, "language");
	const char *name = value ? json_string_value(value) : "python";
	struct verdict_002 verdict = { OK, "error", r->text };

	/* A name with a NUL inside is no name; a name that is too long would not fit a message. */
	if (value && name && json_string_length(value) != strlen(name))
		name = NULL;
	if (name && strlen(name) > LANGUAGE_MAX)
		name = "of more than 64 characters";
	r->language = name;
	if (r->call->form == EXECUTE_DOCUMENT_001)
		return passed; /* read_001() checks it further */
	if (!r->options->all_languages) {
		verdict.text = "Only python execution is supported";
		return name && strcmp(name, "python") == 0 ? passed : verdict;
	}
	if (name && language_known(r->options, name))
		return passed;
	(void)snprintf(r->text, sizeof(r->text), "Unsupported language: %s", name ? name : "null");
	return verdict;
}

static double timeout_of(const struct execute_reading *r)
{
	return json_number_value(json_object_get(r->body, "timeout"));
}

static struct verdict_002 check_timeout(struct execute_reading *r)
{
	if (r->call->form == EXECUTE_DOCUMENT_001)
		return passed;
	if (!json_is_number(json_object_get(r->body, "timeout")) || !isfinite(timeout_of(r)))
		return refuse_execute("Invalid timeout");
	return passed;
}

static struct verdict_002 check_texts(struct execute_reading *r)
{
	bool first = r->call->form == EXECUTE_DOCUMENT_001;
	const json_t *input = json_object_get(r->body, "std_input");

	if (!json_is_string(json_object_get(r->body, first ? "code" : "generated_code")))
		return refuse_execute(first ? "Invalid code" : "Invalid generated_code");
	if (input && !json_is_null(input) && !json_is_string(input))
		return refuse_execute("Invalid std_input");
	return passed;
}

static struct verdict_002 check_characters(struct execute_reading *r)
{
	const json_t *value = json_object_get(r->body, "max_output_characters");
	double n = json_number_value(value);

	if (!value || json_is_null(value))
		return passed;
	if (!json_is_number(value) || !(n >= 0) || n > 1e15 || (double)(int64_t)n != n)
		return refuse_execute("Invalid max_output_characters");
	r->call->characters_max = (int64_t)n;
	return passed;
}

static struct verdict_002 check_time_left(struct execute_reading *r)
{
	if (r->call->form == EXECUTE_DOCUMENT_001 || timeout_of(r) > 0)
		return passed;
	return (struct verdict_002){ OK, "timeout", "Timed out\n" };
}

static struct verdict_002 (*const checks[])(struct execute_reading *) = {
	check_json,    check_code_given, check_timeout_given, check_language,
	check_timeout, check_texts,	 check_characters,    check_time_left,
};

/* Flask's rule: application/json or application/…+json, with any parameters. */
static bool is_json_type(const char *type)
{
	struct span name;
	size_t n;

	if (!type)
		return false;
	name = fence_trim((struct span){ type, strcspn(type, ";") });
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

static json_t *limits_002(const struct execute_reading *r)
{
	const struct execute_options *o = r->options;

	return json_pack("{s:f, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "timeout",
			 MIN(MAX(timeout_of(r), TIMEOUT_MIN), o->timeout_max), "memory",
			 (json_int_t)o->memory_bytes, "cpus", o->cpus, "pids", (json_int_t)o->pids,
			 "output", (json_int_t)o->output_bytes, "disk", (json_int_t)o->disk_bytes,
			 "file_size", (json_int_t)o->disk_bytes, "files", (json_int_t)o->files);
}

static int add_member(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

/* The part that the requests of both documents share. */
static json_t *native(const struct execute_reading *r, const char *language, struct span code)
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
	if (fence_names_python((struct span){ language, strlen(language) }))
		(void)snprintf(text, sizeof(text),
			       "Traceback (most recent call last):\n"
			       "  File \"" EXECUTE_SOURCE "\", line %d\n"
			       "SyntaxError: source code cannot contain null bytes\n",
			       line);
	else
		(void)snprintf(text, sizeof(text), "The code has a NUL character in line %d\n",
			       line);
	r->call->status = OK;
	r->call->answer = execute_failure(r->call, text);
	return r->call->answer ? 0 : -ENOMEM;
}

static int read_002(struct execute_reading *r)
{
	const json_t *text = json_object_get(r->body, "generated_code");
	const struct span wrapped = { json_string_value(text), json_string_length(text) };
	const bool python = fence_names_python((struct span){ r->language, strlen(r->language) });
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
	request = native(r, r->language, u.code);
	unwrapped_done(&u);
	if (!request || add_member(request, "limits", limits_002(r)) < 0 ||
	    add_member(request, "workspace",
		       json_pack("{s:s, s:b}", "name", r->options->workspace, "cwd", 1)) < 0) {
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
	r->call->status = OK;
	r->call->answer = answer_001(text.data);
	return r->call->answer ? 0 : -ENOMEM;
}

/*
 * Limits are the native defaults, except for a timeout in the request. A timeout that is no time counts as
 * none.
 */
static int limit_001(const struct execute_reading *r, json_t *request)
{
	double timeout = timeout_of(r);

	if (!(timeout > 0) || !isfinite(timeout))
		return 0;
	timeout = MIN(MAX(timeout, TIMEOUT_MIN), r->options->timeout_max);
	return add_member(request, "limits", json_pack("{s:f}", "timeout", timeout));
}

/* Names of PC-Agent-Claw are trimmed, and case is ignored. */
static int read_001(struct execute_reading *r)
{
	const json_t *code = json_object_get(r->body, "code");
	struct span name = r->language
				   ? fence_trim((struct span){ r->language, strlen(r->language) })
				   : (struct span){ "null", 4 };
	char lower[LANGUAGE_MAX + 1];
	struct span text;
	json_t *request;
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
	request = native(r, lower, text);
	if (!request || add_member(request, "read_only", json_true()) < 0 ||
	    limit_001(r, request) < 0) {
		json_decref(request);
		return -ENOMEM;
	}
	r->call->request = request;
	return 0;
}

static int read_body(struct execute_reading *r)
{
	struct execute_call *call = r->call;

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		struct verdict_002 v = checks[i](r);

		if (!v.text)
			continue;
		call->status = v.status;
		call->answer = call->form == EXECUTE_DOCUMENT_001
				       ? answer_001(v.text)
				       : answer_002(v.process_status, "", v.text);
		return call->answer ? 0 : -ENOMEM;
	}
	return call->form == EXECUTE_DOCUMENT_001 ? read_001(r) : read_002(r);
}

/* The only number of a request is its timeout, so a number out of range is an invalid timeout. */
static int read_fixed(struct execute_call *call, const char *text)
{
	call->status = BAD_REQUEST;
	call->answer = answer_002("error", "", text);
	return call->answer ? 0 : -ENOMEM;
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
		e = read_fixed(&call, "Request must be JSON");
	} else {
		body = decode_body(in->body, &overflow);
		r.body = body;
		e = overflow ? read_fixed(&call, "Invalid timeout") : read_body(&r);
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
