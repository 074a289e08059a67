/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a live session. The session's runner reads and writes them inside its sandbox, between executions; this process opens no file
 * of a sandbox.
 *
 * A file of any size is read in pieces, as fast as its client takes them, so a download needs one piece of memory. Executions may come between two
 * pieces: when the file has another size then, the download is cut. A file of any size is written by several requests with Content-Range.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/loop/worker.h"
#include "web/codec/negotiate.h"
#include "web/routes/api-private.h"

enum { WRITE_BYTES = 64 << 10 };

struct download {
	struct request_ctx *ctx; /* NULL: the server is gone */
	char *path;
	int64_t asked_at; /* where the piece begins */
	int64_t at, left; /* what the client has not got yet */
	int64_t size;	  /* of the file */
	char *piece;
	size_t len, sent;
	bool asks; /* the session has not answered yet */
	bool has_begun, is_gone;
};

static void download_free(struct download *d)
{
	free(d->path);
	free(d->piece);
	free(d);
}

/* The client notices by the cut that the file is not whole. */
static void cut_off(struct download *d)
{
	if (d->ctx)
		response_abort(d->ctx);
	download_free(d);
}

static void on_download_gone(void *data, enum gone how)
{
	struct download *d = data;

	if (how == GONE_SERVER)
		d->ctx = NULL;
	if (how == GONE_HALF)
		return;
	d->is_gone = true;
	if (!d->asks)
		cut_off(d);
}

static void on_piece(void *data, const json_t *answer, const struct error *err);

static int ask_piece(struct download *d, struct error *err)
{
	const struct session_file file = { .op = SESSION_READ, .path = d->path, .offset = d->at };
	struct api *api = request_app(d->ctx);
	struct session *s;
	int r = session_find(api->sessions, request_viewer(d->ctx), request_param(d->ctx, "id"), &s,
			     err);

	d->asked_at = d->at;
	d->asks = true;
	if (r >= 0)
		r = session_file(s, &file, (struct session_file_reply){ d, on_piece }, err);
	if (r < 0)
		d->asks = false;
	return r;
}

static void send_piece(void *data)
{
	struct download *d = data;
	struct error err = { 0 };

	while (d->left > 0 && d->sent < d->len) {
		size_t n = MIN((size_t)MIN(d->left, (int64_t)WRITE_BYTES), d->len - d->sent);
		int r = response_write(d->ctx, d->piece + d->sent, n);

		if (r == -ENOBUFS) {
			response_yield(d->ctx);
			return;
		}
		if (r < 0) {
			cut_off(d);
			return;
		}
		d->sent += n;
		d->at += (int64_t)n;
		d->left -= (int64_t)n;
		if (r == 1)
			return;
	}
	if (d->left == 0) {
		response_end(d->ctx);
		download_free(d);
	} else if (!d->asks && ask_piece(d, &err) < 0) {
		cut_off(d);
	}
}

/* Of the session's first answer. False: the request has been answered. */
static bool begin_download(struct download *d)
{
	struct byte_range range = { 0 };
	int status = response_range(d->ctx, d->size, &range);

	if (status == 416) {
		(void)respond_problem(d->ctx, 416, "range", "The range lies outside of the file.");
		return false;
	}
	if (status < 0) {
		(void)respond_no_memory(d->ctx);
		return false;
	}
	d->at = range.from;
	d->left = request_is_head(d->ctx) ? 0 : range.length;
	if (response_begin(d->ctx, status, "application/octet-stream", range.length) < 0) {
		response_abort(d->ctx);
		return false;
	}
	d->has_begun = true;
	response_on_drain(d->ctx, send_piece, d);
	return true;
}

/* What the session says is untrusted: a size, and the bytes from asked_at on. */
static bool take_piece(struct download *d, const json_t *answer)
{
	const json_t *text = json_object_get(answer, "base64"),
		     *size = json_object_get(answer, "size");
	size_t len = json_string_length(text);

	free(d->piece);
	d->piece = json_is_string(text) ? malloc(base64_decoded_max(len) + 1) : NULL;
	d->len = d->sent = 0;
	if (!d->piece || !json_is_integer(size) || json_integer_value(size) < 0 ||
	    base64_decode(json_string_value(text), len, d->piece, &d->len) < 0)
		return false;
	if (d->has_begun)
		return json_integer_value(size) == d->size && d->len > 0;
	d->size = json_integer_value(size);
	return true;
}

