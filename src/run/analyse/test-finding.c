/* SPDX-License-Identifier: Apache-2.0 */
#include "run/analyse/family.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

struct want {
	const char *type, *message, *file;
	int64_t line, column;
};

static void check_text(const struct span got, const char *want)
{
	_cleanup_free_ char *text = strndup(got.data ? got.data : "", got.len);

	assert_string_equal(text, want ? want : "");
}

static void check(const char *language, bool compiling, const char *text, const struct want *want)
{
	const struct family *family = family_find(language, NULL);
	_cleanup_finding_ struct finding f = { 0 };

	assert_non_null(family);
	assert_int_equal(finding_read(&f, compiling ? family->compile : family->run, span_of(text)),
			 0);
	assert_int_equal(f.found, want != NULL);
	if (!want)
		return;
	finding_locate(&f, family->inner_last);
	check_text(f.exception, want->type);
	check_text((struct span){ f.message.data, f.message.len }, want->message);
	check_text(f.file, want->file);
	assert_int_equal(f.line, want->line);
	assert_int_equal(f.column, want->column);
}

static void test_forms_of_other_versions(void **state _unused_)
{
	check("ruby", false,
	      "/sandbox/main.rb:2:in 'Integer#/': divided by 0 (ZeroDivisionError)\n",
	      &(struct want){ "ZeroDivisionError", "divided by 0", "/sandbox/main.rb", 2, 0 });
	check("rust", false,
	      "\nthread 'main' panicked at /sandbox/main.rs:3:9:\nfirst\nsecond\nnote: run with\n",
	      &(struct want){ "panic", "first\nsecond", "/sandbox/main.rs", 3, 9 });
	check("typescript", true, "main.ts(3,5): error TS2304: Cannot find name 'x'.\n",
	      &(struct want){ "TS2304", "Cannot find name 'x'.", "main.ts", 3, 5 });
	check("typescript", true, "main.ts:3:5 - error TS2322: Type 'A'.\n",
	      &(struct want){ "TS2322", "Type 'A'.", "main.ts", 3, 5 });
	check("php", false, "PHP Fatal error:  Uncaught Error: x in /sandbox/main.php:2\n",
	      &(struct want){ "Error", "x", "/sandbox/main.php", 2, 0 });
	check("go", true, "# code\n./main.go:5:2: declared and not used: x\n",
	      &(struct want){ NULL, "declared and not used: x", "./main.go", 5, 2 });
}

static void test_warnings_are_no_errors(void **state _unused_)
{
	check("c", true,
	      "/sandbox/main.c:2:5: warning: unused variable\n/sandbox/main.c:9:1: error: bad\n",
	      &(struct want){ NULL, "bad", "/sandbox/main.c", 9, 1 });
	check("rust", true,
	      "warning: unused\n --> /sandbox/main.rs:1:1\n\nerror: bad\n --> "
	      "/sandbox/main.rs:7:2\n",
	      &(struct want){ NULL, "bad", "/sandbox/main.rs", 7, 2 });
	check("perl", false,
	      "Use of uninitialized value $x at /sandbox/main.pl line 1.\nboom at /sandbox/main.pl "
	      "line 8.\n",
	      &(struct want){ NULL, "boom", "/sandbox/main.pl", 8, 0 });
	check("r", false, "Warning message:\nIn f() : careful\n", NULL);
}

static void test_an_error_that_is_only_logged(void **state _unused_)
{
	check("javascript", false, "TypeError: logged\n    at f (/sandbox/main.js:9:1)\n", NULL);
	check("javascript", false,
	      "Error: logged\n    at f (/sandbox/main.js:9:1)\n/sandbox/main.js:2\nboom()\n^\n\n"
	      "ReferenceError: boom is not defined\n    at Object.<anonymous> "
	      "(/sandbox/main.js:2:1)\n",
	      &(struct want){ "ReferenceError", "boom is not defined", "/sandbox/main.js", 2, 1 });
}

static void test_frames_outside_the_program(void **state _unused_)
{
	check("java", false,
	      "Exception in thread \"main\" java.lang.NumberFormatException: For input string: "
	      "\"x\"\n"
	      "\tat java.base/java.lang.Integer.parseInt(Integer.java:668)\n\tat "
	      "Main.main(Main.java:3)\n",
	      &(struct want){ "java.lang.NumberFormatException", "For input string: \"x\"",
			      "Main.java", 3, 0 });
	check("javascript", false,
	      "node:fs:573\n  return binding.open(\n                 ^\n\nError: gone\n"
	      "    at Object.openSync (node:fs:573:18)\n    at Object.<anonymous> "
	      "(/sandbox/main.js:4:15)\n",
	      &(struct want){ "Error", "gone", "/sandbox/main.js", 4, 15 });
	check("python", false,
	      "Traceback (most recent call last):\n  File \"<string>\", line 1, in "
	      "<module>\nValueError: x\n",
	      &(struct want){ "ValueError", "x", "", 0, 0 });
}

