/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that are produced while they are sent: a file, or a source that gives bytes on demand. Pieces are
 * read only as fast as the client takes them, so an answer of any size needs one piece of memory. After a few
 * pieces the loop serves other connections.
 */
#include "web/http/conn.h"

#include "base/fd.h"
#include "web/codec/negotiate.h"

#include <stdio.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10, PIECES_PER_ROUND = 8 };

struct sending {
	struct request_ctx *ctx;
	struct piece_source source;
	char piece[PIECE_BYTES];
};

static void sending_free(struct sending *s)
{
	s->source.free(s->source.data);
	free(s);
}

static void send_pieces(void *data)
{
	struct sending *s = data;
	struct request_ctx *ctx = s->ctx;
	ssize_t n = 0;
	int r = 0;

	for (int i = 0; r == 0; i++) {
		if (i == PIECES_PER_ROUND) {
			response_yield(ctx);
			return;
		}
		n = s->source.read(s->source.data, s->piece, sizeof(s->piece));
		if (n <= 0)
			break;
		r = response_write(ctx, s->piece, (size_t)n);
	}
	if (r == 1)
		return;
	sending_free(s);
	if (r < 0 || n < 0)
		response_abort(ctx);
	else
		response_end(ctx);
}

static void on_file_gone(void *data, enum gone how)
{
	struct sending *s = data;
	struct request_ctx *ctx = s->ctx;

	if (how == GONE_HALF)
		return;
	sending_free(s);
	if (how == GONE_FULL)
		response_abort(ctx);
}

int respond_pieces(struct request_ctx *ctx, const struct piece_head *head,
		   struct piece_source source)
{
	struct sending *s = malloc(sizeof(*s));

	if (!s) {
		source.free(source.data);
		return respond_no_memory(ctx);
	}
	s->ctx = ctx;
	s->source = source;
	if (response_begin(ctx, head->status, head->content_type, head->length_bytes) < 0) {
		sending_free(s);
		response_abort(ctx);
		return 0;
	}
	response_on_drain(ctx, send_pieces, s);
	response_on_gone(ctx, on_file_gone, s);
	send_pieces(s);
	return 0;
}

/* --- files --- */

struct part {
	int fd;
	int64_t at, left;
};

static void part_free(void *data)
{
	struct part *p = data;

	p->fd = fd_close(p->fd);
	free(p);
}

static ssize_t part_read(void *data, void *bytes, size_t n)
{
	struct part *p = data;
	ssize_t got;

	if (p->left == 0)
		return 0;
	got = pread(p->fd, bytes, (size_t)MIN(p->left, (int64_t)n), p->at);
	if (got <= 0) /* 0: the file has become shorter */
		return got < 0 ? -errno : -ENODATA;
	p->at += got;
	p->left -= got;
	return got;
}

static int set_range(struct request_ctx *ctx, int64_t size, struct byte_range range)
{
	char text[80];

	if (range.length >= 0)
		(void)snprintf(text, sizeof(text), "bytes %lld-%lld/%lld", (long long)range.from,
			       (long long)(range.from + range.length - 1), (long long)size);
	else
		(void)snprintf(text, sizeof(text), "bytes */%lld", (long long)size);
	return response_header(ctx, "Content-Range", text);
}

int response_range(struct request_ctx *ctx, int64_t size, struct byte_range *ret)
{
	struct byte_range range = { 0, size };
	/*
	 * Files have no ETag here, so an If-Range never matches and the whole file is sent (RFC 9110 §13.1.5).
	 */
	int r = request_header(ctx, "if-range").data
			? 1
			: range_parse(request_header(ctx, "range"), size, &range);

	if (response_header(ctx, "Accept-Ranges", "bytes") < 0)
		return -ENOMEM;
	if (r == -ERANGE) {
		if (set_range(ctx, size, (struct byte_range){ 0, -1 }) < 0)
			return -ENOMEM;
		return 416;
	}
	if (r == 0 && set_range(ctx, size, range) < 0)
		return -ENOMEM;
	*ret = range;
	return r == 0 ? 206 : 200;
}

int respond_file(struct request_ctx *ctx, const struct file_body *file)
{
	_cleanup_close_ int fd = file->fd;
	struct byte_range range = { 0 };
	int status = response_range(ctx, file->size_bytes, &range);
	struct part *p;

	if (status == 416)
		return respond_problem(ctx, 416, "range", "The range lies outside of the file.");
	p = status < 0 ? NULL : malloc(sizeof(*p));
	if (!p)
		return respond_no_memory(ctx);
	*p = (struct part){ TAKE_FD(fd), range.from, request_is_head(ctx) ? 0 : range.length };
	return respond_pieces(ctx, &(struct piece_head){ status, file->content_type, range.length },
			      (struct piece_source){ p, part_read, part_free });
}
