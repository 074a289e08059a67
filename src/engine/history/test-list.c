/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/history/store.h"
#include "engine/history/test-store.h"

static void test_filters(void **state)
{
	struct history_fixture *f = *state;
	json_t *labels = json_pack("{s:s, s:s}", "team", "100%_", "x", "y");
	const char *const two[] = { "queued", "timeout", NULL };
	const struct history_label both[] = { { "x", "y" }, { 0 } };
	const struct history_label other[] = { { "x", "y" }, { "x", "z" }, { 0 } };
	int64_t at = 0, middle = 0;
	char id[HISTORY_ID];

	for (int i = 0; i < 60; i++) {
		struct history_new in = new_of(f, i % 3 ? "alice" : "bob", id);
		struct history_end end = end_with(i % 5 ? STATUS_SUCCESS : STATUS_TIMEOUT);

		in.language = i % 2 ? "python" : "c";
		in.labels = i % 4 ? NULL : labels;
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
		if (i == 29)
			middle = at;
	}
	json_decref(labels);
	struct history_new in = new_of(f, "bob", id);

	assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	assert_int_equal(count(f, (struct history_filter){ 0 }), 61);
	assert_int_equal(count(f, (struct history_filter){ .status = "timeout" }), 12);
	assert_int_equal(count(f, (struct history_filter){ .status = "success" }), 48);
	assert_int_equal(count(f, (struct history_filter){ .status = "queued" }), 1);
	assert_int_equal(count(f, (struct history_filter){ .status = "running" }), 0);
	assert_int_equal(
		count(f, (struct history_filter){ .status = "timeout", .more_statuses = two }), 13);
	assert_int_equal(
		count(f, (struct history_filter){ .status = "success", .more_statuses = two }), 61);
	assert_int_equal(count(f, (struct history_filter){ .label_name = "team",
							   .label_value = "100%_",
							   .more_labels = both }),
			 15);
	assert_int_equal(count(f, (struct history_filter){ .label_name = "team",
							   .label_value = "100%_",
							   .more_labels = other }),
			 0);
	/* Ids end with their number: of 61, ten are 50 to 59, and bob's queued one is 61. */
	assert_int_equal(count(f, (struct history_filter){ .id = "ex_0000000000000000000000005" }),
			 10);
	assert_int_equal(count(f, (struct history_filter){ .id = make_id(id, 61),
							   .caller = "bob",
							   .status = "queued" }),
			 1);
	assert_int_equal(count(f, (struct history_filter){ .id = id, .caller = "alice" }), 0);
	assert_int_equal(count(f, (struct history_filter){ .caller = "bob" }), 21);
	assert_int_equal(count(f, (struct history_filter){ .caller = "bob", .status = "queued" }),
			 1);
	assert_int_equal(count(f, (struct history_filter){ .caller = "alice", .status = "queued" }),
			 0);
	assert_int_equal(count(f, (struct history_filter){ .language = "c", .caller = "bob" }), 10);
	assert_int_equal(
		count(f, (struct history_filter){ .label_name = "team", .label_value = "100%_" }),
		15);
	assert_int_equal(
		count(f, (struct history_filter){ .label_name = "team", .label_value = "100%a" }),
		0);
	assert_int_equal(count(f, (struct history_filter){ .label_name = "x",
							   .label_value = "y",
							   .caller = "bob",
							   .status = "timeout" }),
			 1);
	assert_int_equal(count(f, (struct history_filter){ .until_ns = middle * 1000 }), 29);
	assert_int_equal(count(f, (struct history_filter){ .since_ns = middle * 1000 }), 32);
	assert_int_equal(
		count(f, (struct history_filter){ .since_ns = middle * 1000, .language = "c" }),
		15);
}

static void test_cursor_is_stable(void **state)
{
	struct history_fixture *f = *state;
	char cursor[HISTORY_CURSOR] = "", id[HISTORY_ID];
	int seen[101] = { 0 }, pages = 0;

	for (int i = 0; i < 100; i++)
		(void)put(f, "alice", STATUS_SUCCESS);
	do {
		_cleanup_history_page_ struct history_page page = { 0 };

		(void)list(
			f,
			(struct history_filter){ .limit = 7, .cursor = cursor[0] ? cursor : NULL },
			&page);
		for (size_t i = 0; i < page.n; i++) {
			unsigned n = 0;

			assert_int_equal(sscanf(page.rows[i].id, "ex_%u", &n), 1);
			if (n <= 100)
				seen[n]++;
		}
		(void)snprintf(cursor, sizeof(cursor), "%s", page.next);
		pages++;
		/* Others come and go meanwhile: pages neither repeat nor skip what stays. */
		(void)put(f, "bob", STATUS_SUCCESS);
		assert_int_equal(history_delete(f->h, NULL, make_id(id, f->ids), NULL), 0);
		(void)put(f, "bob", STATUS_SUCCESS);
	} while (cursor[0] && pages < 50);
	assert_int_equal(pages, 15);
	for (int i = 1; i <= 100; i++)
		assert_int_equal(seen[i], 1);
}

