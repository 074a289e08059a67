/* SPDX-License-Identifier: Apache-2.0 */
/* See capture.h. Buffers grow by doubling up to their maximum, so a program without output costs no memory. */
#include "run/link/capture.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CAPTURE_FIRST = 4096, MARKER_MAX = 64, UTF8_MAX = 4 };

void capture_init(struct capture *c, int64_t limit_bytes)
{
	size_t limit = (size_t)MAX(limit_bytes, 0);

	*c = (struct capture){ .head_max = limit - limit / 2, .tail_max = limit / 2 };
}

void capture_done(struct capture *c)
{
	free(c->head);
	free(c->tail);
	*c = (struct capture){ 0 };
}

/* Makes room for `want` bytes, which are at most max. */
static int grow(char **data, size_t *capacity, size_t want, size_t max)
{
	size_t size = *capacity ? *capacity : MIN(max, CAPTURE_FIRST);
	char *p;

	assert(want <= max);
	if (want <= *capacity)
		return 0;
	while (size < want)
		size *= 2;
	size = MIN(size, max);
	p = realloc(*data, size);
	if (!p)
		return -ENOMEM;
	*data = p;
	*capacity = size;
	return 0;
}

/* Fills the part of the ring that was never written; *ret_taken: the number of bytes. */
static int fill_tail(struct capture *c, const char *p, size_t n, size_t *ret_taken)
{
	size_t take = MIN(n, c->tail_max - c->tail_len);
	int r = grow(&c->tail, &c->tail_capacity, c->tail_len + take, c->tail_max);

	if (r < 0)
		return r;
	if (take > 0)
		memcpy(c->tail + c->tail_len, p, take);
	c->tail_len += take;
	*ret_taken = take;
	return 0;
}

/* Overwrites the oldest bytes of a full ring. */
static void turn_tail(struct capture *c, const char *p, size_t n)
{
	if (c->tail_max == 0)
		return;
	if (n >= c->tail_max) {
		memcpy(c->tail, p + n - c->tail_max, c->tail_max);
		c->tail_next = 0;
		return;
	}
	while (n > 0) {
		size_t run = MIN(n, c->tail_max - c->tail_next);

		memcpy(c->tail + c->tail_next, p, run);
		c->tail_next = (c->tail_next + run) % c->tail_max;
		p += run;
		n -= run;
	}
}

int capture_add(struct capture *c, const void *data, size_t n)
{
	const char *p = data;
	size_t head_take = MIN(n, c->head_max - c->head_len);
	size_t tail_take = 0;
	int r;

	r = grow(&c->head, &c->head_capacity, c->head_len + head_take, c->head_max);
	if (r < 0)
		return r;
	r = fill_tail(c, p + head_take, n - head_take, &tail_take);
	if (r < 0)
		return r;
	if (head_take > 0)
		memcpy(c->head + c->head_len, p, head_take);
	c->head_len += head_take;
	turn_tail(c, p + head_take + tail_take, n - head_take - tail_take);
	c->bytes += (int64_t)n;
	return 0;
}

static int read_back(const struct capture *c, int64_t offset, char *ret, size_t n)
{
	while (n > 0) {
		ssize_t got = c->keeper.read(c->keeper.data, c->stream, offset, ret, n);

		if (got <= 0)
			return got < 0 ? (int)got : -EIO;
		offset += got;
		ret += got;
		n -= (size_t)got;
	}
	return 0;
}

int capture_settle(struct capture *c)
{
	size_t head = (size_t)MIN(c->bytes, (int64_t)c->head_max);
	size_t tail = (size_t)MIN(c->bytes - (int64_t)head, (int64_t)c->tail_max);
	int r;

	if (!c->keeper.read)
		return 0;
	assert(c->head_len == 0 && c->tail_len == 0);
	r = grow(&c->head, &c->head_capacity, head, c->head_max);
	if (r >= 0)
		r = grow(&c->tail, &c->tail_capacity, tail, c->tail_max);
	if (r >= 0)
		r = read_back(c, 0, c->head, head);
	if (r >= 0)
		r = read_back(c, c->bytes - (int64_t)tail, c->tail, tail);
	c->keeper.read = NULL;
	if (r < 0)
		return r;
	c->head_len = head;
	c->tail_len = tail;
	return 0;
}

