/* SPDX-License-Identifier: Apache-2.0 */
/* See multipart.h. */
#include "web/codec/multipart.h"

#include <ctype.h>

static struct span multipart_skip(struct span s, size_t n)
{
	return (struct span){ s.data + n, s.len - n };
}

static bool begins_with(struct span s, const char *text)
{
	return s.len >= strlen(text) && memcmp(s.data, text, strlen(text)) == 0;
}

/* Takes the bytes up to the mark, and the mark, off the front of *rest. */
static int take_until(struct span *rest, struct span mark, struct span *ret)
{
	const char *at = memmem(rest->data, rest->len, mark.data, mark.len);

	if (!at)
		return -EBADMSG;
	*ret = (struct span){ rest->data, (size_t)(at - rest->data) };
	*rest = multipart_skip(*rest, ret->len + mark.len);
	return 0;
}

/* Takes "; name=value" or "; name="value"" off the front. 0: there are no more. */
static int take_parameter(struct span *rest, struct span *ret_name, struct span *ret_value)
{
	struct span value;

	if (rest->len > 0)
		*rest = span_trim(*rest);
	if (rest->len == 0)
		return 0;
	if (*rest->data != ';')
		return -EBADMSG;
	*rest = multipart_skip(*rest, 1);
	if (take_until(rest, span_of("="), ret_name) < 0)
		return -EBADMSG;
	*ret_name = span_trim(*ret_name);
	if (begins_with(*rest, "\"")) {
		*rest = multipart_skip(*rest, 1);
		/* A quote in the value would end it here, and what follows is no parameter then. */
		return take_until(rest, span_of("\""), ret_value) < 0 ? -EBADMSG : 1;
	}
	value = *rest;
	value.len = 0;
	while (value.len < rest->len && !memchr("; \t\"", value.data[value.len], 4))
		value.len++;
	*rest = multipart_skip(*rest, value.len);
	*ret_value = value;
	return 1;
}

static bool is_boundary(struct span s)
{
	if (s.len == 0 || s.len > MULTIPART_BOUNDARY_MAX)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!isalnum((unsigned char)s.data[i]) &&
		    !memchr("'()+_,-./:=? ", s.data[i], sizeof("'()+_,-./:=? ") - 1))
			return false;
	return s.data[s.len - 1] != ' ';
}

/* A boundary is followed by a line's end, or by "--" at the end of the body. */
static int take_line_end(struct multipart *m)
{
	if (begins_with(m->rest, "\r\n")) {
		m->rest = multipart_skip(m->rest, 2);
		return 1;
	}
	if (span_is(m->rest, "--") || span_is(m->rest, "--\r\n"))
		return 0;
	return -EBADMSG;
}

int multipart_init(struct multipart *m, struct span content_type, struct span body)
{
	const char *media_end = memchr(content_type.data, ';', content_type.len);
	struct span name, value, rest = { 0 }, boundary = { 0 };
	int r;

	if (media_end)
		rest = multipart_skip(content_type, (size_t)(media_end - content_type.data));
	while ((r = take_parameter(&rest, &name, &value)) > 0)
		if (span_is_nocase(name, "boundary"))
			boundary = value;
	if (r < 0 || !is_boundary(boundary))
		return -EINVAL;
	*m = (struct multipart){ .rest = body, .mark_len = boundary.len + 4 };
	memcpy(m->mark, "\r\n--", 4);
	memcpy(m->mark + 4, boundary.data, boundary.len);
	/* The first boundary has no line before it. */
	if (body.len < m->mark_len - 2 || memcmp(body.data, m->mark + 2, m->mark_len - 2) != 0)
		return -EBADMSG;
	m->rest = multipart_skip(body, m->mark_len - 2);
	return 0;
}

static int read_disposition(struct span value, struct multipart_part *part)
{
	struct span rest = multipart_skip(value, MIN(strlen("form-data"), value.len)), name, text;
	int r;

	if (value.len < strlen("form-data") ||
	    !span_is_nocase((struct span){ value.data, strlen("form-data") }, "form-data"))
		return -EBADMSG;
	while ((r = take_parameter(&rest, &name, &text)) > 0) {
		struct span *member = span_is_nocase(name, "name")	 ? &part->name
				      : span_is_nocase(name, "filename") ? &part->filename
									 : NULL;

		if (member && member->data)
			return -EBADMSG;
		if (member)
			*member = text;
	}
	return r < 0 || !part->name.data ? -EBADMSG : 0;
}

/* The header lines, up to the empty one. Of these only Content-Disposition says something here. */
static int read_part_head(struct multipart *m, struct multipart_part *part)
{
	struct span head = { m->rest.data, MIN(m->rest.len, (size_t)MULTIPART_HEAD_MAX) }, line;

	for (;;) {
		struct span name;

		if (take_until(&head, span_of("\r\n"), &line) < 0)
			return -EBADMSG;
		if (line.len == 0)
			break;
		if (!span_split(&line, ':', &name))
			return -EBADMSG;
		if (span_is_nocase(name, "content-disposition") &&
		    (part->name.data || read_disposition(span_trim(line), part) < 0))
			return -EBADMSG;
	}
	m->rest = multipart_skip(m->rest, (size_t)(head.data - m->rest.data));
	return part->name.data ? 0 : -EBADMSG;
}

int multipart_next(struct multipart *m, struct multipart_part *ret)
{
	const struct span mark = { m->mark, m->mark_len };
	struct multipart_part part = { 0 };
	int r = take_line_end(m);

	if (r <= 0)
		return r;
	if (m->n++ == MULTIPART_PARTS_MAX)
		return -E2BIG;
	if (read_part_head(m, &part) < 0 || take_until(&m->rest, mark, &part.content) < 0)
		return -EBADMSG;
	*ret = part;
	return 1;
}
