/* SPDX-License-Identifier: Apache-2.0 */
#include "run/link/run-fds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static void test_made_ahead(void **state)
{
	int before = count_fds();
	struct run_fds ahead = { 0 }, first, second;

	(void)state;
	assert_int_equal(run_fds_make(&ahead), 0);
	assert_int_equal(count_fds(), before + 5);
	assert_int_equal(run_fds_make(&ahead), 0);
	assert_int_equal(count_fds(), before + 5);
	int out = ahead.out[0];

	assert_int_equal(run_fds_take(&ahead, &first), 0);
	assert_int_equal(first.out[0], out);
	assert_false(ahead.made);
	/* `ahead` is empty now, so new descriptors are made. */
	assert_int_equal(run_fds_take(&ahead, &second), 0);
	assert_int_not_equal(second.out[0], out);
	assert_int_equal(count_fds(), before + 10);
	run_fds_done(&ahead);
	run_fds_done(&first);
	run_fds_done(&second);
	assert_int_equal(count_fds(), before);
}

/* Only the front's ends are non-blocking; all are close-on-exec; the ticket can be taken once. */
static void test_ends(void **state)
{
	struct run_fds w = { 0 };
	uint64_t ticket;
	char byte;

	(void)state;
	assert_int_equal(run_fds_make(&w), 0);
	const int all[] = { w.out[0], w.out[1], w.err[0], w.err[1], w.ticket_fd };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_int_equal(fcntl(all[i], F_GETFD), FD_CLOEXEC);
	assert_true(fcntl(w.out[0], F_GETFL) & O_NONBLOCK);
	assert_false(fcntl(w.out[1], F_GETFL) & O_NONBLOCK);
	assert_int_equal(write(w.err[1], "e", 1), 1);
	assert_int_equal(read(w.err[0], &byte, 1), 1);
	assert_int_equal(read(w.out[0], &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(read(w.ticket_fd, &ticket, sizeof(ticket)), sizeof(ticket));
	assert_int_equal(read(w.ticket_fd, &ticket, sizeof(ticket)), -1);
	run_fds_done(&w);
}

/* With room for any smaller number of descriptors, run_fds_make() fails and leaves none open. */
static void test_no_room(void **state)
{
	int before = count_fds();
	struct rlimit kept, few;
	struct run_fds w = { 0 };

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
	for (int room = 0; room < 5; room++) {
		int free_fd = open("/dev/null", O_RDONLY);

		assert_true(free_fd >= 0);
		(void)close(free_fd);
		few = (struct rlimit){ (rlim_t)(free_fd + room), kept.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_int_equal(run_fds_make(&w), -EMFILE);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
		assert_false(w.made);
		assert_int_equal(count_fds(), before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_ahead),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
