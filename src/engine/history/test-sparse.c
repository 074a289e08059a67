/* SPDX-License-Identifier: Apache-2.0 */
/* What lies far apart among many: it is found in one call, or in calls of which each is bounded. */
#include "engine/history/store.h"
#include "engine/history/test-store.h"

enum { BATCH = 1024, ROWS = 12 * BATCH, DAVES = 4 };

/* Every row has the label and a common word, every other one of two more; dave has a word of his own. */
static void put_number(struct history_fixture *f, int i, const json_t *labels)
{
	const bool dave = i % (ROWS / DAVES) == 17;
	char id[HISTORY_ID];
	struct history_new in = new_of(f, dave ? "dave" : "alice", id);
	struct history_end end = end_with(STATUS_SUCCESS);
	int64_t at = 0;

	in.labels = labels;
	end.code = SPAN(i % 2 ? "print('common'); odd" : "print('common'); even");
	end.stdout_text = SPAN(dave ? "a Seldom-used word" : "");
	assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
}

static int many_setup(void **state)
{
	json_t *labels = json_pack("{s:s}", "team", "1");
	int r = fixture_setup(state);
	struct history_fixture *f = *state;

	for (int i = 0; i < ROWS; i++) {
		if (i % BATCH == 0)
			assert_int_equal(history_begin(f->h, NULL), 0);
		put_number(f, i, labels);
		if (i % BATCH == BATCH - 1) {
			assert_int_equal(history_commit(f->h, NULL), 0);
			settle(f);
		}
	}
	json_decref(labels);
	return r;
}

struct page_walk {
	size_t found, pages;
};

static struct page_walk walk(struct history_fixture *f, struct history_filter filter)
{
	char cursor[HISTORY_CURSOR] = "";
	struct page_walk walk = { 0 };

	filter.limit = 50;
	do {
		_cleanup_history_page_ struct history_page page = { 0 };

		filter.cursor = cursor[0] ? cursor : NULL;
		assert_int_equal(history_list(f->h, &filter, &page, NULL), 0);
		walk.found += page.n;
		walk.pages++;
		(void)snprintf(cursor, sizeof(cursor), "%s", page.next);
	} while (cursor[0]);
	return walk;
}

static void test_few_are_found_at_once(void **state)
{
	static const struct history_label labels[] = { { "team", "1" }, { 0 } };
	const struct {
		struct history_filter filter;
		size_t found;
	} cases[] = {
		{ { .caller = "dave", .label_name = "team", .label_value = "1" }, DAVES },
		{ { .caller = "dave", .more_labels = labels }, DAVES },
		{ { .caller = "dave", .language = "python", .more_labels = labels }, DAVES },
		{ { .caller = "dave", .label_name = "team", .label_value = "2" }, 0 },
		{ { .text = "seldom" }, DAVES },
		{ { .text = "common SELDOM" }, DAVES },
		{ { .text = "seldom used even" }, 0 },
		{ { .text = "seldom", .caller = "alice" }, 0 },
		{ { .text = "common", .caller = "dave" }, DAVES },
		{ { .text = "ODD common", .caller = "dave" }, DAVES },
		{ { .text = "even", .caller = "dave" }, 0 },
		{ { .text = "common nowhere" }, 0 },
		{ { .text = "common", .status = "timeout" }, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct page_walk w = walk(*state, cases[i].filter);

		if (w.found != cases[i].found || w.pages != 1)
			fail_msg("case %zu: %zu in %zu pages", i, w.found, w.pages);
	}
}

/* An empty range has no rows under any filter; callers' names are no expressions of a search. */
static void test_empty_ranges(void **state)
{
	const struct history_filter cases[] = {
		{ .text = "common" },
		{ .text = "common", .caller = "dave" },
		{ .text = "common", .caller = "tcp:127.0.0.1" },
		{ .text = "common", .caller = "tcp:127.0.0.1", .language = "python" },
		{ .text = "common", .label_name = "team", .label_value = "\"1" },
		{ .text = "common", .status = "timeout" },
		{ .caller = "tcp:127.0.0.1", .label_name = "team", .label_value = "1" },
		{ .caller = "dave" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct history_filter filter = cases[i];

		for (int later = 0; later < 2; later++) {
			struct page_walk w;

			filter.until_ns = 2000000000000000000;
			filter.since_ns = filter.until_ns + later;
			w = walk(*state, filter);
			if (w.found != 0 || w.pages != 1)
				fail_msg("case %zu: %zu in %zu pages", i, w.found, w.pages);
		}
	}
}

/* Two words that are everywhere, and never together. */
static void test_never_together(void **state)
{
	struct page_walk w = walk(*state, (struct history_filter){ .text = "odd even" });

	assert_int_equal(w.found, 0);
	assert_int_equal(w.pages, 1);
	w = walk(*state, (struct history_filter){ .text = "odd common" });
	assert_int_equal(w.found, ROWS / 2);
}

/* A count looks at a bounded number of rows, and says so: that is no error and no other answer. */
static void test_count_is_bounded(void **state)
{
	const struct history_filter filter = { .caller = "alice" };
	struct history_fixture *f = *state;
	struct history_count count = { 0 };

	assert_int_equal(history_count(f->h, &filter, &count, NULL), 0);
	assert_false(count.exact);
	assert_in_range(count.n, 1000, ROWS - DAVES - 1);
}

static void test_words_of_texts(void **state)
{
	static const char words[] = "Naïve: x_1 = \"two\"; TWO";
	static const struct {
		const char *text;
		bool has;
	} cases[] = {
		{ "two", true }, { "x TWO 1", true },  { "naïve", true },
		{ "na", false }, { "twofold", false }, { "two three", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(search_has(cases[i].text, SPAN(words)), cases[i].has);
	assert_false(search_has("two", (struct span){ NULL, 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_are_found_at_once),
		cmocka_unit_test(test_empty_ranges),
		cmocka_unit_test(test_never_together),
		cmocka_unit_test(test_count_is_bounded),
		cmocka_unit_test(test_words_of_texts),
	};

	return cmocka_run_group_tests(tests, many_setup, fixture_teardown);
}
