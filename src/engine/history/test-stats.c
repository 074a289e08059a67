/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/history/histogram.h"
#include "engine/history/test-store.h"

static json_t *stats(struct history_fixture *f, struct history_window window)
{
	json_t *root = NULL;

	assert_int_equal(history_stats(f->h, &window, &root, NULL), 0);
	return root;
}

/* A number of stats at a path of keys that ends with NULL. */
static double number(const json_t *root, ...)
{
	va_list keys;
	const char *key;

	va_start(keys, root);
	while ((key = va_arg(keys, const char *)))
		root = json_object_get(root, key);
	va_end(keys);
	assert_true(json_is_number(root));
	return json_number_value(root);
}

static void put_one(struct history_fixture *f, const char *caller, enum run_status status,
		    int64_t us)
{
	char id[HISTORY_ID];
	json_t *labels = json_pack("{s:s}", "team", caller);
	struct history_new in = new_of(f, caller, id);
	struct history_end end = end_with(status);
	int64_t at = 0;

	in.labels = labels;
	end.duration_us = us;
	end.language = us % 2 ? "c" : "python";
	assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	json_decref(labels);
}

static void test_sums(void **state)
{
	struct history_fixture *f = *state;
	json_t *s;

	for (int i = 1; i <= 1000; i++)
		put_one(f, i <= 900 ? "alice" : "bob", i % 10 ? STATUS_SUCCESS : STATUS_TIMEOUT,
			i * 1000);
	put_one(f, "bob", STATUS_ERROR, -1);
	s = stats(f, (struct history_window){ 0 });
	assert_int_equal((int)number(s, "total", NULL), 1001);
	assert_int_equal((int)number(s, "by_status", "success", NULL), 900);
	assert_int_equal((int)number(s, "by_status", "timeout", NULL), 100);
	assert_int_equal((int)number(s, "by_status", "error", NULL), 1);
	assert_true(number(s, "success_rate", NULL) > 0.898 &&
		    number(s, "success_rate", NULL) < 0.9);
	assert_true(number(s, "latency", "p50", NULL) > 0.475 &&
		    number(s, "latency", "p50", NULL) < 0.525);
	assert_true(number(s, "latency", "p90", NULL) > 0.855 &&
		    number(s, "latency", "p90", NULL) < 0.945);
	assert_true(number(s, "latency", "p99", NULL) > 0.940 &&
		    number(s, "latency", "p99", NULL) <= 1.0);
	assert_true(number(s, "latency", "max", NULL) > 0.9999);
	assert_true(number(s, "latency", "mean", NULL) > 0.5004 &&
		    number(s, "latency", "mean", NULL) < 0.5006);
	assert_int_equal((int)number(s, "by_language", "python", "total", NULL), 1000);
	assert_int_equal((int)number(s, "by_language", "c", "total", NULL), 1);
	assert_int_equal((int)number(s, "by_label", "team=bob", "total", NULL), 101);
	json_decref(s);
	s = stats(f, (struct history_window){ .language = "c" });
	assert_int_equal((int)number(s, "total", NULL), 1);
	assert_int_equal((int)number(s, "by_language", "c", "total", NULL), 1);
	assert_null(json_object_get(json_object_get(s, "by_language"), "python"));
	assert_int_equal(json_object_size(json_object_get(s, "by_label")), 0);
	json_decref(s);
	s = stats(f, (struct history_window){ .label = "team=bob" });
	assert_int_equal((int)number(s, "total", NULL), 101);
	json_decref(s);
	s = stats(f, (struct history_window){ .label = "team=carol" });
	assert_int_equal((int)number(s, "total", NULL), 0);
	json_decref(s);
	assert_int_equal(
		history_stats(f->h,
			      &(struct history_window){ .label = "team=bob", .language = "c" }, &s,
			      NULL),
		-EINVAL);
	/* Counted once, whenever and however often it is asked, and kept apart. */
	reopen(f);
	s = stats(f, (struct history_window){ .caller = "bob" });
	assert_int_equal((int)number(s, "total", NULL), 101);
	assert_null(json_object_get(json_object_get(s, "by_label"), "team=alice"));
	json_decref(s);
	/* What is deleted did happen. */
	while (history_delete_some(f->h, NULL, NULL) > 0)
		;
	s = stats(f, (struct history_window){ .since_ns = clock_realtime_ns() - 600 * NS_PER_SEC });
	assert_int_equal((int)number(s, "total", NULL), 1001);
	json_decref(s);
}

