/* SPDX-License-Identifier: Apache-2.0 */
/* See event-log.h. */
#include "engine/stream/event-log.h"

#include "base/fd.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HEAD_BYTES = 5 * 8,
	NUMBER_MAX = 10,
	BODY_MAX = EVENT_LOG_BLOCK - HEAD_BYTES - 1 - 2 * NUMBER_MAX,
};

struct event_record {
	enum event_kind kind;
	uint64_t us, n; /* n: bytes of the stream, or of the body */
	size_t size;	/* of the whole record */
};

static bool log_is_stream(enum event_kind kind)
{
	return kind == EVENT_STDOUT || kind == EVENT_STDERR;
}

void step_done(struct step *s)
{
	json_decref(s->body);
	s->body = NULL;
}

void event_log_init(struct event_log *t)
{
	*t = (struct event_log){ .fd = -EBADF };
	buf_init(&t->memory, EVENT_LOG_MEMORY_MAX);
}

void event_log_done(struct event_log *t)
{
	buf_done(&t->memory);
	t->fd = fd_close(t->fd);
}

static size_t log_put_number(uint8_t *at, uint64_t n)
{
	size_t i = 0;

	for (; n > 0x7f; n >>= 7)
		at[i++] = (uint8_t)(n | 0x80);
	at[i++] = (uint8_t)n;
	return i;
}

/* How many bytes it took; 0: there is no whole one. */
static size_t log_get_number(const uint8_t *at, size_t n, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < MIN(n, (size_t)NUMBER_MAX - 1); i++) {
		value |= (uint64_t)(at[i] & 0x7f) << (7 * i);
		if (at[i] & 0x80)
			continue;
		*ret = value;
		return i + 1;
	}
	return 0;
}

/* 1; 0: no whole one is there. */
static int log_parse(const uint8_t *at, size_t n, struct event_record *ret)
{
	struct event_record r = { 0 };
	size_t us, len;

	if (n == 0 || at[0] == 0 || at[0] > EVENT_RESULT) /* a result is in no log */
		return 0;
	r.kind = (enum event_kind)(at[0] - 1);
	us = log_get_number(at + 1, n - 1, &r.us);
	len = us ? log_get_number(at + 1 + us, n - 1 - us, &r.n) : 0;
	if (len == 0 || r.us > INT64_MAX / 2000 || r.n > EVENT_LOG_BLOCK * 1024)
		return 0;
	r.size = 1 + us + len;
	if (!log_is_stream(r.kind))
		r.size += r.n;
	*ret = r;
	return r.size <= n;
}

static void log_advance(struct event_cursor *c, const struct event_record *r)
{
	c->seq++;
	c->time_ns += (int64_t)r->us * 1000;
	c->offset += (int64_t)r->size;
	if (log_is_stream(r->kind))
		c->bytes[r->kind == EVENT_STDERR] += (int64_t)r->n;
	else if (r->kind != EVENT_USAGE)
		c->controls++;
}

