/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See result.h. The JSON form is put together piece by piece; a failed allocation anywhere leaves a
 * NULL that the enclosing object refuses, so result_to_json() gives a whole object or NULL.
 */
#include "spec/result.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "spec/knob.h"
#include "spec/utf8.h"

#define US_PER_SEC 1e6

const char *status_name(enum run_status status)
{
	static const char *const names[_STATUS_MAX] = {
		[STATUS_SUCCESS] = "success",
		[STATUS_ERROR] = "error",
		[STATUS_TIMEOUT] = "timeout",
		[STATUS_LIMIT] = "limit",
		[STATUS_CANCELLED] = "cancelled",
		[STATUS_DENIED] = "denied",
		[STATUS_SETUP_ERROR] = "setup_error",
		[STATUS_INTERRUPTED] = "interrupted",
		[STATUS_INTERNAL_ERROR] = "internal_error",
	};

	return (unsigned)status < _STATUS_MAX ? names[status] : "internal_error";
}

const char *cause_name(enum cause_kind kind)
{
	static const char *const names[_CAUSE_MAX] = {
		[CAUSE_EXIT] = "exit",
		[CAUSE_SIGNAL] = "signal",
		[CAUSE_TIMEOUT] = "timeout",
		[CAUSE_CPU_TIME] = "cpu_time",
		[CAUSE_IDLE] = "idle",
		[CAUSE_MEMORY] = "memory",
		[CAUSE_OUTPUT] = "output",
		[CAUSE_PIDS] = "pids",
		[CAUSE_DISK] = "disk",
		[CAUSE_POLICY] = "policy",
		[CAUSE_CANCELLED] = "cancelled",
		[CAUSE_SETUP] = "setup",
		[CAUSE_INTERRUPTED] = "interrupted",
		[CAUSE_INTERNAL] = "internal",
	};

	return (unsigned)kind < _CAUSE_MAX ? names[kind] : "internal";
}

struct result *result_new(void)
{
	struct result *res = calloc(1, sizeof(*res));

	if (!res)
		return NULL;
	res->verdict.exit_code = -1;
	res->verdict.cause.limit = -1;
	res->verdict.cause.peak = -1;
	res->verdict.cause.suggest = -1;
	res->usage = (struct usage){ -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };
	return res;
}

struct result *result_free(struct result *res)
{
	if (!res)
		return NULL;
	for (size_t i = 0; i < res->n_files; i++)
		free(res->files[i].path);
	for (size_t i = 0; i < res->n_stages; i++) {
		free(res->stages[i].stdout_text);
		free(res->stages[i].stderr_text);
	}
	for (size_t i = 0; i < res->n_tests; i++) {
		free(res->tests[i].stdout_text);
		free(res->tests[i].stderr_text);
	}
	free(res->files);
	free(res->stages);
	free(res->tests);
	free(res->language);
	free(res->out.text);
	free(res->err.text);
	free(res->runtime);
	free(res->policy);
	json_decref(res->value);
	json_decref(res->error);
	json_decref(res->labels);
	free(res);
	return NULL;
}

struct result *result_from_error(const struct error *err)
{
	static const struct {
		enum run_status status;
		enum cause_kind kind;
	} meaning[_ERROR_MAX] = {
		[ERROR_NONE] = { STATUS_INTERNAL_ERROR, CAUSE_INTERNAL },
		[ERROR_INTERNAL] = { STATUS_INTERNAL_ERROR, CAUSE_INTERNAL },
		[ERROR_INPUT] = { STATUS_SETUP_ERROR, CAUSE_SETUP },
		[ERROR_POLICY] = { STATUS_DENIED, CAUSE_POLICY },
		[ERROR_RUNTIME] = { STATUS_SETUP_ERROR, CAUSE_SETUP },
		[ERROR_STORAGE] = { STATUS_INTERNAL_ERROR, CAUSE_INTERNAL },
	};
	struct result *res = result_new();
	int32_t code = err->code > ERROR_NONE && err->code < _ERROR_MAX ? err->code
									: ERROR_INTERNAL;

	if (!res)
		return NULL;
	res->refusal = (enum error_code)code;
	res->verdict.status = meaning[code].status;
	res->verdict.cause.kind = meaning[code].kind;
	(void)snprintf(res->verdict.cause.detail, sizeof(res->verdict.cause.detail), "%s",
		       err->text);
	return res;
}

