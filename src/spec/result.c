/* SPDX-License-Identifier: Apache-2.0 */
/* See result.h. One description of the JSON form serves text and tree (emit.h). */
#include "spec/result.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "spec/change.h"
#include "spec/emit.h"
#include "spec/knob.h"

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

const char *test_verdict_name(enum test_verdict verdict)
{
	static const char *const names[_TEST_VERDICT_MAX] = {
		[TEST_UNDECIDED] = "error",
		[TEST_PASSED] = "passed",
		[TEST_WRONG_ANSWER] = "wrong_answer",
		[TEST_PRESENTATION_ERROR] = "presentation_error",
		[TEST_COMPILE_ERROR] = "compile_error",
		[TEST_TIMEOUT] = "timeout",
		[TEST_LIMIT] = "limit",
		[TEST_CANCELLED] = "cancelled",
		[TEST_ERROR] = "error",
		[TEST_CHECKER_ERROR] = "checker_error",
		[TEST_SKIPPED] = "skipped",
	};

	return (unsigned)verdict < _TEST_VERDICT_MAX ? names[verdict] : "error";
}

const char *test_code(const struct result_test *test)
{
	static const char *const codes[_TEST_VERDICT_MAX] = {
		[TEST_PASSED] = "AC",
		[TEST_WRONG_ANSWER] = "WA",
		[TEST_PRESENTATION_ERROR] = "PE",
		[TEST_COMPILE_ERROR] = "CE",
		[TEST_TIMEOUT] = "TLE",
		[TEST_CHECKER_ERROR] = "IE",
		[TEST_CANCELLED] = "SK",
		[TEST_SKIPPED] = "SK",
	};
	/* A file that grows without end is output, too. The other limits end a program as its own errors do. */
	static const char *const limits[_CAUSE_MAX] = {
		[CAUSE_MEMORY] = "MLE",	 [CAUSE_OUTPUT] = "OLE",   [CAUSE_DISK] = "OLE",
		[CAUSE_TIMEOUT] = "TLE", [CAUSE_CPU_TIME] = "TLE", [CAUSE_IDLE] = "TLE",
	};
	const char *code = codes[test->verdict];

	if (code)
		return code;
	if (test->verdict == TEST_LIMIT)
		return limits[test->run.cause.kind] ? limits[test->run.cause.kind] : "RE";
	/* The program did not run to an end of its own: that is not its fault. */
	return test->run.status == STATUS_ERROR ? "RE" : "IE";
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
		free(res->tests[i].name);
		free(res->tests[i].group);
		free(res->tests[i].message);
		free(res->tests[i].transcript);
		free(res->tests[i].difference.expected);
		free(res->tests[i].difference.got);
		json_decref(res->tests[i].error);
	}
	for (size_t i = 0; i < res->n_groups; i++)
		free(res->groups[i].name);
	free(res->groups);
	free(res->files);
	free(res->commit.changes);
	free(res->stages);
	free(res->tests);
	free(res->language);
	free(res->out.text);
	free(res->err.text);
	free(res->runtime);
	free(res->policy);
	json_decref(res->value);
	free(res->value_type);
	json_decref(res->value_repr);
	json_decref(res->outputs);
	json_decref(res->host_calls);
	json_decref(res->network);
	json_decref(res->denials);
	json_decref(res->session);
	json_decref(res->error);
	free(res->suggestion);
	json_decref(res->labels);
	json_decref(res->warnings);
	free(res);
	return NULL;
}

static void judge_error(enum error_code code, struct verdict *ret)
{
	switch (code) {
	case ERROR_INPUT:
	case ERROR_TOO_LARGE:
	case ERROR_RUNTIME:
		ret->status = STATUS_SETUP_ERROR;
		ret->cause.kind = CAUSE_SETUP;
		break;
	case ERROR_POLICY:
	case ERROR_CALLBACKS_OFF:
		ret->status = STATUS_DENIED;
		ret->cause.kind = CAUSE_POLICY;
		break;
	default:
		ret->status = STATUS_INTERNAL_ERROR;
		ret->cause.kind = CAUSE_INTERNAL;
	}
}

struct result *result_from_error(const struct error *err)
{
	struct result *res = result_new();
	int32_t code = err->code > ERROR_NONE && err->code < _ERROR_MAX ? err->code
									: ERROR_INTERNAL;

