/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a live session. The session's runner reads and writes them inside its sandbox, between executions; this process opens no file
 * of a sandbox.
 */
#include <string.h>

#include "api/api-private.h"
#include "base/base64.h"

struct file_answer {
	struct request_ctx *ctx; /* NULL: the server is gone */
	enum session_file_op op;
};

static void on_file_gone(void *data, enum gone how)
{
	struct file_answer *a = data;

	if (how == GONE_SERVER)
		a->ctx = NULL;
}

static void respond_file_bytes(struct request_ctx *ctx, const json_t *answer)
{
	const json_t *text = json_object_get(answer, "base64");
	size_t len = json_string_length(text), n = 0;
	char *bytes = malloc(base64_decoded_max(len));

	if (!bytes || !json_is_string(text) ||
	    base64_decode(json_string_value(text), len, bytes, &n) < 0) {
		free(bytes);
		(void)respond_problem(ctx, 502, "invalid_answer",
				      "The session answered with something that is no file.");
		return;
	}
	(void)respond_take(ctx, 200, "application/octet-stream", bytes, n);
}

static void on_file_reply(void *data, const json_t *answer, const struct error *err)
{
	struct file_answer *a = data;
	json_t *entries = json_object_get(answer, "entries");

	if (!a->ctx)
		;
	else if (err->code != ERROR_NONE)
		(void)respond_error(a->ctx, err);
	else if (a->op == SESSION_READ)
		respond_file_bytes(a->ctx, answer);
	else if (a->op == SESSION_LIST)
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
