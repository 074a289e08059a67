/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns from the caller's words: an execution's body, or an operation on files, as the line that the runner gets. An
 * execution's row in the history has a body that runs the same code without a session, so that it can be replayed.
 */
#include "session/session-private.h"

#include "base/base64.h"
#include "base/loop/worker.h"
#include "spec/knob.h"
#include "spec/request.h"

#include <stdio.h>
#include <string.h>

enum { FUNCTIONS_MAX = 100, FUNCTION_NAME_MAX = 64, SIGNATURE_MAX = 4000, DOC_MAX = 16000 };

static const char *const execute_keys[] = { "code",    "limits", "host_functions",
					    "globals", "labels", "stdin",
					    NULL };

static int ask_check_keys(const json_t *body, struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)body, key, value)
	{
		const char *const *known = execute_keys;

		while (*known && strcmp(*known, key) != 0)
			known++;
		if (!*known)
			return error_field(err, key,
					   "%.64s: an execution in a session takes code, stdin, "
					   "limits, host_functions, globals and labels",
					   key);
	}
	if (!json_is_string(json_object_get(body, "code")))
		return error_field(err, "code", "code: give the program as a text");
	value = json_object_get(body, "stdin");
	if (value && !json_is_string(value) && !json_is_null(value))
		return error_field(err, "stdin", "stdin: give a text");
	value = json_object_get(body, "globals");
	if (value && !json_is_object(value) && !json_is_null(value))
		return error_field(err, "globals", "globals: give an object of names and values");
	return 0;
}

const char *session_function_name(const json_t *function)
{
	return json_string_value(json_is_object(function) ? json_object_get(function, "name")
							  : function);
}

/* What `help` shows of a function. The texts are the client's, for its own code. */
static int ask_check_description(const json_t *function, struct error *err)
{
	static const struct {
		const char *key;
		size_t max;
	} texts[] = { { "signature", SIGNATURE_MAX }, { "doc", DOC_MAX } };
	size_t known = 1;

	if (!json_is_object(function))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const json_t *text = json_object_get(function, texts[i].key);

		known += text != NULL;
		if (text && !json_is_null(text) &&
		    (!json_is_string(text) || json_string_length(text) > texts[i].max))
			return error_field(err, "host_functions",
					   "host_functions: %s is a text of at most %zu bytes",
					   texts[i].key, texts[i].max);
	}
	if (json_object_size(function) > known)
		return error_field(err, "host_functions",
				   "host_functions: a function has a name, a signature and a doc");
	return 0;
}