	if (!res)
		return NULL;
	res->refusal = (enum error_code)code;
	judge_error(res->refusal, &res->verdict);
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

static void member_word(struct emitter *e, const char *key, const char *text)
{
	emit_key(e, key);
	emit_word(e, text);
}

/* Negative: not known. */
static void member_count(struct emitter *e, const char *key, int64_t value)
{
	emit_key(e, key);
	if (value < 0)
		emit_null(e);
	else
		emit_integer(e, value);
}

static void member_seconds(struct emitter *e, const char *key, int64_t us)
{
	emit_key(e, key);
	if (us < 0)
		emit_null(e);
	else
		emit_seconds(e, us);
}

static void member_boolean(struct emitter *e, const char *key, bool value)
{
	emit_key(e, key);
	emit_boolean(e, value);
}

static void member_integer(struct emitter *e, const char *key, int64_t value)
{
	emit_key(e, key);
	emit_integer(e, value);
}

/* Points are whole, as a rule. */
static void member_points(struct emitter *e, const char *key, double value)
{
	emit_key(e, key);
	if (value == (double)(int64_t)value)
		emit_integer(e, (int64_t)value);
	else
		emit_real(e, value);
}

static void member_value(struct emitter *e, const char *key, json_t *value)
{
	emit_key(e, key);
	emit_value(e, value);
}

static void member_open(struct emitter *e, const char *key, char bracket)
{
	emit_key(e, key);
	emit_open(e, bracket);
}

static void member_empty(struct emitter *e, const char *key)
{
	member_open(e, key, '[');
	emit_close(e, ']');
}

static void member_limit(struct emitter *e, const char *key, const struct knob *k, int64_t value)
{
	json_t *tree = k && value >= 0 ? knob_to_json(k, value) : NULL;

	emit_key(e, key);
	if (json_is_real(tree))
		emit_real(e, json_real_value(tree));
	else
		emit_value(e, tree);
	json_decref(tree);
}

static int64_t cpu_us(const struct usage *u)
{
	return u->user_us < 0 || u->system_us < 0 ? -1 : u->user_us + u->system_us;
}

static void emit_cause(struct emitter *e, const struct cause *c)
{
	const struct knob *k = c->limit_key ? knob_find(c->limit_key) : NULL;

	member_open(e, "cause", '{');
	member_word(e, "kind", cause_name(c->kind));
	member_word(e, "detail", c->detail);
	member_word(e, "limit_key", k ? k->key : NULL);
	member_limit(e, "limit", k, c->limit);
	member_limit(e, "peak", k, c->peak);
	member_boolean(e, "retryable", c->retryable);
	member_limit(e, "suggest", k, c->suggest);
	emit_close(e, '}');
}

static void emit_signal(struct emitter *e, int signal)
{
	member_count(e, "signal", signal > 0 ? signal : -1);
}

static void emit_usage(struct emitter *e, const struct result *res)
{
	const struct usage *u = &res->usage;

	member_open(e, "usage", '{');
	member_seconds(e, "user", u->user_us);
	member_seconds(e, "system", u->system_us);
	member_count(e, "pids_peak", u->pids_peak);
	member_count(e, "io_read", u->io_read_bytes);
	member_count(e, "io_write", u->io_write_bytes);
	member_seconds(e, "start", res->start_us);
	member_open(e, "limit_hits", '[');
	for (unsigned kind = 0; kind < _CAUSE_MAX; kind++)
		if (res->verdict.limit_hits & (UINT32_C(1) << kind))
			emit_word(e, cause_name((enum cause_kind)kind));
	emit_close(e, ']');
	emit_close(e, '}');
}

static void emit_files(struct emitter *e, const struct result *res)
{
	member_open(e, "files", '[');
	for (size_t i = 0; i < res->n_files; i++) {
		const struct result_file *f = &res->files[i];

		emit_open(e, '{');
		member_word(e, "path", f->path);
		member_integer(e, "size", f->size);
		member_word(e, "sha256", f->sha256);
		emit_close(e, '}');
	}
	emit_close(e, ']');
}

static void emit_stages(struct emitter *e, const struct result *res)
{
	member_open(e, "stages", '[');
	for (size_t i = 0; i < res->n_stages; i++) {
		const struct result_stage *s = &res->stages[i];

		emit_open(e, '{');
		member_word(e, "name", s->name);
		member_word(e, "status", status_name(s->verdict.status));
		member_count(e, "exit_code", s->verdict.exit_code);
		emit_signal(e, s->verdict.signal);
		member_seconds(e, "duration", s->duration_us);
		member_seconds(e, "cpu_time", cpu_us(&s->usage));
		member_count(e, "memory_peak", s->usage.memory_peak_bytes);
		emit_cause(e, &s->verdict.cause);
		/* Only for stages with streams of their own: the compiler's output. */
		if (s->stdout_text)
			member_word(e, "stdout", s->stdout_text);
		if (s->stderr_text)
			member_word(e, "stderr", s->stderr_text);
		emit_close(e, '}');
	}
	emit_close(e, ']');
}

static void emit_groups(struct emitter *e, const struct result *res)
{
	if (res->n_groups == 0)
		return;
	member_open(e, "groups", '[');
	for (size_t i = 0; i < res->n_groups; i++) {
		const struct result_group *g = &res->groups[i];

		emit_open(e, '{');
		member_word(e, "name", g->name);
		member_word(e, "verdict", test_verdict_name(g->verdict));
		member_word(e, "code", g->code);
		member_boolean(e, "passed", g->verdict == TEST_PASSED);
		if (g->scored) {
			member_points(e, "points", g->earned);
			member_points(e, "possible", g->worth);
		}
		emit_close(e, '}');
	}
	emit_close(e, ']');
}

/* Only if a test or a group gives any. */
static void emit_points(struct emitter *e, const struct result *res)
{
	double earned = 0, possible = 0;
	bool given = false;

	for (size_t i = 0; i < res->n_tests; i++) {
		const struct result_test *t = &res->tests[i];

		if (t->group || t->worth < 0)
			continue;
		given = true;
		possible += t->worth;
		earned += t->earned;
	}
	for (size_t i = 0; i < res->n_groups; i++) {
		given = given || res->groups[i].scored;
		possible += res->groups[i].worth;
		earned += res->groups[i].earned;
	}
	if (!given)
		return;
	member_open(e, "points", '{');
	member_points(e, "earned", earned);
	member_points(e, "possible", possible);
	emit_close(e, '}');
}

static void emit_difference(struct emitter *e, const struct result_difference *d)
{
	if (d->line <= 0) {
		member_value(e, "difference", NULL);
		return;
	}
	member_open(e, "difference", '{');
	member_integer(e, "line", d->line);
	member_integer(e, "column", d->column);
	member_word(e, "expected", d->expected);
	member_word(e, "got", d->got);
	emit_close(e, '}');
}

/* By which clock a program was too slow; and how much longer it could run, because others made it wait. */
static void emit_clock(struct emitter *e, const struct verdict *v)
{
	member_word(e, "clock",
		    v->cause.kind == CAUSE_CPU_TIME				    ? "cpu"
		    : v->cause.kind == CAUSE_TIMEOUT || v->cause.kind == CAUSE_IDLE ? "wall"
										    : NULL);
	member_seconds(e, "waited", v->extended_us);
}

static void emit_test(struct emitter *e, const struct result_test *t)
{
	emit_open(e, '{');
	if (t->name)
		member_word(e, "name", t->name);
	if (t->group)
		member_word(e, "group", t->group);
	member_word(e, "verdict", test_verdict_name(t->verdict));
	member_word(e, "code", test_code(t));
	member_boolean(e, "passed", t->verdict == TEST_PASSED);
	member_word(e, "status", status_name(t->run.status));
	member_count(e, "exit_code", t->run.exit_code);
	emit_signal(e, t->run.signal);
	emit_cause(e, &t->run.cause);
	member_word(e, "stdout", t->stdout_text);
	member_word(e, "stderr", t->stderr_text);
	member_seconds(e, "duration", t->duration_us);
	member_seconds(e, "cpu_time", cpu_us(&t->usage));
	member_count(e, "memory_peak", t->usage.memory_peak_bytes);
	emit_clock(e, &t->run);
	member_value(e, "error", t->error);
	emit_difference(e, &t->difference);
	if (t->worth >= 0 || t->scored)
		member_points(e, "points", t->earned);
	if (t->message)
		member_word(e, "message", t->message);
	if (t->transcript)
		member_word(e, "transcript", t->transcript);
	emit_close(e, '}');
}

static void emit_tests(struct emitter *e, const struct result *res)
{
	if (res->n_tests == 0)
		return;
	member_open(e, "tests", '[');
	for (size_t i = 0; i < res->n_tests; i++)
		emit_test(e, &res->tests[i]);
	emit_close(e, ']');
	emit_groups(e, res);
	emit_points(e, res);
}

static void emit_isolation(struct emitter *e, const struct isolation *is)
{
	emit_open(e, '{');
	member_word(e, "tier", is->tier);
	member_word(e, "user", is->user);
	member_word(e, "cgroup", is->cgroup);
	member_word(e, "seccomp", is->seccomp[0] ? is->seccomp : NULL);
	member_integer(e, "landlock", is->landlock);
	member_word(e, "proc", is->proc);
	member_word(e, "net", is->net);
	member_word(e, "broker", is->broker);
	member_word(e, "front", is->front);
	member_open(e, "missing", '[');
	for (size_t i = 0; i < ARRAY_SIZE(is->missing) && is->missing[i]; i++)
		emit_word(e, is->missing[i]);
	emit_close(e, ']');
	emit_close(e, '}');
}

static void emit_streams(struct emitter *e, const struct result *res)
{
	static const struct {
		const char *text, *bytes, *truncated, *binary;
	} names[] = { { "stdout", "stdout_bytes", "stdout_truncated", "stdout_binary" },
		      { "stderr", "stderr_bytes", "stderr_truncated", "stderr_binary" } };
	const struct result_stream *streams[] = { &res->out, &res->err };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct result_stream *s = streams[i];
		bool binary;

		emit_key(e, names[i].text);
		binary = emit_string(e, s->text, s->text ? s->len : 0);
		member_integer(e, names[i].bytes, s->bytes);
		member_boolean(e, names[i].truncated, s->truncated);
		member_boolean(e, names[i].binary, binary);
	}
}

