/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a run as the contract has it (runner.h): the result is written down here, once, where the run was carried out, and above
 * there is only its text and a few scalars.
 */
#include "run/runner.h"

#include "base/clock.h"
#include "base/loop/worker.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { MESSAGE_MAX = 1 << 10 };

/* 128 random bits as 26 digits of base 32. */
void run_make_id(char *ret, size_t size)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char bits[17] = { 0 };
	char text[27] = { 0 };

	while (getrandom(bits, 16, 0) != 16)
		;
	for (size_t i = 0; i < 26; i++) {
		size_t at = i * 5;
		unsigned pair = (unsigned)bits[at / 8] << 8 | bits[at / 8 + 1];

		text[i] = digits[pair >> (11 - at % 8) & 31];
	}
	(void)snprintf(ret, size, "ex_%s", text);
}

struct code_hashing {
	struct span code;
	char *hex;
};

static void hash_code(void *data)
{
	struct code_hashing *h = data;
	struct sha256 sha;

	sha256_init(&sha);
	sha256_update(&sha, h->code.data, h->code.len);
	sha256_final(&sha, h->hex);
}

void admission_hash(struct admission *a, struct span code)
{
	if (code.data)
		worker_call(code.len, hash_code, &(struct code_hashing){ code, a->code_sha256 });
}

void run_end_done(struct run_end *end)
{
	free((char *)(uintptr_t)end->text.data);
	free(end->summary.message);
	*end = (struct run_end){ 0 };
}

static void label_result(struct result *res, const struct run_label *label)
{
	if (label->id)
		(void)snprintf(res->id, sizeof(res->id), "%s", label->id);
	else if (!res->id[0])
		run_make_id(res->id, sizeof(res->id));
	if (label->created_realtime_ns)
		res->created_realtime_ns = label->created_realtime_ns;
	else if (!res->created_realtime_ns)
		res->created_realtime_ns = clock_realtime_ns();
	if (label->via)
		res->via = label->via;
	if (!res->node[0] && label->node)
		(void)snprintf(res->node, sizeof(res->node), "%s", label->node);
	res->no_history = label->no_history;
	/* The result of a refusal comes without these. */
	if (!res->language && label->language && *label->language)
		res->language = strdup(label->language);
	if (!res->policy && label->policy && *label->policy)
		res->policy = strdup(label->policy);
	if (!res->labels && json_is_object(label->labels))
		res->labels = json_incref((json_t *)(uintptr_t)label->labels);
	if (label->timeout_reason) {
		res->timeout_chosen_ms = label->timeout_chosen_ms;
		res->timeout_reason = strdup(label->timeout_reason);
	}
}

static size_t text_bytes(const char *text)
{
	return text ? strnlen(text, WORKER_LARGE_BYTES) : 0;
}

/* About, as soon as that is enough for the worker. */
static size_t result_bytes(const struct result *res)
{
	size_t n = res->out.len + res->err.len + res->evaluated_bytes;

	for (size_t i = 0; i < res->n_stages && !worker_wants(n); i++)
		n += text_bytes(res->stages[i].stdout_text) +
		     text_bytes(res->stages[i].stderr_text);
	for (size_t i = 0; i < res->n_tests && !worker_wants(n); i++)
		n += text_bytes(res->tests[i].stdout_text) + text_bytes(res->tests[i].stderr_text) +
		     text_bytes(res->tests[i].transcript);
	return n;
}

static void summarize(const struct result *res, struct run_summary *ret)
{
	const struct result_stream *streams[] = { &res->out, &res->err };
	const char *message = json_string_value(json_object_get(res->error, "message"));

	*ret = (struct run_summary){
		.status = res->verdict.status,
		.cause = res->verdict.cause.kind,
		.exit_code = res->verdict.exit_code,
		.duration_us = res->duration_us,
		.start_us = res->start_us,
		.cpu_us = res->usage.user_us + res->usage.system_us,
		.memory_peak_bytes = res->usage.memory_peak_bytes,
		.n_stages = res->n_stages,
		.has_runtime = res->runtime,
		.message = message ? strndup(message, MESSAGE_MAX) : NULL,
	};
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		const struct result_stream *s = streams[i];

		ret->output[i].bytes = s->bytes;
		/* Otherwise it has head and tail, or U+FFFD where bytes were. */
		ret->output[i].whole = !s->truncated && utf8_is_valid(s->text, s->len);
	}
	/* All are listed, also those that were not reached. */
	for (size_t i = 0; i < res->n_tests && !ret->tests_ran; i++)
		ret->tests_ran = res->tests[i].duration_us > 0;
}

struct writing {
	struct result *res;
	struct run_end *end;
};

static void write_result(void *data)
{
	struct writing *w = data;
	const char *text = result_to_text(w->res);

	if (text)
		w->end->text = (struct span){ text, strlen(text) };
	summarize(w->res, &w->end->summary);
}

bool run_lacks_room(const struct error *err, bool began)
{
	/* EMFILE: the program may have begun without a record of it. */
	return !began && (err->code == ERROR_BUSY || err->code == ERROR_NOT_READY ||
			  (err->code == ERROR_INTERNAL && err->errnum == EMFILE));
}

