/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target of the HTTP codec. Beyond "no crash": a request read at once and byte by byte gives the same
 * outcome; an accepted request has nothing that smuggling needs; a decoded target has no ".."; a head written
 * from it has exactly the intended lines.
 */
#include "base/buf.h"
#include "base/uri.h"
#include "web/codec/http-response.h"
#include "web/codec/http-write.h"
#include "web/codec/negotiate.h"
#include "web/codec/test-message.h"
#include "web/codec/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 16 << 10 };

static void require(bool truth)
{
	if (!truth)
		abort();
}

static void check_target(const struct http_request *r)
{
	_cleanup_uri_ struct uri u = { 0 };

	if (uri_parse(http_request_target(r), &u) < 0)
		return;
	for (size_t i = 0; i < u.n_segments; i++)
		require(strcmp(u.segments[i], "..") != 0 && !strchr(u.segments[i], '/'));
}

/* The head has one line for the status, one for the field, one for the file name, and an empty one. */
static void check_written(struct span value, const char *name)
{
	_cleanup_buf_ struct buf b = { 0 };
	struct http_response r;
	size_t fields = 1;

	buf_init(&b, 1 << 20);
	require(http_write_status(&b, 200) == 0);
	if (http_write_field(&b, "X", value) == 0)
		fields++;
	if (http_write_attachment(&b, name) < 0)
		return;
	require(http_write_end(&b) == 0);
	http_response_init(&r, (struct http_limits){ 1 << 20, 1 << 20, 10 });
	require(http_response_feed(&r, b.data, b.len, true) == 1);
	require(r.head.n_fields == fields && r.head.len == b.len);
}

static void check_fields(const struct http_request *r)
{
	static const char *const types[] = { "application/json", "text/event-stream", NULL };
	struct byte_range range = { 0 };
	char accept[WEBSOCKET_ACCEPT];

	require(!r->chunked || !http_request_field(r, "content-length").data);
	require(http_head_count(&r->head, "host") <= 1);
	(void)accept_choose(http_request_field(r, "accept"), types);
	(void)websocket_check(r, accept);
	if (range_parse(http_request_field(r, "range"), 1000, &range) == 0)
		require(range.from >= 0 && range.length > 0 && range.from + range.length <= 1000);
}

static void check_request(const char *text, size_t size)
{
	struct message_outcome whole, bytes;

	outcome_read(&whole, text, size, SIZE_MAX / 2);
	outcome_read(&bytes, text, size, size > 512 ? 61 : 1);
	require(whole.status == bytes.status && whole.used == bytes.used &&
		whole.body.len == bytes.body.len);
	require(outcome_body_agrees(&whole, text, size));
	if (whole.head.head.len > 0) {
		check_fields(&whole.head);
		check_target(&whole.head);
	}
	outcome_done(&whole);
	outcome_done(&bytes);
}

static void check_response(const char *text, size_t size)
{
	struct http_response r;
	struct span piece, rest;
	size_t used = 1;
	int n = 0;

	http_response_init(&r, HTTP_LIMITS);
	if (http_response_feed(&r, text, size, false) < 1)
		return;
	rest = (struct span){ text + r.head.len, size - r.head.len };
	while (n == 0 && used > 0) {
		n = http_body_feed(&r.body, rest, &used, &piece);
		require(n < 0 || (used <= rest.len && piece.len <= used));
		rest.data += used;
		rest.len -= used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = NULL;

	if (size == 0 || size > INPUT_MAX)
		return 0;
	text = malloc(size + 1);
	require(text);
	memcpy(text, data, size);
	text[size] = '\0';
	check_request((const char *)data, size);
	check_response((const char *)data, size);
	check_written((struct span){ text, size }, text);
	return 0;
}
