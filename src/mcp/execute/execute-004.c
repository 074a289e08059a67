/* SPDX-License-Identifier: Apache-2.0 */
/* See execute-004.h. */
#include "mcp/execute/execute-004.h"

#include "base/buf.h"
#include "base/span.h"

#include <math.h>
#include <string.h>

static const struct tool_limits usual = {
	.memory_bytes = 256 * MiB,
	.cpus = 0.5,
	.pids = 50,
	.timeout = 30,
};

enum { TIMEOUT_MIN_S = 1 };
enum { SESSION_ID_MAX = 64, STREAM_CHARACTERS_MAX = 100000 };

static json_t *setup_error(const char *words, const char *message)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:n, s:n}", "stdout", "", "stderr", words,
			 "exit_code", -1, "execution_time", 0, "status", "setup_error",
			 "error_message", message, "execution_id", "cause");
}

/* given: the argument; NULL: there is none. */
static json_t *tool_unsupported(const json_t *given, const struct tool_language *languages)
{
	const char *language = json_is_string(given) ? json_string_value(given) : "";
	_cleanup_buf_ struct buf words = { 0 }, message = { 0 };
	int r;

	buf_init(&words, 4096);
	buf_init(&message, 4096);
	r = buf_printf(&words, "Unsupported language: %.1000s", language);
	if (r == 0)
		r = buf_printf(
			&message,
			"Language '%.1000s' is not supported. Supported languages: ", language);
	for (const struct tool_language *l = languages; r == 0 && l->name; l++)
		r = buf_printf(&message, "%s%s", l == languages ? "" : ", ", l->name);
	if (r == 0 && !given)
		r = buf_puts(&message, ". The argument `language` is missing: name one of these.");
	return r == 0 ? setup_error(words.data, message.data) : NULL;
}

static double clamp_timeout(const json_t *value, double preset, double most)
{
	double seconds = json_number_value(value);

	if (!json_is_number(value) || isnan(seconds))
		seconds = preset;
	return MIN(MAX(seconds, (double)TIMEOUT_MIN_S), most);
}

/* Anything that is no session id is ignored. */
static const char *session_id_of(const json_t *value)
{
	const char *text = json_string_value(value);
	size_t n = text ? strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_-")
			: 0;

	return n > 0 && n <= SESSION_ID_MAX && n == json_string_length(value) ? text : NULL;
}

/* Of the sandbox, which a session keeps for all calls. */
static json_t *limits_of(const struct tool_limits *l)
{
	return json_pack("{s:I, s:f, s:I}", "memory", (json_int_t)l->memory_bytes, "cpus", l->cpus,
			 "pids", (json_int_t)l->pids);
}

static json_t *call_limits(const struct tool_call *call)
{
	json_t *limits = limits_of(&call->limits);

	if (limits && (json_object_set_new(limits, "output", json_string("1m")) < 0 ||
		       json_object_set_new(limits, "timeout", json_real(call->timeout)) < 0)) {
		json_decref(limits);
		return NULL;
	}
	return limits;
}

/* Members that are given pass as they are; the native reader judges them. */
static int pass_argument(json_t *request, const json_t *arguments, const char *key)
{
	json_t *value = json_object_get(arguments, key);

	if (!value || json_is_null(value) || (json_is_string(value) && !*json_string_value(value)))
		return 0;
	return json_object_set(request, key, value);
}

/* The document shows what Python had printed before a timeout, without a flush. The caller's own value counts. */
static int show_output_at_once(json_t *request)
{
	json_t *given = json_object_get(request, "env"), *env;

	if (given && !json_is_object(given)) /* the native reader refuses it */
		return 0;
	env = json_pack("{s:s}", "PYTHONUNBUFFERED", "1");
	if (given && json_object_update(env, given) < 0) {
		json_decref(env);
		return -ENOMEM;
	}
	return json_object_set_new(request, "env", env);
}

static int make_request(const json_t *arguments, const struct tool_language *l,
			struct tool_call *call)
{
	static const char *const others[] = { "stdin", "files", "args", "env" };
	json_t *request = json_pack("{s:s, s:O, s:o}", "language", l->name, "code",
				    json_object_get(arguments, "code"), "limits",
				    call_limits(call));
	int r = request ? 0 : -ENOMEM;

	call->request = request;
	if (r == 0 && !l->names_files)
		r = json_object_set_new(request, "entry", json_sprintf("code.%s", l->extension));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(others); i++)
		r = pass_argument(request, arguments, others[i]);
	if (r == 0 && strcmp(l->name, "python") == 0)
		r = show_output_at_once(request);
	return r < 0 ? -ENOMEM : 0;
}

static int make_turn(const json_t *arguments, const struct tool_language *l, const char *session_id,
		     struct tool_call *call)
{
	int r = 0;

	call->request = json_pack("{s:s, s:o, s:o}", "language", l->name, "name",
				  json_sprintf("%s.%s", l->name, session_id), "limits",
				  limits_of(&call->limits));
	call->turn = json_pack("{s:O, s:{s:f}}", "code", json_object_get(arguments, "code"),
			       "limits", "timeout", call->timeout);
	if (!call->request || !call->turn)
		return -ENOMEM;
	r = pass_argument(call->turn, arguments, "stdin");
	if (r == 0)
		r = pass_argument(call->request, arguments, "files");
	if (r == 0)
		r = pass_argument(call->request, arguments, "env");
	return r < 0 ? -ENOMEM : 0;
}