/* The deepest frames and the first ones are kept, however many there are. */
static void test_frames_are_bounded(void **state _unused_)
{
	_cleanup_buf_ struct buf text = { .max = 1 << 20 };
	_cleanup_finding_ struct finding f = { 0 };

	assert_int_equal(buf_puts(&text, "Traceback (most recent call last):\n"), 0);
	for (int i = 1; i <= 1000; i++)
		assert_int_equal(
			buf_printf(&text, "  File \"/sandbox/main.py\", line %d, in f\n", i), 0);
	assert_int_equal(buf_puts(&text, "E: deep\n"), 0);
	assert_int_equal(finding_read(&f, family_find("python", NULL)->run,
				      (struct span){ text.data, text.len }),
			 0);
	assert_int_equal(f.n_frames, FINDING_FRAMES);
	assert_int_equal(f.frames[0].line, 1);
	assert_int_equal(f.frames[FINDING_FRAMES / 2 - 1].line, FINDING_FRAMES / 2);
	assert_int_equal(f.frames[FINDING_FRAMES - 1].line, 1000);
	finding_locate(&f, true);
	assert_int_equal(f.line, 1000);
}

static void test_messages_are_bounded(void **state _unused_)
{
	_cleanup_buf_ struct buf text = { .max = 1 << 20 };
	_cleanup_finding_ struct finding f = { 0 };

	assert_int_equal(buf_puts(&text, "  File \"/sandbox/main.py\", line 1\nE: begin\n"), 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(buf_puts(&text, "more and more and more\n"), 0);
	assert_int_equal(finding_read(&f, family_find("python", NULL)->run,
				      (struct span){ text.data, text.len }),
			 0);
	assert_memory_equal(f.message.data, "begin\nmore", 10);
	assert_true(f.message.len < 500);
}

static void test_chains(void **state _unused_)
{
	_cleanup_finding_ struct finding f = { 0 };

	assert_int_equal(
		finding_read(&f, family_find("python", NULL)->run,
			     span_of("Traceback (most recent call last):\n"
				     "  File \"/sandbox/main.py\", line 3, in f\n"
				     "KeyError: 'x'\n\n"
				     "The above exception was the direct cause of the following "
				     "exception:\n\n"
				     "Traceback (most recent call last):\n"
				     "  File \"/sandbox/main.py\", line 5, in f\n"
				     "ValueError: no\n")),
		0);
	check_text(f.exception, "ValueError");
	check_text(f.cause_exception, "KeyError");
	check_text(f.cause_message, "'x'");
	assert_int_equal(f.cause_line, 3);
	assert_int_equal(f.n_frames, 1);
	/* Two tracebacks that have nothing to do with each other. */
	assert_int_equal(
		finding_read(&f, family_find("python", NULL)->run,
			     span_of("Traceback (most recent call last):\n"
				     "  File \"/sandbox/main.py\", line 3, in f\nKeyError: 'x'\n"
				     "Traceback (most recent call last):\n"
				     "  File \"/sandbox/main.py\", line 5, in f\nE: y\n")),
		0);
	assert_int_equal(f.cause_exception.len, 0);
}

static void test_paths(void **state _unused_)
{
	static const struct {
		const char *given, *normal;
		bool own;
	} rows[] = {
		{ "/sandbox/main.py", "/sandbox/main.py", true },
		{ "./main.go", "/sandbox/main.go", true },
		{ "Main.java", "/sandbox/Main.java", true },
		{ "node:fs", "node:fs", false },
		{ "<string>", "<string>", false },
		{ "/usr/lib/x.py", "/usr/lib/x.py", false },
		{ "/sandboxes/x", "/sandboxes/x", false },
		{ "", "", false },
	};
	char path[FINDING_PATH];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(path_normal(span_of(rows[i].given), path), rows[i].own);
		assert_string_equal(path, rows[i].normal);
	}
}

/* A text made from a pattern without groups of its own: its letters, and something for each hole. */
static void check_pattern(const struct pattern *p)
{
	_cleanup_buf_ struct buf text = { .max = 4096 };
	struct slots s;

	assert_true(p->number < 900);
	for (const char *c = p->text; c && *c; c++) {
		const char *piece = c;

		if (*c == '%')
			piece = *++c == '_' ? " " : strchr("lc", *c) ? "7" : "x";
		else if (*c == '\\')
			piece = *++c == 'n' ? "\n" : *c == 't' ? "\t" : c;
		assert_int_equal(buf_append(&text, piece, 1), 0);
	}
	if (p->text && !strstr(p->text, "(?") &&
	    !text_match(p, (struct span){ text.data, text.len }, &s))
		fail_msg("\"%s\" cannot match", p->text);
	/* This compiles it, which asserts that it is a regular expression. */
	if (p->needs)
		(void)text_match(p, span_of(p->needs), &s);
}

static void test_every_pattern_can_match(void **state _unused_)
{
	for (const struct family *f = families; f->languages[0]; f++) {
		for (const struct find_row *row = f->compile; row && row->kind; row++)
			check_pattern(&row->match);
		for (const struct find_row *row = f->run; row->kind; row++)
			check_pattern(&row->match);
		for (const struct advice *row = f->advice; row->category; row++)
			check_pattern(&row->match);
		for (const struct refine_row *row = f->refine; row && row->of; row++) {
			check_pattern(&row->match);
			check_pattern(&row->frame);
		}
	}
	for (const struct advice *row = advice_common; row->category; row++)
		check_pattern(&row->match);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms_of_other_versions),
		cmocka_unit_test(test_warnings_are_no_errors),
		cmocka_unit_test(test_an_error_that_is_only_logged),
		cmocka_unit_test(test_frames_outside_the_program),
		cmocka_unit_test(test_frames_are_bounded),
		cmocka_unit_test(test_messages_are_bounded),
		cmocka_unit_test(test_chains),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_every_pattern_can_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