/* What failed it was not the program: it can be run again as it is. */
static void lost_its_broker(struct result *res, const struct error *err, bool began)
{
	struct cause *cause = &res->verdict.cause;
	bool none_died = err->errnum == EHOSTUNREACH || run_lacks_room(err, began);
	const char *why = none_died ? err->text
			  : began   ? "the sandbox broker died while this was running: run it again"
				  : "the sandbox broker died before this could begin: run it again";

	res->refusal = ERROR_NONE;
	res->verdict.status = STATUS_INTERRUPTED;
	cause->kind = CAUSE_INTERRUPTED;
	cause->retryable = true;
	(void)snprintf(cause->detail, sizeof(cause->detail), "%s", why);
}

static struct run_end make_end(struct result *res, const struct run_label *label,
			       const struct error *err)
{
	struct run_end end = { .summary = { .status = STATUS_INTERNAL_ERROR,
					    .cause = CAUSE_INTERNAL,
					    .exit_code = -1 } };
	struct writing w = { res, &end };

	if (err)
		end.error = *err;
	if (!res)
		return end;
	label_result(res, label);
	worker_call(result_bytes(res), write_result, &w);
	(void)result_free(res);
	return end;
}

struct run_end run_end_make(struct result *res, const struct run_label *label,
			    const struct error *err, bool began)
{
	if (!res)
		res = result_from_error(err);
	if (res && (err->code == ERROR_LOST || run_lacks_room(err, began)))
		lost_its_broker(res, err, began);
	return make_end(res, label, err);
}

struct run_end run_end_refused(const struct run_label *label, const struct error *err)
{
	struct result *res = result_from_error(err);

	/* What could be judged when it was accepted and cannot be now is none of its own doing: it can be run again, too. */
	if (res && err->code == ERROR_LOST)
		lost_its_broker(res, err, false);
	else if (res && run_lacks_room(err, false))
		res->verdict.cause.retryable = true;
	return make_end(res, label, err);
}

struct run_end run_end_unbegun(const struct run_label *label, enum run_status status,
			       enum cause_kind cause, const char *detail)
{
	struct result *res = result_new();

	if (res) {
		struct verdict *v = &res->verdict;

		v->status = status;
		v->cause.kind = cause;
		(void)snprintf(v->cause.detail, sizeof(v->cause.detail), "%s", detail);
	}
	return make_end(res, label, NULL);
}

/* Its bytes are in the spool. */
static int strip_streams(json_t *root)
{
	static const char *const keys[][4] = {
		{ "stdout", "stdout_bytes", "stdout_truncated", "stdout_binary" },
		{ "stderr", "stderr_bytes", "stderr_truncated", "stderr_binary" },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys) && r == 0; i++) {
		bool printed = json_integer_value(json_object_get(root, keys[i][1])) > 0;

		r = json_object_set_new(root, keys[i][0], json_string(""));
		if (r == 0)
			r = json_object_set_new(root, keys[i][2], json_boolean(printed));
		if (r == 0)
			r = json_object_set_new(root, keys[i][3], json_false());
	}
	return r;
}

static int strip_tree(json_t *root)
{
	static const char *const gone[] = { "value_repr", "outputs" };
	json_t *part;
	size_t i;
	json_t *verdict = json_pack(
		"{s:s, s:b, s:n, s:n, s:n, s:n, s:{s:s, s:s, s:n, s:n, s:n, s:b, s:n}}", "status",
		status_name(STATUS_INTERNAL_ERROR), "success", 0, "exit_code", "signal", "value",
		"error", "cause", "kind", cause_name(CAUSE_INTERNAL), "detail",
		"its result was too large to be kept; let it print less", "limit_key", "limit",
		"peak", "retryable", 0, "suggest");
	int r = verdict ? json_object_update(root, verdict) : -1;

	json_decref(verdict);
	if (r == 0)
		r = strip_streams(root);
	for (i = 0; i < ARRAY_SIZE(gone); i++)
		(void)json_object_del(root, gone[i]);
	json_array_foreach(json_object_get(root, "stages"), i, part)
	{
		(void)json_object_del(part, "stdout");
		(void)json_object_del(part, "stderr");
	}
	json_array_foreach(json_object_get(root, "tests"), i, part)
	{
		if (r == 0)
			r = json_object_set_new(part, "stdout", json_string(""));
		if (r == 0)
			r = json_object_set_new(part, "stderr", json_string(""));
		(void)json_object_del(part, "transcript");
	}
	return r;
}

void run_end_strip(struct run_end *end)
{
	json_t *root = json_loadb(end->text.data, end->text.len, JSON_ALLOW_NUL, NULL);
	char *text = NULL;

	if (root && strip_tree(root) == 0)
		text = json_dumps(root, JSON_COMPACT | result_json_flags(root));
	json_decref(root);
	free((char *)(uintptr_t)end->text.data);
	end->text = (struct span){ text, text ? strlen(text) : 0 };
	end->summary.status = STATUS_INTERNAL_ERROR;
	end->summary.cause = CAUSE_INTERNAL;
	end->summary.exit_code = -1;
	end->summary.output[0].whole = end->summary.output[0].bytes == 0;
	end->summary.output[1].whole = end->summary.output[1].bytes == 0;
	free(TAKE_PTR(end->summary.message));
}
