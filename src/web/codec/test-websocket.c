/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake with the example of RFC 6455, SHA-1 with those of FIPS 180-4. */
#include "web/codec/websocket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/sha1.h"

static void test_sha1(void **state)
{
	static const struct {
		const char *text, *hex;
	} samples[] = {
		{ "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
		{ "1234567890123456789012345678901234567890123456789012345",
		  "827a683fdfdbef225a2421078b7789b134c7eafa" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		uint8_t hash[SHA1_BYTES];
		char hex[2 * SHA1_BYTES + 1];

		sha1(samples[i].text, strlen(samples[i].text), hash);
		for (int k = 0; k < SHA1_BYTES; k++)
			(void)snprintf(hex + 2 * k, 3, "%02x", hash[k]);
		assert_string_equal(hex, samples[i].hex);
	}
}

#define KEY  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VER  "Sec-WebSocket-Version: 13\r\n"
#define CONN "Connection: Upgrade\r\n"
#define UPGR "Upgrade: websocket\r\n"

static void test_handshakes(void **state)
{
	static const struct {
		const char *first, *fields;
		int status;
	} samples[] = {
		{ "GET / HTTP/1.1\r\n", CONN UPGR KEY VER, 0 },
		{ "GET / HTTP/1.1\r\n",
		  "connection: keep-alive, upgrade\r\nupgrade: WebSocket\r\n" KEY VER, 0 },
		{ "POST / HTTP/1.1\r\n", CONN UPGR KEY VER, 426 },
		{ "GET / HTTP/1.0\r\n", CONN UPGR KEY VER, 426 },
		{ "GET / HTTP/1.1\r\n", "", 426 },
		{ "GET / HTTP/1.1\r\n", UPGR KEY VER, 426 },
		{ "GET / HTTP/1.1\r\n", CONN "Upgrade: h2c\r\n" KEY VER, 426 },
		{ "GET / HTTP/1.1\r\n", CONN UPGR KEY "Sec-WebSocket-Version: 8\r\n", 426 },
		{ "GET / HTTP/1.1\r\n", CONN UPGR KEY, 426 },
		{ "GET / HTTP/1.1\r\n", CONN UPGR VER, 400 },
		{ "GET / HTTP/1.1\r\n", CONN UPGR KEY KEY VER, 400 },
		{ "GET / HTTP/1.1\r\n", CONN UPGR VER "Sec-WebSocket-Key: short\r\n", 400 },
		{ "GET / HTTP/1.1\r\n",
		  CONN UPGR VER "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n", 400 },
		{ "GET / HTTP/1.1\r\n",
		  CONN UPGR VER "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=!\r\n", 400 },
		{ "GET / HTTP/1.1\r\n",
		  CONN UPGR VER "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j!Q==\r\n", 400 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		char text[512], accept[WEBSOCKET_ACCEPT] = "";
		struct http_request r;

		(void)snprintf(text, sizeof(text), "%sHost: a\r\n%s\r\n", samples[i].first,
			       samples[i].fields);
		http_request_init(&r, HTTP_LIMITS);
		assert_int_equal(http_request_feed(&r, text, strlen(text)), 1);
		if (websocket_check(&r, accept) != samples[i].status)
			fail_msg("%s", text);
		assert_string_equal(accept,
				    samples[i].status ? "" : "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sha1),
		cmocka_unit_test(test_handshakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
