/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of events, for tests: one that pulls as it is told, and one that writes down all there is. */
#pragma once

#include "engine/test-support.h"

#define SH(code) "{\"language\": \"bash\", \"code\": \"" code "\"}"

static const struct submission announced __attribute__((unused)) = { .mode = SUBMIT_ANNOUNCED };

struct event_reader {
	struct watcher *watcher;
	struct buf bytes[2], kinds;
	int64_t next[2]; /* offset that must follow; 0: any */
	char last_id[EVENT_ID];
	int64_t last_seq;
	size_t pause_after; /* events; 0: never */
	size_t n;
	bool over, paused, free_at_first;
	int64_t first_byte_ns;
};

static inline void pull(void *data)
{
	struct event_reader *r = data;
	struct event ev;
	int got = 0;

	if (r->free_at_first) {
		r->watcher = watcher_free(r->watcher);
		r->over = true;
		loop_stop(fix.loop);
		return;
	}
	while (!r->paused && (got = watcher_next(r->watcher, &ev)) == 1) {
		assert_true(ev.seq > r->last_seq);
		r->last_seq = ev.seq;
		memcpy(r->last_id, ev.id, sizeof(ev.id));
		if (ev.kind == EVENT_STDOUT || ev.kind == EVENT_STDERR) {
			int stream = ev.kind == EVENT_STDERR;
			struct buf *b = &r->bytes[stream];

			if (!r->first_byte_ns)
				r->first_byte_ns = clock_realtime_ns() - ev.time_ns;
			assert_true(r->next[stream] == 0 || ev.offset == r->next[stream]);
			r->next[stream] = ev.offset + (int64_t)ev.bytes.len;
			assert_int_equal(buf_append(b, ev.bytes.data, ev.bytes.len), 0);
		} else {
			json_t *line = event_to_json(&ev);

			assert_non_null(line);
			json_decref(line);
			assert_int_equal(buf_printf(&r->kinds, "%s ", event_name(ev.kind)), 0);
		}
		r->n++;
		if (r->pause_after && r->n == r->pause_after)
			r->paused = true;
	}
	if (r->paused)
		return;
	assert_true(got == 0 || got == -ENODATA);
	if (got == -ENODATA) {
		r->over = true;
		loop_stop(fix.loop);
	}
}

/* What it was told besides output: "usage", which comes once a second, as often as the machine is slow. */
static inline void assert_kinds(const struct event_reader *r, const char *expected)
{
	_cleanup_free_ char *left = strdup(r->kinds.data);
	char *at;

	assert_non_null(left);
	while ((at = strstr(left, "usage ")))
		memmove(at, at + strlen("usage "), strlen(at + strlen("usage ")) + 1);
	assert_string_equal(left, expected);
}

/* What a reader was told, one event a line: number, time, kind and offset. */
static inline void log_events(const char *id, const char *after, struct buf *out)
{
	struct watcher *w;
	struct event ev;

	buf_init(out, 1 << 20);
	assert_int_equal(buf_puts(out, ""), 0);
	assert_int_equal(
		engine_watch(fix.engine, "test", (struct engine_place){ id, after }, &w, NULL), 0);
	while (watcher_next(w, &ev) == 1) {
		_cleanup_free_ char *text = NULL;
		json_t *line = event_to_json(&ev);

		text = json_dumps(line, JSON_COMPACT | JSON_SORT_KEYS);
		json_decref(line);
		assert_non_null(text);
		assert_int_equal(buf_printf(out, "%s\n", text), 0);
	}
	(void)watcher_free(w);
}

static inline const char *line_behind(const char *text, size_t n)
{
	while (n-- > 0)
		text = strchr(text, '\n') + 1;
	return text;
}

static inline void watch(struct event_reader *r, const char *id, const char *after)
{
	*r = (struct event_reader){ 0 };
	buf_init(&r->bytes[0], 64 << 20);
	buf_init(&r->bytes[1], 64 << 20);
	buf_init(&r->kinds, 1 << 20);
	assert_int_equal(engine_watch(fix.engine, "test", (struct engine_place){ id, after },
				      &r->watcher, NULL),
			 0);
	watcher_set_ops(r->watcher, &(struct watcher_ops){ .data = r, .on_ready = pull });
}

static inline void reader_done(struct event_reader *r)
{
	r->watcher = watcher_free(r->watcher);
	buf_done(&r->bytes[0]);
	buf_done(&r->bytes[1]);
	buf_done(&r->kinds);
}

#define ENGINE_TEST(name) cmocka_unit_test_setup_teardown(name, setup_engine, teardown_engine)
