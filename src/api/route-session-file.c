/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a live session. The session's runner reads and writes them inside its sandbox, between executions; this process opens no file
 * of a sandbox.
 */
#include <string.h>

#include "api/api-private.h"
#include "base/base64.h"
#include "loop/worker.h"

struct file_answer {
	struct request_ctx *ctx; /* NULL: the server is gone */
	enum session_file_op op;
	json_t *base64; /* of a file that was read */
};

struct decoding {
	const json_t *base64;
	char *bytes; /* NULL: it is none */
	size_t len;
};

static void on_file_gone(void *data, enum gone how)
{
	struct file_answer *a = data;

	if (how == GONE_SERVER)
		a->ctx = NULL;
}

static void decode_file(void *data)
{
	struct decoding *d = data;
	size_t len = json_string_length(d->base64);
	char *bytes = json_is_string(d->base64) ? malloc(base64_decoded_max(len) + 1) : NULL;

	if (bytes && base64_decode(json_string_value(d->base64), len, bytes, &d->len) == 0)
		d->bytes = TAKE_PTR(bytes);
	free(bytes);
}

static void respond_file_bytes(void *data)
{
	struct file_answer *a = data;
	struct decoding d = { .base64 = a->base64 };

	worker_call(json_string_length(a->base64), decode_file, &d);
	if (!a->ctx)
		free(d.bytes);
	else if (d.bytes)
		(void)respond_take(a->ctx, 200, "application/octet-stream", d.bytes, d.len);
	else
		(void)respond_problem(a->ctx, 502, "invalid_answer",
				      "The session answered with something that is no file.");
	json_decref(a->base64);
	free(a);
}

static void on_file_reply(void *data, const json_t *answer, const struct error *err)
{
	struct file_answer *a = data;
	json_t *entries = json_object_get(answer, "entries");

	if (!a->ctx)
		;
	else if (err->code != ERROR_NONE)
		(void)respond_error(a->ctx, err);
	else if (a->op == SESSION_READ) {
		a->base64 = json_incref(json_object_get(answer, "base64"));
		if (!worker_wants(json_string_length(a->base64)) ||
		    request_take_time(a->ctx, respond_file_bytes, a) < 0)
			respond_file_bytes(a);
		return;
	} else if (a->op == SESSION_LIST)
		(void)respond_tree(
			a->ctx, 200,
			json_pack("{s:o}", "files", entries ? json_incref(entries) : json_array()));
	else
		(void)respond_empty(a->ctx, 204);
	free(a);
}

static int ask_file(struct request_ctx *ctx, enum session_file_op op)
{
	const char *path = request_param(ctx, "path");
	const struct session_file file = { .op = op,
					   .path = path ? path : ".",
					   .bytes = op == SESSION_WRITE ? request_body(ctx)
									: (struct span){ 0 } };
	struct session *s = session_of(ctx);
	struct error err = { 0 };
	struct file_answer *a;
	int r;

	if (!s)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return respond_no_memory(ctx);
	*a = (struct file_answer){ .ctx = ctx, .op = op };
	r = session_file(s, &file, (struct session_file_reply){ a, on_file_reply }, &err);
	if (r < 0) {
		free(a);
		return respond_error(ctx, &err);
	}
	response_on_gone(ctx, on_file_gone, a);
	return 0;
}

int session_get_files(struct request_ctx *ctx)
{
	return ask_file(ctx, SESSION_LIST);
}

int session_get_file(struct request_ctx *ctx)
{
	return ask_file(ctx, SESSION_READ);
}

int session_put_file(struct request_ctx *ctx)
{
	return ask_file(ctx, SESSION_WRITE);
}

int session_delete_file(struct request_ctx *ctx)
{
	return ask_file(ctx, SESSION_REMOVE);
}