static void emit_head(struct emitter *e, const struct result *res)
{
	const struct verdict *v = &res->verdict;

	member_word(e, "id", res->id);
	member_word(e, "language", res->language);
	member_word(e, "status", status_name(v->status));
	member_boolean(e, "success", v->status == STATUS_SUCCESS);
	member_count(e, "exit_code", v->exit_code);
	emit_signal(e, v->signal);
	emit_cause(e, &v->cause);
}

static void emit_measures(struct emitter *e, const struct result *res)
{
	member_value(e, "value", res->value);
	if (res->value_type)
		member_word(e, "value_type", res->value_type);
	if (res->value_repr)
		member_value(e, "value_repr", res->value_repr);
	if (res->value_type)
		member_boolean(e, "value_truncated", res->value_bytes > 0);
	if (res->value_bytes > 0)
		member_integer(e, "value_bytes", res->value_bytes);
	if (res->outputs)
		member_value(e, "outputs", res->outputs);
	emit_files(e, res);
	member_boolean(e, "files_truncated", res->files_truncated);
	member_seconds(e, "duration", res->duration_us);
	member_seconds(e, "cpu_time", cpu_us(&res->usage));
	member_count(e, "memory_peak", res->usage.memory_peak_bytes);
	emit_usage(e, res);
	emit_stages(e, res);
	member_value(e, "error", res->error);
	if (res->suggestion)
		member_word(e, "suggestion", res->suggestion);
}

