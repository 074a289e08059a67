/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged databases: what is put aside, what is taken over of it, and that nothing is taken twice or deleted. */
#include "engine/history/test-store.h"

enum { ROWS = 600, PAGE = 4096 };

static void open_path(char ret[128], const struct history_fixture *f, const char *name)
{
	(void)snprintf(ret, 128, "%s/%s", f->dir, name);
}

/* Rows with everything that a row may have, large enough that they fill many pages. */
static void fill(struct history_fixture *f)
{
	json_t *labels = json_pack("{s:s}", "kind", "kept");

	for (int i = 0; i < ROWS; i++) {
		char id[HISTORY_ID], key[16];
		struct history_new in = new_of(f, i % 3 ? "alice" : "bob", id);
		struct history_end end = end_with(i % 2 ? STATUS_SUCCESS : STATUS_ERROR);
		int64_t row = 0;

		(void)snprintf(key, sizeof(key), "key-%d", i);
		in.created_ns = 1700000000 * NS_PER_SEC + i * NS_PER_SEC;
		in.labels = labels;
		in.code_sha256 = HASH_A;
		if (i % 10 == 0) {
			in.key = key;
			in.key_sha256 = HASH_B;
		}
		in.callback = i == 50;
		end.code = SPAN("pomegranate");
		if (i % 4) {
			assert_int_equal(history_record(f->h, &in, &end, &row, NULL), 0);
		} else {
			assert_int_equal(history_accept(f->h, &in, &row, NULL), 0);
			assert_int_equal(history_finish(f->h, row, &end, NULL), 0);
		}
	}
	json_decref(labels);
	settle(f);
}

