/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See http-body.h. The chunked coding is a small machine over bytes:
 *
 *   SIZE ──digits──▶ SIZE_LF ──▶ DATA ──left = 0──▶ DATA_CR ──▶ DATA_LF ──▶ SIZE …
 *                       └──size 0──▶ END_CR ──▶ END_LF ──▶ DONE
 */
#include "web/codec/http-body.h"

#include "base/parse.h"

enum state { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, END_CR, END_LF, DONE };

enum { SIZE_DIGITS_MAX = 15 }; /* fits an int64_t with room to spare */

void http_body_init(struct http_body *b, enum http_body_kind kind, int64_t length)
{
	*b = (struct http_body){ .kind = kind };
	if (kind == HTTP_BODY_LENGTH) {
		b->left = length;
		b->state = length > 0 ? DATA : DONE;
	}
}

static int refuse_body(struct http_body *b, const char *why)
{
	b->why = why;
	return -EBADMSG;
}

static int take_size(struct http_body *b, char c)
{
	int digit = parse_hex_digit(c);

	if (c == '\r' && b->digits > 0) {
		b->state = SIZE_LF;
		return 0;
	}
	if (c == ';')
		return refuse_body(b, "Chunk extensions are not taken.");
	if (digit < 0 || b->digits == SIZE_DIGITS_MAX)
		return refuse_body(b, "The size of a chunk is not a hexadecimal number.");
	b->left = b->left * 16 + digit;
	b->digits++;
	return 0;
}

static int take_expected(struct http_body *b, char c)
{
	static const struct {
		char want;
		uint8_t next;
		const char *why;
	} steps[] = {
		[SIZE_LF] = { '\n', DATA, "The size of a chunk does not end in CRLF." },
		[DATA_CR] = { '\r', DATA_LF, "A chunk is longer than its size." },
		[DATA_LF] = { '\n', SIZE, "A chunk does not end in CRLF." },
		[END_CR] = { '\r', END_LF, "Trailers are not taken." },
		[END_LF] = { '\n', DONE, "The chunks do not end in CRLF." },
	};

	if (c != steps[b->state].want)
		return refuse_body(b, steps[b->state].why);
	if (b->state == SIZE_LF && b->left == 0)
		b->state = END_CR;
	else
		b->state = steps[b->state].next;
	b->digits = 0;
	return 0;
}

static struct span take_data(struct http_body *b, struct span data)
{
	data.len = (size_t)MIN((int64_t)data.len, b->left);
	b->left -= (int64_t)data.len;
	if (b->left == 0)
		b->state = b->kind == HTTP_BODY_CHUNKED ? DATA_CR : DONE;
	return data;
}

int http_body_feed(struct http_body *b, struct span data, size_t *used, struct span *ret)
{
	size_t at = 0;

	*ret = (struct span){ data.data, 0 };
	*used = 0;
	if (b->why)
		return -EBADMSG;
	if (b->kind == HTTP_BODY_UNTIL_CLOSE) {
		*ret = data;
		*used = data.len;
		return 0;
	}
	while (at < data.len && b->state != DONE && b->state != DATA) {
		int r = b->state == SIZE ? take_size(b, data.data[at])
					 : take_expected(b, data.data[at]);

		if (r < 0)
			return r;
		at++;
	}
	if (b->state == DATA && at < data.len) {
		*ret = take_data(b, (struct span){ data.data + at, data.len - at });
		at += ret->len;
	}
	*used = at;
	return b->state == DONE;
}