int result_exit_code(const struct result *res)
{
	const struct verdict *v = &res->verdict;

	switch (v->status) {
	case STATUS_SUCCESS:
		return 0;
	case STATUS_ERROR:
	case STATUS_LIMIT:
	case STATUS_CANCELLED:
		return v->exit_code > 0 ? v->exit_code : 125;
	case STATUS_TIMEOUT:
		return 124;
	case STATUS_DENIED:
		return 126;
	case STATUS_SETUP_ERROR:
		return res->refusal == ERROR_RUNTIME ? 127 : 125;
	default:
		return 125;
	}
}

static json_t *text_or_null(const char *text)
{
	return text ? utf8_to_json(text, strlen(text), NULL) : json_null();
}

static json_t *count_or_null(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

static json_t *seconds_or_null(int64_t us)
{
	return us < 0 ? json_null() : json_real((double)us / US_PER_SEC);
}

static json_t *limit_or_null(const struct knob *k, int64_t value)
{
	return k && value >= 0 ? knob_to_json(k, value) : json_null();
}

static json_t *kept_or_null(json_t *tree)
{
	return tree ? json_incref(tree) : json_null();
}

static int64_t cpu_us(const struct usage *u)
{
	return u->user_us < 0 || u->system_us < 0 ? -1 : u->user_us + u->system_us;
}

static json_t *cause_to_json(const struct cause *c)
{
	const struct knob *k = c->limit_key ? knob_find(c->limit_key) : NULL;

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:o}", "kind", cause_name(c->kind),
			 "detail", text_or_null(c->detail), "limit_key",
			 k ? json_string(k->key) : json_null(), "limit", limit_or_null(k, c->limit),
			 "peak", limit_or_null(k, c->peak), "retryable", c->retryable, "suggest",
			 limit_or_null(k, c->suggest));
}

static json_t *signal_or_null(int signal)
{
	return signal > 0 ? json_integer(signal) : json_null();
}

static json_t *usage_to_json(const struct result *res)
{
	const struct usage *u = &res->usage;
	json_t *hits = json_array();

	for (unsigned kind = 0; kind < _CAUSE_MAX; kind++)
		if (res->verdict.limit_hits & (UINT32_C(1) << kind))
			(void)json_array_append_new(hits,
						    json_string(cause_name((enum cause_kind)kind)));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "user", seconds_or_null(u->user_us),
			 "system", seconds_or_null(u->system_us), "pids_peak",
			 count_or_null(u->pids_peak), "io_read", count_or_null(u->io_read_bytes),
			 "io_write", count_or_null(u->io_write_bytes), "start",
			 seconds_or_null(res->start_us), "limit_hits", hits);
}

static json_t *files_to_json(const struct result *res)
{
	json_t *list = json_array();

	for (size_t i = 0; i < res->n_files; i++) {
		const struct result_file *f = &res->files[i];

		if (json_array_append_new(
			    list, json_pack("{s:o, s:I, s:s}", "path", text_or_null(f->path),
					    "size", (json_int_t)f->size, "sha256", f->sha256)) < 0)
			goto fail;
	}
	return list;
fail:
	json_decref(list);
	return NULL;
}

static json_t *stages_to_json(const struct result *res)
{
	json_t *list = json_array();

	for (size_t i = 0; i < res->n_stages; i++) {
		const struct result_stage *s = &res->stages[i];
		json_t *stage = json_pack(
			"{s:o, s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "name", text_or_null(s->name),
			"status", status_name(s->verdict.status), "exit_code", s->verdict.exit_code,
			"signal", signal_or_null(s->verdict.signal), "duration",
			seconds_or_null(s->duration_us), "cpu_time",
			seconds_or_null(cpu_us(&s->usage)), "memory_peak",
			count_or_null(s->usage.memory_peak_bytes), "cause",
			cause_to_json(&s->verdict.cause));

		if (json_array_append_new(list, stage) < 0)
			goto fail;
		/* Only where a stage has streams of its own: a compiler's words. */
		if (s->stdout_text &&
		    json_object_set_new(stage, "stdout", text_or_null(s->stdout_text)) < 0)
			goto fail;
		if (s->stderr_text &&
		    json_object_set_new(stage, "stderr", text_or_null(s->stderr_text)) < 0)
			goto fail;
	}
	return list;
fail:
	json_decref(list);
	return NULL;
}

