/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See problem.h. The words of our own failures may name files of this host, so the client of an internal or storage error
 * gets a fixed sentence. The words belong into the log.
 */
#include "web/http/problem.h"

#include "spec/utf8-json.h"
#include "web/codec/http-write.h"
#include "web/http/respond.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FAILED 500, "internal", "The server failed; its log says why."

/* The one map from errors to our API: status, `code`, and `detail` where the error's own text is not for clients. */
static const struct {
	int status;
	const char *code;
	const char *detail; /* NULL: the error's own */
} kinds[_ERROR_MAX] = {
	[ERROR_NONE] = { FAILED },
	[ERROR_INTERNAL] = { FAILED },
	[ERROR_INPUT] = { 400, "invalid_request", NULL },
	[ERROR_POLICY] = { 403, "policy_refused", NULL },
	[ERROR_CALLBACKS_OFF] = { 403, "callbacks_off", NULL },
	[ERROR_RUNTIME] = { 400, "unknown_language", NULL },
	[ERROR_STORAGE] = { 503, "storage",
			    "Storage is full or not writable; try again when there is room." },
	[ERROR_TOO_LARGE] = { 413, "too_large", NULL },
	[ERROR_NOT_FOUND] = { 404, "not_found", NULL },
	[ERROR_NOT_ENDED] = { 409, "not_ended", NULL },
	[ERROR_ENDED] = { 409, "already_ended", NULL },
	[ERROR_KEY_PENDING] = { 409, "idempotency_pending", NULL },
	[ERROR_KEY_REUSED] = { 422, "idempotency_mismatch", NULL },
	[ERROR_CONFLICT] = { 409, "conflict", NULL },
	[ERROR_BUSY] = { 429, "queue_full", NULL },
	[ERROR_NO_ROOM] = { 503, "busy", NULL },
	[ERROR_NOT_READY] = { 503, "not_ready", NULL },
	[ERROR_STOPPING] = { 503, "draining", NULL },
	[ERROR_LOST] = { FAILED },
};

struct problem problem_from_error(const struct error *err)
{
	size_t kind = err->code > ERROR_NONE && err->code < _ERROR_MAX ? (size_t)err->code
								       : ERROR_INTERNAL;
	bool named = kind == ERROR_INPUT && err->field[0];

	return (struct problem){
		.status = kinds[kind].status,
		.code = named ? "invalid_field" : kinds[kind].code,
		/* Words about a key of the request are meant for its client. */
		.detail = kinds[kind].detail && !err->field[0] ? kinds[kind].detail : err->text,
		.field = err->field,
	};
}

struct problem problem_no_memory(void)
{
	static const struct error err = { .code = ERROR_NO_ROOM,
					  .text = "The server is out of memory." };

	return problem_from_error(&err);
}

json_t *problem_to_json(const struct problem *p)
{
	json_t *root = json_pack("{s:s, s:s, s:i, s:s, s:o}", "type", "about:blank", "title",
				 http_reason(p->status), "status", p->status, "code", p->code,
				 "detail", utf8_to_json(p->detail, strlen(p->detail), NULL));

	if (root && p->field && p->field[0] &&
	    json_object_set_new(root, "field", utf8_to_json(p->field, strlen(p->field), NULL)) <
		    0) {
		json_decref(root);
		return NULL;
	}
	return root;
}

int respond_with(struct request_ctx *ctx, const struct problem *p)
{
	json_t *root = problem_to_json(p);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return respond_take(ctx, p->status, "application/problem+json", text,
			    text ? strlen(text) : 0);
}

int respond_problem(struct request_ctx *ctx, int status, const char *code, const char *fmt, ...)
{
	char detail[512];
	struct problem p = { .status = status, .code = code, .detail = detail };
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(detail, sizeof(detail), fmt, args);
	va_end(args);
	return respond_with(ctx, &p);
}

int respond_error(struct request_ctx *ctx, const struct error *err)
{
	struct problem p = problem_from_error(err);

	response_retry_after(ctx, err->retry_after_s);
	return respond_with(ctx, &p);
}

int respond_field(struct request_ctx *ctx, const char *field, const char *fmt, ...)
{
	char detail[512];
	struct problem p = {
		.status = 400, .code = "invalid_field", .detail = detail, .field = field
	};
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(detail, sizeof(detail), fmt, args);
	va_end(args);
	return respond_with(ctx, &p);
}

int respond_internal(struct request_ctx *ctx)
{
	return respond_error(ctx, &(struct error){ .code = ERROR_INTERNAL });
}

int respond_no_memory(struct request_ctx *ctx)
{
	struct problem p = problem_no_memory();

	return respond_with(ctx, &p);
}
