/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char line[LOG_LINE_MAX + 1];

/* One record without its time, which differs in each run. */
static const char *record(struct log *l, const char *message, const struct log_field *fields)
{
	size_t n = log_format_record(l, LOG_INFO, message, fields, line);
	const char *behind = strchr(line, 'Z');

	assert_int_equal(n, strlen(line));
	assert_true(n <= LOG_LINE_MAX);
	assert_int_equal(line[n - 1], '\n');
	assert_ptr_equal(strchr(line, '\n'), line + n - 1);
	assert_non_null(behind);
	line[n - 1] = '\0';
	return behind + 1;
}
#define RECORD(l, message, ...)                                                                    \
	record((l), (message),                                                                     \
	       (const struct log_field[]){ __VA_ARGS__ __VA_OPT__(, ){ .kind = LOG_KIND_NONE } })

static struct log logfmt = { .fd = -EBADF }, json = { .fd = -EBADF, .format = LOG_JSON };

static void test_logfmt(void **state)
{
	struct log l = { .fd = -EBADF, .who = "front" };

	(void)state;
	assert_string_equal(RECORD(&logfmt, "hello"), " level=info msg=hello");
	assert_string_equal(RECORD(&l, "a b", LOG_TEXT("x", "/a-b:1"), LOG_I64("n", -5),
				   LOG_MS("t", 1500), LOG_MS("u", -7), LOG_BOOL("ok", true),
				   LOG_TEXT("none", NULL), LOG_TEXT("empty", "")),
			    " level=info who=front msg=\"a b\" x=/a-b:1 n=-5 t=1.500 u=-0.007 "
			    "ok=true empty=\"\"");
	assert_string_equal(RECORD(&logfmt, "m", LOG_I64("least", INT64_MIN)),
			    " level=info msg=m least=-9223372036854775808");
}

static void test_json(void **state)
{
	(void)state;
	assert_string_equal(RECORD(&json, "hello", LOG_TEXT("x", "1"), LOG_I64("n", 1),
				   LOG_BOOL("b", false), LOG_MS("t", 20), LOG_US("u", 1000420)),
			    "\",\"level\":\"info\",\"msg\":\"hello\",\"x\":\"1\",\"n\":1,\"b\":"
			    "false,\"t\":0.020,\"u\":1.000420}");
	assert_int_equal(strncmp(line, "{\"time\":\"20", 11), 0);
}

/* A13, O07: every value stays inside its quotes, on its line, in UTF-8. */
static void test_escapes(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		const char *wanted;
	} cases[] = {
#define CASE(text, wanted) { text, sizeof(text) - 1, wanted }
		CASE("a\nlevel=error msg=forged", "a\\nlevel=error msg=forged"),
		CASE("a\r\n\tb", "a\\r\\n\\tb"),
		CASE("say \"x\" \\", "say \\\"x\\\" \\\\"),
		CASE("\x1b[31mred\x1b]0;title\x07", "\\u001b[31mred\\u001b]0;title\\u0007"),
		CASE("nul\0 here", "nul\\u0000 here"),
		CASE("\x7f", "\\u007f"),
		CASE("\xc2\x9b", "\\u009b"),
		CASE("%n %s %d", "%n %s %d"),
		CASE("naïve ☃ 😀", "naïve ☃ 😀"),
		CASE("\xff\xfe", "��"),
		CASE("cut \xe2\x98", "cut ��"),
		CASE("\xc0\xaf", "��"),
		CASE("\xed\xa0\x80", "���"),
		CASE("\xf4\x90\x80\x80", "����"),
		CASE("line\xe2\x80\xa8separator", "line\\u2028separator"),
		CASE("exe\xe2\x80\xaetxt", "exe\\u202etxt"),
		CASE("\xef\xbb\xbfmark", "\\ufeffmark"),
	};
	char wanted[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		(void)snprintf(wanted, sizeof(wanted), " level=info msg=m v=\"%s\"",
			       cases[i].wanted);
		assert_string_equal(RECORD(&logfmt, "m", LOG_BYTES("v", cases[i].text, cases[i].n)),
				    wanted);
		(void)snprintf(wanted, sizeof(wanted),
			       "\",\"level\":\"info\",\"msg\":\"m\",\"v\":\"%s\"}",
			       cases[i].wanted);
		assert_string_equal(RECORD(&json, "m", LOG_BYTES("v", cases[i].text, cases[i].n)),
				    wanted);
	}
}

