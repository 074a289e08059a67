/* SPDX-License-Identifier: Apache-2.0 */
/* The file of secrets that callbacks are signed with. */
#include "atoll/daemon/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

struct secrets_fixture {
	char path[32];
	struct config config;
	struct error err;
};

static int setup(void **state)
{
	struct secrets_fixture *f = calloc(1, sizeof(*f));

	(void)snprintf(f->path, sizeof(f->path), "/tmp/atoll-secrets-XXXXXX");
	(void)fd_close(mkstemp(f->path));
	f->config.callback.secret_file = f->path;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct secrets_fixture *f = *state;

	(void)unlink(f->path);
	config_done(&f->config);
	free(f);
	return 0;
}

static int read_secrets(struct secrets_fixture *f, const char *text, mode_t mode)
{
	FILE *file = fopen(f->path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(f->path, mode), 0);
	return config_read_secrets(&f->config, &f->err);
}

static void test_accepted(void **state)
{
	struct secrets_fixture *f = *state;

	assert_int_equal(read_secrets(f, "# new, old\n" SECRET "\r\n\n" SECRET, 0600), 0);
	assert_string_equal(f->config.callback.secrets[0], SECRET);
	assert_string_equal(f->config.callback.secrets[1], SECRET);
	assert_null(f->config.callback.secrets[2]);
}

static void test_refused(void **state)
{
	static const char malformed[] =
		"has a line that is not whsec_ and the base64 of 24 to 64 bytes";
	static const struct {
		const char *text, *why;
	} samples[] = {
		{ "\n", "holds no secret; put whsec_ and base64 on a line" },
		{ "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", malformed },
		{ "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa==", malformed },
		{ "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!", malformed },
		{ SECRET "\n" SECRET SECRET, malformed },
	};
	struct secrets_fixture *f = *state;
	char wanted[200];

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		(void)snprintf(wanted, sizeof(wanted), "callbacks.secret_file: '%s' %s", f->path,
			       samples[i].why);
		assert_int_equal(read_secrets(f, samples[i].text, 0600), -EINVAL);
		assert_string_equal(f->err.text, wanted);
	}
	/* Another user who reads a secret can forge results. */
	assert_int_equal(read_secrets(f, SECRET, 0640), -EINVAL);
	assert_non_null(strstr(f->err.text, "other users can read"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_accepted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
