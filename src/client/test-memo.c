/* SPDX-License-Identifier: Apache-2.0 */
/* What a handle remembers: told apart by name and by what the file was, the oldest goes first. */
#include "client/memo.h"

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

static void test_policies(void **state)
{
	struct tool_id file = { .size = 1, .inode = 2 }, changed = { .size = 1, .inode = 3 };
	struct memo m = { 0 };
	struct policy *first = make_policy("first");
	char name[16];

	(void)state;
	assert_null(memo_policy(&m, "first", &file));
	assert_int_equal(memo_keep_policy(&m, "first", &file, first), 0);
	assert_ptr_equal(memo_policy(&m, "first", &file), first);
	assert_null(memo_policy(&m, "other", &file));
	assert_null(memo_policy(&m, "first", &changed));
	/* What is used stays, however many others come. */
	for (int i = 0; i < 3 * MEMO_POLICIES; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		assert_int_equal(memo_keep_policy(&m, name, &file, make_policy(name)), 0);
		assert_ptr_equal(memo_policy(&m, "first", &file), first);
	}
	assert_non_null(memo_policy(&m, name, &file));
	assert_null(memo_policy(&m, "p0", &file));
	memo_done(&m);
	assert_null(memo_policy(&m, "first", &file));
}

/* A version that is found out by asking once, and how often that was. */
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
				       .title = "Thing",
				       .runtime = "/bin/sh",
				       .needs = none,
				       .version_argv = argv,
				       .version_prefix = "Thing " };
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
	/* An image is another root: what is known of the host says nothing about it. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
