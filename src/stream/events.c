/* SPDX-License-Identifier: Apache-2.0 */
/* See events.h. */
#include "stream/events.h"

#include "base/parse.h"

#include <stdio.h>
#include <string.h>

enum { MARKS_FIRST = 8 };

static const char *const names[_EVENT_MAX] = {
	[EVENT_START] = "start",   [EVENT_STDOUT] = "stdout", [EVENT_STDERR] = "stderr",
	[EVENT_OUTPUT] = "output", [EVENT_STAGE] = "stage",   [EVENT_USAGE] = "usage",
	[EVENT_RESULT] = "result",
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
	event_log_init(&l->told);
}

void events_done(struct events *l)
{
	for (size_t i = 0; i < l->n; i++)
		json_decref(l->marks[(l->first + i) % l->capacity].body);
	for (size_t i = 0; i < l->n_controls; i++)
		json_decref(l->controls[i].body);
	free(l->marks);
	free(l->controls);
	event_log_done(&l->told);
	*l = (struct events){ 0 };
}

static const struct event_mark *mark_at(const struct events *l, size_t i)
{
	return &l->marks[(l->first + i) % l->capacity];
}

static void drop_oldest(struct events *l)
{
	struct event_mark *oldest = &l->marks[l->first];

	memcpy(l->base_bytes, oldest->bytes, sizeof(l->base_bytes));
	l->base_controls = oldest->controls;
	json_decref(oldest->body);
	oldest->body = NULL;
	l->first = (l->first + 1) % l->capacity;
	l->n--;
}

/* Room for one more mark; false: there is none at all. */
static bool make_mark_room(struct events *l)
{
	size_t capacity = l->capacity ? l->capacity * 2 : MARKS_FIRST;
	struct event_mark *marks;

	if (l->n < l->capacity)
		return true;
	if (capacity <= EVENTS_MARKS_MAX) {
		marks = calloc(capacity, sizeof(*marks));
		if (marks) {
			for (size_t i = 0; i < l->n; i++)
				marks[i] = *mark_at(l, i);
			free(l->marks);
			l->marks = marks;
			l->first = 0;
			l->capacity = capacity;
			return true;
		}
	}
	if (l->n == 0)
		return false;
	drop_oldest(l);
	return true;
}