static void test_windows(void **state)
{
	struct history_fixture *f = *state;
	int64_t now = clock_realtime_ns(), hour = 3600 * NS_PER_SEC, at = 0;
	json_t *s;

	for (int i = 0; i < 48; i++) {
		char id[HISTORY_ID];
		struct history_new in = new_of(f, "alice", id);
		struct history_end end = end_with(STATUS_SUCCESS);

		in.created_ns = end.ended_ns = now - i * hour;
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	}
	s = stats(f, (struct history_window){ .since_ns = now - 60 * NS_PER_SEC });
	assert_int_equal((int)number(s, "total", NULL), 1);
	json_decref(s);
	s = stats(f, (struct history_window){ .since_ns = now - 24 * hour });
	assert_int_equal((int)number(s, "total", NULL), 25);
	json_decref(s);
	s = stats(f, (struct history_window){ .since_ns = now - 24 * hour,
					      .until_ns = now - 20 * hour });
	assert_true(number(s, "total", NULL) >= 5 && number(s, "total", NULL) <= 6);
	json_decref(s);
	s = stats(f, (struct history_window){ .caller = "bob" });
	assert_int_equal((int)number(s, "total", NULL), 0);
	assert_true(json_is_null(json_object_get(s, "success_rate")));
	assert_true(json_is_null(json_object_get(json_object_get(s, "latency"), "p99")));
	json_decref(s);
}

static void test_made_up_labels(void **state)
{
	struct history_fixture *f = *state;
	int64_t at = 0;
	json_t *s;

	for (int i = 0; i < 300; i++) {
		char id[HISTORY_ID], value[16];
		struct history_new in = new_of(f, "alice", id);
		struct history_end end = end_with(STATUS_SUCCESS);
		json_t *labels;

		(void)snprintf(value, sizeof(value), "%d", i);
		labels = json_pack("{s:s}", "run", value);
		in.labels = labels;
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
		json_decref(labels);
	}
	s = stats(f, (struct history_window){ 0 });
	assert_int_equal((int)number(s, "total", NULL), 300);
	/* At most a hundred a bucket; the test may cross from one to the next. */
	assert_in_range(json_object_size(json_object_get(s, "by_label")), 100, 200);
	json_decref(s);
}

static void test_retention(void **state)
{
	struct history_fixture *f = *state;
	const struct {
		int64_t s, rows, bytes;
		int64_t left;
	} cases[] = {
		{ 0, 0, 0, 200 },
		{ 0, 150, 0, 150 },
		{ 0, 0, 100 * 33, 100 },
		{ 0, 1, 0, 1 },
	};
	int64_t at = 0;

	for (int i = 0; i < 200; i++) {
		char id[HISTORY_ID];
		struct history_new in = new_of(f, "alice", id);
		struct history_end end = end_with(STATUS_SUCCESS);

		end.result = SPAN("0123456789abcd"); /* 33 bytes with the request */
		assert_int_equal(in.request.len, 19);
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
		(void)close(history_output_create(f->h, id, HISTORY_STDOUT));
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		f->options.retain_s = cases[i].s;
		f->options.retain_rows = cases[i].rows;
		f->options.retain_bytes = cases[i].bytes;
		reopen(f);
		settle(f);
		assert_int_equal(history_health(f->h).rows, cases[i].left);
		assert_int_equal(history_health(f->h).bytes, cases[i].left * 33);
	}
	/* The newest is the one that is left, and its file too. */
	char id[HISTORY_ID];
	_cleanup_close_ int kept = history_output_open(f->h, make_id(id, 200), HISTORY_STDOUT);

	assert_true(kept >= 0);
	assert_int_equal(history_output_open(f->h, make_id(id, 199), HISTORY_STDOUT), -ENOENT);
}

static int64_t rows_of(struct history_fixture *f, const char *caller)
{
	struct history_count count = { 0 };

	assert_int_equal(
		history_count(f->h, &(struct history_filter){ .caller = caller }, &count, NULL), 0);
	return count.n;
}

/* The caller with the most gives way, although the others' rows are older. */
static void test_retention_is_fair(void **state)
{
	struct history_fixture *f = *state;

	for (int i = 0; i < 20; i++) {
		(void)put(f, "bob", STATUS_SUCCESS);
		(void)put(f, "carol", STATUS_SUCCESS);
	}
	for (int i = 0; i < 150; i++)
		(void)put(f, "alice", STATUS_SUCCESS);
	settle(f);
	f->options.retain_rows = 100;
	reopen(f);
	settle(f);
	assert_int_equal(rows_of(f, "alice"), 60);
	assert_int_equal(rows_of(f, "bob"), 20);
	assert_int_equal(rows_of(f, "carol"), 20);
	/* Shares of a database that knew none are counted when it is opened. */
	become_version_1(f);
	f->options.retain_rows = 0;
	f->options.retain_bytes = history_health(f->h).bytes * 45 / 100;
	reopen(f);
	settle(f);
	assert_in_range(rows_of(f, "alice"), 14, 16);
	assert_in_range(rows_of(f, "bob"), 14, 16);
	assert_in_range(rows_of(f, "carol"), 14, 16);
	assert_true(history_health(f->h).bytes <= f->options.retain_bytes);
}

