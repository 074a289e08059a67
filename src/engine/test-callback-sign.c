/* SPDX-License-Identifier: Apache-2.0 */
/* The example of the Standard Webhooks libraries, and several secrets. */
#include "engine/callback-sign.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct callback_message message = { "msg_p5jXN8AQM9LWM0D4loKWxJek",
						 1614265330,
						 { "{\"test\": 2432232314}", 20 } };
#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define SIGNED "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

static void test_known(void **state)
{
	static const char *const one[] = { SECRET, NULL }, *const two[] = { SECRET, SECRET, NULL };
	_cleanup_buf_ struct buf b = { 0 }, both = { 0 };

	(void)state;
	buf_init(&b, 1024);
	assert_int_equal(callback_sign(one, &message, &b), 0);
	assert_string_equal(b.data, SIGNED);
	buf_init(&both, 1024);
	assert_int_equal(callback_sign(two, &message, &both), 0);
	assert_string_equal(both.data, SIGNED " " SIGNED);
}

static void test_broken_secrets(void **state)
{
	static const char *const lists[][2] = { { "" }, { "whsec_" }, { "whsec_!" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		_cleanup_buf_ struct buf b = { 0 };

		buf_init(&b, 1024);
		assert_int_equal(callback_sign(lists[i], &message, &b), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_broken_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