/* The state is the log's as it is now. */
static void add_mark(struct events *l, enum event_kind kind, json_t *body, int64_t time_ns)
{
	if (!make_mark_room(l)) {
		memcpy(l->base_bytes, l->bytes, sizeof(l->base_bytes));
		l->base_controls = (int64_t)l->n_controls;
		json_decref(body);
		return;
	}
	l->marks[(l->first + l->n) % l->capacity] =
		(struct event_mark){ .kind = kind,
				     .time_ns = time_ns,
				     .bytes = { l->bytes[0], l->bytes[1] },
				     .controls = (int64_t)l->n_controls,
				     .body = body };
	l->n++;
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

/* How many of the bytes are whole characters; what is behind them is kept in mind. */
static size_t whole_bytes(struct open_end *open, struct span bytes)
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

/* How many bytes the last mark can take besides; 0: it is of something else. */
static size_t room_in_last(const struct events *l, enum event_kind stream)
{
	int s = stream == EVENT_STDERR;
	int64_t from;

	if (l->n == 0 || mark_at(l, l->n - 1)->kind != stream)
		return 0;
	from = l->n > 1 ? mark_at(l, l->n - 2)->bytes[s] : l->base_bytes[s];
	return (size_t)MAX(EVENTS_MARK_BYTES - (l->bytes[s] - from), (int64_t)0);
}

void events_add_bytes(struct events *l, enum event_kind stream, struct span bytes, int64_t time_ns)
{
	int s = stream == EVENT_STDERR;
	size_t held = l->open[s].n, n = whole_bytes(&l->open[s], bytes), done = 0, part;

	if (n > 0 && n <= room_in_last(l, stream)) {
		l->bytes[s] += (int64_t)n;
		l->marks[(l->first + l->n - 1) % l->capacity].bytes[s] = l->bytes[s];
		return;
	}
	for (; done < n; done += part) {
		part = MIN(n - done, (size_t)EVENTS_MARK_BYTES);
		if (done + part < n && bytes.data)
			part -= utf8_open_tail(bytes.data, done + part - held);
		l->bytes[s] += (int64_t)part;
		add_mark(l, stream, NULL, time_ns);
	}
}

void events_add_usage(struct events *l, json_t *body, int64_t time_ns)
{
	if (body)
		add_mark(l, EVENT_USAGE, body, time_ns);
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
	l->controls = controls;
	l->controls[l->n_controls++] = (struct control){ kind, time_ns, body };
	add_mark(l, kind, NULL, time_ns);
	return 0;
}

void events_set_result(struct events *l, int64_t time_ns)
{
	l->has_result = true;
	l->result_time_ns = time_ns;
	for (int i = 0; i < 2; i++) {
		l->bytes[i] += (int64_t)l->open[i].n;
		l->open[i].n = 0;
	}
}

void events_replay(struct events *l, const int64_t bytes[2])
{
	while (l->n > 0)
		drop_oldest(l);
	for (int i = 0; i < 2; i++)
		l->bytes[i] = l->base_bytes[i] = bytes[i];
}

static int bytes_step(int stream, int64_t end, struct step *ret)
{
	int64_t rest = end - ret->after.bytes[stream];

	ret->kind = stream ? EVENT_STDERR : EVENT_STDOUT;
	ret->offset = ret->after.bytes[stream];
	ret->n = (size_t)MIN(rest, (int64_t)EVENTS_MARK_BYTES);
	ret->cut = ret->n < (size_t)rest;
	ret->after.bytes[stream] += (int64_t)ret->n;
	return 1;
}

static int control_step(const struct events *l, struct step *ret)
{
	const struct control *control = &l->controls[ret->after.controls++];

	ret->kind = control->kind;
	ret->time_ns = control->time_ns;
	ret->body = json_incref(control->body);
	return 1;
}

/* What is in front of some place, in an order that needs none; the step comes with what a reader has. 0: it has all of it. */
static int catch_up(const struct events *l, const struct event_cursor *to, struct step *ret)
{
	bool start = l->n_controls > 0 && l->controls[0].kind == EVENT_START;
	int64_t controls = MIN(to->controls, (int64_t)l->n_controls);

	if (ret->after.controls == 0 && start && controls > 0)
		return control_step(l, ret);
	for (int i = 0; i < 2; i++)
		if (ret->after.bytes[i] < to->bytes[i])
			return bytes_step(i, to->bytes[i], ret);
	return ret->after.controls < controls ? control_step(l, ret) : 0;
}

static int mark_step(const struct events *l, const struct event_mark *mark, struct step *ret)
{
	int stream = mark->kind == EVENT_STDERR;

	ret->is_oldest = true;
	ret->time_ns = mark->time_ns;
	if (mark->kind == EVENT_STDOUT || mark->kind == EVENT_STDERR) {
		ret->kind = mark->kind;
		ret->offset = ret->after.bytes[stream];
		ret->n = (size_t)(mark->bytes[stream] - ret->offset);
		ret->after.bytes[stream] = mark->bytes[stream];
		return 1;
	}
	if (mark->kind != EVENT_USAGE)
		return control_step(l, ret);
	ret->kind = EVENT_USAGE;
	ret->body = json_incref(mark->body);
	return 1;
}

/* The beginning of a character that nothing followed, and the result. */
static int last_step(const struct events *l, struct step *ret)
{
	ret->time_ns = l->result_time_ns;
	for (int i = 0; i < 2; i++)
		if (ret->after.bytes[i] < l->bytes[i])
			return bytes_step(i, l->bytes[i], ret);
	ret->kind = EVENT_RESULT;
	ret->after.over = true;
	return 1;
}

/* What nobody was told of yet. */
static int fresh_step(const struct events *l, struct step *ret)
{
	const struct event_cursor base = { .bytes = { l->base_bytes[0], l->base_bytes[1] },
					   .controls = l->base_controls };

	if (l->at.over)
		return 0;
	*ret = (struct step){ .seq = l->at.seq + 1, .fresh = true, .after = l->at };
	ret->after.seq++;
	ret->time_ns = l->n > 0 ? mark_at(l, 0)->time_ns : l->result_time_ns;
	if (catch_up(l, &base, ret))
		return 1;
	if (l->n > 0)
		return mark_step(l, mark_at(l, 0), ret);
	return l->has_result ? last_step(l, ret) : 0;
}

/* The log has no large bodies. */
static int with_body(const struct events *l, const struct event_cursor *c, struct step *ret)
{
	if (!ret->body && ret->after.controls > c->controls &&
	    ret->after.controls <= (int64_t)l->n_controls)
		ret->body = json_incref(l->controls[ret->after.controls - 1].body);
	return 1;
}

int events_next(const struct events *l, const struct event_cursor *c, struct step *ret)
{
	int r;

	if (c->over)
		return 0;
	if (c->offset < l->told.end.offset) {
		r = event_log_next(&l->told, c, ret);
		if (r != 0)
			return r < 0 ? r : with_body(l, c, ret);
	}
	/* The log ends before that: the bytes, then the number that others have. */
	if (c->seq < l->at.seq && l->at.seq != l->told.end.seq) {
		*ret = (struct step){ .seq = c->seq + 1, .time_ns = l->at.time_ns, .after = *c };
		ret->after.seq++;
		if (catch_up(l, &l->at, ret))
			return 1;
		if (l->at.over)
			return last_step(l, ret);
	}
	return fresh_step(l, ret);
}

void events_tell(struct events *l, struct step *step)
{
	if (l->at.seq == l->told.end.seq && event_log_add(&l->told, step) == 0) {
		step->after = l->told.end;
	} else {
		step->after.time_ns = step->time_ns;
		l->told.lost = true;
	}
	l->at = step->after;
	if (step->is_oldest)
		drop_oldest(l);
	step->fresh = false;
}

static int rank_of(enum event_kind kind)
{
	static const int ranks[_EVENT_MAX] = { [EVENT_START] = 1,
					       [EVENT_STDOUT] = 2,
					       [EVENT_STDERR] = 3,
					       [EVENT_STAGE] = 4,
					       [EVENT_RESULT] = 5 };

	return ranks[kind];
}

/* start, then all of stdout, all of stderr, the stages. */
static bool follows(int *rank, enum event_kind kind)
{
	int before = *rank;

	*rank = rank_of(kind);
	return before == 0 ? *rank == 1 : *rank > before || (*rank == 4 && before == 4);
}

bool events_are_plain(const struct events *l)
{
	struct event_cursor c = { 0 };
	struct step step;
	bool plain = l->at.seq == l->told.end.seq && l->open[0].n + l->open[1].n == 0 &&
		     l->at.bytes[0] >= l->base_bytes[0] && l->at.bytes[1] >= l->base_bytes[1] &&
		     l->at.controls >= l->base_controls;
	int rank = 0;

	while (plain && c.offset < l->told.end.offset && event_log_next(&l->told, &c, &step) == 1) {
		step_done(&step);
		plain = follows(&rank, step.kind);
		c = step.after;
	}
	for (size_t i = 0; plain && i < l->n; i++)
		plain = follows(&rank, mark_at(l, i)->kind);
	return plain && rank > 0;
}
