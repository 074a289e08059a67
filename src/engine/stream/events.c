/* SPDX-License-Identifier: Apache-2.0 */
/* See events.h and event-log.h. */
#include "engine/stream/events.h"

#include "base/fd.h"
#include "base/parse.h"
#include "engine/stream/event-log.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the log --- */

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

/* --- the events --- */

/* The offset of a cursor that is no longer in the log. */
static const int64_t behind_log = INT64_MAX;

/* More events than any process told and did not keep. */
static const int64_t lost_numbers = 1000000000;

static const char *const names[_EVENT_MAX] = {
	[EVENT_START] = "start",   [EVENT_STDOUT] = "stdout",	    [EVENT_STDERR] = "stderr",
	[EVENT_OUTPUT] = "output", [EVENT_HOST_CALL] = "host_call", [EVENT_STAGE] = "stage",
	[EVENT_USAGE] = "usage",   [EVENT_RESULT] = "result",
};

const char *event_name(enum event_kind kind)
{
	return names[kind];
}

void cursor_format(const struct event_cursor *c, char ret[EVENT_ID])
{
	int n = snprintf(ret, EVENT_ID, "%lld-%lld-%lld-", (long long)c->seq,
			 (long long)c->bytes[0], (long long)c->bytes[1]);

	if (c->over)
		(void)snprintf(ret + n, EVENT_ID - (size_t)n, "end");
	else
		(void)snprintf(ret + n, EVENT_ID - (size_t)n, "%lld", (long long)c->controls);
}

int cursor_parse(const char *text, struct event_cursor *ret, bool *ret_plain)
{
	struct event_cursor c = { 0 };
	int64_t *const numbers[] = { &c.seq, &c.bytes[0], &c.bytes[1], &c.controls };
	size_t i = 0;

	for (const char *at = text;; i++) {
		size_t len = strcspn(at, "-");
		char word[24];

		if (i == ARRAY_SIZE(numbers) || len == 0 || len >= sizeof(word))
			return -EINVAL;
		memcpy(word, at, len);
		word[len] = '\0';
		if (i == 3 && strcmp(word, "end") == 0)
			c.over = true;
		else if (parse_i64(word, numbers[i]) < 0 || *numbers[i] < 0 ||
			 *numbers[i] > INT64_MAX / 4)
			return -EINVAL;
		if (at[len] == '\0')
			break;
		at += len + 1;
	}
	if (i != 0 && i != 3)
		return -EINVAL;
	*ret_plain = i == 0;
	*ret = c;
	return 0;
}

void events_init(struct events *l)
{
	*l = (struct events){ 0 };
	event_log_init(&l->log);
}

void events_done(struct events *l)
{
	for (size_t i = 0; i < l->n_controls; i++)
		json_decref(l->controls[i].body);
	free(l->controls);
	event_log_done(&l->log);
	*l = (struct events){ 0 };
}

/* The log has every event up to its end: after the first that it does not take, it takes none. */
static void events_put(struct events *l, const struct step *step)
{
	if (!l->log_ended && event_log_add(&l->log, step) < 0)
		l->log_ended = true;
}

void events_close(struct events *l)
{
	if (l->open.n > 0)
		events_put(l, &(struct step){ .kind = l->open.kind,
					      .time_ns = l->open.time_ns,
					      .n = l->open.n });
	l->open.n = 0;
}

size_t utf8_open_tail(const char *bytes, size_t n)
{
	for (size_t back = 1; back <= MIN(n, (size_t)3); back++) {
		unsigned char c = (unsigned char)bytes[n - back];
		size_t length = 1;

		if ((c & 0xc0) == 0x80)
			continue;
		if (c >= 0xc2 && c < 0xf5)
			length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
		return length > back ? back : 0;
	}
	return 0;
}

/* How many of the bytes are whole characters; open remembers the rest. */
static size_t events_whole_bytes(struct open_end *open, struct span bytes)
{
	char end[2 * sizeof(open->bytes)];
	size_t last = MIN(bytes.len, sizeof(open->bytes)), n = open->n + last, all, tail;

	if (!bytes.data)
		return bytes.len;
	memcpy(end, open->bytes, open->n);
	memcpy(end + open->n, bytes.data + bytes.len - last, last);
	/* In front of those of a longer text there are others. */
	tail = last < bytes.len ? utf8_open_tail(end + open->n, last) : utf8_open_tail(end, n);
	all = open->n + bytes.len;
	memcpy(open->bytes, end + n - tail, tail);
	open->n = tail;
	return all - tail;
}

static void events_add_whole(struct events *l, enum event_kind output, size_t n, int64_t time_ns)
{
	l->bytes[output == EVENT_STDERR] += (int64_t)n;
	l->time_ns = time_ns;
	if (l->open.n > 0 && l->open.kind == output && l->open.n + n <= EVENTS_MARK_BYTES) {
		l->open.n += n;
		return;
	}
	events_close(l);
	l->open = (struct open_event){ output, time_ns, n };
}

void events_add_bytes(struct events *l, enum event_kind output, struct span bytes, int64_t time_ns)
{
	struct open_end *end = &l->ends[output == EVENT_STDERR];
	size_t held = end->n, n = events_whole_bytes(end, bytes), part;

	for (size_t done = 0; done < n; done += part) {
		part = MIN(n - done, (size_t)EVENTS_MARK_BYTES);
		if (done + part < n && bytes.data)
			part -= utf8_open_tail(bytes.data, done + part - held);
		events_add_whole(l, output, part, time_ns);
	}
}

