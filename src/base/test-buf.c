/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

#include <cmocka.h>

static void test_append(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	buf_init(&b, 1 << 20);
	assert_int_equal(buf_append(&b, NULL, 0), 0);
	assert_string_equal(b.data, "");
	for (int i = 0; i < 10000; i++)
		assert_int_equal(buf_append(&b, "xyz", 3), 0);
	assert_int_equal(b.len, 30000);
	assert_int_equal(b.data[30000], '\0');
	for (size_t i = 0; i < b.len; i++)
		assert_int_equal(b.data[i], "xyz"[i % 3]);
}

/* At the bound everything fits; one byte more changes nothing. */
static void test_bound(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	buf_init(&b, 8);
	assert_int_equal(buf_puts(&b, "12345678"), 0);
	assert_int_equal(buf_puts(&b, "9"), -ENOBUFS);
	assert_int_equal(buf_printf(&b, "%d", 9), -ENOBUFS);
	assert_int_equal(buf_append(&b, "9", SIZE_MAX), -ENOBUFS);
	assert_string_equal(b.data, "12345678");
	assert_int_equal(b.len, 8);
}

/* A buffer with an enormous bound grows like any other. */
static void test_no_bound(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	buf_init(&b, SIZE_MAX);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(buf_printf(&b, "%d", i % 10), 0);
	assert_int_equal(b.len, 1000);
	assert_true(b.capacity > b.len);
	assert_string_equal(b.data + 990, "0123456789");
	assert_int_equal(buf_append(&b, "9", SIZE_MAX), -ENOBUFS);
	assert_int_equal(b.len, 1000);
}

static void test_printf(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(buf_printf(&b, "%s=%d", "a", 1), 0);
	assert_int_equal(buf_printf(&b, "%*d", 600, 7), 0);
	assert_int_equal(b.len, 603);
	assert_memory_equal(b.data, "a=1 ", 4);
	assert_string_equal(b.data + 602, "7");
}

static void test_take(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };
	_cleanup_free_ char *text = NULL;

	(void)state;
	buf_init(&b, 16);
	assert_int_equal(buf_puts(&b, "taken"), 0);
	text = buf_take(&b);
	assert_string_equal(text, "taken");
	assert_null(b.data);
	assert_int_equal(b.len, 0);
	assert_int_equal(buf_puts(&b, "again"), 0);
	assert_string_equal(b.data, "again");
	assert_int_equal(buf_puts(&b, "0123456789abcdef"), -ENOBUFS);
}

static void test_read_fd(void **state)
{
	_cleanup_buf_ struct buf b = { 0 }, small = { 0 };
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);
	char block[4096];

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i % 251);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fd_write_all(fd, block, sizeof(block)), 0);

	buf_init(&b, 10 * sizeof(block));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(buf_read_fd(&b, fd), 0);
	assert_int_equal(b.len, 10 * sizeof(block));
	for (size_t i = 0; i < 10; i++)
		assert_memory_equal(b.data + i * sizeof(block), block, sizeof(block));

	buf_init(&small, 10 * sizeof(block) - 1);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(buf_read_fd(&small, fd), -EFBIG);
	assert_int_equal(buf_read_fd(&small, -1), -EBADF);
}

/* An empty file gives an empty text, not a missing one. */
static void test_read_empty(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);

	(void)state;
	buf_init(&b, 16);
	assert_int_equal(buf_read_fd(&b, fd), 0);
	assert_string_equal(b.data, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_append),	   cmocka_unit_test(test_bound),
		cmocka_unit_test(test_no_bound),   cmocka_unit_test(test_printf),
		cmocka_unit_test(test_take),	   cmocka_unit_test(test_read_fd),
		cmocka_unit_test(test_read_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