static void test_retention_by_age(void **state)
{
	struct history_fixture *f = *state;
	int64_t now = clock_realtime_ns(), at = 0;
	char id[HISTORY_ID];

	for (int i = 0; i < 100; i++) {
		struct history_new in = new_of(f, "alice", id);
		struct history_end end = end_with(STATUS_SUCCESS);

		in.created_ns = now - i * 60 * NS_PER_SEC;
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	}
	struct history_new old = new_of(f, "alice", id);

	old.created_ns = now - 90000 * NS_PER_SEC; /* never ended: stays */
	assert_int_equal(history_accept(f->h, &old, &at, NULL), 0);
	f->options.retain_s = 30 * 60;
	reopen(f);
	assert_true(history_tick(f->h)); /* bounded: not all at once */
	assert_true(history_health(f->h).rows > 31);
	settle(f);
	assert_in_range(history_health(f->h).rows, 30, 31);
	assert_int_equal(history_start(f->h, at, now, NULL), 0);
}

static void test_tally(void **state _unused_)
{
	static struct run_histogram a, b;
	_cleanup_buf_ struct buf data = { .max = 1 << 20 };

	assert_int_equal(run_histogram_percentile_us(&a, 0.5), -1);
	for (int64_t us = 1; us < INT64_C(1) << 50; us = us * 3 + 1) {
		static struct run_histogram one;

		(void)memset(&one, 0, sizeof(one));
		run_histogram_add(&one, STATUS_SUCCESS, us);
		run_histogram_add(&a, STATUS_SUCCESS, us);
		/* One value is its own median, within the width of its class. */
		if (us < INT64_C(1) << HISTOGRAM_LAST_BIT)
			assert_true(llabs(run_histogram_percentile_us(&one, 0.5) - us) * 32 <= us);
	}
	assert_int_equal(run_histogram_write(&a, &data), 0);
	assert_int_equal(run_histogram_read(&b, data.data, data.len), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(run_histogram_read(&b, data.data, data.len), 0);
	assert_int_equal(b.ended[STATUS_SUCCESS], 2 * a.ended[STATUS_SUCCESS]);
	assert_int_equal(run_histogram_read(&b, data.data, data.len - 1), -EBADMSG);
	assert_int_equal(run_histogram_read(&b, "\xff\xff\1\0\0\0\0\0\0\0", 10), -EBADMSG);
}

struct pauses {
	struct history_fixture *f;
	int n, most;
};

/* Another question, and another row, meanwhile. */
static bool on_pause(void *data)
{
	struct pauses *p = data;
	json_t *other = NULL;

	if (p->n++ == 0) {
		assert_int_equal(history_stats(p->f->h, &(struct history_window){ .since_ns = 1 },
					       &other, NULL),
				 0);
		(void)put(p->f, "bob", STATUS_SUCCESS);
	}
	json_decref(other);
	return p->n < p->most;
}

static json_int_t paused_total(struct history_fixture *f, int most, int *ret_pauses)
{
	struct pauses p = { .f = f, .most = most };
	const struct history_window window = { .caller = "alice",
					       .since_ns = clock_realtime_ns() - 3600 * NS_PER_SEC,
					       .pause = on_pause,
					       .pause_data = &p };
	json_t *stats = NULL;
	json_int_t total;

	assert_int_equal(history_stats(f->h, &window, &stats, NULL), 0);
	total = json_integer_value(json_object_get(stats, "total"));
	json_decref(stats);
	*ret_pauses = p.n;
	return total;
}

/* Many sums are read in pieces, between which others are served. */
static void test_pauses(void **state)
{
	enum { MINUTES = 50, NAMES = 100 };
	struct history_fixture *f = *state;
	const int64_t now_s = clock_realtime_ns() / NS_PER_SEC;
	struct run_histogram one = { .ended = { [STATUS_SUCCESS] = 1 } };
	_cleanup_buf_ struct buf data = { .max = 1024 };
	char name[32] = "";
	int pauses;

	assert_int_equal(run_histogram_write(&one, &data), 0);
	assert_int_equal(history_begin(f->h, NULL), 0);
	for (int i = 0; i < MINUTES * NAMES; i++) {
		const int64_t minute = now_s - now_s % SPAN_MINUTE - i / NAMES * SPAN_MINUTE;
		const bool whole = i % NAMES == 0;

		name[0] = '\0';
		if (!whole)
			(void)snprintf(name, sizeof(name), "job=%d", i % NAMES);
		assert_int_equal(
			store_do(f->h, STMT_TALLY_SET,
				 VALUES(V_NUMBER(SPAN_MINUTE), V_NUMBER(minute), V_TEXT("alice"),
					V_NUMBER(whole ? HISTOGRAM_ALL : HISTOGRAM_LABEL),
					V_TEXT(name), V_BLOB(data.data, data.len))),
			0);
	}
	assert_int_equal(history_commit(f->h, NULL), 0);
	assert_int_equal(paused_total(f, 1000, &pauses), MINUTES);
	assert_in_range(pauses, 3, MINUTES);
	assert_in_range(paused_total(f, 2, &pauses), 1, MINUTES - 1);
	assert_int_equal(pauses, 2);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_pauses),	     CASE(test_sums),
		CASE(test_windows),	     CASE(test_made_up_labels),
		CASE(test_retention),	     CASE(test_retention_is_fair),
		CASE(test_retention_by_age), cmocka_unit_test(test_tally),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
