/* SPDX-License-Identifier: Apache-2.0 */
/* See http-response.h; the rules for where a body ends are those of RFC 9112 §6.3. */
#include "web/codec/http-response.h"

void http_response_init(struct http_response *r, struct http_limits limits)
{
	*r = (struct http_response){ 0 };
	http_head_init(&r->head, limits);
}

static int read_status_line(struct http_response *r, struct span line)
{
	const char *s = line.data;
	int64_t status;

	if (line.len < 13 || memcmp(s, "HTTP/1.", 7) != 0 || (s[7] != '0' && s[7] != '1') ||
	    s[8] != ' ' || s[12] != ' ' || span_to_i64((struct span){ s + 9, 3 }, &status) < 0 ||
	    status < 100)
		return http_head_refuse(&r->head, 502, "The answer is not HTTP/1.1.");
	r->minor = (uint8_t)(s[7] - '0');
	r->status = (int)status;
	r->has_line = true;
	r->head.fields_at = r->head.line;
	return 0;
}

static int finish_response_head(struct http_response *r, bool to_head)
{
	struct http_framing f;
	bool bodiless = to_head || r->status < 200 || r->status == 204 || r->status == 304;

	if (http_head_framing(&r->head, &f) < 0)
		return -EBADMSG;
	r->keep_alive = r->minor == 1 && !f.close;
	if (bodiless)
		http_body_init(&r->body, HTTP_BODY_LENGTH, 0);
	else if (f.chunked)
		http_body_init(&r->body, HTTP_BODY_CHUNKED, 0);
	else if (f.content_length >= 0)
		http_body_init(&r->body, HTTP_BODY_LENGTH, f.content_length);
	else
		http_body_init(&r->body, HTTP_BODY_UNTIL_CLOSE, 0);
	r->keep_alive = r->keep_alive && r->body.kind != HTTP_BODY_UNTIL_CLOSE;
	r->head.len = r->head.scanned;
	return 1;
}

int http_response_feed(struct http_response *r, const char *data, size_t len, bool to_head)
{
	struct span line;
	int n = 0;

	if (r->head.len > 0) {
		r->head.base = data;
		return 1;
	}
	while (n == 0) {
		n = http_head_line(&r->head, data, len, &line);
		if (n <= 0)
			return n;
		if (!r->has_line)
			n = read_status_line(r, line);
		else
			n = line.len == 0 ? finish_response_head(r, to_head)
					  : http_head_add_field(&r->head, line);
	}
	return n;
}
