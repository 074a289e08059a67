/* SPDX-License-Identifier: Apache-2.0 */
/* Searching for words: which executions are found, in which order, and that the index has neither more nor less. */
#include "engine/history/test-store.h"

static void test_words(void **state)
{
	struct history_fixture *f = *state;

	put_words(f, "print(1/0)", "", "ZeroDivisionError: division by zero");
	put_words(f, "x = 'snake_case' # 100%", "hello World\n", "");
	put_words(f, "naïve = \"q\"", "caf\xc3\xa9 \xff\xfe raw\0bytes", "");
	assert_int_equal(count(f, (struct history_filter){ .text = "DIVISION zero" }), 1);
	assert_int_equal(count(f, (struct history_filter){ .text = "zerodivisionerror" }), 1);
	assert_int_equal(count(f, (struct history_filter){ .text = "ZeroDiv*" }), 0);
	assert_int_equal(count(f, (struct history_filter){ .text = "ZeroDiv" }), 0);
	assert_int_equal(count(f, (struct history_filter){ .text = "snake_case" }), 1);
	assert_int_equal(count(f, (struct history_filter){ .text = "hello print" }), 0);
	assert_int_equal(count(f, (struct history_filter){ .text = "na\xc3\xafve" }), 1);
	assert_int_equal(count(f, (struct history_filter){ .text = "raw" }), 1);
	assert_int_equal(count(f, (struct history_filter){ .text = "print", .caller = "bob" }), 0);
	/* Nothing of the query language, or of LIKE, means anything. */
	assert_int_equal(count(f, (struct history_filter){ .text = "100%" }), 1);
	assert_int_equal(count(f, (struct history_filter){ .text = "1__" }), 1);
	assert_int_equal(count(f, (struct history_filter){ .text = "\" OR \"hello" }), 0);
	assert_int_equal(count(f, (struct history_filter){ .text = "hello) OR (print" }), 0);
	assert_int_equal(count(f, (struct history_filter){ .text = "words:hello" }), 0);
	assert_int_equal(
		count(f, (struct history_filter){ .text = "NOT hello'; DROP TABLE execution;--" }),
		0);
	assert_int_equal(count(f, (struct history_filter){ 0 }), 3);
}

static void test_words_go_with_rows(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID];

	for (int i = 0; i < 300; i++)
		put_words(f, "needle", i % 2 ? "odd" : "even", "");
	assert_int_equal(count(f, (struct history_filter){ .text = "needle odd" }), 150);
	for (unsigned i = 1; i <= 100; i++)
		assert_int_equal(history_delete(f->h, NULL, make_id(id, i), NULL), 0);
	assert_int_equal(count(f, (struct history_filter){ .text = "needle" }), 200);
	/* The index itself has forgotten them: it does not grow for ever. */
	sqlite3_stmt *s = NULL;

	assert_int_equal(
		sqlite3_prepare_v2(f->h->db,
				   "SELECT count(*) FROM search WHERE search MATCH 'needle'", -1,
				   &s, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(s, 0), 200);
	(void)sqlite3_finalize(s);
	reopen(f);
	assert_int_equal(count(f, (struct history_filter){ .text = "odd" }), 100);
	assert_int_equal(history_health(f->h).backlog, 0);
}

/* Newest first, page by page, nothing twice and nothing left out; also between two times. */
static void test_words_in_order(void **state)
{
	struct history_fixture *f = *state;
	char cursor[HISTORY_CURSOR] = "";
	int64_t last = INT64_MAX, middle = 0;
	size_t found = 0;

	for (int i = 0; i < 700; i++) {
		put_words(f, i % 7 ? "needle" : "needle rare", "", "");
		if (i == 349)
			middle = f->h->last_at;
		if (i % 200 == 0)
			settle(f);
	}
	do {
		_cleanup_history_page_ struct history_page page = { 0 };

		found += list(f,
			      (struct history_filter){ .text = "needle",
						       .limit = 30,
						       .cursor = cursor[0] ? cursor : NULL },
			      &page);
		for (size_t i = 0; i < page.n; i++) {
			assert_true(page.rows[i].row < last);
			last = page.rows[i].row;
		}
		(void)snprintf(cursor, sizeof(cursor), "%s", page.next);
	} while (cursor[0]);
	assert_int_equal(found, 700);
	assert_int_equal(
		count(f, (struct history_filter){ .text = "rare", .until_ns = middle * 1000 }), 50);
	assert_int_equal(
		count(f, (struct history_filter){ .text = "rare", .since_ns = middle * 1000 }), 50);
}

