/* SPDX-License-Identifier: Apache-2.0 */
/* The memo distinguishes entries by name and by state of the file; the oldest is dropped first. */
#include "run/memo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct policy *make_policy(const char *name)
{
	static const struct host_facts facts = { .cores = 1 };
	char text[64];
	struct document doc = { "test", text, 0 };
	struct policy *policy = NULL;

	doc.len = (size_t)snprintf(text, sizeof(text), "name: %s\n", name);
	assert_int_equal(policy_parse(&doc, &facts, &policy, NULL), 0);
	return policy;
}

static bool is_known(struct memo *m, const char *name, const struct tool_id *file)
{
	struct memo_policy *p = memo_policy(m, name, file);

	if (p)
		assert_string_equal(p->policy->name, name);
	memo_release(p);
	return p;
}

static void keep(struct memo *m, const char *name, const struct tool_id *file)
{
	struct memo_policy *p = memo_keep_policy(m, name, file, make_policy(name));

	assert_non_null(p);
	memo_release(p);
}

static void test_policies(void **state)
{
	struct tool_id file = { .size = 1, .inode = 2 }, changed = { .size = 1, .inode = 3 };
	struct memo m = { 0 };
	char name[16];

	(void)state;
	assert_false(is_known(&m, "first", &file));
	keep(&m, "first", &file);
	assert_true(is_known(&m, "first", &file));
	assert_false(is_known(&m, "other", &file));
	assert_false(is_known(&m, "first", &changed));
	/* An entry in use stays, however many others come. */
	for (int i = 0; i < 3 * MEMO_POLICIES; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		keep(&m, name, &file);
		assert_true(is_known(&m, "first", &file));
	}
	assert_true(is_known(&m, name, &file));
	assert_false(is_known(&m, "p0", &file));
	memo_done(&m);
	assert_false(is_known(&m, "first", &file));
}

static void test_a_policy_in_use_outlives_its_place(void **state)
{
	struct tool_id file = { .size = 1, .inode = 2 };
	struct memo_policy *held, *again;
	struct memo m = { 0 };
	char name[16];

	(void)state;
	held = memo_keep_policy(&m, "held", &file, make_policy("held"));
	assert_non_null(held);
	again = memo_policy(&m, "held", &file);
	assert_ptr_equal(again, held);
	for (int i = 0; i < MEMO_POLICIES; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		keep(&m, name, &file);
	}
	assert_false(is_known(&m, "held", &file));
	assert_string_equal(held->policy->name, "held");
	memo_release(held);
	assert_string_equal(again->policy->name, "held");
	memo_done(&m);
	assert_string_equal(again->policy->name, "held");
	memo_release(again);
}

/* A version that is found by asking once, and how often it was asked. */
static int asked;

static int tell(void *data, const json_t *request, struct buf *out)
{
	(void)data;
	(void)request;
	asked++;
	return buf_printf(out, "thing 1.%d", asked);
}

static void test_versions(void **state)
{
	const char *none[] = { NULL }, *argv[] = { "/bin/sh", "--version", NULL };
	const struct language lang = { .name = "thing",
				       .id = "thing",
				       .title = "Thing",
				       .runtime.path = "/bin/sh",
				       .runtime.needs = none,
				       .runtime.version_argv = argv,
				       .runtime.version_prefix = "Thing " };
	const struct prober here = { .run = tell, .cache_fd = -ENOENT },
			    image = { .run = tell, .cache_fd = -ENOENT, .image = "/" };
	struct memo m = { 0 };
	char *version = NULL;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(memo_version(&m, &lang, &here, &version), 0);
		assert_string_equal(version, "Thing 1.1");
		free(version);
	}
	assert_int_equal(asked, 1);
	/* An image is another root, so the host's version does not count. */
	assert_int_equal(memo_version(&m, &lang, &image, &version), 0);
	assert_string_equal(version, "Thing 1.2");
	free(version);
	/* The runtime is another file now. */
	m.versions[0].runtime.mtime_ns++;
	assert_int_equal(memo_version(&m, &lang, &here, &version), 0);
	assert_string_equal(version, "Thing 1.3");
	free(version);
	assert_int_equal(m.next_version, 1);
	memo_done(&m);
}

static void test_modules(void **state)
{
	struct language lang = { .runtime.path = "/bin/sh" }, other = { .runtime.path = "/bin/sh" },
			gone = { .runtime.path = "/nowhere/at/all" };
	struct memo m = { 0 };
	char name[16];

	(void)state;
	assert_false(memo_has_module(&m, &lang, "first"));
	memo_keep_module(&m, &lang, "first");
	memo_keep_module(&m, &gone, "first");
	assert_true(memo_has_module(&m, &lang, "first"));
	assert_false(memo_has_module(&m, &lang, "second"));
	assert_false(memo_has_module(&m, &other, "first"));
	assert_false(memo_has_module(&m, &gone, "first"));
	for (int i = 0; i < MEMO_MODULES; i++) {
		(void)snprintf(name, sizeof(name), "m%d", i);
		memo_keep_module(&m, &lang, name);
		assert_true(memo_has_module(&m, &lang, name));
	}
	assert_false(memo_has_module(&m, &lang, "first"));
	assert_true(memo_has_module(&m, &lang, "m0"));
	memo_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_a_policy_in_use_outlives_its_place),
		cmocka_unit_test(test_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
