/* SPDX-License-Identifier: Apache-2.0 */
/* See result.h. The tables serve two forms: text (emit.h), and JSON Schema (schema.h). */
#include "spec/result.h"

#include <assert.h>
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

enum run_status status_from_name(const char *name)
{
	for (int i = 0; i < _STATUS_MAX; i++)
		if (strcmp(status_name((enum run_status)i), name) == 0)
			return (enum run_status)i;
	return STATUS_INTERNAL_ERROR;
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

	assert(test->verdict < _TEST_VERDICT_MAX && test->run.cause.kind < _CAUSE_MAX);
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
	res->via = "direct";
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
	free(res->timeout_reason);
	json_decref(res->warnings);
	free(res);
	return NULL;
}

static void result_judge_error(enum error_code code, struct verdict *ret)
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
	result_judge_error(res->refusal, &res->verdict);
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

/* --- writers of more than one member's value --- */

/* "" is null. */
static void write_chars_or_null(struct emitter *e, const struct schema_field *f, const void *object)
{
	const char *text = field_in(f, object);

	emit_word(e, *text ? text : NULL);
}

static void write_cpu_time(struct emitter *e, const struct schema_field *f, const void *object)
{
	const struct usage *u = field_in(f, object);

	if (u->user_us < 0 || u->system_us < 0)
		emit_null(e);
	else
		emit_seconds(e, u->user_us + u->system_us);
}

static void write_signal(struct emitter *e, const struct schema_field *f, const void *object)
{
	const int *signal = field_in(f, object);

	if (*signal > 0)
		emit_integer(e, *signal);
	else
		emit_null(e);
}

static void write_verdict(struct emitter *e, const struct schema_field *f, const void *object)
{
	emit_word(e, test_verdict_name(*(const enum test_verdict *)field_in(f, object)));
}

static void write_passed(struct emitter *e, const struct schema_field *f, const void *object)
{
	emit_boolean(e, *(const enum test_verdict *)field_in(f, object) == TEST_PASSED);
}

/* Points are whole, as a rule. */
static void emit_points(struct emitter *e, double value)
{
	if (value == (double)(int64_t)value)
		emit_integer(e, (int64_t)value);
	else
		emit_real(e, value);
}

/* --- the cause of an end --- */

static void cause_write_key(struct emitter *e, const struct schema_field *f _unused_,
			    const void *object)
{
	const struct cause *c = object;

	emit_word(e, c->limit_key && knob_find(c->limit_key) ? c->limit_key : NULL);
}

/* In the unit of the limit that was hit. */
static void cause_write_amount(struct emitter *e, const struct schema_field *f, const void *object)
{
	const struct cause *c = object;
	const struct knob *k = c->limit_key ? knob_find(c->limit_key) : NULL;
	const int64_t *value = field_in(f, object);
	json_t *tree = k && *value >= 0 ? knob_to_json(k, *value) : NULL;

	if (json_is_real(tree))
		emit_real(e, json_real_value(tree));
	else
		emit_value(e, tree);
	json_decref(tree);
}

