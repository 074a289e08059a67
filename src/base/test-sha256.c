/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of FIPS 180-4 and NIST's long one; every length around a block, in every split. */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "base/macro.h"
#include "base/sha256-block.h"

#include <cmocka.h>

static const char *hash(const void *data, size_t n, char ret[SHA256_HEX])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_update(&h, data, n);
	sha256_final(&h, ret);
	return ret;
}

static void test_vectors(void **state)
{
	static const struct {
		const char *text;
		const char *hex;
	} vectors[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
		  "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};
	char hex[SHA256_HEX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++)
		assert_string_equal(hash(vectors[i].text, strlen(vectors[i].text), hex),
				    vectors[i].hex);
}

static void test_million(void **state)
{
	char thousand[1000], hex[SHA256_HEX];
	struct sha256 h;

	(void)state;
	memset(thousand, 'a', sizeof(thousand));
	sha256_init(&h);
	for (int i = 0; i < 1000; i++)
		sha256_update(&h, thousand, sizeof(thousand));
	sha256_final(&h, hex);
	assert_string_equal(hex,
			    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The same million bytes in one call, and again at an offset to the blocks. */
static void test_much_at_once(void **state)
{
	static const char sum[] =
		"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
	_cleanup_free_ char *text = malloc(1000000);
	char hex[SHA256_HEX];
	struct sha256 h;

	(void)state;
	assert_non_null(text);
	memset(text, 'a', 1000000);
	assert_string_equal(hash(text, 1000000, hex), sum);
	sha256_init(&h);
	sha256_update(&h, text, 33);
	sha256_update(&h, text, 999967);
	sha256_final(&h, hex);
	assert_string_equal(hex, sum);
}

/* The digest of all digests of "aaa…" with length 0 to 199, from Python's hashlib. */
static void test_padding(void **state)
{
	char text[200], hex[SHA256_HEX];
	struct sha256 all;

	(void)state;
	memset(text, 'a', sizeof(text));
	sha256_init(&all);
	for (size_t n = 0; n < sizeof(text); n++)
		sha256_update(&all, hash(text, n, hex), SHA256_HEX - 1);
	sha256_final(&all, hex);
	assert_string_equal(hex,
			    "019f2b9f1af27a53a1f046da7e98af2c179f431e4b5bebb000e74040917a4123");
}

static void test_splits(void **state)
{
	uint8_t data[150];
	char whole[SHA256_HEX], parts[SHA256_HEX];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37);
	for (size_t n = 0; n <= sizeof(data); n++) {
		(void)hash(data, n, whole);
		for (size_t cut = 0; cut <= n; cut++) {
			struct sha256 h;

			sha256_init(&h);
			sha256_update(&h, data, cut);
			sha256_update(&h, data + cut, n - cut);
			sha256_final(&h, parts);
			assert_string_equal(parts, whole);
		}
	}
}

/* The processor's instructions and the C code agree over many blocks. */
static void test_both_ways(void **state)
{
	uint32_t one[8], other[8];
	uint8_t data[64 * 9];
	uint32_t x = 1;

	(void)state;
	if (!sha256_has_x86())
		skip();
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
		for (size_t i = 0; i < ARRAY_SIZE(one); i++)
			one[i] = other[i] = x = x * 1664525 + 1013904223;
		sha256_blocks_plain(one, data, (size_t)round % 10);
		sha256_blocks_x86(other, data, (size_t)round % 10);
		assert_memory_equal(one, other, sizeof(one));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),	     cmocka_unit_test(test_million),
		cmocka_unit_test(test_much_at_once), cmocka_unit_test(test_padding),
		cmocka_unit_test(test_splits),	     cmocka_unit_test(test_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
