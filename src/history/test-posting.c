/* SPDX-License-Identifier: Apache-2.0 */
/* Which executions of an epoch have a word: what was put there is read, in order, and nothing stays of what was forgotten. */
#include "history/posting.h"
#include "history/search.h"
#include "history/test-store.h"

static void change(struct history_fixture *f, bool forget, const struct posted *who,
		   const char *const *words)
{
	_cleanup_postings_ struct postings p = { .forget = forget };

	for (; *words; words++, who++)
		assert_int_equal(postings_put(&p, who, SPAN(*words)), 0);
	assert_int_equal(store_begin(f->h), 0);
	assert_int_equal(store_end(f->h, postings_apply(f->h, &p)), 0);
	/* It can be used again, and has nothing left to do. */
	assert_int_equal(postings_apply(f->h, &p), 0);
}

static void assert_has(struct history_fixture *f, int64_t epoch, const char *word,
		       const char *wanted)
{
	_cleanup_ats_ struct ats ats = { 0 };
	char text[256] = "";

	assert_int_equal(posting_read(f->h, &(struct stretch){ epoch, -INT64_MAX, INT64_MAX },
				      SPAN(word), &ats),
			 0);
	for (size_t i = 0; i < ats.n; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%lld ",
			       (long long)ats.list[i]);
	assert_string_equal(text, wanted);
}

static int count_words(struct history_fixture *f)
{
	return (int)get_number(f, "SELECT count(*) FROM posting");
}

#define WHO(...)   ((const struct posted[]){ __VA_ARGS__ })
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void test_add_and_forget(void **state)
{
	struct history_fixture *f = *state;

	change(f, false, WHO({ 1, 500 }, { 1, 300 }, { 1, 900 }, { 2, 1000 }),
	       WORDS("Cat", "cAT", "cat", "cat"));
	assert_has(f, 1, "cat", "900 500 300 ");
	assert_has(f, 1, "CAT", "900 500 300 ");
	assert_has(f, 2, "cat", "1000 ");
	/* In the middle, at both ends, and one that is there. */
	change(f, false, WHO({ 1, 400 }, { 1, 100 }, { 1, 1700000000000000 }, { 1, 500 }),
	       WORDS("cat", "cat", "cat", "cat"));
	assert_has(f, 1, "cat", "1700000000000000 900 500 400 300 100 ");
	change(f, false, WHO({ 1, 7 }, { 1, 7 }, { 1, 8 }), WORDS("ca", "catalogue", "catalogues"));
	assert_has(f, 1, "ca", "7 ");
	assert_has(f, 1, "catalogue", "7 ");
	assert_has(f, 1, "c", "");
	/* Those that nobody put there are forgotten too. */
	change(f, true, WHO({ 1, 900 }, { 1, 100 }, { 1, 450 }, { 1, 1 }, { 3, 900 }),
	       WORDS("cat", "CAT", "cat", "nobody", "cat"));
	assert_has(f, 1, "cat", "1700000000000000 500 400 300 ");
	change(f, true, WHO({ 1, 9 }), WORDS("ca"));
	assert_has(f, 1, "ca", "7 ");
	assert_int_equal(count_words(f), 5);
	change(f, true,
	       WHO({ 1, 1700000000000000 }, { 1, 300 }, { 1, 400 }, { 1, 500 }, { 1, 7 }, { 1, 7 }),
	       WORDS("cat", "cat", "cat", "cat", "ca", "catalogue"));
	change(f, true, WHO({ 1, 8 }, { 2, 1000 }, { 2, 1000 }), WORDS("catalogues", "cat", "cat"));
	assert_int_equal(count_words(f), 0);
}

static void test_keep(void **state)
{
	struct history_fixture *f = *state;
	int64_t list[] = { 90, 80, 70, 60, 50 };
	struct ats ats = { .list = list, .n = ARRAY_SIZE(list) };
	struct stretch all = { 1, -INT64_MAX, INT64_MAX };

	change(f, false, WHO({ 1, 95 }, { 1, 80 }, { 1, 75 }, { 1, 60 }, { 1, 50 }, { 1, 40 }),
	       WORDS("a", "a", "a", "a", "a", "a"));
	assert_int_equal(posting_keep(f->h, &all, SPAN("A"), &ats), 0);
	assert_int_equal(ats.n, 3);
	assert_true(list[0] == 80 && list[1] == 60 && list[2] == 50);
	assert_int_equal(ats_until(&ats, 81), 0);
	assert_int_equal(ats_until(&ats, 80), 1);
	assert_int_equal(ats_until(&ats, 51), 2);
	assert_int_equal(ats_until(&ats, -INT64_MAX), 3);
	assert_int_equal(posting_keep(f->h, &all, SPAN("b"), &ats), 0);
	assert_int_equal(ats.n, 0);
}