#define AT(type, name)	 .offset = offsetof(type, name)
#define CAUSE(name)	 AT(struct cause, name)
#define CHANGE(name)	 AT(struct change, name)
#define STAGE(name)	 AT(struct result_stage, name)
#define DIFFERENCE(name) AT(struct result_difference, name)
#define TEST(name)	 AT(struct result_test, name)
#define GROUP(name)	 AT(struct result_group, name)
#define ISOLATION(name)	 AT(struct isolation, name)
#define MEMBER(name)	 AT(struct result, name)
#define LIST(name, entry)                                                                          \
	MEMBER(name), .beside = offsetof(struct result, n_##name), .of = entry##_fields

static const struct schema_field cause_fields[] = {
	{ "kind", RESULT_CAUSES, NULL, .emit = write_choice, CAUSE(kind) },
	{ "detail", "string?", "one sentence", .emit = write_chars, CAUSE(detail) },
	{ "limit_key", "string?", "key of the limit that was hit", .emit = cause_write_key },
	{ "limit", "number?", "value of that limit", .emit = cause_write_amount, CAUSE(limit) },
	{ "peak", "number?", "measured peak", .emit = cause_write_amount, CAUSE(peak) },
	{ "retryable", "boolean", NULL, .emit = write_bool, CAUSE(retryable) },
	{ "suggest", "number?", "a limit worth retrying with", .emit = cause_write_amount,
	  CAUSE(suggest) },
	{ 0 },
};

/* --- files and changes --- */

static const struct schema_field file_fields[] = {
	{ "path", "string", NULL, .emit = write_text, AT(struct result_file, path) },
	{ "size", "integer", "bytes", .emit = write_integer, AT(struct result_file, size) },
	{ "sha256", "string", NULL, .emit = write_chars, AT(struct result_file, sha256) },
	{ 0 },
};

/* 0 and 1 in a byte of a record; only told if it is so. */
static void change_write_conflict(struct emitter *e, const struct schema_field *f _unused_,
				  const void *object)
{
	const struct change *c = object;

	if (!c->conflict)
		return;
	emit_boolean(e, true);
}

static const struct schema_field change_fields[] = {
	{ "path", "string", "below /workspace", .emit = write_chars, CHANGE(path) },
	{ "change", "added|changed|removed", NULL, .emit = write_choice, CHANGE(kind), .size = 1 },
	{ "type", "file|directory|link|other", NULL, .emit = write_choice, CHANGE(type),
	  .size = 1 },
	{ "size", "integer", "bytes of a file", .emit = write_integer, CHANGE(size) },
	{ "sha256", "string?", "of an added or changed file", .emit = write_chars_or_null,
	  CHANGE(sha256) },
	{ "conflict", "boolean",
	  "another run changed this path meanwhile; this run ended later and won",
	  .emit = change_write_conflict, .sparse = true },
	{ 0 },
};

static void skipped_write_reason(struct emitter *e, const struct schema_field *f _unused_,
				 const void *object)
{
	static const char *const reasons[_CHANGE_SKIP_MAX] = {
		[CHANGE_SKIP_NONE] = "it cannot be kept",
		[CHANGE_SKIP_SPECIAL] = "pipes, sockets and devices are not kept",
		[CHANGE_SKIP_LINK] = "the link leads out of the workspace",
		[CHANGE_SKIP_DEEP] = "it lies too deep",
		[CHANGE_SKIP_OWN] = "the name is taken",
		[CHANGE_SKIP_MOUNT] = "the host has mounted something there",
	};
	const struct change *c = object;

	emit_word(e, reasons[c->skip]);
}

static const struct schema_field skipped_fields[] = {
	{ "path", "string", "below /workspace", .emit = write_chars, CHANGE(path) },
	{ "reason", "string", NULL, .emit = skipped_write_reason },
	{ 0 },
};

/* The skipped changes, or the others. Returns how many. */
static size_t commit_write_changes(struct emitter *e, const struct result_commit *commit,
				   bool skipped)
{
	const char *at = commit->changes;
	size_t left = commit->changes_len, length, n = 0;
	const struct change *c;

	for (; at && (c = change_at(at, left, &length)); at += length, left -= length) {
		if ((c->kind == CHANGE_SKIPPED) != skipped)
			continue;
		if (skipped && n++ == 0) {
			emit_key(e, "skipped");
			emit_open(e, '[');
		}
		emit_fields(e, skipped ? skipped_fields : change_fields, c);
	}
	return n;
}

/* Everything that is told of a workspace, the keys below `changes`. */
static void result_write_commit(struct emitter *e, const struct schema_field *f, const void *object)
{
	const struct result_commit *c = field_in(f, object);

	if (!c->present)
		return;
	emit_open(e, '[');
	(void)commit_write_changes(e, c, false);
	emit_close(e, ']');
	if (c->omitted) {
		emit_key(e, "changes_omitted");
		emit_integer(e, (int64_t)c->omitted);
	}
	if (commit_write_changes(e, c, true) > 0)
		emit_close(e, ']');
	emit_key(e, "applied");
	emit_boolean(e, c->applied);
	if (c->error[0]) {
		emit_key(e, "apply_error");
		emit_word(e, c->error);
	}
}

/* --- stages, tests and groups --- */

static const struct schema_field stage_fields[] = {
	{ "name", "string", NULL, .emit = write_chars, STAGE(name) },
	{ "status", RESULT_STATUSES, NULL, .emit = write_choice, STAGE(verdict.status) },
	{ "exit_code", "integer?", NULL, .emit = write_int, STAGE(verdict.exit_code) },
	{ "signal", "integer?", NULL, .emit = write_signal, STAGE(verdict.signal) },
	{ "duration", "number?", "seconds", .emit = write_seconds, STAGE(duration_us) },
	{ "cpu_time", "number?", "seconds", .emit = write_cpu_time, STAGE(usage) },
	{ "memory_peak", "integer?", "bytes", .emit = write_count, STAGE(usage.memory_peak_bytes) },
	{ "cause", "Cause", NULL, .emit = write_part, STAGE(verdict.cause), .of = cause_fields },
	{ "stdout", "string", "only of stages with streams of their own: a compiler's output",
	  .emit = write_text, STAGE(stdout_text), .sparse = true },
	{ "stderr", "string", NULL, .emit = write_text, STAGE(stderr_text), .sparse = true },
	{ 0 },
};

static const struct schema_field difference_fields[] = {
	{ "line", "integer", "in the output, from 1", .emit = write_integer, DIFFERENCE(line) },
	{ "column", "integer", "in characters, from 1", .emit = write_integer, DIFFERENCE(column) },
	{ "expected", "string?", "what should stand there; null: nothing", .emit = write_text,
	  DIFFERENCE(expected) },
	{ "got", "string?", "what stands there; null: the output has ended", .emit = write_text,
	  DIFFERENCE(got) },
	{ 0 },
};

static void test_write_difference(struct emitter *e, const struct schema_field *f _unused_,
				  const void *object)
{
	const struct result_test *t = object;

	if (t->difference.line > 0)
		emit_fields(e, difference_fields, &t->difference);
	else
		emit_null(e);
}

static void test_write_code(struct emitter *e, const struct schema_field *f _unused_,
			    const void *object)
{
	emit_word(e, test_code(object));
}

static void test_write_clock(struct emitter *e, const struct schema_field *f _unused_,
			     const void *object)
{
	const struct result_test *t = object;
	const enum cause_kind kind = t->run.cause.kind;

	emit_word(e, kind == CAUSE_CPU_TIME			   ? "cpu"
		     : kind == CAUSE_TIMEOUT || kind == CAUSE_IDLE ? "wall"
								   : NULL);
}

static void test_write_points(struct emitter *e, const struct schema_field *f _unused_,
			      const void *object)
{
	const struct result_test *t = object;

	if (t->worth >= 0 || t->scored)
		emit_points(e, t->earned);
}

#define TEST_VERDICTS                                                                              \
	"passed|wrong_answer|presentation_error|compile_error|timeout|limit|cancelled|error|"      \
	"checker_error|skipped"
#define TEST_CODES "AC|WA|TLE|MLE|OLE|RE|CE|PE|IE|SK"

static const struct schema_field test_fields[] = {
	{ "name", "string", "as given", .emit = write_text, TEST(name), .sparse = true },
	{ "group", "string", "as given", .emit = write_text, TEST(group), .sparse = true },
	{ "verdict", TEST_VERDICTS, NULL, .emit = write_verdict, TEST(verdict) },
	{ "code", TEST_CODES, "the same in the word of contest judges", .emit = test_write_code },
	{ "passed", "boolean", NULL, .emit = write_passed, TEST(verdict) },
	{ "status", RESULT_STATUSES, "of the program", .emit = write_choice, TEST(run.status) },
	{ "exit_code", "integer?", "of the program, also when its output is wrong",
	  .emit = write_int, TEST(run.exit_code) },
	{ "signal", "integer?", NULL, .emit = write_signal, TEST(run.signal) },
	{ "cause", "Cause", "reason for the program's end", .emit = write_part, TEST(run.cause),
	  .of = cause_fields },
	{ "stdout", "string?", "whole up to limits.output", .emit = write_text, TEST(stdout_text) },
	{ "stderr", "string?", NULL, .emit = write_text, TEST(stderr_text) },
	{ "duration", "number?", "seconds", .emit = write_seconds, TEST(duration_us) },
	{ "cpu_time", "number?", "seconds", .emit = write_cpu_time, TEST(usage) },
	{ "memory_peak", "integer?", "bytes", .emit = write_count, TEST(usage.memory_peak_bytes) },
	{ "clock", "string?", "which one found it too slow: cpu or wall",
	  .emit = test_write_clock },
	{ "waited", "number",
	  "seconds by which its timeout was extended, because others used its processor",
	  .emit = write_seconds, TEST(run.extended_us) },
	{ "error", "Failure?", "the error that ended the program, where it is recognised",
	  .emit = write_json, TEST(error) },
	{ "difference", "Difference?", "the first one between output and expected",
	  .emit = test_write_difference },
	{ "points", "number", "0 unless the test passed, or its checker gave some",
	  .emit = test_write_points, .sparse = true },
	{ "message", "string", "what the program that judges printed, or how it failed",
	  .emit = write_text, TEST(message), .sparse = true },
	{ "transcript", "string",
	  "the talk with an interactor: lines of the program begin with >, its with <",
	  .emit = write_text, TEST(transcript), .sparse = true },
	{ 0 },
};

static void group_write_points(struct emitter *e, const struct schema_field *f, const void *object)
{
	const struct result_group *g = object;

	if (g->scored)
		emit_points(e, *(const double *)field_in(f, object));
}

static const struct schema_field group_fields[] = {
	{ "name", "string", NULL, .emit = write_text, GROUP(name) },
	{ "verdict", TEST_VERDICTS, "of its first test that failed", .emit = write_verdict,
	  GROUP(verdict) },
	{ "code", TEST_CODES, NULL, .emit = write_text, GROUP(code) },
	{ "passed", "boolean", NULL, .emit = write_passed, GROUP(verdict) },
	{ "points", "number", "absent if neither it nor one of its tests has any",
	  .emit = group_write_points, GROUP(earned), .sparse = true },
	{ "possible", "number", NULL, .emit = group_write_points, GROUP(worth), .sparse = true },
	{ 0 },
};

static const struct schema_field points_fields[] = {
	{ "earned", "number" },
	{ "possible", "number" },
	{ 0 },
};

/* Only if a test or a group gives any. */
static void result_write_points(struct emitter *e, const struct schema_field *f _unused_,
				const void *object)
{
	const struct result *res = object;
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
	emit_open(e, '{');
	emit_key(e, points_fields[0].key);
	emit_points(e, earned);
	emit_key(e, points_fields[1].key);
	emit_points(e, possible);
	emit_close(e, '}');
}

/* --- usage and isolation --- */

static void usage_write_hits(struct emitter *e, const struct schema_field *f _unused_,
			     const void *object)
{
	const struct result *res = object;

	emit_open(e, '[');
	for (unsigned kind = 0; kind < _CAUSE_MAX; kind++)
		if (res->verdict.limit_hits & (UINT32_C(1) << kind))
			emit_word(e, cause_name((enum cause_kind)kind));
	emit_close(e, ']');
}

/* Of struct result. */
static const struct schema_field usage_fields[] = {
	{ "user", "number?", "seconds", .emit = write_seconds, MEMBER(usage.user_us) },
	{ "system", "number?", "seconds", .emit = write_seconds, MEMBER(usage.system_us) },
	{ "pids_peak", "integer?", NULL, .emit = write_count, MEMBER(usage.pids_peak) },
	{ "io_read", "integer?", "bytes", .emit = write_count, MEMBER(usage.io_read_bytes) },
	{ "io_write", "integer?", "bytes", .emit = write_count, MEMBER(usage.io_write_bytes) },
	{ "start", "number?", "seconds from acceptance to the program's first instruction",
	  .emit = write_seconds, MEMBER(start_us) },
	{ "limit_hits", "[string]", "limits that were hit although the exit code is 0",
	  .emit = usage_write_hits },
	{ 0 },
};

static void isolation_write_missing(struct emitter *e, const struct schema_field *f _unused_,
				    const void *object)
{
	const struct isolation *is = object;

	emit_open(e, '[');
	for (size_t i = 0; i < ARRAY_SIZE(is->missing) && is->missing[i]; i++)
		emit_word(e, is->missing[i]);
	emit_close(e, ']');
}

static const struct schema_field isolation_fields[] = {
	{ "tier", "string?", "full, reduced or minimal", .emit = write_text, ISOLATION(tier) },
	{ "user", "string?", NULL, .emit = write_text, ISOLATION(user) },
	{ "cgroup", "string?", NULL, .emit = write_text, ISOLATION(cgroup) },
	{ "seccomp", "string?", NULL, .emit = write_chars_or_null, ISOLATION(seccomp) },
	{ "landlock", "integer", "the ABI in force", .emit = write_int, ISOLATION(landlock) },
	{ "proc", "string?", NULL, .emit = write_text, ISOLATION(proc) },
	{ "net", "string?", NULL, .emit = write_text, ISOLATION(net) },
	{ "broker", "string?", "confined or open", .emit = write_text, ISOLATION(broker) },
	{ "front", "string?",
	  "confined, partly, open, or caller (the calling process made the sandbox itself)",
	  .emit = write_text, ISOLATION(front) },
	{ "missing", "[string]", "layers that did not hold", .emit = isolation_write_missing },
	{ 0 },
};

/* --- the result --- */

static void result_write_success(struct emitter *e, const struct schema_field *f,
				 const void *object)
{
	emit_boolean(e, *(const enum run_status *)field_in(f, object) == STATUS_SUCCESS);
}

/* The keys of a stream, of which the row has the first. */
static void result_write_stream(struct emitter *e, const struct schema_field *f, const void *object)
{
	const struct result_stream *s = field_in(f, object);
	bool binary;

	binary = emit_string(e, s->text, s->text ? s->len : 0);
	emit_key(e, f[1].key);
	emit_integer(e, s->bytes);
	emit_key(e, f[2].key);
	emit_boolean(e, s->truncated);
	emit_key(e, f[3].key);
	emit_boolean(e, binary);
}

static void result_write_value_truncated(struct emitter *e, const struct schema_field *f _unused_,
					 const void *object)
{
	const struct result *res = object;

	if (!res->value_type)
		return;
	emit_boolean(e, res->value_bytes > 0);
}

/* An empty list or object where there is none. */
static void result_write_or_empty(struct emitter *e, const struct schema_field *f,
				  const void *object)
{
	json_t *const *tree = field_in(f, object);
	const bool is_list = f->type[0] == '[';

	if (*tree) {
		emit_value(e, *tree);
	} else {
		emit_open(e, is_list ? '[' : '{');
		emit_close(e, is_list ? ']' : '}');
	}
}

static void result_write_timeout(struct emitter *e, const struct schema_field *f _unused_,
				 const void *object)
{
	const struct result *res = object;

	if (!res->timeout_reason) {
		emit_null(e);
		return;
	}
	emit_open(e, '{');
	emit_key(e, "timeout");
	emit_seconds(e, res->timeout_chosen_ms * US_PER_MS);
	emit_key(e, "reason");
	emit_word(e, res->timeout_reason);
	emit_close(e, '}');
}

static void result_write_history(struct emitter *e, const struct schema_field *f _unused_,
				 const void *object)
{
	const struct result *res = object;

	if (!res->no_history)
		return;
	emit_boolean(e, false);
}

static void result_write_created(struct emitter *e, const struct schema_field *f _unused_,
				 const void *object)
{
	const struct result *res = object;
	char created[32];

	clock_format_utc(res->created_realtime_ns, created, sizeof(created));
	emit_word(e, created);
}

static const struct schema_field result_fields[] = {
	{ "id", "string", NULL, .emit = write_chars, MEMBER(id) },
	{ "language", "string?", NULL, .emit = write_text, MEMBER(language) },
	{ "status", RESULT_STATUSES, NULL, .emit = write_choice, MEMBER(verdict.status) },
	{ "success", "boolean", NULL, .emit = result_write_success, MEMBER(verdict.status) },
	{ "exit_code", "integer?",
	  "128+n for signal n, 124 timeout, 137 memory, null where nothing ran", .emit = write_int,
	  MEMBER(verdict.exit_code) },
	{ "signal", "integer?", NULL, .emit = write_signal, MEMBER(verdict.signal) },
	{ "cause", "Cause", NULL, .emit = write_part, MEMBER(verdict.cause), .of = cause_fields },
	{ "stdout", "string", "head and tail if longer than limits.output",
	  .emit = result_write_stream, MEMBER(out) },
	{ "stdout_bytes", "integer", "bytes that the program wrote" },
	{ "stdout_truncated", "boolean", NULL },
	{ "stdout_binary", "boolean",
	  "stdout has bytes that are not UTF-8; they are shown as U+FFFD" },
	{ "stderr", "string", NULL, .emit = result_write_stream, MEMBER(err) },
	{ "stderr_bytes", "integer", NULL },
	{ "stderr_truncated", "boolean", NULL },
	{ "stderr_binary", "boolean", NULL },
	{ "value", "any", "value of the last expression, or of the invoked method",
	  .emit = write_json, MEMBER(value) },
	{ "value_type", "string", "name of the value's type; only of evaluated programs",
	  .emit = write_text, MEMBER(value_type), .sparse = true },
	{ "value_repr", "string",
	  "the value as its language prints it; only of evaluated programs, and of values that are "
	  "not large",
	  .emit = write_json, MEMBER(value_repr), .sparse = true },
	{ "value_truncated", "boolean",
	  "the value is too large for this result and null here; GET …/value has all of it; only "
	  "of evaluated programs",
	  .emit = result_write_value_truncated, .sparse = true },
	{ "value_bytes", "integer", "of the JSON text of such a value", .emit = write_integer,
	  MEMBER(value_bytes), .sparse = true },
	{ "outputs", "[RichOutput]",
	  "charts, tables and other rich values; only of evaluated programs", .emit = write_json,
	  MEMBER(outputs), .sparse = true },
	{ "files", "[File]", "files that the program wrote in the work directory",
	  .emit = write_list, LIST(files, file), .size = sizeof(struct result_file) },
	{ "files_truncated", "boolean", NULL, .emit = write_bool, MEMBER(files_truncated) },
	{ "duration", "number?", "seconds", .emit = write_seconds, MEMBER(duration_us) },
	{ "cpu_time", "number?", "seconds", .emit = write_cpu_time, MEMBER(usage) },
	{ "memory_peak", "integer?", "bytes", .emit = write_count,
	  MEMBER(usage.memory_peak_bytes) },
	{ "usage", "Usage", NULL, .emit = write_part, .of = usage_fields },
	{ "stages", "[Stage]", NULL, .emit = write_list, LIST(stages, stage),
	  .size = sizeof(struct result_stage) },
	{ "error", "Failure?", "the error that ended the program, where it is recognised",
	  .emit = write_json, MEMBER(error) },
	{ "suggestion", "string", "what to do about the error; absent where it is not known",
	  .emit = write_text, MEMBER(suggestion), .sparse = true },
	{ "tests", "[Test]", "verdict and output of each test of the request", .emit = write_list,
	  LIST(tests, test), .size = sizeof(struct result_test), .sparse = true },
	{ "groups", "[TestGroup]", "of tests; absent without", .emit = write_list,
	  LIST(groups, group), .size = sizeof(struct result_group), .sparse = true },
	{ "points", "Points",
	  "sum over the groups and the tests without one; absent if none has any",
	  .emit = result_write_points, .sparse = true },
	{ "denials", "[Denial]", NULL, .emit = result_write_or_empty, MEMBER(denials) },
	{ "denials_omitted", "integer", "number of refusals that are not listed",
	  .emit = write_integer, MEMBER(denials_omitted), .sparse = true },
	{ "isolation", "Isolation", NULL, .emit = write_part, MEMBER(isolation),
	  .of = isolation_fields },
	{ "changes", "[Change]", "changes to the workspace; absent without a workspace",
	  .emit = result_write_commit, MEMBER(commit), .sparse = true },
	{ "changes_omitted", "integer", "number of changes that are not listed", .sparse = true },
	{ "skipped", "[SkippedEntry]",
	  "entries that a workspace cannot hold, such as pipes and links that leave it",
	  .sparse = true },
	{ "applied", "boolean", "true: all changes were applied; false: none", .sparse = true },
	{ "apply_error", "string", "reason why wanted changes were not applied", .sparse = true },
	{ "network", "[DestinationUse]",
	  "connections; absent unless the request names destinations", .emit = write_json,
	  MEMBER(network), .sparse = true },
	{ "network_omitted", "integer", "number of connections that are not listed",
	  .emit = write_integer, MEMBER(network_omitted), .sparse = true },
	{ "host_calls", "[HostCall]", "each call; absent without host functions",
	  .emit = write_json, MEMBER(host_calls), .sparse = true },
	{ "session", "TurnSession", "only of executions in a session", .emit = write_json,
	  MEMBER(session), .sparse = true },
	{ "timeout_chosen", "ChosenTimeout?", "of an \"adaptive\" timeout",
	  .emit = result_write_timeout },
	{ "labels", "{string}", NULL, .emit = result_write_or_empty, MEMBER(labels) },
	{ "runtime", "string?", NULL, .emit = write_text, MEMBER(runtime) },
	{ "policy", "string?", NULL, .emit = write_text, MEMBER(policy) },
	{ "via", "daemon|pool|direct", "the broker that ran it", .emit = write_text, MEMBER(via) },
	{ "cached_build", "boolean", NULL, .emit = write_bool, MEMBER(cached_build) },
	{ "history", "boolean", "false: nothing of the execution is stored; absent otherwise",
	  .emit = result_write_history, .sparse = true },
	{ "warnings", "[string]",
	  "what the caller would not expect: a module to preload that does not exist, the loss of "
	  "a session's state after the last execution; absent without",
	  .emit = write_json, MEMBER(warnings), .sparse = true },
	{ "created_at", "time", "UTC", .emit = result_write_created },
	{ "node", "string?", NULL, .emit = write_chars, MEMBER(node) },
	{ 0 },
};

const struct schema result_shapes[] = {
	{ "Result", "Result of an execution.", result_fields, "*" },
	{ "Cause", "Reason for the end.", cause_fields, "*" },
	{ "Usage", "Values of the kernel's counters.", usage_fields, "*" },
	{ "Stage", "One step of a run.", stage_fields, "*" },
	{ "Test", "Outcome of one test.", test_fields, "*" },
	{ "Difference", "Where an output differs from what was expected.", difference_fields, "*" },
	{ "TestGroup", "Outcome of tests that stand together.", group_fields, "*" },
	{ "Points", "What the tests were worth.", points_fields, "*" },
	{ "File", "A file that a program wrote.", file_fields, "*" },
	{ "Change", "A change that a program made to its workspace.", change_fields, "*" },
	{ "SkippedEntry", "An entry that was not kept.", skipped_fields, "*" },
	{ "Isolation", "Isolation layers that held the program.", isolation_fields, "*" },
	{ 0 },
};

char *result_to_text(const struct result *res)
{
	struct emitter e;

	emit_init(&e, RESULT_TEXT_MAX);
	emit_fields(&e, result_fields, res);
	return emit_text(&e, NULL);
}

json_t *result_to_json(const struct result *res)
{
	_cleanup_free_ char *text = result_to_text(res);

	return text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
}

json_t *isolation_to_json(const struct isolation *is)
{
	_cleanup_free_ char *text = NULL;
	struct emitter e;

	emit_init(&e, RESULT_TEXT_MAX);
	emit_fields(&e, isolation_fields, is);
	text = emit_text(&e, NULL);
	return text ? json_loads(text, 0, NULL) : NULL;
}

size_t result_json_flags(const json_t *tree)
{
	const json_t *value = json_object_get(tree, "value");

	if (!value)
		value = json_object_get(json_object_get(tree, "result"), "value");
	return JSON_REAL_PRECISION(!value || json_is_null(value) ? 15 : 17);
}
