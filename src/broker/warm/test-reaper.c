/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes of a reaper that ends: each is freed, also one whose group stays busy. No sandbox is made. */
#include "broker/warm/reaper.h"

#include "base/fd.h"
#include "box/spawn.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static bool busy;
static int removals;

static int fake_remove(struct cgroup *cg)
{
	(void)cg;
	removals++;
	return busy ? -EBUSY : 0;
}

static const struct cgroup_ops fake_ops = { .name = "fake", .remove = fake_remove };

/* Gives a reaper one sandbox, and frees the reaper. Every descriptor of the sandbox must be closed then. */
static void free_with_one(void)
{
	struct sandbox_host host = { .cgroups = &fake_ops };
	struct loop *loop = loop_new();
	struct sandbox *sb = sandbox_new(&host);
	struct reaper *reaper = NULL;
	int out[2];
	char byte;

	assert_non_null(loop);
	assert_non_null(sb);
	assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(reaper_new(loop, &reaper), 0);
	removals = 0;
	sb->files.work_fd = out[1];
	sb->cgroup = (struct cgroup *)&host; /* only the fake looks at it */
	reaper_take(reaper, sb);
	assert_int_equal(read(out[0], &byte, 1), -1);
	assert_null(reaper_free(reaper));
	assert_int_equal(read(out[0], &byte, 1), 0);
	close(out[0]);
	(void)loop_free(loop);
}

static void test_gone_at_once(void **state)
{
	(void)state;
	busy = false;
	free_with_one();
	assert_int_equal(removals, 1);
}

/* Takes the two seconds that a reaper waits. */
static void test_never_gone(void **state)
{
	(void)state;
	busy = true;
	free_with_one();
	assert_true(removals > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gone_at_once),
		cmocka_unit_test(test_never_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