/* A word nobody can ask for takes no room, and one that is asked for is not longer. */
static void test_long_words(void **state)
{
	struct history_fixture *f = *state;
	static char word[SEARCH_TEXT_MAX + 2];

	(void)memset(word, 'x', sizeof(word) - 1);
	change(f, false, WHO({ 1, 5 }), WORDS(word));
	assert_int_equal(count_words(f), 0);
	assert_has(f, 1, word, "");
	word[SEARCH_TEXT_MAX] = '\0';
	change(f, false, WHO({ 1, 5 }), WORDS(word));
	assert_has(f, 1, word, "5 ");
}

static void put_text(struct history_fixture *f, int64_t created_ns, struct span text)
{
	char id[HISTORY_ID];
	struct history_new in = new_of(f, "alice", id);
	struct history_end end = end_with(STATUS_TIMEOUT);
	int64_t at;

	if (created_ns > 0)
		in.created_ns = created_ns;
	end.stdout_text = text;
	assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
}

static size_t count_found(struct history_fixture *f, const char *text, int *ret_pages)
{
	char cursor[HISTORY_CURSOR] = "";
	size_t n = 0;
	int pages = 0;

	do {
		_cleanup_history_page_ struct history_page page = { 0 };
		struct history_filter filter = { .text = text,
						 .limit = 100,
						 .cursor = cursor[0] ? cursor : NULL };

		assert_int_equal(history_list(f->h, &filter, &page, NULL), 0);
		n += page.n;
		pages++;
		(void)snprintf(cursor, sizeof(cursor), "%s", page.next);
	} while (cursor[0]);
	if (ret_pages)
		*ret_pages = pages;
	return n;
}

/* Bytes that make no sense are an error once, whoever meets them; then the words are all there again. */
static void test_damaged(void **state)
{
	static const char *const damage[] = {
		"UPDATE posting SET ats = x'8580'",
		"UPDATE posting SET ats = x'05ffffffffffffffffffffffffff'",
		"UPDATE posting SET ats = x'0506'",
		"UPDATE posting SET ats = x'0500'",
	};
	struct history_fixture *f = *state;

	put_text(f, 0, SPAN("cat"));
	put_text(f, 0, SPAN("cat dog"));
	for (size_t i = 0; i < 3 * ARRAY_SIZE(damage); i++) {
		const struct history_filter filter = { .text = "cat dog", .limit = 10 };
		struct history_page page = { 0 };
		char id[HISTORY_ID];

		settle(f);
		assert_postings(f);
		assert_int_equal(
			sqlite3_exec(f->h->db, damage[i % ARRAY_SIZE(damage)], NULL, NULL, NULL),
			SQLITE_OK);
		if (i % 3 == 0)
			assert_int_equal(history_list(f->h, &filter, &page, NULL), -EIO);
		else if (i % 3 == 1)
			put_text(f, 0, SPAN("cat"));
		else
			assert_int_equal(history_delete(f->h, NULL, make_id(id, f->ids), NULL), 0);
		(void)history_tick(f->h);
		assert_int_equal(history_health(f->h).degraded, 0);
		settle(f);
		assert_postings(f);
		assert_int_equal(count_found(f, "cat", NULL), history_health(f->h).rows);
	}
}

/* Of more words than are collected at once, none is lost; deletion leaves none. */
static void test_many_words(void **state)
{
	enum { ROWS = 192 };
	struct history_fixture *f = *state;
	static char text[8000];

	for (int i = 0; i < ROWS; i++) {
		size_t n = 0;

		for (int k = 0; n + 16 < sizeof(text); k++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "w%dx%d same ", i, k);
		put_text(f, 0, (struct span){ text, n });
	}
	settle(f);
	assert_true(count_words(f) > ROWS * 400);
	assert_postings(f);
	for (int i = 0; i < ROWS; i++) {
		char id[HISTORY_ID], last[32];
		_cleanup_history_page_ struct history_page page = { 0 };

		(void)snprintf(last, sizeof(last), "same W%dx400", i);
		assert_int_equal(history_list(f->h,
					      &(struct history_filter){ .text = last,
									.status = "timeout",
									.limit = 50 },
					      &page, NULL),
				 0);
		assert_int_equal(page.n, 1);
		assert_string_equal(page.rows[0].id, make_id(id, (unsigned)i + 1));
	}
	while (history_delete_some(f->h, NULL, NULL) > 0)
		;
	assert_int_equal(count_words(f), 0);
}

