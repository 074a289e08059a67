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
