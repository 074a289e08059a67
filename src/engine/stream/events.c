/* SPDX-License-Identifier: Apache-2.0 */
/* See events.h. */
#include "engine/stream/events.h"

#include "base/parse.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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
