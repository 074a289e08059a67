/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of RFC 4231, with the message in two parts. */
#include "base/hmac.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void test_vectors(void **state)
{
	static const struct {
		char byte; /* the key is this byte so often, or text */
		size_t n;
		const char *text, *message, *hex;
	} vectors[] = {
		{ 0x0b, 20, NULL, "Hi There",
		  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ 0, 0, "Jefe", "what do ya want for nothing?",
		  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ (char)0xaa, 131, NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
		  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		char repeated[131], hex[SHA256_HEX];
		struct span key = span_of(vectors[i].text);
		struct span parts[] = { { vectors[i].message, 4 },
					span_of(vectors[i].message + 4) };
		uint8_t mac[SHA256_BYTES];

		if (!vectors[i].text) {
			memset(repeated, vectors[i].byte, vectors[i].n);
			key = (struct span){ repeated, vectors[i].n };
		}
		hmac_sha256(key, parts, ARRAY_SIZE(parts), mac);
		for (int k = 0; k < SHA256_BYTES; k++)
			(void)snprintf(hex + 2 * k, 3, "%02x", mac[k]);
		assert_string_equal(hex, vectors[i].hex);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