/* However many words there are, a call does some of them: of 8 KiB, four times. */
static void test_few_of_many(void **state)
{
	enum { ROWS = 60 };
	struct history_fixture *f = *state;
	static char text[8 << 10];
	_cleanup_history_page_ struct history_page page = { 0 };
	int64_t left = ROWS;

	for (int i = 0; i < ROWS; i++) {
		size_t n = 0;

		for (int k = 0; n + 16 < sizeof(text); k++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "x%dx%d ", i, k);
		put_text(f, 0, (struct span){ text, n });
	}
	assert_int_equal(arrivals_list(f->h, ARRIVALS_MAX), 0);
	while (left > 20) {
		assert_true(history_tick(f->h));
		assert_in_range(history_health(f->h).backlog, left - 4, left - 3);
		left = history_health(f->h).backlog;
	}
	assert_int_equal(history_list(f->h, &(struct history_filter){ .text = "x0x0", .limit = 1 },
				      &page, NULL),
			 0);
	assert_in_range(history_health(f->h).backlog, left - 4, left - 3);
	settle(f);
	assert_postings(f);
	assert_in_range(history_delete_some(f->h, NULL, NULL), 4, 5);
	f->options.retain_rows = 10;
	reopen(f);
	assert_true(history_tick(f->h));
	assert_in_range(history_health(f->h).rows, 50, 52);
	settle(f);
	assert_int_equal(history_health(f->h).rows, 10);
	assert_postings(f);
}

/* Any number of one epoch, in any order, comes and goes: as a list of times says. */
static void test_pieces(void **state)
{
	enum { TIMES = 12000, ROUNDS = 200, CHANGES = 128 };
	struct history_fixture *f = *state;
	static bool there[TIMES + 1];
	uint32_t dice = 1;

	for (int round = 0; round < ROUNDS; round++) {
		_cleanup_postings_ struct postings p = { .forget = round % 4 == 3 };

		for (int i = 0; i < (round % 7 ? CHANGES : 1); i++) {
			dice = dice * 1664525 + 1013904223;
			int64_t at = 1 + dice / 7 % TIMES;

			assert_int_equal(postings_put(&p, &(struct posted){ 5, at }, SPAN("a")), 0);
			there[at] = !p.forget;
		}
		assert_int_equal(store_begin(f->h), 0);
		assert_int_equal(store_end(f->h, postings_apply(f->h, &p)), 0);
	}
	assert_true(count_words(f) > 3);
	for (int64_t to = TIMES + 1; to > 1;) {
		_cleanup_ats_ struct ats ats = { 0 }, kept = { 0 };
		struct stretch in = { 5, -INT64_MAX, to }, other = in;

		assert_int_equal(posting_read(f->h, &in, SPAN("a"), &ats), 0);
		assert_int_equal(posting_read(f->h, &other, SPAN("a"), &kept), 0);
		assert_int_equal(posting_keep(f->h, &other, SPAN("a"), &kept), 0);
		assert_true(kept.n == ats.n && in.from == other.from && in.from < to);
		in.from = MAX(in.from, 1);
		size_t i = ats_until(&ats, to);

		for (int64_t at = to - 1; at >= in.from; at--)
			if (there[at])
				assert_true(i < ats.n && ats.list[i++] == at);
		assert_int_equal(i, ats_until(&ats, in.from));
		to = in.from;
	}
	_cleanup_postings_ struct postings all = { .forget = true };

	for (int64_t at = 1; at <= TIMES; at++)
		assert_int_equal(postings_put(&all, &(struct posted){ 5, at }, SPAN("a")), 0);
	assert_int_equal(postings_apply(f->h, &all), 0);
	assert_int_equal(count_words(f), 0);
}

/* Some from next year, then all others, for as long as it takes: each is found, and nothing grows with them. */
static void test_clock_set_back(void **state)
{
	enum { AHEAD = EPOCH_ROWS + 76, ROWS = 11 * EPOCH_ROWS };
	struct history_fixture *f = *state;
	const int64_t now = clock_realtime_ns();
	int pages = 0;

	for (int i = 0; i < AHEAD + ROWS; i++) {
		const int64_t ahead_ns = i < AHEAD ? 365 * 86400 * NS_PER_SEC : 0;

		put_text(f, now + ahead_ns + i * 1000000LL,
			 i % 100 ? SPAN("same") : SPAN("same rare"));
		if (i % 2000 == 0 || i == AHEAD)
			settle(f);
	}
	settle(f);
	assert_int_equal(history_health(f->h).backlog, 0);
	/* They fell into the first. */
	assert_true(f->h->marks.epoch_rows < EPOCH_ROWS);
	assert_true(get_number(f, "SELECT count(*) FROM posting WHERE epoch = 1"
				  " AND word = CAST('same' AS BLOB)") >= 6);
	assert_postings(f);
	assert_int_equal(count_found(f, "same", &pages), AHEAD + ROWS);
	assert_true(pages <= (AHEAD + ROWS) / 100 + 1);
	assert_int_equal(count_found(f, "rare same", NULL), (AHEAD + ROWS + 99) / 100);
	while (history_delete_some(f->h, NULL, NULL) > 0)
		;
	assert_int_equal(count_words(f), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_add_and_forget), CASE(test_keep),	      CASE(test_long_words),
		CASE(test_damaged),	   CASE(test_many_words),     CASE(test_few_of_many),
		CASE(test_pieces),	   CASE(test_clock_set_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
