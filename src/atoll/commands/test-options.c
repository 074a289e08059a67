/* SPDX-License-Identifier: Apache-2.0 */
#include "atoll/commands/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct options_seen {
	bool json;
	const char *dir;
	char limits[128];
	char words[128];
};

static void note(char *list, size_t size, const char *a, const char *b)
{
	size_t n = strlen(list);

	(void)snprintf(list + n, size - n, "%s%s ", a, b);
}

static int limit(void *data, const struct knob *knob, const char *value, struct error *err _unused_)
{
	struct options_seen *seen = data;

	note(seen->limits, sizeof(seen->limits), knob->key, value);
	return 0;
}

static int word(void *data, const char *text, struct error *err _unused_)
{
	struct options_seen *seen = data;

	note(seen->words, sizeof(seen->words), text, "");
	return 0;
}

static const struct option rows[] = {
	{ .flag = "--json",
	  .help = "as JSON",
	  .apply = option_set_true,
	  .offset = offsetof(struct options_seen, json) },
	{ .flag = "--output-dir",
	  .letter = 'o',
	  .argument = "DIR",
	  .help = "where to",
	  .apply = option_set_text,
	  .offset = offsetof(struct options_seen, dir) },
};
static const struct option_list all = {
	.rows = rows, .n = ARRAY_SIZE(rows), .limit = limit, .word = word
};
static const struct option_list bare = { .rows = rows, .n = ARRAY_SIZE(rows) };

struct parsed {
	struct options_seen seen;
	struct error err;
	int r, rest;
};

static struct parsed parse(const struct option_list *list, const char *const *words)
{
	struct parsed p = { 0 };
	struct arguments args = { .argv = (char **)(uintptr_t)words };

	while (words[args.argc])
		args.argc++;
	p.r = options_parse(list, &args, &p.seen, &p.err);
	p.rest = args.rest;
	return p;
}
#define PARSE(list, ...) parse(list, (const char *const[]){ "run", __VA_ARGS__, NULL })

static void test_forms(void **state _unused_)
{
	struct parsed p = PARSE(&all, "--json", "-m", "1g", "a.py", "--output-dir", "d",
				"--timeout=5s", "-m2g", "-", "--", "--json", "x");

	assert_int_equal(p.r, 0);
	assert_true(p.seen.json);
	assert_string_equal(p.seen.dir, "d");
	assert_string_equal(p.seen.limits, "memory1g timeout5s memory2g ");
	assert_string_equal(p.seen.words, "a.py - ");
	assert_int_equal(p.rest, 11);
	p = PARSE(&all, "-od=1", "--output-dir=", "x");
	assert_string_equal(p.seen.dir, "");
	assert_int_equal(p.rest, 4);
	p = PARSE(&all, "-od=1");
	assert_string_equal(p.seen.dir, "d=1");
}

static void test_help(void **state _unused_)
{
	assert_int_equal(PARSE(&all, "--json", "--help", "--wrong").r, 1);
	assert_int_equal(PARSE(&all, "-h").r, 1);
	assert_int_equal(PARSE(&all, "--", "--help").r, 0);
}

/* Words are collected between options; a negative number is a word. */
static void test_words(void **state _unused_)
{
	static const struct option_list list = { OPTION_ROWS(rows), .words = "ids" };
	static char text[][8] = { "rm", "-1", "--json", "a", "--", "b" };
	char *argv[] = { text[0], text[1], text[2], text[3], text[4], text[5], NULL };
	struct arguments args = { .argc = 6, .argv = argv };
	struct options_seen seen = { 0 };

	assert_int_equal(options_parse(&list, &args, &seen, NULL), 0);
	assert_int_equal(args.n_words, 2);
	assert_string_equal(args.words[0], "-1");
	assert_string_equal(args.words[1], "a");
	assert_int_equal(args.rest, 5);
	assert_true(seen.json);
}

static void test_refusals(void **state _unused_)
{
	static const struct {
		const struct option_list *list;
		const char *words[4];
		const char *text;
	} cases[] = {
		{ &all, { "run", "--jsno" }, "unknown option '--jsno'; did you mean '--json'?" },
		{ &all,
		  { "run", "--memroy=1" },
		  "unknown option '--memroy'; did you mean '--memory'?" },
		{ &all, { "run", "-z" }, "unknown option '-z'; see --help" },
		{ &all,
		  { "run", "--out", "d" },
		  "unknown option '--out'; did you mean '--output-dir'?" },
		{ &all, { "run", "--json=1" }, "option '--json' takes no value" },
		{ &all, { "run", "-o" }, "option '-o' needs a value" },
		{ &all,
		  { "run", "--timeout", "--json" },
		  "option '--timeout' needs a value, and '--json' is an option" },
		{ &bare, { "run", "--memory", "1g" }, "unknown option '--memory'; see --help" },
		{ &bare, { "run", "a.py" }, "'run' takes no argument, but got 'a.py'; see --help" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct parsed p = parse(cases[i].list, cases[i].words);

		assert_int_equal(p.r, -EINVAL);
		assert_int_equal(p.err.code, ERROR_INPUT);
		assert_string_equal(p.err.text, cases[i].text);
	}
}

/* Every limit of the table has its line, with its default. */
static void test_print(void **state _unused_)
{
	_cleanup_page_ struct page out = PAGE_EMPTY;

	options_print(&all, &out);
	assert_int_equal(out.error, 0);
	assert_non_null(strstr(out.text.data, "  -o, --output-dir DIR      where to\n"));
	assert_non_null(strstr(out.text.data, "  -m, --memory SIZE "));
	assert_non_null(strstr(out.text.data, "[512 MiB]\n"));
	for (size_t i = 0; i < limit_knobs_count; i++)
		assert_non_null(strstr(out.text.data, limit_knobs[i].flag));
	out.text.len = 0;
	options_print(&bare, &out);
	assert_int_equal(out.error, 0);
	assert_null(strstr(out.text.data, "Limits"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms), cmocka_unit_test(test_help),
		cmocka_unit_test(test_words), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
