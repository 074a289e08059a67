/* SPDX-License-Identifier: Apache-2.0 */
/* `pool: auto`: a group of settings may be one word, the name of a switch in it; `atoll run` reads that switch alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "atoll/daemon/config.h"
#include "base/fd.h"

static char path[] = "/tmp/test-config-pool-XXXXXX";

static int make_settings(void **state)
{
	(void)state;
	return fd_close(mkstemp(path)) == -EBADF ? 0 : -1;
}

static int remove_settings(void **state)
{
	(void)state;
	return unlink(path);
}

/* Both readers of settings agree; -1: they refuse them, with err. */
static int read_pool(const char *text, const char *variable, struct error *err)
{
	const char *const env[] = { "HOME=/nonexistent", variable, NULL };
	const struct config_source source = {
		.system_file = path, .env = env, .cores = 2, .memory_bytes = GiB
	};
	struct config c = { 0 };
	FILE *f = fopen(path, "we");
	bool wanted = false;
	int r, whole;

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	*err = (struct error){ 0 };
	whole = config_load(&source, &c, err);
	r = config_read_pool(&source, &wanted, err);
	assert_int_equal(r < 0, whole < 0);
	if (r == 0)
		assert_int_equal(wanted, c.pool.automatic);
	if (r == 0)
		assert_string_equal(c.files[0], path);
	config_done(&c);
	return r < 0 ? -1 : wanted;
}

static void test_pool(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(read_pool("", NULL, &err), 0);
	assert_int_equal(read_pool("pool: auto\n", NULL, &err), 1);
	assert_int_equal(read_pool("pool: {auto: true, spares: 3}\n", NULL, &err), 1);
	assert_int_equal(read_pool("pool: {spares: 3}\n", NULL, &err), 0);
	assert_int_equal(read_pool("pool: auto\n", "ATOLL_POOL_AUTO=off", &err), 0);
	assert_int_equal(read_pool("", "ATOLL_POOL_AUTO=on", &err), 1);
}

static void test_other_words(void **state)
{
	struct error err;

	(void)state;
	/* No setting, a setting that is no switch, and no group. */
	assert_int_equal(read_pool("pool: aut\n", NULL, &err), -1);
	assert_non_null(strstr(err.text, "pool: 'aut' is not an object of settings"));
	assert_int_equal(read_pool("pool: memory\n", NULL, &err), -1);
	assert_int_equal(read_pool("log: pool.auto\n", NULL, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_other_words),
	};

	return cmocka_run_group_tests(tests, make_settings, remove_settings);
}