/* Everything is in the database file, and the next open looks at it. */
static void close_unclean(struct history_fixture *f)
{
	char path[128];

	f->h = history_close(f->h);
	open_path(path, f, "unsound");
	assert_int_equal(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
}

static void damage_at(const struct history_fixture *f, off_t at, size_t n)
{
	_cleanup_free_ char *garbage = malloc(n);
	char path[128];
	int fd;

	open_path(path, f, "history.db");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	(void)memset(garbage, 'x', n);
	assert_int_equal(pwrite(fd, garbage, n, at), n);
	(void)close(fd);
}

static int64_t number_of(const json_t *report, const char *key)
{
	return json_integer_value(
		json_object_get(json_array_get(json_object_get(report, "files"), 0), key));
}

static bool truth_of(const json_t *report, const char *key)
{
	return json_is_true(
		json_object_get(json_array_get(json_object_get(report, "files"), 0), key));
}

static json_t *repair(struct history_fixture *f)
{
	struct history_repair *r = NULL, *second = NULL;
	struct error err = { 0 };
	json_t *report;
	int more;

	if (history_repair_new(f->h, &r, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(history_repair_new(f->h, &second, &err), -EBUSY);
	while ((more = history_repair_step(r, &err)) > 0)
		;
	if (more < 0)
		fail_msg("%s", err.text);
	report = history_repair_report(r);
	assert_null(history_repair_free(r));
	return report;
}

static int count_known(struct history_fixture *f)
{
	int n = 0;

	for (unsigned i = 1; i <= ROWS; i++) {
		_cleanup_history_row_ struct history_row row = { 0 };
		char id[HISTORY_ID];

		n += history_get(f->h, NULL, make_id(id, i), &row) == 0;
	}
	return n;
}

static bool exists(const struct history_fixture *f, const char *name)
{
	char path[128];

	open_path(path, f, name);
	return access(path, F_OK) == 0;
}

/* The rows are read where the damage is not; a damaged page costs no more than its own. */
static void test_middle(void **state)
{
	struct history_fixture *f = *state;
	struct history_filter words = { .text = "pomegranate", .limit = 1000 };
	struct history_health health;
	struct history_count n;
	char path[128], found[HISTORY_ID];
	struct stat st;
	json_t *report;

	fill(f);
	open_path(path, f, "history.db");
	close_unclean(f);
	assert_int_equal(stat(path, &st), 0);
	for (off_t at = 8 * PAGE; at < st.st_size; at += 29 * PAGE)
		damage_at(f, at, PAGE);
	reopen(f);
	health = history_health(f->h);
	assert_true(health.replaced && health.aside == 1 && !health.unsound && !health.degraded);
	assert_true(exists(f, health.aside_name));
	assert_int_equal(count_known(f), 0);
	(void)put(f, "carol", STATUS_SUCCESS); /* life goes on */
	report = repair(f);
	assert_true(number_of(report, "taken") > ROWS / 2);
	assert_true(number_of(report, "taken") < ROWS || number_of(report, "incomplete") > 0 ||
		    !truth_of(report, "whole"));
	assert_int_equal(count_known(f), number_of(report, "taken"));
	json_decref(report);
	assert_int_equal(history_health(f->h).aside, 0);
	assert_true(exists(f, health.aside_name));
	/* Search, labels, keys and statistics know them. */
	settle(f);
	assert_int_equal(history_count(f->h, &words, &n, NULL), 0);
	assert_true(n.n > ROWS / 3);
	assert_int_equal(history_count(f->h,
				       &(struct history_filter){ .label_name = "kind",
								 .label_value = "kept" },
				       &n, NULL),
			 0);
	assert_int_equal(n.n, count_known(f));
	for (int i = 0, keys = 0; i <= ROWS; i += 10) {
		char key[16];

		(void)snprintf(key, sizeof(key), "key-%d", i);
		keys += history_find_key(f->h, i % 3 ? "alice" : "bob", key, HASH_B, found) == 1;
		assert_true(i < ROWS || keys > ROWS / 30);
	}
	/* Nothing is left to do, and nothing happens twice. */
	report = repair(f);
	assert_int_equal(json_array_size(json_object_get(report, "files")), 0);
	json_decref(report);
	reopen(f);
	assert_int_equal(history_health(f->h).aside, 0);
}

/* A whole database that was put aside by mistake comes back whole, however often it is taken; also what lies in its log. */
static void test_whole(void **state)
{
	struct history_fixture *f = *state;
	char from[128], to[128], mark[128];
	struct history_page due = { 0 };
	json_t *report;
	int64_t waiting = 0, running = 0;

	fill(f);
	{
		char id[HISTORY_ID], other[HISTORY_ID];
		struct history_new queued = new_of(f, "alice", id);
		struct history_new begun = new_of(f, "alice", other);

		begun.running = true;
		assert_int_equal(history_accept(f->h, &queued, &waiting, NULL), 0);
		assert_int_equal(history_accept(f->h, &begun, &running, NULL), 0);
	}
	assert_true(exists(f, "history.db-wal"));
	/* As after kill -9: the log is not part of the database yet. */
	for (int i = 0; i < 2; i++) {
		open_path(from, f, i ? "history.db-wal" : "history.db");
		open_path(to, f, i ? "history.db.damaged-7-wal" : "history.db.damaged-7");
		copy_file(from, to, SIZE_MAX, 0);
	}
	f->h = history_close(f->h);
	open_path(from, f, "history.db");
	assert_int_equal(unlink(from), 0);
	reopen(f);
	assert_false(history_health(f->h).replaced);
	assert_int_equal(history_health(f->h).aside, 1);
	report = repair(f);
	assert_int_equal(number_of(report, "taken"), ROWS + 2);
	assert_int_equal(number_of(report, "incomplete"), 0);
	assert_true(truth_of(report, "whole") && truth_of(report, "readable"));
	json_decref(report);
	assert_int_equal(count_known(f), ROWS);
	for (unsigned i = ROWS + 1; i <= ROWS + 2; i++) {
		_cleanup_history_row_ struct history_row row = { 0 };
		char id[HISTORY_ID];

		assert_int_equal(history_get(f->h, "alice", make_id(id, i), &row), 0);
		assert_string_equal(row.status, "interrupted");
		assert_non_null(strstr(row.result, "the history was damaged"));
	}
	assert_int_equal(history_callbacks(f->h, 0, 10, &due), 0);
	assert_int_equal(due.n, 1);
	history_page_done(&due);
	open_path(mark, f, "history.db.damaged-7.repaired");
	assert_int_equal(unlink(mark), 0);
	report = repair(f);
	assert_int_equal(number_of(report, "taken"), 0);
	assert_int_equal(number_of(report, "known"), ROWS + 2);
	json_decref(report);
}

/* Without its first page SQLite would not even know that the file is a database. */
static void test_first_page(void **state)
{
	struct history_fixture *f = *state;
	json_t *report;

	fill(f);
	close_unclean(f);
	damage_at(f, 0, PAGE);
	reopen(f);
	assert_true(history_health(f->h).replaced);
	report = repair(f);
	assert_int_equal(number_of(report, "taken"), ROWS);
	json_decref(report);
	assert_int_equal(count_known(f), ROWS);
	assert_false(exists(f, "repair-copy"));
}

/* Of pure garbage nothing can be taken, and the repair says so instead of failing. */
static void test_garbage(void **state)
{
	struct history_fixture *f = *state;
	json_t *report;

	fill(f);
	close_unclean(f);
	damage_at(f, 0, 4 << 20);
	reopen(f);
	report = repair(f);
	assert_int_equal(number_of(report, "taken"), 0);
	assert_false(truth_of(report, "whole"));
	json_decref(report);
	(void)put(f, "alice", STATUS_SUCCESS);
}

/* Two in one second, and the outputs of their rows: neither takes the place of the other, and no output is an orphan. */
static void test_nothing_is_deleted(void **state)
{
	struct history_fixture *f = *state;
	char first[ASIDE_NAME], id[HISTORY_ID];

	fill(f);
	make_id(id, 7);
	(void)close(history_output_create(f->h, id, HISTORY_STDOUT));
	close_unclean(f);
	damage_at(f, PAGE, PAGE);
	(void)usleep(
		30000); /* files are dated with a clock that stands still for some milliseconds */
	reopen(f);
	(void)snprintf(first, sizeof(first), "%s", history_health(f->h).aside_name);
	(void)put(f, "alice", STATUS_SUCCESS);
	settle(f);
	close_unclean(f);
	damage_at(f, 0, 2 * PAGE);
	reopen(f);
	settle(f);
	assert_true(history_health(f->h).replaced);
	assert_int_equal(history_health(f->h).aside, 2);
	assert_true(exists(f, first) && strcmp(first, history_health(f->h).aside_name) != 0);
	assert_int_equal(close(history_output_open(f->h, id, HISTORY_STDOUT)), 0);
	/* Its rows come first that was put aside first. */
	json_t *report = repair(f);
	const json_t *files = json_object_get(report, "files");

	assert_int_equal(json_array_size(files), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(files, 0), "file")),
			    first);
	json_decref(report);
}

/* What is met while the daemon runs is put aside at its next start, however it ended. */
static void test_met_while_running(void **state)
{
	struct history_fixture *f = *state;
	struct history_filter all = { .limit = 1000 };
	char path[128];
	struct stat st;

	fill(f);
	f->h = history_close(f->h);
	open_path(path, f, "history.db");
	assert_int_equal(stat(path, &st), 0);
	for (off_t at = 8 * PAGE; at < st.st_size; at += 7 * PAGE)
		damage_at(f, at, PAGE);
	reopen(f); /* a clean stop: nothing is checked */
	assert_false(history_health(f->h).replaced);
	for (unsigned i = 1; i <= ROWS; i++) {
		_cleanup_history_row_ struct history_row row = { 0 };
		char id[HISTORY_ID];

		(void)!history_get(f->h, NULL, make_id(id, i), &row);
	}
	(void)all;
	assert_true(history_health(f->h).unsound);
	reopen(f);
	assert_true(history_health(f->h).replaced);
	assert_false(history_health(f->h).unsound);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_middle),
		CASE(test_whole),
		CASE(test_first_page),
		CASE(test_garbage),
		CASE(test_nothing_is_deleted),
		CASE(test_met_while_running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