/* Words together with other conditions; a way of failing may have two words. */
static void test_words_and_more(void **state)
{
	static const enum run_status how[] = { STATUS_SUCCESS, STATUS_SETUP_ERROR, STATUS_TIMEOUT };
	const char *const more[] = { "timeout", NULL };
	struct history_fixture *f = *state;
	char id[HISTORY_ID];
	int64_t at = 0;

	for (int i = 0; i < 60; i++) {
		struct history_new in = new_of(f, i % 2 ? "alice" : "bob", id);
		struct history_end end = end_with(how[i % 3]);

		end.code = SPAN("setup needle");
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	}
	for (int i = 0; i < 3; i++) {
		const struct history_filter filter = { .text = "needle",
						       .status = status_name(how[i]) };

		assert_int_equal(count(f, filter), 20);
	}
	assert_int_equal(count(f, (struct history_filter){ .text = "needle",
							   .status = "timeout",
							   .caller = "bob" }),
			 10);
	assert_int_equal(count(f, (struct history_filter){ .text = "needle",
							   .status = "setup_error",
							   .more_statuses = more }),
			 40);
	assert_int_equal(count(f, (struct history_filter){ .text = "timeout" }), 0);
	assert_int_equal(history_delete(f->h, NULL, make_id(id, 3), NULL), 0);
	assert_int_equal(count(f, (struct history_filter){ .text = "needle", .status = "timeout" }),
			 19);
}

/* All pages of a search, checked to be in order; how many rows. */
static size_t walk(struct history_fixture *f, struct history_filter filter)
{
	char cursor[HISTORY_CURSOR] = "";
	int64_t last = INT64_MAX;
	size_t found = 0;

	filter.limit = 7;
	do {
		_cleanup_history_page_ struct history_page page = { 0 };

		filter.cursor = cursor[0] ? cursor : NULL;
		found += list(f, filter, &page);
		for (size_t i = 0; i < page.n; i++) {
			assert_true(page.rows[i].row < last);
			last = page.rows[i].row;
		}
		(void)snprintf(cursor, sizeof(cursor), "%s", page.next);
	} while (cursor[0]);
	return found;
}

/* Words of many batches, of an execution that took long, and of none that was deleted. */
static void test_words_of_batches(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID], late[HISTORY_ID];
	struct history_new in = new_of(f, "alice", late);
	struct history_end end = end_with(STATUS_SUCCESS);
	int64_t at = 0, middle = 0;

	assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	for (int batch = 1; batch <= 6; batch++) {
		for (int i = 0; i < 20; i++)
			put_words(f, i % 10 ? "needle" : "needle rare", batch == 2 ? "second" : "",
				  "");
		if (batch == 3)
			middle = f->h->last_at;
		settle(f);
	}
	end.code = SPAN("late needle");
	assert_int_equal(history_finish(f->h, at, &end, NULL), 0);
	settle(f);
	assert_indexed(f);
	assert_int_equal(walk(f, (struct history_filter){ .text = "needle" }), 121);
	assert_int_equal(walk(f, (struct history_filter){ .text = "RARE needle" }), 12);
	assert_int_equal(walk(f, (struct history_filter){ .text = "second" }), 20);
	assert_int_equal(walk(f, (struct history_filter){ .text = "second rare" }), 2);
	assert_int_equal(walk(f, (struct history_filter){ .text = "late" }), 1);
	assert_int_equal(walk(f, (struct history_filter){ .text = "nowhere needle" }), 0);
	assert_int_equal(
		walk(f, (struct history_filter){ .text = "needle", .until_ns = middle * 1000 }),
		60);
	assert_int_equal(
		walk(f, (struct history_filter){ .text = "needle", .since_ns = middle * 1000 }),
		61);
	assert_int_equal(count(f, (struct history_filter){ .text = "rare" }), 12);
	assert_int_equal(history_delete(f->h, NULL, late, NULL), 0);
	assert_int_equal(history_delete(f->h, NULL, make_id(id, 22), NULL), 0);
	assert_indexed(f);
	assert_int_equal(walk(f, (struct history_filter){ .text = "late" }), 0);
	assert_int_equal(walk(f, (struct history_filter){ .text = "second" }), 19);
	reopen(f);
	assert_int_equal(walk(f, (struct history_filter){ .text = "needle" }), 119);
}

