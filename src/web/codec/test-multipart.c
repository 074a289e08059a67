/* SPDX-License-Identifier: Apache-2.0 */
/* Forms as clients send them, and forms that two readers could understand differently. */
#include "web/codec/multipart.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/buf.h"

#define TYPE	    "multipart/form-data; boundary=x"
#define HEAD(name)  "Content-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define NAMED(name) "--x\r\n" HEAD(name)
#define DIGITS	    "0123456789"

/* Parts as "name(filename)=content|"; what ends them: 0, or a negative errno. */
static int show(const char *type, struct span body, struct buf *ret)
{
	struct multipart_part part;
	struct multipart m;
	int r = multipart_init(&m, span_of(type), body);

	buf_init(ret, 4096);
	assert_int_equal(buf_puts(ret, ""), 0);
	while (r >= 0 && (r = multipart_next(&m, &part)) > 0)
		assert_int_equal(buf_printf(ret, "%.*s(%.*s)=%.*s|", (int)part.name.len,
					    part.name.data, (int)part.filename.len,
					    part.filename.data ? part.filename.data : "",
					    (int)part.content.len, part.content.data),
				 0);
	return r;
}

static void test_forms(void **state)
{
	static const struct {
		const char *type, *body, *shown;
	} samples[] = {
		{ TYPE, "--x--\r\n", "" },
		{ TYPE, "--x--", "" },
		{ TYPE, NAMED("a") "1\r\n--x--\r\n", "a()=1|" },
		{ TYPE, NAMED("a") "\r\n--x--\r\n", "a()=|" },
		{ TYPE, NAMED("a") "1\n2\r\n\r\n\r\n--x--\r\n", "a()=1\n2\r\n\r\n|" },
		{ TYPE, NAMED("a") "--x\r\n" NAMED("b") "--x--\r\n--x--\r\n",
		  "a()=--x|b()=--x--|" },
		{ TYPE, NAMED("a") "--y\r\n" NAMED("b") "2\r\n--x--\r\n", "a()=--y|b()=2|" },
		{ "multipart/form-data;boundary=\"x y\" ;charset=utf-8",
		  "--x y\r\ncontent-disposition:form-data;name=a\r\n\r\n1\r\n--x y--", "a()=1|" },
		{ TYPE,
		  "--x\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; name=\"f\"; "
		  "filename=\"a;b=c.txt\"\r\nX: y\r\n\r\n1\r\n--x--\r\n",
		  "f(a;b=c.txt)=1|" },
		{ TYPE, NAMED("a") "1\r\n" NAMED("b") "2\r\n--x--\r\n", "a()=1|b()=2|" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		_cleanup_buf_ struct buf b = { 0 };

		assert_int_equal(show(samples[i].type, span_of(samples[i].body), &b), 0);
		assert_string_equal(b.data, samples[i].shown);
	}
}

static void test_refused(void **state)
{
	static const char *const types[] = {
		"multipart/form-data",
		"multipart/form-data; boundary",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"x",
		"multipart/form-data; boundary=\"x \"",
		"multipart/form-data; boundary=x\"y",
		"multipart/form-data; boundary=%",
		("multipart/form-data; boundary=x" DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS
			 DIGITS),
	};
	static const char *const bodies[] = {
		"",
		"x",
		"--x",
		"--xy--\r\n",
		"before\r\n--x--\r\n",
		"--x--\r\nbehind",
		"--x\n",
		"--x\r\n",
		"--x\r\n\r\n1\r\n--x--\r\n",
		"--x\r\nX: y\r\n\r\n1\r\n--x--\r\n",
		"--x\r\nnonsense\r\n\r\n1\r\n--x--\r\n",
		"--x\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\n1\r\n--x--\r\n",
		"--x\r\nContent-Disposition: form-data; name=\"a\\\"b\"\r\n\r\n1\r\n--x--\r\n",
		"--x\r\nContent-Disposition: form-data; name=\"a\r\n\r\n1\r\n--x--\r\n",
		"--x\r\nContent-Disposition: form-data; name=a; name=b\r\n\r\n1\r\n--x--\r\n",
		"--x\r\nContent-Disposition: form-data; filename=a\r\n\r\n1\r\n--x--\r\n",
		NAMED("a") "1",
		NAMED("a") "1\n--x--\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		_cleanup_buf_ struct buf b = { 0 };

		assert_int_equal(show(types[i], span_of("--x--\r\n"), &b), -EINVAL);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		_cleanup_buf_ struct buf b = { 0 };

		assert_int_equal(show(TYPE, span_of(bodies[i]), &b), -EBADMSG);
	}
}

static void test_bounds(void **state)
{
	_cleanup_buf_ struct buf body = { 0 }, shown = { 0 }, head = { 0 };
	struct multipart_part part;
	struct multipart m;
	int r;

	(void)state;
	buf_init(&body, 1 << 20);
	for (int i = 0; i <= MULTIPART_PARTS_MAX; i++)
		assert_int_equal(buf_puts(&body, NAMED("") "\r\n"), 0);
	assert_int_equal(buf_puts(&body, "--x--"), 0);
	r = multipart_init(&m, span_of(TYPE), (struct span){ body.data, body.len });
	while (r >= 0 && (r = multipart_next(&m, &part)) > 0)
		;
	assert_int_equal(r, -E2BIG);
	buf_init(&head, 1 << 20);
	assert_int_equal(buf_puts(&head, "--x\r\n"), 0);
	for (int i = 0; i < MULTIPART_HEAD_MAX; i++)
		assert_int_equal(buf_puts(&head, "X:"), 0);
	assert_int_equal(buf_puts(&head, "\r\n" HEAD("a")), 0);
	assert_int_equal(buf_puts(&head, "1\r\n--x--"), 0);
	assert_int_equal(show(TYPE, (struct span){ head.data, head.len }, &shown), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