static void on_piece(void *data, const json_t *answer, const struct error *err)
{
	struct download *d = data;

	d->asks = false;
	if (!d->ctx || (d->has_begun && (d->is_gone || err->code != ERROR_NONE))) {
		cut_off(d);
		return;
	}
	if (err->code != ERROR_NONE || !take_piece(d, answer)) {
		if (d->has_begun)
			response_abort(d->ctx);
		else if (err->code != ERROR_NONE)
			(void)respond_error(d->ctx, err);
		else
			(void)respond_problem(
				d->ctx, 502, "invalid_answer",
				"The session answered with something that is no file.");
		download_free(d);
		return;
	}
	if (!d->has_begun && !begin_download(d)) {
		download_free(d);
		return;
	}
	/* The first piece was a guess where the range begins. */
	if (d->at < d->asked_at || d->at >= d->asked_at + (int64_t)d->len)
		d->len = 0;
	else
		d->sent = (size_t)(d->at - d->asked_at);
	send_piece(d);
}

/* Where a Range begins, as far as that can be told without the size of the file. */
static int64_t guess_begin(struct request_ctx *ctx)
{
	struct span range = request_header(ctx, "range");
	char text[32] = "";
	int64_t from = 0;

	if (range.data)
		(void)snprintf(text, sizeof(text), "%.*s", (int)MIN(range.len, sizeof(text) - 1),
			       range.data);
	return sscanf(text, "bytes=%" SCNd64 "-", &from) == 1 && from > 0 ? from : 0;
}

int session_get_file(struct request_ctx *ctx)
{
	struct download *d;
	struct error err = { 0 };

	if (!session_of(ctx))
		return 0;
	d = calloc(1, sizeof(*d));
	if (d)
		*d = (struct download){ .ctx = ctx,
					.path = strdup(request_param(ctx, "path")),
					.at = guess_begin(ctx) };
	if (!d || !d->path) {
		free(d);
		return respond_no_memory(ctx);
	}
	if (ask_piece(d, &err) < 0) {
		download_free(d);
		return respond_error(ctx, &err);
	}
	response_on_gone(ctx, on_download_gone, d);
	return 0;
}

/* --- the other operations have one answer --- */

struct file_answer {
	struct request_ctx *ctx; /* NULL: the server is gone */
	enum session_file_op op;
};

static void on_file_reply(void *data, const json_t *answer, const struct error *err)
{
	struct file_answer *a = data;
	json_t *entries = json_object_get(answer, "entries");

	if (!a->ctx)
		;
	else if (err->code != ERROR_NONE)
		(void)respond_error(a->ctx, err);
	else if (a->op == SESSION_LIST)
		(void)respond_tree(
			a->ctx, 200,
			json_pack("{s:o}", "files", entries ? json_incref(entries) : json_array()));
	else
		(void)respond_empty(a->ctx, 204);
	free(a);
}

/* A part of a file: "bytes FROM-LAST/SIZE", where SIZE may be an asterisk. Without the header the body is the whole file. */
static int read_offset(struct request_ctx *ctx, int64_t *ret)
{
	struct span given = request_header(ctx, "content-range");
	int64_t from, last;
	char text[80];
	int n = 0;

	*ret = 0;
	if (!given.data)
		return 0;
	(void)snprintf(text, sizeof(text), "%.*s", (int)MIN(given.len, sizeof(text) - 1),
		       given.data);
	if (sscanf(text, "bytes %" SCNd64 "-%" SCNd64 "/%n", &from, &last, &n) != 2 || n == 0 ||
	    from < 0 || last - from + 1 != (int64_t)request_body(ctx).len)
		return -EINVAL;
	*ret = from;
	return 0;
}

/* GET of the list, PUT and DELETE of a file. */
int session_ask_file(struct request_ctx *ctx)
{
	const enum http_method method = request_route(ctx)->method;
	const enum session_file_op op = method == HTTP_PUT	? SESSION_WRITE
					: method == HTTP_DELETE ? SESSION_REMOVE
								: SESSION_LIST;
	const char *path = request_param(ctx, "path");
	struct session_file file = { .op = op,
				     .path = path ? path : ".",
				     .bytes = op == SESSION_WRITE ? request_body(ctx)
								  : (struct span){ 0 } };
	struct session *s = session_of(ctx);
	struct error err = { 0 };
	struct file_answer *a;
	int r;

	if (!s)
		return 0;
	if (op == SESSION_WRITE && read_offset(ctx, &file.offset) < 0)
		return respond_field(ctx, "content-range",
				     "content-range: give bytes FROM-LAST/*, with as many bytes as "
				     "the body has.");
	a = calloc(1, sizeof(*a));
	if (!a)
		return respond_no_memory(ctx);
	*a = (struct file_answer){ .ctx = ctx, .op = op };
	r = session_file(s, &file, (struct session_file_reply){ a, on_file_reply }, &err);
	if (r < 0) {
		free(a);
		return respond_error(ctx, &err);
	}
	response_forget(ctx, &a->ctx);
	return 0;
}

/*
 * --- archives ---
 *
 An archive into a live session's work directory: it is unpacked as that of a request, then its files are written one after the
 * other, as PUT …/files/{path} does. Other turns may come between them. The first failure is the answer.
 */

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