int capture_take(struct capture *c, const void *data, size_t n, bool kept)
{
	int r = kept ? 0 : capture_settle(c);

	if (r < 0 || !c->keeper.read)
		return r < 0 ? r : capture_add(c, data, n);
	assert(c->head_len == 0 && c->tail_len == 0);
	c->bytes += (int64_t)n;
	return 0;
}

static size_t sequence_length(unsigned char lead)
{
	if (lead >= 0xf0 && lead <= 0xf4)
		return 4;
	if (lead >= 0xe0)
		return lead <= 0xef ? 3 : 1;
	return lead >= 0xc2 ? 2 : 1;
}

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* How many bytes at the end of p begin a sequence that is not complete there. */
static size_t partial_at_end(const char *p, size_t n)
{
	for (size_t back = 1; back < UTF8_MAX && back <= n; back++) {
		char byte = p[n - back];

		if (is_continuation(byte))
			continue;
		return sequence_length((unsigned char)byte) > back ? back : 0;
	}
	return 0;
}

/* How many bytes at the start of p continue a sequence that began before it. */
static size_t partial_at_start(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && i < UTF8_MAX && is_continuation(p[i]))
		i++;
	/* Four in a row are not UTF-8 at all: binary data is kept as it is. */
	return i < UTF8_MAX ? i : 0;
}

/* Copies the ring's bytes in the order of their arrival. */
static void unroll(const struct capture *c, char *ret)
{
	size_t first = c->tail_len - c->tail_next;

	if (c->tail_len == 0)
		return;
	memcpy(ret, c->tail + c->tail_next, first);
	memcpy(ret + first, c->tail, c->tail_next);
}

static int kept_text(const struct capture *c, struct result_stream *ret)
{
	size_t kept = c->head_len + c->tail_len;
	char *text = malloc(kept + 1);

	if (!text)
		return -ENOMEM;
	if (c->head_len > 0)
		memcpy(text, c->head, c->head_len);
	unroll(c, text + c->head_len);
	text[kept] = '\0';
	*ret = (struct result_stream){ .text = text, .len = kept, .bytes = c->bytes };
	return 0;
}

int capture_text(const struct capture *c, struct result_stream *ret)
{
	_cleanup_free_ char *tail = NULL;
	size_t head_len, tail_cut, tail_len;
	char marker[MARKER_MAX];
	char *text;
	int n;

	if (c->bytes == (int64_t)(c->head_len + c->tail_len))
		return kept_text(c, ret);
	tail = malloc(c->tail_len + 1);
	if (!tail)
		return -ENOMEM;
	unroll(c, tail);
	head_len = c->head_len - partial_at_end(c->head, c->head_len);
	tail_cut = partial_at_start(tail, c->tail_len);
	tail_len = c->tail_len - tail_cut;
	n = snprintf(marker, sizeof(marker), "\n... [%" PRId64 " bytes omitted] ...\n",
		     c->bytes - (int64_t)(head_len + tail_len));
	assert(n > 0 && (size_t)n < sizeof(marker));
	text = malloc(head_len + (size_t)n + tail_len + 1);
	if (!text)
		return -ENOMEM;
	if (head_len > 0)
		memcpy(text, c->head, head_len);
	memcpy(text + head_len, marker, (size_t)n);
	memcpy(text + head_len + (size_t)n, tail + tail_cut, tail_len);
	*ret = (struct result_stream){
		.text = text,
		.len = head_len + (size_t)n + tail_len,
		.bytes = c->bytes,
		.truncated = true,
	};
	text[ret->len] = '\0';
	return 0;
}