int tool_read(const json_t *arguments, const struct tool_options *options, struct tool_call *ret)
{
	const json_t *given = json_object_get(arguments, "language");
	const json_t *code = json_object_get(arguments, "code");
	const char *name = json_is_string(given) ? json_string_value(given) : "";
	const char *session_id = session_id_of(json_object_get(arguments, "session_id"));
	const struct tool_language *l = options->languages;
	const struct tool_limits *own = &options->limits;
	struct tool_call call = {
		.limits = { .memory_bytes = own->memory_bytes ? own->memory_bytes
							      : usual.memory_bytes,
			    .cpus = own->cpus > 0 ? own->cpus : usual.cpus,
			    .pids = own->pids ? own->pids : usual.pids,
			    .timeout = own->timeout > 0 ? own->timeout : usual.timeout },
	};
	int r;

	call.timeout = clamp_timeout(json_object_get(arguments, "timeout"), call.limits.timeout,
				     options->timeout_max);
	while (l->name && strcmp(l->name, name) != 0)
		l++;
	if (!l->name)
		call.answer = tool_unsupported(given, options->languages);
	else if (json_string_length(code) == 0)
		call.answer = setup_error("No code provided or invalid code format",
					  "Code must be a non-empty string");
	if (!l->name || json_string_length(code) == 0)
		r = call.answer ? 0 : -ENOMEM;
	else
		r = session_id && l->has_sessions ? make_turn(arguments, l, session_id, &call)
						  : make_request(arguments, l, &call);
	if (r < 0) {
		tool_done(&call);
		return r;
	}
	*ret = call;
	return 0;
}

void tool_done(struct tool_call *call)
{
	json_decref(call->answer);
	json_decref(call->request);
	json_decref(call->turn);
	*call = (struct tool_call){ 0 };
}

/* The stream, cut after its first characters. */
static json_t *cut_stream(const json_t *value, const char *suffix)
{
	struct span text = { json_string_value(value), json_string_length(value) };
	_cleanup_buf_ struct buf out = { 0 };
	size_t n = 0, characters = 0;

	for (; n < text.len; n++)
		if (((unsigned char)text.data[n] & 0xc0) != 0x80 &&
		    characters++ == STREAM_CHARACTERS_MAX)
			break;
	if (n == text.len)
		return json_stringn(text.data ? text.data : "", text.len);
	buf_init(&out, n + 128);
	if (buf_append(&out, text.data, n) < 0 || buf_puts(&out, suffix) < 0)
		return NULL;
	return json_stringn(out.data, out.len);
}

/* How each status of a result is told. Others are failures of the code. */
static const struct tool_status {
	const char *native, *status;
} tool_statuses[] = {
	{ "success", "success" },
	{ "timeout", "timeout" },
	{ "denied", "setup_error" },
	{ "setup_error", "setup_error" },
	{ "cancelled", "setup_error" },
	{ "interrupted", "setup_error" },
	{ "internal_error", "setup_error" },
};

static const char *status_of(const json_t *result)
{
	const char *native = json_string_value(json_object_get(result, "status"));

	for (size_t i = 0; native && i < ARRAY_SIZE(tool_statuses); i++)
		if (strcmp(tool_statuses[i].native, native) == 0)
			return tool_statuses[i].status;
	return "execution_error";
}

static json_t *message_of(const struct tool_call *call, const char *status, const json_t *result)
{
	const char *detail = json_string_value(
		json_object_get(json_object_get(result, "cause"), "detail"));

	if (strcmp(status, "success") == 0)
		return json_null();
	if (strcmp(status, "timeout") == 0)
		return json_sprintf("Execution timed out after %g seconds.", call->timeout);
	if (strcmp(status, "setup_error") == 0)
		return json_sprintf("Sandbox execution failed: %s", detail ? detail : "");
	return json_string("Code execution resulted in an error.");
}

json_t *tool_answer(const struct tool_call *call, const json_t *result)
{
	const char *status = status_of(result);
	const json_t *code = json_object_get(result, "exit_code");
	bool ran = strcmp(status, "success") == 0 || strcmp(status, "execution_error") == 0;
	double seconds = json_number_value(json_object_get(result, "duration"));
	json_t *id = json_object_get(result, "id"), *cause = json_object_get(result, "cause");

	return json_pack("{s:o, s:o, s:I, s:f, s:s, s:o, s:O, s:O}", "stdout",
			 cut_stream(json_object_get(result, "stdout"),
				    "\n... [Output truncated due to size limits]"),
			 "stderr",
			 cut_stream(json_object_get(result, "stderr"),
				    "\n... [Error output truncated due to size limits]"),
			 "exit_code",
			 ran && json_is_integer(code) ? json_integer_value(code) : (json_int_t)-1,
			 "execution_time", round(seconds * 1000) / 1000, "status", status,
			 "error_message", message_of(call, status, result), "execution_id",
			 id ? id : json_null(), "cause", cause ? cause : json_null());
}

json_t *tool_refusal(const struct error *err)
{
	_cleanup_buf_ struct buf words = { 0 }, message = { 0 };

	buf_init(&words, 1024);
	buf_init(&message, 1024);
	if (buf_printf(&words, "Internal error: %s", err->text) < 0 ||
	    buf_printf(&message, "Sandbox execution failed: %s", err->text) < 0)
		return NULL;
	return setup_error(words.data, message.data);
}
