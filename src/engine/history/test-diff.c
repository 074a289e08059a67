/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/history/linediff.h"
#include "engine/history/test-store.h"

static void compare(const char *a, const char *b, const char *expected)
{
	_cleanup_buf_ struct buf text = { .max = 4096 };
	struct linediff d = { 0 };

	assert_int_equal(linediff(SPAN(a), SPAN(b), &text, &d), 0);
	assert_string_equal(text.data ? text.data : "", expected);
	assert_false(d.truncated);
}

static void test_lines(void **state _unused_)
{
	compare("", "", "");
	compare("a\nb\n", "a\nb\n", "");
	compare("", "x\n", "@@ -0,0 +1,1 @@\n+x\n");
	compare("x", "", "@@ -1,1 +0,0 @@\n-x\n");
	compare("a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
	compare("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\nX\n9\n",
		"@@ -6,4 +6,5 @@\n 6\n 7\n 8\n+X\n 9\n");
	/* Near changes share a hunk, far ones do not. */
	compare("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
		"@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
	compare("a\n1\n2\n3\nb\n", "A\n1\n2\n3\nB\n",
		"@@ -1,5 +1,5 @@\n-a\n+A\n 1\n 2\n 3\n-b\n+B\n");
}

static void test_large(void **state _unused_)
{
	_cleanup_buf_ struct buf a = { .max = 8 << 20 }, b = { .max = 8 << 20 },
				 text = { .max = 1000 };
	struct linediff d = { 0 };

	for (int i = 0; i < 30000; i++) {
		assert_int_equal(buf_printf(&a, "%d\n", i), 0);
		assert_int_equal(buf_printf(&b, "%d\n", i + 100000), 0);
	}
	assert_int_equal(
		linediff((struct span){ a.data, a.len }, (struct span){ b.data, b.len }, &text, &d),
		0);
	assert_true(d.truncated);
	assert_int_equal(d.added, 20000);
	assert_int_equal(d.removed, 20000);
	assert_true(text.len <= 1000 && text.len > 900);
}

static json_t *load(const char *text)
{
	json_t *root = json_loads(text, 0, NULL);

	assert_non_null(root);
	return root;
}

static json_t *at(json_t *root, const char *first, const char *second)
{
	return json_object_get(json_object_get(root, first), second);
}

static void test_executions(void **state _unused_)
{
	json_t *ra = load(
		"{\"id\":\"ex_a\",\"status\":\"success\",\"exit_code\":0,\"stdout\":\"1\\n2\\n\","
		"\"stderr\":\"\",\"duration\":0.5,\"memory_peak\":100,"
		"\"files\":[{\"path\":\"x\",\"sha256\":\"1\"},{\"path\":\"y\",\"sha256\":\"1\"}]}");
	json_t *rb = load(
		"{\"id\":\"ex_b\",\"status\":\"error\",\"exit_code\":1,\"stdout\":\"1\\n3\\n\","
		"\"stderr\":\"\",\"duration\":0.75,\"memory_peak\":160,"
		"\"files\":[{\"path\":\"x\",\"sha256\":\"2\"},{\"path\":\"z\",\"sha256\":\"1\"}]}");
	json_t *qa = load("{\"language\":\"python\",\"code\":\"a\\nb\\n\",\"args\":[\"1\"]}");
	json_t *qb = load("{\"language\":\"python\",\"code\":\"a\\nc\\n\",\"stdin\":\"x\"}");
	struct history_side a = { qa, ra }, b = { qb, rb };
	json_t *d = history_diff(&a, &b);

	assert_true(json_is_false(json_object_get(d, "same")));
	assert_string_equal(json_string_value(json_object_get(d, "b")), "ex_b");
	assert_string_equal(json_string_value(at(d, "status", "a")), "success");
	assert_int_equal(json_integer_value(at(d, "exit_code", "b")), 1);
	assert_string_equal(json_string_value(at(d, "stdout", "diff")),
			    "@@ -1,2 +1,2 @@\n 1\n-2\n+3\n");
	assert_true(json_is_true(at(d, "stderr", "same")));
	assert_int_equal(
		json_integer_value(json_object_get(at(d, "usage", "memory_peak"), "delta")), 60);
	assert_true(json_real_value(json_object_get(at(d, "usage", "duration"), "delta")) == 0.25);
	assert_string_equal(json_string_value(json_array_get(at(d, "files", "added"), 0)), "z");
	assert_string_equal(json_string_value(json_array_get(at(d, "files", "removed"), 0)), "y");
	assert_string_equal(json_string_value(json_array_get(at(d, "files", "changed"), 0)), "x");
	assert_null(at(d, "request", "language"));
	assert_int_equal(json_object_size(json_object_get(d, "request")), 3);
	assert_string_equal(json_string_value(json_object_get(at(d, "request", "code"), "diff")),
			    "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
	assert_true(json_is_null(json_object_get(at(d, "request", "stdin"), "a")));
	json_decref(d);

	/* With itself; only its measures may differ. */
	d = history_diff(&a, &a);
	assert_true(json_is_true(json_object_get(d, "same")));
	json_decref(d);
	/* With one that has no result yet. */
	d = history_diff(&a, &(struct history_side){ qb, NULL });
	assert_true(json_is_null(json_object_get(d, "b")));
	assert_true(json_is_null(json_object_get(at(d, "usage", "duration"), "delta")));
	json_decref(d);
	json_decref(ra);
	json_decref(rb);
	json_decref(qa);
	json_decref(qb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_executions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
