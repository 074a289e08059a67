/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and the line that they make, and what a terminal would show. */
#include "atoll/commands/line-editor.h"
#include "base/macro.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define LEFT  "\x1b[D"
#define RIGHT "\x1b[C"
#define UP    "\x1b[A"
#define DOWN  "\x1b[B"

static enum line_event type(struct line_editor *e, const char *keys)
{
	enum line_event event = LINE_GOES_ON;

	for (; *keys && event == LINE_GOES_ON; keys++)
		event = line_editor_feed(e, *keys);
	assert_int_equal(*keys, '\0');
	return event;
}

static void expect_line(struct line_editor *e, const char *keys, const char *line)
{
	line_editor_begin(e, "> ", 40);
	assert_int_equal(type(e, keys), LINE_GOES_ON);
	assert_int_equal(e->text.len, strlen(line));
	assert_memory_equal(e->text.data ? e->text.data : "", line, strlen(line));
}

static void test_keys(void **state _unused_)
{
	static const struct {
		const char *keys, *line;
	} rows[] = {
		{ "abc", "abc" },
		{ "ac" LEFT "b", "abc" },
		{ "bc\001a\005d", "abcd" },
		{ "bc\033[Ha\033[Fd", "abcd" },
		{ "ab\177c\010d", "ad" },
		{ "abc" LEFT LEFT "\033[3~", "ac" },
		{ "abc" LEFT "\004", "ab" },
		{ "one two  \027x", "one x" },
		{ "one two\033[1;5Da ", "one a two" },
		{ "one two\001\033[1;5C!", "one! two" },
		{ "abcd" LEFT LEFT "\013", "ab" },
		{ "abcd" LEFT LEFT "\025", "cd" },
		{ LEFT RIGHT "\177\033[3~\013\025\027" UP DOWN, "" },
		{ "\tx\t", "    x   " },
		{ "für" LEFT "\177o", "for" },
		{ "日本語" LEFT "\177", "日語" },
		{ "a\033[200~b\033[99;1Rc\033Od\033xe", "abce" }, /* keys without a meaning */
		{ "a\200\377z\002", "az" },
		{ "a\303z", "az" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct line_editor e;

		line_editor_init(&e, 100);
		expect_line(&e, rows[i].keys, rows[i].line);
		line_editor_done(&e);
	}
}

static void test_ends(void **state _unused_)
{
	struct line_editor e;

	line_editor_init(&e, 5);
	line_editor_begin(&e, "", 40);
	assert_int_equal(type(&e, "12345678\n"), LINE_ENTERED);
	assert_int_equal(e.text.len, 5); /* the bound */
	line_editor_begin(&e, "", 40);
	assert_int_equal(type(&e, "\x04"), LINE_ENDED);
	line_editor_done(&e);
}

static void enter(struct line_editor *e, const char *line)
{
	line_editor_begin(e, "> ", 40);
	assert_int_equal(type(e, line), LINE_GOES_ON);
	assert_int_equal(type(e, "\n"), LINE_ENTERED);
	line_editor_remember(e);
}

static void test_history(void **state _unused_)
{
	struct line_editor e;

	line_editor_init(&e, 100);
	enter(&e, "one");
	enter(&e, "two");
	enter(&e, "two");
	enter(&e, "  ");
	expect_line(&e, UP, "two");
	expect_line(&e, UP UP, "one");
	expect_line(&e, UP UP UP "!", "one!");
	expect_line(&e, "new" UP UP DOWN, "two");
	expect_line(&e, "new" UP UP DOWN DOWN DOWN, "new");
	for (int i = 0; i < LINE_HISTORY_MAX; i++)
		enter(&e, i % 2 ? "a" : "b");
	assert_int_equal(e.n_history, LINE_HISTORY_MAX);
	assert_string_equal(e.history[0], "b");
	line_editor_done(&e);
}

/* A terminal of one row, which puts characters where its cursor is. */
static void expect_row(struct line_editor *e, const char *row, size_t cursor)
{
	char seen[64] = "";
	size_t at = 0, len = 0;

	for (size_t i = 0; i < e->screen.len; i++) {
		const char *c = e->screen.data + i;

		if (*c == '\r') {
			at = 0;
		} else if (e->screen.len - i >= 3 && memcmp(c, "\x1b[K", 3) == 0) {
			len = at;
			i += 2;
		} else {
			seen[at++] = *c;
			len = at > len ? at : len;
		}
		assert_true(at < sizeof(seen) - 1);
	}
	seen[len] = '\0';
	assert_string_equal(seen, row);
	assert_int_equal(at, cursor);
}

static void test_screen(void **state _unused_)
{
	struct line_editor e;

	line_editor_init(&e, 100);
	line_editor_begin(&e, "> ", 13);
	type(&e, "abcd");
	expect_row(&e, "> abcd", 6);
	type(&e, LEFT LEFT "x");
	expect_row(&e, "> abxcd", 5);
	type(&e, "\005efghijklm"); /* ten columns for twelve characters */
	expect_row(&e, "> defghijklm", 12);
	type(&e, "\x01");
	expect_row(&e, "> abxcdefghi", 2);
	line_editor_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_screen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
