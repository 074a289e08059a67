/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a sandbox's cgroup is its uid. Brokers draw uids independently, so two may draw the same one.
 * Real namespaces, faked cgroups. If the host allows no sandboxes, the tests are skipped.
 */
#include "box/sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ALL = 1000 };

static int n_made;
static int n_taken;  /* so many of the names tried next belong to other sandboxes */
static bool kills;   /* kills the clone before it is completed */
static bool is_full; /* no group can be made */
static struct cgroup_ops ops;

static int create(struct cgroup_root *root, const char *name, struct cgroup **ret,
		  struct error *err)
{
	n_made++;
	if (is_full)
		return error_set(err, ERROR_INTERNAL, ENOSPC, "cannot make the cgroup %s", name);
	if (n_taken == 0)
		return cgroup_none_ops.create(root, name, ret, err);
	n_taken--;
	return error_set(err, ERROR_INTERNAL, EEXIST, "cannot make the cgroup %s", name);
}

static void skip_for(const struct error *err)
{
	print_message("# skipped: %s\n", err->text);
	skip();
}

static void kill_clone(struct sandbox *sb)
{
	siginfo_t info;

	if (sb->pid == 0)
		return; /* cgroup v2: it is cloned later, into its group */
	sandbox_kill(sb);
	assert_int_equal(waitid(P_PID, (id_t)sb->pid, &info, WEXITED | WNOWAIT), 0);
}

/* A sandbox that was cloned before its group was made, as a broker's first one is. */
static int complete(int taken, struct error *err)
{
	struct sandbox_host host = { 0 };
	struct sandbox *spare = NULL;
	int r = sandbox_host_init(&host, &spare, err);

	if (r < 0)
		skip_for(err);
	ops = cgroup_none_ops;
	ops.create = create;
	n_taken = taken;
	host.cgroups = &ops;
	if (kills)
		kill_clone(spare);
	r = sandbox_complete(spare, err);
	sandbox_destroy(spare);
	sandbox_host_done(&host);
	if (err->code == ERROR_POLICY)
		skip_for(err);
	return r;
}

static void test_a_taken_name_is_no_failure(void **state)
{
	(void)state;
	for (int taken = 0; taken < 4; taken++) {
		struct error err = { 0 };

		assert_int_equal(complete(taken, &err), 0);
		/* A broker's first sandbox keeps its error for later runs: here there is none. */
		assert_int_equal(err.code, ERROR_NONE);
		assert_int_equal(n_taken, 0);
	}
}

static void test_there_is_an_end(void **state)
{
	struct error err = { 0 };

	(void)state;
	assert_int_equal(complete(ALL, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "no free user id"));
	assert_true(n_taken > 0);
}

/*
 * The clone's death is noticed elsewhere, but another failure is reported: without a group the sandbox cannot
 * go on.
 */
static void test_a_dead_clone_hides_nothing(void **state)
{
	struct error err = { 0 };

	(void)state;
	kills = true;
	assert_int_equal(complete(0, &err), 0);
	is_full = true;
	assert_int_equal(complete(0, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "cannot make the cgroup"));
	kills = is_full = false;
}

/* A sandbox that is refused for lack of descriptors takes no group, neither a new nor a kept one. */
static void test_what_is_refused_takes_no_group(void **state)
{
	struct sandbox_host host = { 0 };
	struct sandbox *spare = NULL, *sb = NULL;
	struct error err = { 0 };
	int far_end = -1;

	(void)state;
	if (sandbox_host_init(&host, &spare, &err) < 0)
		skip_for(&err);
	ops = cgroup_none_ops;
	ops.create = create;
	host.cgroups = &ops;
	n_made = n_taken = 0;
	host.files_ahead = 1;
	assert_int_equal(sandbox_expect(&host, NULL, &sb, &far_end, &err), -EMFILE);
	assert_int_equal(n_made, 0);
	host.files_ahead = 0;
	assert_int_equal(sandbox_expect(&host, NULL, &sb, &far_end, &err), 0);
	assert_int_equal(n_made, 1);
	(void)close(far_end);
	sandbox_destroy(sb);
	sandbox_destroy(spare);
	sandbox_host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_taken_name_is_no_failure),
		cmocka_unit_test(test_there_is_an_end),
		cmocka_unit_test(test_a_dead_clone_hides_nothing),
		cmocka_unit_test(test_what_is_refused_takes_no_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