static void test_no_empty_last_page(void **state)
{
	struct history_fixture *f = *state;
	_cleanup_history_page_ struct history_page page = { 0 };

	for (int i = 0; i < 10; i++)
		(void)put(f, "alice", STATUS_SUCCESS);
	assert_int_equal(list(f, (struct history_filter){ .limit = 10 }, &page), 10);
	assert_string_equal(page.next, "");
}

static void test_bounded_look(void **state)
{
	struct history_fixture *f = *state;
	char cursor[HISTORY_CURSOR] = "";
	int64_t at = 0, now = clock_realtime_ns();
	size_t found = 0, pages = 0;

	assert_int_equal(history_begin(f->h, NULL), 0);
	for (int i = 0; i < 25000; i++) {
		char id[HISTORY_ID];
		struct history_new in = new_of(f, "alice", id);
		struct history_end end = end_with(i % 2 ? STATUS_TIMEOUT : STATUS_ERROR);

		in.created_ns = now + i * 1000LL;
		in.language = i % 2 && i != 17 ? "python" : "lua";
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	}
	assert_int_equal(history_commit(f->h, NULL), 0);
	/* One half of the rows or the other has to be looked at, some a call. */
	do {
		_cleanup_history_page_ struct history_page page = { 0 };
		struct history_filter filter = { .status = "timeout",
						 .language = "lua",
						 .limit = 10,
						 .cursor = cursor[0] ? cursor : NULL };

		found += list(f, filter, &page);
		(void)snprintf(cursor, sizeof(cursor), "%s", page.next);
		pages++;
	} while (cursor[0]);
	assert_int_equal(found, 1);
	assert_int_equal(pages, 13);
	struct history_count c = { 0 };

	assert_int_equal(
		history_count(f->h,
			      &(struct history_filter){ .status = "timeout", .language = "lua" },
			      &c, NULL),
		0);
	assert_false(c.exact);
}

/* A database of an old version: every page is as before, and words are found, at the latest after history_tick(). */
static void test_old_database(void **state)
{
	static void (*const become[])(struct history_fixture *) = {
		become_version_1, become_version_2, become_version_3,
		become_version_4, become_version_5, become_version_6
	};
	struct history_fixture *f = *state;

	for (int i = 0; i < 1500; i++)
		put_words(f, "needle", i % 2 ? "odd" : "even", "");
	(void)put(f, "bob", STATUS_TIMEOUT);
	for (size_t i = 0; i < ARRAY_SIZE(become); i++) {
		settle(f);
		become[i](f);
		reopen(f);
		/* The newest kept its words; the others are indexed again. */
		assert_int_equal(history_health(f->h).backlog,
				 become[i] == become_version_6 ? 0 : 1501);
		settle(f);
		assert_int_equal(history_health(f->h).backlog, 0);
		assert_indexed(f);
		assert_int_equal(
			count(f, (struct history_filter){ .text = "needle odd", .since_ns = 1 }),
			750);
	}
	assert_int_equal(count(f, (struct history_filter){ .status = "timeout" }), 1);
	assert_int_equal(count(f, (struct history_filter){ .caller = "bob", .language = "python" }),
			 1);
}

