/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See http-request.h. A line is judged when its end has arrived; the fields together, when the empty line has.
 * A target must have the origin form (or be "*" with OPTIONS): this server is no proxy.
 */
#include "web/codec/http-request.h"

static const char *const method_names[_HTTP_METHOD_MAX] = {
	[HTTP_OTHER] = "OTHER",	    [HTTP_GET] = "GET",	    [HTTP_HEAD] = "HEAD",
	[HTTP_POST] = "POST",	    [HTTP_PUT] = "PUT",	    [HTTP_DELETE] = "DELETE",
	[HTTP_OPTIONS] = "OPTIONS", [HTTP_PATCH] = "PATCH",
};

const char *http_method_name(enum http_method method)
{
	return method_names[method];
}

void http_request_init(struct http_request *r, struct http_limits limits)
{
	*r = (struct http_request){ 0 };
	http_head_init(&r->head, limits);
}

static int read_method(struct http_request *r, struct span text)
{
	if (!http_is_token(text))
		return http_head_refuse(&r->head, 400, "The method is not a token.");
	for (enum http_method m = HTTP_OTHER + 1; m < _HTTP_METHOD_MAX; m++)
		if (span_is(text, method_names[m]))
			r->method = m;
	return 0;
}

/* Characters that RFC 3986 allows in a path and query, and "[]", which curl and browsers send unencoded. */
static bool is_target_char(char c)
{
	return c > 0x20 && c < 0x7f && !strchr("\"#<>\\^`{|}", c);
}

static int read_target(struct http_request *r, struct span text)
{
	bool origin = text.len > 0 && text.data[0] == '/';

	if (!origin && !(r->method == HTTP_OPTIONS && span_is(text, "*")))
		return http_head_refuse(&r->head, 400, "The target must be a path.");
	for (size_t i = 0; i < text.len; i++)
		if (!is_target_char(text.data[i]))
			return http_head_refuse(
				&r->head, 400,
				"The target holds a character that must be encoded.");
	r->target = (uint32_t)(text.data - r->head.base);
	r->target_len = (uint32_t)text.len;
	return 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int read_version(struct http_request *r, struct span text)
{
	if (text.len != 8 || memcmp(text.data, "HTTP/", 5) != 0 || !is_digit(text.data[5]) ||
	    text.data[6] != '.' || !is_digit(text.data[7]))
		return http_head_refuse(&r->head, 400, "The request line has no HTTP version.");
	if (text.data[5] != '1' || text.data[7] > '1')
		return http_head_refuse(&r->head, 505, "Only HTTP/1.1 and HTTP/1.0 are spoken.");
	r->minor = (uint8_t)(text.data[7] - '0');
	return 0;
}

static int read_request_line(struct http_request *r, struct span line)
{
	struct span rest = line, method, target;

	/* Exactly two spaces: a third would be part of the version and make it invalid. */
	if (!span_split(&rest, ' ', &method) || !span_split(&rest, ' ', &target) || !rest.data)
		return http_head_refuse(&r->head, 400,
					"The request line is not METHOD PATH HTTP/1.1.");
	if (read_method(r, method) < 0 || read_target(r, target) < 0 || read_version(r, rest) < 0)
		return -EBADMSG;
	r->has_line = true;
	r->head.fields_at = r->head.line;
	return 0;
}

/* host [":" port] of RFC 9110 §7.2: a name, an IPv4 address or an IPv6 address in brackets. */
static bool is_host(struct span s)
{
	bool bracket = s.len > 0 && s.data[0] == '[';
	size_t i = bracket;

	for (; i < s.len && s.data[i] != (bracket ? ']' : ':'); i++) {
		char c = s.data[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && !is_digit(c) && !strchr(bracket ? ":." : "-._", c))
			return false;
	}
	if (i == (size_t)bracket || (bracket && i == s.len))
		return false;
	i += bracket;
	if (i == s.len)
		return true;
	if (s.data[i] != ':' || s.len - i < 2 || s.len - i > 6)
		return false;
	for (i++; i < s.len; i++)
		if (!is_digit(s.data[i]))
			return false;
	return true;
}

static int judge_host(struct http_request *r)
{
	size_t n = http_head_count(&r->head, "host");

	if (n > 1)
		return http_head_refuse(&r->head, 400, "Host is given twice.");
	if (n == 0)
		return r->minor == 0 ? 0 : http_head_refuse(&r->head, 400, "Host is missing.");
	if (!is_host(http_request_field(r, "host")))
		return http_head_refuse(&r->head, 400,
					"Host is not a name with or without a port.");
	return 0;
}

static int judge_expect(struct http_request *r)
{
	struct span expect = http_request_field(r, "expect");

	if (!expect.data)
		return 0;
	if (!span_is_nocase(expect, "100-continue"))
		return http_head_refuse(&r->head, 417, "Expect can only be 100-continue.");
	r->expect_continue = r->minor == 1;
	return 0;
}

static int finish_request_head(struct http_request *r)
{
	struct http_framing f;

	if (http_head_framing(&r->head, &f) < 0 || judge_host(r) < 0 || judge_expect(r) < 0)
		return -EBADMSG;
	if (f.chunked && r->minor == 0)
		return http_head_refuse(&r->head, 400, "HTTP/1.0 has no Transfer-Encoding.");
	r->chunked = f.chunked;
	r->content_length = f.chunked ? -1 : MAX(f.content_length, 0);
	r->keep_alive = r->minor == 1 && !f.close;
	r->upgrade = r->minor == 1 && f.upgrade && http_request_field(r, "upgrade").data;
	r->head.len = r->head.scanned;
	return 1;
}

static int take_line(struct http_request *r, struct span line)
{
	if (r->has_line)
		return line.len == 0 ? finish_request_head(r) : http_head_add_field(&r->head, line);
	if (line.len > 0)
		return read_request_line(r, line);
	/* Some clients send one CRLF too many after a body. */
	if (r->skipped_blank)
		return http_head_refuse(&r->head, 400, "The request line is empty.");
	r->skipped_blank = true;
	return 0;
}

int http_request_feed(struct http_request *r, const char *data, size_t len)
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
		n = take_line(r, line);
	}
	return n;
}

struct span http_request_target(const struct http_request *r)
{
	return (struct span){ r->head.base + r->target, r->target_len };
}

struct span http_request_field(const struct http_request *r, const char *name)
{
	return http_head_field(&r->head, name);
}
