/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See http-head.h. RFC 9112 lets a server be lenient about bare LF, folded lines, blanks before a colon and
 * repeated lengths. This reader is strict: attackers have used each of them to make two servers see different
 * requests in the same bytes.
 */
#include "web/codec/http-head.h"

void http_head_init(struct http_head *h, struct http_limits limits)
{
	*h = (struct http_head){ .limits = limits };
	if (h->limits.field_count > HTTP_FIELDS_MAX)
		h->limits.field_count = HTTP_FIELDS_MAX;
}

int http_head_refuse(struct http_head *h, int status, const char *why)
{
	if (!h->status) {
		h->status = status;
		h->why = why;
	}
	return -EBADMSG;
}

/* Whether the byte at `scanned` is allowed in a line after the bytes before it. */
static int judge_byte(struct http_head *h)
{
	const char *at = h->base + h->scanned;
	bool after_cr = h->scanned > h->line && at[-1] == '\r';

	if (*at == '\n')
		return after_cr ? 0 : http_head_refuse(h, 400, "A line ends without CR.");
	if (after_cr)
		return http_head_refuse(h, 400, "A CR stands inside a line.");
	if (((unsigned char)*at < 0x20 && *at != '\t' && *at != '\r') || *at == 0x7f)
		return http_head_refuse(h, 400, "The head holds a control character.");
	return 0;
}

static int judge_length(struct http_head *h)
{
	/* The line's own end does not count, nor does the empty line at the end of the head. */
	size_t used = h->scanned + 1 - h->line;

	if (h->fields_at == 0 && used > (size_t)h->limits.line_bytes + 2)
		return http_head_refuse(h, 414, "The request line is too long.");
	if (h->fields_at > 0 && h->scanned + 1 - h->fields_at > (size_t)h->limits.head_bytes + 2)
		return http_head_refuse(h, 431, "The header lines are too long together.");
	return 0;
}

int http_head_line(struct http_head *h, const char *data, size_t len, struct span *ret)
{
	h->base = data;
	if (h->status)
		return -EBADMSG;
	for (; h->scanned < len; h->scanned++) {
		if (judge_byte(h) < 0 || judge_length(h) < 0)
			return -EBADMSG;
		if (data[h->scanned] != '\n')
			continue;
		h->scanned++;
		*ret = (struct span){ data + h->line, h->scanned - 2 - h->line };
		h->line = h->scanned;
		return 1;
	}
	return 0;
}

/* RFC 9110 §5.6.2. */
static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

bool http_is_token(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_token_char(s.data[i]))
			return false;
	return s.len > 0;
}

int http_head_add_field(struct http_head *h, struct span line)
{
	struct span name, value = line;

	if (line.data[0] == ' ' || line.data[0] == '\t')
		return http_head_refuse(h, 400, "A header line is folded or begins with a blank.");
	if (!memchr(line.data, ':', line.len))
		return http_head_refuse(h, 400, "A header line has no colon.");
	(void)span_split(&value, ':', &name);
	if (!http_is_token(name))
		return http_head_refuse(h, 400, "The name of a header is not a token.");
	if (h->n_fields >= h->limits.field_count)
		return http_head_refuse(h, 431, "There are too many headers.");
	value = span_trim(value);
	h->fields[h->n_fields++] = (struct http_field){
		.name = (uint32_t)(name.data - h->base),
		.name_len = (uint32_t)name.len,
		.value = (uint32_t)(value.data - h->base),
		.value_len = (uint32_t)value.len,
	};
	return 0;
}

static struct span field_name(const struct http_head *h, size_t i)
{
	return (struct span){ h->base + h->fields[i].name, h->fields[i].name_len };
}

static struct span field_value(const struct http_head *h, size_t i)
{
	return (struct span){ h->base + h->fields[i].value, h->fields[i].value_len };
}

struct span http_head_field(const struct http_head *h, const char *name)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (span_is_nocase(field_name(h, i), name))
			return field_value(h, i);
	return (struct span){ 0 };
}

size_t http_head_count(const struct http_head *h, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_fields; i++)
		n += span_is_nocase(field_name(h, i), name);
	return n;
}

bool http_list_has(struct span list, const char *word)
{
	struct span item;

	while (span_split(&list, ',', &item))
		if (span_is_nocase(span_trim(item), word))
			return true;
	return false;
}

static int read_length(struct http_head *h, struct span value, struct http_framing *f)
{
	if (f->content_length >= 0)
		return http_head_refuse(h, 400, "Content-Length is given twice.");
	if (span_to_i64(value, &f->content_length) < 0)
		return http_head_refuse(h, 400, "Content-Length is not a plain decimal number.");
	return 0;
}

static int read_coding(struct http_head *h, struct span value, struct http_framing *f)
{
	if (f->chunked || !span_is_nocase(value, "chunked"))
		return http_head_refuse(h, 400, "Transfer-Encoding must be chunked, once.");
	f->chunked = true;
	return 0;
}

static int read_connection(struct http_head *h, struct span value, struct http_framing *f)
{
	(void)h;
	f->close = f->close || http_list_has(value, "close");
	f->keep_alive = f->keep_alive || http_list_has(value, "keep-alive");
	f->upgrade = f->upgrade || http_list_has(value, "upgrade");
	return 0;
}

static const struct {
	const char *name;
	int (*read)(struct http_head *h, struct span value, struct http_framing *f);
} framing_fields[] = {
	{ "content-length", read_length },
	{ "transfer-encoding", read_coding },
	{ "connection", read_connection },
};

int http_head_framing(struct http_head *h, struct http_framing *ret)
{
	struct http_framing f = { .content_length = -1 };

	for (size_t i = 0; i < h->n_fields; i++)
		for (size_t k = 0; k < ARRAY_SIZE(framing_fields); k++)
			if (span_is_nocase(field_name(h, i), framing_fields[k].name) &&
			    framing_fields[k].read(h, field_value(h, i), &f) < 0)
				return -EBADMSG;
	if (f.chunked && f.content_length >= 0)
		return http_head_refuse(h, 400,
					"Content-Length and Transfer-Encoding exclude each other.");
	*ret = f;
	return 0;
}