static void emit_change(struct emitter *e, const struct change *c)
{
	static const char *const kinds[_CHANGE_MAX] = { [CHANGE_ADDED] = "added",
							[CHANGE_CHANGED] = "changed",
							[CHANGE_REMOVED] = "removed",
							[CHANGE_SKIPPED] = "skipped" };
	static const char *const types[_CHANGE_TYPE_MAX] = { [CHANGE_FILE] = "file",
							     [CHANGE_DIRECTORY] = "directory",
							     [CHANGE_LINK] = "link",
							     [CHANGE_OTHER] = "other" };

	emit_open(e, '{');
	member_word(e, "path", c->path);
	member_word(e, "change", kinds[c->kind]);
	member_word(e, "type", types[c->type]);
	member_integer(e, "size", c->size);
	member_word(e, "sha256", c->sha256[0] ? c->sha256 : NULL);
	if (c->conflict)
		member_boolean(e, "conflict", true);
	emit_close(e, '}');
}

static void emit_skipped(struct emitter *e, const struct change *c)
{
	static const char *const reasons[_CHANGE_SKIP_MAX] = {
		[CHANGE_SKIP_NONE] = "it cannot be kept",
		[CHANGE_SKIP_SPECIAL] = "pipes, sockets and devices are not kept",
		[CHANGE_SKIP_LINK] = "the link leads out of the workspace",
		[CHANGE_SKIP_DEEP] = "it lies too deep",
		[CHANGE_SKIP_OWN] = "the name is taken",
		[CHANGE_SKIP_MOUNT] = "the host has mounted something there",
	};

	emit_open(e, '{');
	member_word(e, "path", c->path);
	member_word(e, "reason", reasons[c->skip]);
	emit_close(e, '}');
}