/* What of [offset, offset + n) there is. */
static ssize_t log_read_at(const struct event_log *t, int64_t offset, void *ret, size_t n)
{
	ssize_t got;

	n = (size_t)MAX(MIN((int64_t)n, t->end.offset - offset), (int64_t)0);
	if (offset >= t->filed) {
		if (n > 0)
			memcpy(ret, t->memory.data + (offset - t->filed), n);
		return (ssize_t)n;
	}
	do {
		got = pread(t->fd, ret, (size_t)MIN((int64_t)n, t->filed - offset), offset);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	if ((int64_t)n > t->filed - offset) {
		memcpy((char *)ret + got, t->memory.data, n - (size_t)(t->filed - offset));
		got = (ssize_t)n;
	}
	return got;
}

/* Where block b begins. -ENODATA: there is none. */
static int log_read_head(const struct event_log *t, int64_t b, struct event_cursor *ret)
{
	int64_t head[5];
	ssize_t n = log_read_at(t, b * EVENT_LOG_BLOCK, head, sizeof(head));

	if (n < 0)
		return (int)n;
	/* Zeroes behind the first one are of a file that grew and was not written. */
	if (n < HEAD_BYTES || (b > 0 && head[0] == 0))
		return -ENODATA;
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		if (head[i] < 0 || head[i] > INT64_MAX / 2)
			return -EIO;
	*ret = (struct event_cursor){ .seq = head[0],
				      .bytes = { head[1], head[2] },
				      .controls = head[3],
				      .time_ns = head[4],
				      .offset = b * EVENT_LOG_BLOCK + HEAD_BYTES };
	return 0;
}

/* Reads on in the cursor's block, or the next. How many bytes of an event are there; 0: none. */
static ssize_t log_load(const struct event_log *t, struct event_cursor *c,
			uint8_t ret[EVENT_LOG_BLOCK])
{
	int64_t block = c->offset / EVENT_LOG_BLOCK;
	size_t at = (size_t)(c->offset % EVENT_LOG_BLOCK);
	ssize_t n = at > 0 ? log_read_at(t, c->offset, ret, EVENT_LOG_BLOCK - at) : 0;
	int r;

	if (n != 0 && (n < 0 || ret[0] != 0))
		return n;
	r = log_read_head(t, at > 0 ? block + 1 : block, c);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	return log_read_at(t, c->offset, ret, EVENT_LOG_BLOCK - HEAD_BYTES);
}

int event_log_next(const struct event_log *t, const struct event_cursor *from, struct step *ret)
{
	uint8_t bytes[EVENT_LOG_BLOCK];
	struct event_cursor c = *from;
	struct step step = { 0 };
	struct event_record r;
	ssize_t n = log_load(t, &c, bytes);

	if (n <= 0)
		return (int)n;
	if (!log_parse(bytes, (size_t)n, &r))
		return bytes[0] == 0 ? 0 : -EIO;
	step.kind = r.kind;
	if (log_is_stream(r.kind)) {
		step.offset = c.bytes[r.kind == EVENT_STDERR];
		step.n = (size_t)r.n;
	} else if (r.n > 0) {
		step.body = json_loadb((const char *)bytes + r.size - r.n, (size_t)r.n,
				       JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	}
	log_advance(&c, &r);
	step.seq = c.seq;
	step.time_ns = c.time_ns;
	step.after = c;
	*ret = step;
	return 1;
}

/* Moves the cursor on in its block, as far as numbers are not above seq. */
static int log_scan(const struct event_log *t, int64_t seq, struct event_cursor *c)
{
	uint8_t bytes[EVENT_LOG_BLOCK];
	ssize_t n = log_read_at(t, c->offset, bytes,
				EVENT_LOG_BLOCK - (size_t)(c->offset % EVENT_LOG_BLOCK));
	struct event_record r;

	for (size_t at = 0; n > 0 && c->seq < seq && log_parse(bytes + at, (size_t)n - at, &r);
	     at += r.size)
		log_advance(c, &r);
	return n < 0 ? (int)n : 0;
}

int event_log_find(const struct event_log *t, int64_t seq, struct event_cursor *ret)
{
	int64_t low = 0, high = (t->end.offset + EVENT_LOG_BLOCK - 1) / EVENT_LOG_BLOCK;
	struct event_cursor c = { 0 }, middle;
	int r;

	if (t->end.seq <= seq) {
		*ret = t->end;
		return 0;
	}
	while (low < high) {
		r = log_read_head(t, low + (high - low) / 2, &middle);
		if (r < 0 && r != -ENODATA)
			return r;
		if (r == 0 && middle.seq <= seq) {
			c = middle;
			low = middle.offset / EVENT_LOG_BLOCK + 1;
		} else {
			high = low + (high - low) / 2;
		}
	}
	r = log_scan(t, seq, &c);
	if (r == 0)
		*ret = c;
	return r;
}

int event_log_open(struct event_log *t, int fd)
{
	struct event_cursor c = { 0 };
	struct stat st;
	int r = 0;

	t->fd = fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	t->filed = t->end.offset = st.st_size;
	for (int64_t b = (st.st_size - 1) / EVENT_LOG_BLOCK; b >= 0; b--) {
		r = log_read_head(t, b, &c);
		if (r == 0)
			r = log_scan(t, INT64_MAX, &c);
		if (r != -ENODATA)
			break;
		r = 0;
	}
	t->end = c;
	t->filed = c.offset;
	return r;
}

/* A block begins where a reader has its first byte: zeroes fill the block before it. */
static int log_begin_block(struct event_log *t)
{
	static const char zeroes[EVENT_LOG_BLOCK];
	const struct event_cursor *c = &t->end;
	const int64_t head[5] = { c->seq, c->bytes[0], c->bytes[1], c->controls, c->time_ns };
	const size_t at = (size_t)(c->offset % EVENT_LOG_BLOCK);
	int r = at > 0 ? buf_append(&t->memory, zeroes, EVENT_LOG_BLOCK - at) : 0;

	if (r < 0)
		return r;
	if (at > 0)
		t->end.offset += EVENT_LOG_BLOCK - (int64_t)at;
	r = buf_append(&t->memory, head, sizeof(head));
	if (r == 0)
		t->end.offset += HEAD_BYTES;
	return r;
}

/* Takes the bytes of the texts off *left; false: there are more. A tree without large texts is small: it was parsed with bounds. */
static bool log_texts_are_small(const json_t *tree, size_t *left)
{
	size_t n = json_string_length(tree), i;
	const char *key;
	json_t *value;

	if (n > *left)
		return false;
	*left -= n;
	json_array_foreach((json_t *)(uintptr_t)tree, i, value)
	{
		if (!log_texts_are_small(value, left))
			return false;
	}
	json_object_foreach((json_t *)(uintptr_t)tree, key, value)
	{
		if (!log_texts_are_small(value, left))
			return false;
	}
	return true;
}

int event_log_add(struct event_log *t, const struct step *step)
{
	int64_t ns = MAX(step->time_ns - t->end.time_ns, (int64_t)0);
	struct event_record r = { .kind = step->kind, .us = (uint64_t)ns / 1000, .n = step->n };
	_cleanup_free_ char *body = NULL;
	uint8_t head[1 + 2 * NUMBER_MAX];
	size_t n = 0, left = BODY_MAX;
	int ret;

	if (!log_is_stream(r.kind)) {
		if (step->body && log_texts_are_small(step->body, &left))
			body = json_dumps(step->body, JSON_COMPACT | JSON_ENCODE_ANY);
		r.n = body && strlen(body) <= BODY_MAX ? strlen(body) : 0;
	}
	head[n++] = (uint8_t)(r.kind + 1);
	n += log_put_number(head + n, r.us);
	n += log_put_number(head + n, r.n);
	r.size = n + (log_is_stream(r.kind) ? 0 : (size_t)r.n);
	/* With everything that goes in front of it. */
	if (t->end.offset > EVENT_LOG_FILE_MAX - 2 * EVENT_LOG_BLOCK ||
	    t->memory.len + r.size + EVENT_LOG_BLOCK > t->memory.max)
		return -ENOBUFS;
	if (t->end.offset % EVENT_LOG_BLOCK == 0 ||
	    r.size > EVENT_LOG_BLOCK - (size_t)(t->end.offset % EVENT_LOG_BLOCK)) {
		ret = log_begin_block(t);
		if (ret < 0)
			return ret;
	}
	ret = buf_append(&t->memory, head, n);
	if (ret == 0 && r.size > n) {
		ret = buf_append(&t->memory, body, (size_t)r.n);
		if (ret < 0)
			t->memory.len -= n;
	}
	if (ret < 0)
		return ret;
	log_advance(&t->end, &r);
	return 0;
}

int event_log_keep(struct event_log *t)
{
	size_t done = 0;

	while (done < t->memory.len) {
		ssize_t n = pwrite(t->fd, t->memory.data + done, t->memory.len - done,
				   t->filed + (int64_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	t->filed += (int64_t)done;
	t->memory.len = 0;
	assert(t->filed == t->end.offset);
	return 0;
}
