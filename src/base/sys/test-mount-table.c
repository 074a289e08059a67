/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys/mount-table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

#include <cmocka.h>

static char seen[4096];

static int note(void *data, const char *path)
{
	int *left = data;

	strncat(seen, path, sizeof(seen) - strlen(seen) - 1);
	strncat(seen, "\n", sizeof(seen) - strlen(seen) - 1);
	return --*left == 0 ? 7 : 0;
}

static int table_of(const char *text)
{
	int fd = memfd_create("table", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	return fd;
}

static void test_points_below(void **state)
{
	static const char text[] = "22 27 0:21 / / rw - ext4 /dev/sda rw\n"
				   "23 22 0:22 / /usr rw,relatime shared:1 - ext4 /dev/sda rw\n"
				   "24 23 0:23 / /usr/games ro - tmpfs tmpfs rw\n"
				   "25 22 0:24 / /usrx rw - tmpfs tmpfs rw\n"
				   "26 23 0:25 /a\\040b /usr/with\\040space\\134and\\011tab rw - "
				   "tmpfs tmpfs rw,x=/usr/y\n"
				   "27 23 0:26 /lib.so /usr/lib/lib.so rw - overlay overlay rw\n";
	_cleanup_close_ int fd = table_of(text);
	int left = 100;

	(void)state;
	seen[0] = '\0';
	assert_int_equal(mounts_below(fd, "/usr", note, &left), 0);
	assert_string_equal(seen, "/usr/games\n/usr/with space\\and\ttab\n/usr/lib/lib.so\n");
	/* From the beginning again; the callback ends it. */
	seen[0] = '\0';
	left = 1;
	assert_int_equal(mounts_below(fd, "/usr", note, &left), 7);
	assert_string_equal(seen, "/usr/games\n");
}

/* Options of many layers are longer than a buffer; a path that no plan could name is an error and not left out. */
static void test_long_lines(void **state)
{
	static char text[20000];
	_cleanup_close_ int fd = -EBADF, long_fd = -EBADF;
	int left = 100;

	(void)state;
	(void)snprintf(text, sizeof(text),
		       "1 0 0:1 / / rw - overlay overlay lowerdir=%09000d\n"
		       "2 1 0:2 / /usr/b rw - tmpfs tmpfs rw\n",
		       0);
	fd = table_of(text);
	seen[0] = '\0';
	assert_int_equal(mounts_below(fd, "/usr", note, &left), 0);
	assert_string_equal(seen, "/usr/b\n");
	(void)snprintf(text, sizeof(text), "1 0 0:1 / /usr/%01100d rw - tmpfs tmpfs rw\n", 0);
	long_fd = table_of(text);
	assert_int_equal(mounts_below(long_fd, "/usr", note, &left), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points_below),
		cmocka_unit_test(test_long_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