/* The skipped changes, or the others. Returns how many. */
static size_t emit_changes(struct emitter *e, const struct result_commit *commit, bool skipped)
{
	const char *at = commit->changes;
	size_t left = commit->changes_len, length, n = 0;
	const struct change *c;

	for (; at && (c = change_at(at, left, &length)); at += length, left -= length) {
		if ((c->kind == CHANGE_SKIPPED) != skipped)
			continue;
		if (skipped && n++ == 0)
			member_open(e, "skipped", '[');
		(skipped ? emit_skipped : emit_change)(e, c);
	}
	return n;
}

static void emit_commit(struct emitter *e, const struct result_commit *c)
{
	if (!c->present)
		return;
	member_open(e, "changes", '[');
	(void)emit_changes(e, c, false);
	emit_close(e, ']');
	if (c->omitted)
		member_integer(e, "changes_omitted", (int64_t)c->omitted);
	if (emit_changes(e, c, true) > 0)
		emit_close(e, ']');
	member_boolean(e, "applied", c->applied);
	if (c->error[0])
		member_word(e, "apply_error", c->error);
}

static void emit_context(struct emitter *e, const struct result *res)
{
	char created[32];

	clock_format_utc(res->created_realtime_ns, created, sizeof(created));
	if (res->denials)
		member_value(e, "denials", res->denials);
	else
		member_empty(e, "denials");
	if (res->denials_omitted)
		member_integer(e, "denials_omitted", (int64_t)res->denials_omitted);
	emit_key(e, "isolation");
	emit_isolation(e, &res->isolation);
	emit_commit(e, &res->commit);
	if (res->network)
		member_value(e, "network", res->network);
	if (res->network_omitted)
		member_integer(e, "network_omitted", (int64_t)res->network_omitted);
	if (res->host_calls)
		member_value(e, "host_calls", res->host_calls);
	if (res->session)
		member_value(e, "session", res->session);
	member_value(e, "timeout_chosen", NULL);
	if (res->labels) {
		member_value(e, "labels", res->labels);
	} else {
		member_open(e, "labels", '{');
		emit_close(e, '}');
	}
	member_word(e, "runtime", res->runtime);
	member_word(e, "policy", res->policy);
	member_word(e, "via", res->via ? res->via : "direct");
	member_boolean(e, "cached_build", res->cached_build);
	if (res->no_history)
		member_boolean(e, "history", false);
	if (res->warnings)
		member_value(e, "warnings", res->warnings);
	member_word(e, "created_at", created);
	member_word(e, "node", res->node);
}

static void emit_result(struct emitter *e, const struct result *res)
{
	emit_open(e, '{');
	emit_head(e, res);
	emit_streams(e, res);
	emit_measures(e, res);
	emit_tests(e, res);
	emit_context(e, res);
	emit_close(e, '}');
}

json_t *result_to_json(const struct result *res)
{
	struct emitter e;

	emit_init_tree(&e);
	emit_result(&e, res);
	return emit_tree(&e);
}

json_t *isolation_to_json(const struct isolation *is)
{
	struct emitter e;

	emit_init_tree(&e);
	emit_isolation(&e, is);
	return emit_tree(&e);
}

char *result_to_text(const struct result *res)
{
	struct emitter e;

	emit_init_text(&e, RESULT_TEXT_MAX);
	emit_result(&e, res);
	return emit_text(&e, NULL);
}

size_t result_json_flags(const json_t *tree)
{
	const json_t *value = json_object_get(tree, "value");

	if (!value)
		value = json_object_get(json_object_get(tree, "result"), "value");
	return JSON_REAL_PRECISION(!value || json_is_null(value) ? 15 : 17);
}