/* An execution that was deleted before it was indexed leaves no backlog. */
static void test_deleted_before_indexed(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID];

	put_words(f, "needle", "", "");
	assert_int_equal(history_delete(f->h, NULL, make_id(id, f->ids), NULL), 0);
	settle(f);
	assert_int_equal(history_health(f->h).backlog, 0);
	reopen(f);
	put_words(f, "needle", "", "");
	settle(f);
	assert_int_equal(history_health(f->h).backlog, 0);
	assert_int_equal(count(f, (struct history_filter){ .text = "needle" }), 1);
}

/* However many words there are, a call indexes or deletes some of them: of 8 KiB, eight times. */
static void test_many_words(void **state)
{
	enum { ROWS = 60 };
	struct history_fixture *f = *state;
	static char text[8 << 10];
	int64_t left = ROWS;
	int r;

	for (int i = 0; i < ROWS; i++) {
		size_t n = 0;

		for (int k = 0; n + 16 < sizeof(text); k++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "w%dx%d ", i, k);
		put_words(f, "", text, "");
	}
	assert_int_equal(arrivals_list(f->h, ARRIVALS_MAX), 0);
	while (left > 20) {
		assert_true(history_tick(f->h));
		assert_in_range(history_health(f->h).backlog, left - 9, left - 8);
		left = history_health(f->h).backlog;
	}
	settle(f);
	assert_indexed(f);
	assert_int_equal(count(f, (struct history_filter){ .text = "w17x400 W17x0" }), 1);
	assert_in_range(history_delete_some(f->h, NULL, NULL), 8, 9);
	assert_indexed(f);
	while ((r = history_delete_some(f->h, NULL, NULL)) > 0)
		;
	assert_int_equal(r, 0);
	assert_int_equal(count_entries(f), 0);
}

/* Damage of the index is an error once, to a search or to a deletion; then the words are all there again. */
static void test_damaged_words(void **state)
{
	struct history_fixture *f = *state;

	for (int i = 0; i < 3; i++)
		put_words(f, "cat dog", "", "");
	for (int i = 0; i < 3; i++) {
		const struct history_filter filter = { .text = "cat dog", .limit = 10 };
		struct history_page page = { 0 };
		char id[HISTORY_ID];

		settle(f);
		reopen(f);
		assert_indexed(f);
		assert_int_equal(
			sqlite3_exec(f->h->db,
				     "UPDATE search_data SET block = x'0000' WHERE id > 10", NULL,
				     NULL, NULL),
			SQLITE_OK);
		if (i == 0)
			assert_int_equal(history_list(f->h, &filter, &page, NULL), -EIO);
		else if (i == 1)
			put_words(f, "cat", "", "");
		else
			assert_int_equal(history_delete(f->h, NULL, make_id(id, 1), NULL), 0);
		assert_true(i > 0 || f->h->words_damaged);
		f->h->words_damaged = true;
		(void)history_tick(f->h);
		assert_int_equal(history_health(f->h).degraded, 0);
		settle(f);
		assert_indexed(f);
		assert_int_equal(count(f, (struct history_filter){ .text = "cat" }),
				 history_health(f->h).rows);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_words),
		CASE(test_words_go_with_rows),
		CASE(test_words_in_order),
		CASE(test_words_and_more),
		CASE(test_words_of_batches),
		CASE(test_deleted_before_indexed),
		CASE(test_many_words),
		CASE(test_damaged_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