void events_add_usage(struct events *l, json_t *body, int64_t time_ns)
{
	events_close(l);
	if (body)
		events_put(l,
			   &(struct step){ .kind = EVENT_USAGE, .time_ns = time_ns, .body = body });
	json_decref(body);
}

int events_add_control(struct events *l, enum event_kind kind, json_t *body, int64_t time_ns)
{
	struct control *controls = NULL;

	if (body && l->n_controls < EVENTS_CONTROLS_MAX)
		controls = reallocarray(l->controls, l->n_controls + 1, sizeof(*controls));
	if (!controls) {
		json_decref(body);
		return l->n_controls < EVENTS_CONTROLS_MAX ? -ENOMEM : -ENOBUFS;
	}
	events_close(l);
	l->controls = controls;
	l->controls[l->n_controls++] = (struct control){ kind, time_ns, body };
	l->time_ns = time_ns;
	events_put(l, &(struct step){ .kind = kind, .time_ns = time_ns, .body = body });
	return 0;
}

void events_finish(struct events *l, int64_t time_ns)
{
	for (int i = 0; i < 2; i++) {
		size_t n = l->ends[i].n;

		l->ends[i].n = 0;
		if (n > 0)
			events_add_whole(l, i ? EVENT_STDERR : EVENT_STDOUT, n, time_ns);
	}
	events_close(l);
}

void events_set_result(struct events *l, int64_t time_ns)
{
	events_finish(l, time_ns);
	l->has_result = true;
	l->time_ns = time_ns;
}

int events_replay(struct events *l, const int64_t bytes[2], int log_fd, bool incomplete)
{
	int r;

	event_log_done(&l->log);
	event_log_init(&l->log);
	r = log_fd < 0 ? 0 : event_log_open(&l->log, log_fd);
	l->log_ended = true;
	l->gap = incomplete ? lost_numbers : 0;
	memcpy(l->bytes, bytes, sizeof(l->bytes));
	return r;
}

static int events_bytes_step(const struct events *l, int output, struct step *ret)
{
	int64_t rest = l->bytes[output] - ret->after.bytes[output];

	assert(rest > 0);

	ret->kind = output ? EVENT_STDERR : EVENT_STDOUT;
	ret->offset = ret->after.bytes[output];
	ret->n = (size_t)MIN(rest, (int64_t)EVENTS_MARK_BYTES);
	ret->cut = ret->n < (size_t)rest;
	ret->after.bytes[output] += (int64_t)ret->n;
	return 1;
}

static int events_control_step(const struct events *l, struct step *ret)
{
	const struct control *control = &l->controls[ret->after.controls++];

	ret->kind = control->kind;
	ret->time_ns = control->time_ns;
	ret->body = json_incref(control->body);
	return 1;
}

/* The next event by the position alone. */
static int events_tail_step(const struct events *l, const struct event_cursor *c, struct step *ret)
{
	bool first = c->controls == 0 && l->n_controls > 0 && l->controls[0].kind == EVENT_START;
	int64_t before = MAX(c->seq, l->log.end.seq + l->gap);

	/* The start is number 1 in any case. */
	*ret = (struct step){ .seq = first && c->seq == 0 ? 1 : before + 1,
			      .time_ns = l->time_ns,
			      .after = *c };
	ret->after.seq = ret->seq;
	if (first)
		return events_control_step(l, ret);
	for (int i = 0; i < 2; i++)
		if (c->bytes[i] < l->bytes[i])
			return events_bytes_step(l, i, ret);
	if (c->controls < (int64_t)l->n_controls)
		return events_control_step(l, ret);
	if (!l->has_result)
		return 0;
	ret->kind = EVENT_RESULT;
	ret->after.over = true;
	return 1;
}

int events_next(struct events *l, const struct event_cursor *c, struct step *ret)
{
	int r;

	if (c->over)
		return 0;
	if (c->offset == l->log.end.offset)
		events_close(l);
	if (c->offset < l->log.end.offset) {
		r = event_log_next(&l->log, c, ret);
		/* The log has no large bodies. */
		if (r > 0 && !ret->body && ret->after.controls > c->controls &&
		    ret->after.controls <= (int64_t)l->n_controls)
			ret->body = json_incref(l->controls[ret->after.controls - 1].body);
		if (r != 0)
			return r;
	}
	return events_tail_step(l, c, ret);
}

int events_find(struct events *l, const struct event_cursor *has, struct event_cursor *ret)
{
	struct event_cursor c;
	int r;

	events_close(l);
	r = event_log_find(&l->log, has->seq, &c);
	if (r < 0)
		return r;
	if (c.seq != has->seq || c.bytes[0] != has->bytes[0] || c.bytes[1] != has->bytes[1] ||
	    c.controls != has->controls) {
		c = *has;
		c.offset = behind_log;
	}
	*ret = c;
	return 0;
}

bool events_are_plain(const struct events *l)
{
	struct event_cursor c = { 0 }, tail = { 0 };
	struct step a, b = { 0 };
	bool plain = !l->log_ended;

	while (plain && event_log_next(&l->log, &c, &a) == 1) {
		plain = events_tail_step(l, &tail, &b) == 1 && a.kind == b.kind && a.n == b.n &&
			!b.cut;
		step_done(&a);
		step_done(&b);
		c = a.after;
		tail = b.after;
	}
	return plain;
}
