/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See uri.h. Everything is decoded once, into one block that is never longer than the target. Parts are split
 * before they are decoded, so an encoded separator never separates.
 */
#include "base/uri.h"

#include "base/buf.h"
#include "base/parse.h"
#include "base/utf8.h"

/* One byte of the text, decoded; -EINVAL when '%' is not followed by two digits. */
static int decode_byte(struct span text, size_t *i, bool in_query)
{
	char c = text.data[(*i)++];
	int high, low;

	if (c == '+' && in_query)
		return ' ';
	if (c != '%')
		return (unsigned char)c;
	if (text.len - *i < 2)
		return -EINVAL;
	high = parse_hex_digit(text.data[*i]);
	low = parse_hex_digit(text.data[*i + 1]);
	*i += 2;
	return high < 0 || low < 0 ? -EINVAL : high * 16 + low;
}

/* Decodes to *at and moves *at behind the NUL. There is room, because decoding never lengthens. */
static int decode_uri_part(struct span text, bool in_query, char **at, const char **ret)
{
	char *out = *at;

	for (size_t i = 0; i < text.len;) {
		int c = decode_byte(text, &i, in_query);

		if (c <= 0 || (!in_query && (c < 0x20 || c == 0x7f || c == '/')))
			return -EINVAL;
		*out++ = (char)c;
	}
	if (!utf8_is_valid(*at, (size_t)(out - *at)))
		return -EINVAL;
	*out++ = '\0';
	*ret = *at;
	*at = out;
	return 0;
}

static int read_segments(struct uri *u, struct span path, char **at)
{
	struct span part;

	path.data++; /* the first '/' */
	path.len--;
	if (path.len == 0)
		return 0;
	while (span_split(&path, '/', &part)) {
		const char **segment = &u->segments[u->n_segments];
		int r;

		if (u->n_segments == URI_SEGMENTS_MAX)
			return -E2BIG;
		r = decode_uri_part(part, false, at, segment);
		if (r < 0)
			return r;
		if (strcmp(*segment, ".") == 0 || strcmp(*segment, "..") == 0)
			return -EINVAL;
		u->n_segments++;
	}
	return 0;
}

static int read_pairs(struct uri *u, struct span query, char **at)
{
	struct span part, name;

	while (span_split(&query, '&', &part)) {
		struct uri_pair *pair = &u->pairs[u->n_pairs];
		int r;

		if (part.len == 0)
			continue;
		if (u->n_pairs == URI_PAIRS_MAX)
			return -E2BIG;
		(void)span_split(&part, '=', &name);
		r = decode_uri_part(name, true, at, &pair->name);
		if (r >= 0)
			r = decode_uri_part(part, true, at, &pair->value);
		if (r < 0)
			return r;
		u->n_pairs++;
	}
	return 0;
}

int uri_parse(struct span target, struct uri *ret)
{
	_cleanup_uri_ struct uri u = { 0 };
	struct span path, query = target;
	char *at;
	int r;

	if (target.len == 0 || target.data[0] != '/')
		return -EINVAL;
	/* Each part keeps its bytes and gets a NUL; a name without '=' gets a second one. */
	u.text = at = malloc(2 * target.len + 2);
	if (!u.text)
		return -ENOMEM;
	(void)span_split(&query, '?', &path);
	r = read_segments(&u, path, &at);
	if (r >= 0)
		r = read_pairs(&u, query, &at);
	if (r < 0)
		return r;
	*ret = u;
	u.text = NULL;
	return 0;
}

void uri_done(struct uri *u)
{
	free(TAKE_PTR(u->text));
}

const char *uri_query(const struct uri *u, const char *name)
{
	for (size_t i = 0; i < u->n_pairs; i++)
		if (strcmp(u->pairs[i].name, name) == 0)
			return u->pairs[i].value;
	return NULL;
}

int uri_encode(struct buf *b, struct span text)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < text.len; i++) {
		char c = text.data[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    (c != '\0' && strchr("-._~", c)))
			r = buf_append(b, &c, 1);
		else
			r = buf_printf(b, "%%%02X", (unsigned char)c);
	}
	return r;
}