int session_check_functions(const json_t *names, struct error *err)
{
	size_t i;
	json_t *name;

	if (!names || json_is_null(names))
		return 0;
	if (!json_is_array(names) || json_array_size(names) > FUNCTIONS_MAX)
		return error_field(err, "host_functions",
				   "host_functions: give a list of at most %d names",
				   FUNCTIONS_MAX);
	json_array_foreach(names, i, name)
	{
		const json_t *word = json_is_object(name) ? json_object_get(name, "name") : name;
		const char *text = session_function_name(name);
		size_t len = text ? strspn(text, "abcdefghijklmnopqrstuvwxyz"
						 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
				  : 0;

		if (len == 0 || len > FUNCTION_NAME_MAX || len != json_string_length(word) ||
		    (text[0] >= '0' && text[0] <= '9'))
			return error_field(err, "host_functions",
					   "host_functions: a name has letters, digits and _, at "
					   "most %d of them",
					   FUNCTION_NAME_MAX);
		if (ask_check_description(name, err) < 0)
			return -EINVAL;
	}
	return 0;
}

/* The other limits are the sandbox's, which is there already. */
static int ask_check_limits(const json_t *limits, struct error *err)
{
	const char *key;
	json_t *value;
	char field[80];

	if (!json_is_object(limits))
		return error_field(err, "limits", "limits: give an object");
	json_object_foreach((json_t *)(uintptr_t)limits, key, value)
	{
		const struct knob *knob = knob_find(key);

		if (knob && knob->per_turn)
			continue;
		(void)snprintf(field, sizeof(field), "limits.%.64s", key);
		return error_field(err, field,
				   "%s: an execution in a session has limits of timeout, cpu_time, "
				   "idle_timeout, output and output_total; give others when the "
				   "session is made",
				   field);
	}
	return 0;
}

/* The session's request with the limits and labels of one execution; NULL: no memory. */
static json_t *ask_request(const struct session *s, json_t *limits, json_t *labels)
{
	json_t *request = json_copy(s->made.request), *merged = json_object();
	json_t *own = json_object_get(request, "limits");
	int r = merged && request ? 0 : -1;

	if (r == 0 && own)
		r = json_object_update(merged, own);
	if (r == 0 && json_is_object(limits))
		r = json_object_update(merged, limits);
	if (r == 0)
		r = json_object_set(request, "limits", merged);
	if (r == 0 && labels)
		r = json_object_set(request, "labels", labels);
	json_decref(merged);
	if (r == 0)
		return request;
	json_decref(request);
	return NULL;
}

static json_t *ask_given(const json_t *body, const char *key)
{
	json_t *value = json_object_get(body, key);

	return json_is_null(value) ? NULL : value;
}

/* Limits and labels are judged as those of a run with the session's request. */
static int ask_decide(struct session *s, const json_t *body, struct limits *ret, struct error *err)
{
	json_t *limits = ask_given(body, "limits"), *labels = ask_given(body, "labels"), *request;
	struct executor_run *run = NULL;
	int r = limits ? ask_check_limits(limits, err) : 0;

	*ret = s->made.limits;
	if (r < 0 || (!limits && !labels))
		return r;
	request = ask_request(s, limits, labels);
	r = request ? executor_open_session(s->all->o.executor, request, &run, err)
		    : error_oom(err);
	if (r >= 0) {
		*ret = executor_decision(run)->limits;
		executor_discard(run);
	}
	json_decref(request);
	return r;
}

/* `code` is the last key: the runner of Bash cuts it out as text. */
static char *ask_line(const struct session *s, const struct turn *t, const json_t *body)
{
	bool plain = strcmp(s->made.language, "bash") == 0;
	json_t *globals = plain ? NULL : json_object_get(body, "globals");
	json_t *most = plain ? NULL
			     : json_integer(MIN(t->base.admission.limits.output_total_bytes,
						(int64_t)EVALUATION_VALUE_MAX));
	json_t *message = json_pack("{s:s, s:I, s:o*, s:O*, s:O*, s:O*, s:O*, s:O}", "op", "run",
				    "n", (json_int_t)t->number, "value_most", most,
				    "host_functions", plain ? NULL : t->allowed, "globals",
				    json_is_object(globals) ? globals : NULL, "rules",
				    plain ? NULL : s->made.rules, "stdin", ask_given(body, "stdin"),
				    "code", json_object_get(body, "code"));
	char *line = message ? json_dumps(message, JSON_COMPACT) : NULL;

	json_decref(message);
	return line;
}

static json_t *ask_replayable(const struct session *s, const json_t *body)
{
	json_t *request = ask_request(s, ask_given(body, "limits"), ask_given(body, "labels"));
	json_t *row = json_pack(
		"{s:s, s:O, s:b, s:O*, s:O*, s:O*}", "language", s->made.language, "code",
		json_object_get(body, "code"), "eval", 1, "stdin", ask_given(body, "stdin"),
		"limits", json_object_get(request, "limits"), "labels", ask_given(body, "labels"));

	json_decref(request);
	return row;
}

static int ask_check_line(const struct session *s, struct error *err)
{
	int r;

	if (s->line.n_open < SESSION_WAITING_MAX)
		return 0;
	r = error_set(err, ERROR_BUSY, EBUSY,
		      "%d executions wait in this session already; try again later",
		      SESSION_WAITING_MAX);
	return error_retry(err, r, 1);
}

static int ask_make_turn(struct session *s, json_t *body, struct turn *t, struct error *err)
{
	const json_t *code = json_object_get(body, "code");
	json_t *functions = json_object_get(body, "host_functions");
	int r = session_check_functions(functions, err);

	if (r >= 0)
		r = ask_decide(s, body, &t->base.admission.limits, err);
	if (r < 0)
		return r;
	t->base.admission.language = s->made.language;
	t->base.admission.policy = s->made.policy;
	admission_hash(&t->base.admission,
		       (struct span){ json_string_value(code), json_string_length(code) });
	t->allowed = json_is_array(functions) ? json_copy(functions) : json_array();
	if (!t->allowed ||
	    (s->made.host_functions && json_array_extend(t->allowed, s->made.host_functions) < 0))
		return error_oom(err);
	t->line = ask_line(s, t, body);
	return t->line ? turn_charge(t, err) : error_oom(err);
}

int session_execute(struct session *s, json_t *body, struct submission *in, struct submitted *ret,
		    struct error *err)
{
	json_t *request = NULL;
	struct turn *t = NULL;
	int r = ask_check_keys(body, err);

	if (r >= 0)
		r = ask_check_line(s, err);
	if (r < 0)
		return r;
	(void)session_ref(s);
	t = turn_new(s);
	r = t ? ask_make_turn(s, body, t, err) : error_oom(err);
	request = r >= 0 ? ask_replayable(s, body) : NULL;
	if (r >= 0 && !request)
		r = error_oom(err);
	if (r >= 0) {
		in->caller = s->caller->name;
		in->request = request;
		in->text = (struct span){ 0 };
		in->turn = &t->base;
		r = engine_submit(s->all->o.engine, in, ret, err);
	}
	/* The engine has the turn now, which may have ended already. */
	if (r >= 0 && ret->execution) {
		t = NULL;
		s->all->counts.executions++;
		for (struct session_listener *l = s->listeners; l; l = l->next)
			l->on_execution(l->data, execution_id(ret->execution));
	}
	json_decref(request);
	/* Refused, or an execution with the same key was there before. */
	if (t)
		turn_free(t);
	(void)session_unref(s);
	return r;
}

/* A line for the runner, and what it is made of. */
struct file_line {
	const struct session_file *file;
	int64_t number;
	char *text; /* NULL: no memory */
};

/* The bytes stand behind the other members as base64, which needs no escapes. */
static void ask_write_file_line(void *data)
{
	static const char *const ops[] = { [SESSION_LIST] = "list",
					   [SESSION_READ] = "read",
					   [SESSION_WRITE] = "write",
					   [SESSION_REMOVE] = "remove" };
	struct file_line *l = data;
	const struct span bytes = l->file->bytes;
	bool reads = l->file->op == SESSION_READ, places = reads || l->file->op == SESSION_WRITE;
	/* `path` is the last key: the runner of Bash cuts it out as text. */
	json_t *message = json_pack(
		"{s:s, s:I, s:o*, s:o*, s:s}", "op", ops[l->file->op], "n", (json_int_t)l->number,
		"offset", places ? json_integer(l->file->offset) : NULL, "size",
		reads ? json_integer(SESSION_PIECE_READ) : NULL, "path", l->file->path);
	_cleanup_free_ char *head = message ? json_dumps(message, JSON_COMPACT) : NULL;
	_cleanup_free_ char *base64 = NULL;

	json_decref(message);
	if (l->file->op != SESSION_WRITE) {
		l->text = TAKE_PTR(head);
		return;
	}
	base64 = base64_encode(bytes.data, bytes.len);
	if (head && base64 &&
	    asprintf(&l->text, "%.*s,\"base64\":\"%s\"}", (int)strlen(head) - 1, head, base64) < 0)
		l->text = NULL;
}

static int ask_check_file(const struct session_file *file, struct error *err)
{
	if (strcmp(file->path, ".") != 0 &&
	    request_check_path(file->path, strlen(file->path), NULL) < 0)
		return error_field(
			err, "path",
			"path: give a path relative to the work directory /sandbox, without .. and "
			"without / at its end; code in the session can copy other files there");
	if (file->bytes.len > SESSION_PIECE_MAX)
		return error_set(err, ERROR_TOO_LARGE, EFBIG,
				 "one request writes at most %d MiB of a file; send the rest in "
				 "further ones, with Content-Range",
				 SESSION_PIECE_MAX >> 20);
	return 0;
}

int session_file(struct session *s, const struct session_file *file,
		 struct session_file_reply reply, struct error *err)
{
	struct file_line line = { .file = file };
	struct turn *t;
	int r = ask_check_line(s, err);

	if (r >= 0)
		r = ask_check_file(file, err);
	if (r < 0)
		return r;
	t = turn_new(s);
	if (!t)
		return error_oom(err);
	line.number = t->number;
	worker_call(file->bytes.len, ask_write_file_line, &line);
	t->line = line.text;
	if (!t->line || s->closed) {
		r = t->line ? error_set(err, ERROR_NOT_FOUND, ENOENT, "the session has ended")
			    : error_oom(err);
		turn_free(t);
		return r;
	}
	t->file = reply;
	session_line_up(s, t);
	return 0;
}

/* --- rules ---
 *
 * The runner holds them (runners/python/session_tools.py); here they are checked, so that a word that the runner would not know is
 * refused instead of permitting everything.
 */

static int rules_check_modules(const char *field, const json_t *names, struct error *err)
{
	size_t i;
	json_t *name;

	if (!json_is_array(names))
		return error_field(err, field, "%s: give a list of modules", field);
	json_array_foreach(names, i, name) if (json_string_length(name) == 0) return error_field(
		err, field, "%s: give a list of modules", field);
	return 0;
}

static int rules_check_imports(const char *field, const json_t *imports, struct error *err)
{
	const json_t *allow = json_object_get(imports, "allow"),
		     *deny = json_object_get(imports, "deny");
	int r;

	if (!json_is_object(imports) || json_object_size(imports) != (size_t)(!!allow + !!deny))
		return error_field(err, field, "%s: give a list of modules as allow, or as deny",
				   field);
	r = allow ? rules_check_modules("rules.imports.allow", allow, err) : 0;
	if (r >= 0 && deny)
		r = rules_check_modules("rules.imports.deny", deny, err);
	return r;
}

static int rules_check_switch(const char *field, const json_t *value, struct error *err)
{
	return json_is_boolean(value) ? 0
				      : error_field(err, field, "%s: give true or false", field);
}

static const struct rule_key {
	const char *key, *field;
	int (*check)(const char *field, const json_t *value, struct error *err);
} rule_keys[] = {
	{ "imports", "rules.imports", rules_check_imports },
	{ "filesystem", "rules.filesystem", rules_check_switch },
	{ "subprocess", "rules.subprocess", rules_check_switch },
};

static int rules_check_one(const char *key, const json_t *value, struct error *err)
{
	char field[80];

	for (size_t i = 0; i < ARRAY_SIZE(rule_keys); i++)
		if (strcmp(rule_keys[i].key, key) == 0)
			return rule_keys[i].check(rule_keys[i].field, value, err);
	(void)snprintf(field, sizeof(field), "rules.%.64s", key);
	return error_field(err, field,
			   "%s: rules of a session are imports, filesystem and subprocess", field);
}

static int rules_check(const struct session *s, struct error *err)
{
	const char *key;
	json_t *value;
	int r = 0;

	if (s->made.rules && strcmp(s->made.language, "python") != 0)
		return error_field(err, "rules", "rules: only Python sessions have rules");
	json_object_foreach(s->made.rules, key, value)
	{
		r = rules_check_one(key, value, err);
		if (r < 0)
			break;
	}
	return r;
}

int session_decide_rules(struct session *s, const json_t *imports, struct error *err)
{
	json_t *rules;
	int r = rules_check(s, err);

	if (r < 0 || !imports)
		return r;
	if (json_object_get(s->made.rules, "imports"))
		return error_refuse(err, "rules",
				    "rules: the policy %.64s decides imports; leave them out",
				    s->made.policy);
	rules = s->made.rules ? json_copy(s->made.rules) : json_object();
	if (!rules || json_object_set_new(rules, "imports", json_deep_copy(imports)) < 0) {
		json_decref(rules);
		return error_oom(err);
	}
	json_decref(s->made.rules);
	s->made.rules = rules;
	return 0;
}