static void test_refused_filters(void **state)
{
	struct history_fixture *f = *state;
	char large[2000];
	const char *const wrong[] = { "error", "done", NULL };
	const struct {
		struct history_filter filter;
		const char *field;
	} cases[] = {
		{ { .limit = 1, .status = "error", .more_statuses = wrong }, "status" },
		{ { .limit = 1, .id = "ex_abc" }, "id" },
		{ { .limit = 0 }, "limit" },
		{ { .limit = HISTORY_PAGE_MAX + 1 }, "limit" },
		{ { .limit = 1, .status = "done" }, "status" },
		{ { .limit = 1, .status = "" }, "status" },
		{ { .limit = 1, .cursor = "" }, "cursor" },
		{ { .limit = 1, .cursor = "p" }, "cursor" },
		{ { .limit = 1, .cursor = "p-5" }, "cursor" },
		{ { .limit = 1, .cursor = "p99999999999999999999" }, "cursor" },
		{ { .limit = 1, .cursor = "p1; DROP" }, "cursor" },
		{ { .limit = 1, .text = "" }, "text" },
		{ { .limit = 1, .text = "%_\"!" }, "text" },
		{ { .limit = 1, .text = "*" }, "text" },
		{ { .limit = 1, .text = large }, "text" },
		{ { .limit = 1, .text = "a b c d e f g h i j k l m n o p q" }, "text" },
		{ { .limit = 1, .label_name = "x" }, "label" },
	};

	(void)memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct history_page page = { 0 };
		struct error err = { 0 };

		assert_int_equal(history_list(f->h, &cases[i].filter, &page, &err), -EINVAL);
		assert_string_equal(err.field, cases[i].field);
		assert_int_equal(err.code, ERROR_INPUT);
	}
}

static void assert_plan(struct history_fixture *f, enum stmt which, const char *part)
{
	char sql[1024];
	sqlite3_stmt *s = NULL;
	bool found = false;

	(void)snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", statements[which]);
	assert_int_equal(sqlite3_prepare_v2(f->h->db, sql, -1, &s, NULL), SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW)
		found |= strstr((const char *)sqlite3_column_text(s, 3), part) != NULL;
	(void)sqlite3_finalize(s);
	if (!found)
		fail_msg("%s: not by %s", statements[which], part);
}

static void test_indexes(void **state)
{
	static const struct {
		enum stmt which;
		const char *part;
	} cases[] = {
		{ STMT_LIST_LIVE, "execution_live" },
		{ STMT_LIST_ID, "INDEX execution_id" },
		{ STMT_LIST_SUCCESS, "INDEX execution_success" },
		{ STMT_LIST_FAILURE, "COVERING INDEX execution_failure" },
		{ STMT_LIST_CALLER_LANGUAGE, "COVERING INDEX execution_caller_language" },
		{ STMT_LIST_LANGUAGE, "execution_language" },
		{ STMT_LIST_CALLER, "INDEX execution_caller (" },
		{ STMT_LIST_LABEL, "label USING PRIMARY KEY" },
		{ STMT_NTH_FAILURE, "COVERING INDEX execution_failure" },
		{ STMT_NTH_LANGUAGE, "COVERING INDEX execution_language" },
		{ STMT_NTH_CALLER, "COVERING INDEX execution_caller (" },
		{ STMT_NTH_CALLER_LANGUAGE, "COVERING INDEX execution_caller_language" },
		{ STMT_NTH_LABEL, "label USING PRIMARY KEY" },
		{ STMT_WORDS, "result USING INTEGER PRIMARY KEY" },
		{ STMT_PAST_CODE, "COVERING INDEX execution_code" },
		{ STMT_QUEUED, "execution_live" },
		{ STMT_RUNNING, "execution_live" },
		{ STMT_GET, "execution_id" },
		{ STMT_OLDEST, "INTEGER PRIMARY KEY" },
		{ STMT_OLDEST_OF, "INDEX execution_caller (" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_plan(*state, cases[i].which, cases[i].part);
}

/* No statement that is made while the daemon runs may read a whole table. */
static void test_plans(void **state)
{
	struct history_fixture *f = *state;

	for (int i = 0; i < _STMT_MAX; i++) {
		char sql[1024];
		sqlite3_stmt *s = NULL;

		(void)snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", statements[i]);
		assert_int_equal(sqlite3_prepare_v2(f->h->db, sql, -1, &s, NULL), SQLITE_OK);
		while (sqlite3_step(s) == SQLITE_ROW) {
			const char *step = (const char *)sqlite3_column_text(s, 3);
			bool ordered = i == STMT_UNINDEXED || i == STMT_LIVE_COUNT ||
				       i == STMT_LIST_ID;

			/* Three look at few rows by what they are for. */
			if (!ordered && (strstr(step, "TEMP B-TREE") ||
					 (strncmp(step, "SCAN", 4) == 0 &&
					  !strstr(step, "VIRTUAL") && !strstr(step, "CONSTANT"))))
				fail_msg("%s: %s", statements[i], step);
		}
		(void)sqlite3_finalize(s);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_filters),	 CASE(test_cursor_is_stable), CASE(test_no_empty_last_page),
		CASE(test_bounded_look), CASE(test_old_database),     CASE(test_refused_filters),
		CASE(test_plans),	 CASE(test_indexes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