/* Every byte alone, in both formats: nothing but printable ASCII and whole characters gets out. */
static void test_every_byte(void **state)
{
	struct log *const logs[] = { &logfmt, &json };

	(void)state;
	for (int i = 0; i < 512; i++) {
		char byte = (char)i;
		const char *text = RECORD(logs[i / 256], "m", LOG_BYTES("v", &byte, 1));

		for (const char *p = text; *p; p++)
			if ((unsigned char)*p < 0x20 || *p == 0x7f)
				fail_msg("byte %d gets out", i % 256);
		if (i % 256 >= 0x80 && !strstr(text, "�"))
			fail_msg("byte %d gets out", i % 256);
	}
}

static void test_bounds(void **state)
{
	struct log *const logs[] = { &logfmt, &json };
	static char longest[100000];
	const char *text;

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(logs); i++) {
		text = RECORD(logs[i], "m", LOG_TEXT("v", longest), LOG_I64("after", 1));
		assert_true(strlen(text) < LOG_VALUE_MAX + 100);
		assert_non_null(strstr(text, "x…\""));
		assert_non_null(strstr(text, "after"));
		/* Fields that do not fit the line are left out, and cut=true says so. */
		text = RECORD(logs[i], "m", LOG_TEXT("a", longest), LOG_TEXT("b", longest),
			      LOG_TEXT("c", longest), LOG_TEXT("d", longest), LOG_I64("e", 1),
			      LOG_TEXT("f", longest), LOG_I64("g", 7));
		assert_non_null(strstr(text, i == 0 ? " cut=true" : ",\"cut\":true}"));
		/* Values about as long as the room that is left. */
		for (size_t n = 900; n < 1100; n++) {
			text = RECORD(logs[i], "m", LOG_BYTES("a", longest, 1000),
				      LOG_BYTES("b", longest, 1000), LOG_BYTES("c", longest, 1000),
				      LOG_BYTES("d", longest, n));
			assert_true(strlen(text) > 3500);
			assert_null(strstr(text, "d= "));
		}
		/* Escapes that end at the bound. */
		memset(longest, '\x01', 2000);
		text = RECORD(logs[i], "m", LOG_TEXT("v", longest));
		assert_non_null(strstr(text, "\\u0001…\""));
		memset(longest, 'x', 2000);
	}
}

static void test_writes(void **state)
{
	int fds[2];
	struct log l = { .level = LOG_WARNING };
	char got[8192];
	ssize_t n;
	size_t fits = 0;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	l.fd = fds[1];
	log_say(&l, LOG_INFO, "too quiet");
	log_say(&l, LOG_ERROR, "loud", LOG_I64("n", 1));
	n = read(fds[0], got, sizeof(got) - 1);
	assert_true(n > 0);
	got[n] = '\0';
	assert_non_null(strstr(got, " level=error msg=loud n=1\n"));
	assert_null(strstr(got, "quiet"));
	/* A reader that does not keep up costs records, not time. The next line says how many. */
	while (l.lost == 0 && fits++ < 10000)
		log_say(&l, LOG_ERROR, "flood");
	assert_int_equal(l.lost, 1);
	log_say(&l, LOG_ERROR, "flood");
	assert_int_equal(l.lost, 2);
	while (read(fds[0], got, sizeof(got)) > 0)
		;
	log_say(&l, LOG_ERROR, "back");
	n = read(fds[0], got, sizeof(got) - 1);
	assert_true(n > 0);
	got[n] = '\0';
	assert_non_null(strstr(got, "msg=back lost=2\n"));
	assert_int_equal(l.lost, 0);
	(void)fd_close(fds[0]);
	(void)fd_close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_logfmt),	cmocka_unit_test(test_json),
		cmocka_unit_test(test_escapes), cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_bounds),	cmocka_unit_test(test_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
