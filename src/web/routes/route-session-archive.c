/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive into a live session's work directory: it is unpacked as that of a request, then its files are written one after the
 * other, as PUT …/files/{path} does. Other turns may come between them. The first failure is the answer.
 */
#include <string.h>

#include "base/base64.h"
#include "base/loop/worker.h"
#include "web/routes/api-private.h"

struct archive_put {
	struct request_ctx *ctx; /* NULL: the server is gone */
	json_t *files;		 /* of unpack.h; those that are left */
	char *bytes;		 /* of the file that is written */
};

struct contents {
	const json_t *base64;
	char *bytes;
	size_t len;
	int r;
};

static void put_next(void *data);

static void put_free(struct archive_put *p)
{
	json_decref(p->files);
	free(p->bytes);
	free(p);
}

static void on_file_written(void *data, const json_t *answer, const struct error *err)
{
	struct archive_put *p = data;

	(void)answer;
	if (p->ctx && err->code == ERROR_NONE) {
		if (request_take_time(p->ctx, put_next, p) < 0)
			put_next(p);
		return;
	}
	if (p->ctx)
		(void)respond_error(p->ctx, err);
	put_free(p);
}

static void decode_contents(void *data)
{
	struct contents *c = data;
	size_t len = json_string_length(c->base64);

	c->bytes = malloc(base64_decoded_max(len) + 1);
	c->r = c->bytes ? base64_decode(json_string_value(c->base64), len, c->bytes, &c->len)
			: -ENOMEM;
}

/* The bytes stay p's until the file is written. */
static int take_contents(struct archive_put *p, const json_t *value, struct span *ret)
{
	const json_t *text = json_is_string(value) ? value : json_object_get(value, "text");
	struct contents c = { .base64 = json_object_get(value, "base64") };

	if (text) {
		p->bytes = strndup(json_string_value(text), json_string_length(text));
		*ret = (struct span){ p->bytes, json_string_length(text) };
		return p->bytes ? 0 : -ENOMEM;
	}
	worker_call(json_string_length(c.base64), decode_contents, &c);
	p->bytes = c.bytes;
	*ret = (struct span){ c.bytes, c.len };
	return c.r;
}

/* 1: it is on its way; 0: answered. */
static int write_one(struct archive_put *p, const char *path, const json_t *value)
{
	struct session_file file = { .op = SESSION_WRITE, .path = path };
	struct error err = { 0 };
	struct session *s;
	int r = take_contents(p, value, &file.bytes);

	if (!p->ctx)
		return 0;
	if (r < 0)
		return respond_no_memory(p->ctx);
	s = session_of(p->ctx);
	if (!s)
		return 0;
	r = session_file(s, &file, (struct session_file_reply){ p, on_file_written }, &err);
	if (r < 0)
		return respond_error(p->ctx, &err);
	return 1;
}

static void put_next(void *data)
{
	struct archive_put *p = data;
	void *at = json_object_iter(p->files);
	_cleanup_free_ char *path = at ? strdup(json_object_iter_key(at)) : NULL;
	json_t *value = at ? json_incref(json_object_iter_value(at)) : NULL;
	int r = 0;

	free(p->bytes);
	p->bytes = NULL;
	if (at && path) {
		(void)json_object_del(p->files, path);
		r = write_one(p, path, value);
	} else if (p->ctx) {
		(void)(at ? respond_no_memory(p->ctx) : respond_empty(p->ctx, 204));
	}
	json_decref(value);
	if (r <= 0)
		put_free(p);
}

static void put_archive(void *data)
{
	struct archive_put *p = data;
	struct api *api = request_app(p->ctx);
	struct error err = { 0 };

	if (engine_unpack(api->engine, request_body(p->ctx), p->files, &err) >= 0) {
		put_next(p);
		return;
	}
	if (p->ctx)
		(void)respond_error(p->ctx, &err);
	put_free(p);
}

int session_put_archive(struct request_ctx *ctx)
{
	const char *format = request_query(ctx, "format");
	struct archive_put *p;

	if (!format || strcmp(format, "tar") != 0)
		return respond_field(
			ctx, "format",
			"format: give tar, and an archive as the body (tar, tar.gz or zip); "
			"PUT …/files/{path} writes one file.");
	if (!session_of(ctx))
		return 0;
	p = calloc(1, sizeof(*p));
	if (p)
		*p = (struct archive_put){ .ctx = ctx, .files = json_object() };
	if (!p || !p->files || request_take_time(ctx, put_archive, p) < 0) {
		if (p)
			put_free(p);
		return respond_no_memory(ctx);
	}
	response_forget(ctx, &p->ctx);
	return 0;
}