static json_t *tests_to_json(const struct result *res)
{
	json_t *list = json_array();

	for (size_t i = 0; i < res->n_tests; i++) {
		const struct result_test *t = &res->tests[i];
		json_t *test = json_pack("{s:s, s:b, s:s, s:i, s:o, s:o, s:o, s:o}", "verdict",
					 t->verdict ? t->verdict : "error", "passed", t->passed,
					 "status", status_name(t->run.status), "exit_code",
					 t->run.exit_code, "stdout", text_or_null(t->stdout_text),
					 "stderr", text_or_null(t->stderr_text), "duration",
					 seconds_or_null(t->duration_us), "memory_peak",
					 count_or_null(t->memory_peak_bytes));

		if (json_array_append_new(list, test) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *isolation_to_json(const struct isolation *is)
{
	json_t *missing = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(is->missing) && is->missing[i]; i++)
		(void)json_array_append_new(missing, json_string(is->missing[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "tier", text_or_null(is->tier),
			 "user", text_or_null(is->user), "cgroup", text_or_null(is->cgroup),
			 "seccomp", text_or_null(is->seccomp[0] ? is->seccomp : NULL), "landlock",
			 is->landlock, "proc", text_or_null(is->proc), "net", text_or_null(is->net),
			 "missing", missing);
}

/* Adds one stream's text and its flags under the names the prefix gives. */
static int add_stream(json_t *object, const char *prefix, const struct result_stream *stream)
{
	char name[32];
	bool binary = false;
	json_t *text = utf8_to_json(stream->text, stream->text ? stream->len : 0, &binary);
	const struct {
		const char *suffix;
		json_t *value;
	} members[] = {
		{ "", text },
		{ "_bytes", json_integer(stream->bytes) },
		{ "_truncated", json_boolean(stream->truncated) },
		{ "_binary", json_boolean(binary) },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", prefix, members[i].suffix);
		if (json_object_set_new(object, name, members[i].value) < 0)
			r = -ENOMEM;
	}
	return r;
}

static json_t *head_to_json(const struct result *res)
{
	const struct verdict *v = &res->verdict;

	return json_pack("{s:s, s:o, s:s, s:b, s:i, s:o, s:o}", "id", res->id, "language",
			 text_or_null(res->language), "status", status_name(v->status), "success",
			 v->status == STATUS_SUCCESS, "exit_code", v->exit_code, "signal",
			 signal_or_null(v->signal), "cause", cause_to_json(&v->cause));
}

static json_t *measures_to_json(const struct result *res)
{
	return json_pack("{s:o, s:[], s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "value",
			 kept_or_null(res->value), "outputs", "files", files_to_json(res),
			 "files_truncated", res->files_truncated, "duration",
			 seconds_or_null(res->duration_us), "cpu_time",
			 seconds_or_null(cpu_us(&res->usage)), "memory_peak",
			 count_or_null(res->usage.memory_peak_bytes), "usage", usage_to_json(res),
			 "stages", stages_to_json(res), "error", kept_or_null(res->error));
}

static json_t *context_to_json(const struct result *res)
{
	char created[32];

	clock_format_utc(res->created_realtime_ns, created, sizeof(created));
	return json_pack("{s:[], s:o, s:[], s:[], s:[], s:n, s:o, s:o, s:o, s:b, s:s, s:o}",
			 "denials", "isolation", isolation_to_json(&res->isolation), "network",
			 "changes", "host_calls", "timeout_chosen", "labels",
			 res->labels ? json_incref(res->labels) : json_object(), "runtime",
			 text_or_null(res->runtime), "policy", text_or_null(res->policy),
			 "cached_build", res->cached_build, "created_at", created, "node",
			 text_or_null(res->node));
}

/* Moves the members of part to object; part may be NULL after a failed allocation. */
static int merge(json_t *object, json_t *part)
{
	int r = part && json_object_update(object, part) == 0 ? 0 : -ENOMEM;

	json_decref(part);
	return r;
}

json_t *result_to_json(const struct result *res)
{
	json_t *object = json_object();

	if (!object || merge(object, head_to_json(res)) < 0 ||
	    add_stream(object, "stdout", &res->out) < 0 ||
	    add_stream(object, "stderr", &res->err) < 0 || merge(object, measures_to_json(res)) < 0)
		goto fail;
	if (res->n_tests > 0 && json_object_set_new(object, "tests", tests_to_json(res)) < 0)
		goto fail;
	if (merge(object, context_to_json(res)) < 0)
		goto fail;
	return object;
fail:
	json_decref(object);
	return NULL;
}
