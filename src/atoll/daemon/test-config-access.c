/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and token files. */
#include "atoll/daemon/config.h"

#include "base/fd.h"
#include "spec/test-support.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_addresses(void **state _unused_)
{
	static const char *const wrong[] = {
		"8700",		  "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",    "127.0.0.1:65536",
		"example.org:80", ":80",       "::1:80",     "[127.0.0.1]:80", "127.0.0.1:-1",
		"[::1]"
	};
	static const struct {
		const char *text;
		bool loopback;
	} right[] = { { "127.0.0.1:8700", true }, { "127.9.9.9:1", true },
		      { "localhost:0", true },	  { "[::1]:80", true },
		      { "0.0.0.0:80", false },	  { "[::]:80", false },
		      { "10.0.0.1:80", false },	  { "[::ffff:127.0.0.1]:80", false } };
	struct config_address a;
	struct error err;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (config_address_parse(wrong[i], &a, &err) == 0)
			fail_msg("%s was taken", wrong[i]);
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		assert_int_equal(config_address_parse(right[i].text, &a, &err), 0);
		assert_int_equal(a.loopback, right[i].loopback);
	}
	assert_int_equal(config_address_parse("x", &a, &err), -EINVAL);
	assert_string_equal(err.text, "listen: 'x' is not an address and a port, such as "
				      "127.0.0.1:8700 or [::1]:8700 (port: 0 to 65535)");
}

/* A token file of a test, and what it is given to. */
struct tokens_fixture {
	char path[64];
	struct config config;
	struct error err;
};

static int setup(void **state)
{
	struct tokens_fixture *f = calloc(1, sizeof(*f));
	int fd;

	(void)snprintf(f->path, sizeof(f->path), "/tmp/token-file-XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	(void)fd_close(fd);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct tokens_fixture *f = *state;

	(void)unlink(f->path);
	config_done(&f->config);
	free(f);
	return 0;
}

static int read_tokens(struct tokens_fixture *f, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = open(f->path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	config_done(&f->config);
	f->config = (struct config){ .access.token_file = f->path };
	return config_read_tokens(&f->config, &f->err);
}

#define NOT_ASCII "has a token with a character that is not visible ASCII"

static void test_refused_texts(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "holds no token; put one of at least 16 characters on a line" },
		{ "# nothing\n\n", "holds no token; put one of at least 16 characters on a line" },
		{ "0123456789 operators\n", NOT_ASCII },
		{ " operator\n", NOT_ASCII },
		{ "0123456789 abcdef\n", NOT_ASCII },
	};
	struct tokens_fixture *f = *state;
	char large[CONFIG_TOKEN_MAX + 2] = { 0 }, wanted[300];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		(void)snprintf(wanted, sizeof(wanted), "token_file: '%s' %s", f->path,
			       cases[i].why);
		assert_int_equal(read_tokens(f, cases[i].text, 0600), -EINVAL);
		assert_string_equal(f->err.text, wanted);
		assert_null(f->config.access.tokens);
	}
	(void)memset(large, 'x', sizeof(large) - 1);
	assert_int_equal(read_tokens(f, large, 0600), -EINVAL);
	assert_non_null(strstr(f->err.text, "has a token of more than 512 characters"));
	(void)unlink(f->path);
	assert_int_equal(config_read_tokens(&f->config, &f->err), -EINVAL);
	assert_non_null(strstr(f->err.text, "' does not exist"));
}

/* A token file is its owner's alone. */
static void test_refused_modes(void **state)
{
	static const struct {
		mode_t mode;
		const char *can;
	} cases[] = {
		{ 0660, "write to" }, { 0602, "write to" }, { 0604, "read" }, { 0640, "read" }
	};
	struct tokens_fixture *f = *state;
	char wanted[300];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		(void)snprintf(wanted, sizeof(wanted),
			       "token_file: other users can %s '%s'; run: chmod 600 %s",
			       cases[i].can, f->path, f->path);
		assert_int_equal(read_tokens(f, "0123456789abcdef\n", cases[i].mode), -EINVAL);
		assert_string_equal(f->err.text, wanted);
	}
}

static void test_tokens(void **state)
{
	struct tokens_fixture *f = *state;

	assert_int_equal(
		read_tokens(f, "# two\n0123456789abcdef\r\n\nfedcba9876543210 operator", 0600), 0);
	assert_string_equal(f->config.access.tokens[0], "0123456789abcdef");
	assert_string_equal(f->config.access.tokens[1], "fedcba9876543210 operator");
	assert_null(f->config.access.tokens[2]);
	assert_false(f->config.access.token_short);
	/* A short token is accepted, and the log says what to do. */
	assert_int_equal(read_tokens(f, "secret\n", 0400), 0);
	assert_string_equal(f->config.access.tokens[0], "secret");
	assert_true(f->config.access.token_short);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		T(test_refused_texts),
		T(test_refused_modes),
		T(test_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
