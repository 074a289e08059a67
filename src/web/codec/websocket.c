/* SPDX-License-Identifier: Apache-2.0 */
/* See websocket.h. */
#include "web/codec/websocket.h"

#include "base/sha1.h"

enum { KEY_BYTES = 24 };

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Base64 of 20 bytes: six groups of three and one of two. */
static void encode_accept(const uint8_t in[SHA1_BYTES], char ret[WEBSOCKET_ACCEPT])
{
	for (int i = 0; i < 7; i++) {
		uint32_t group = (uint32_t)in[3 * i] << 16 | (uint32_t)in[3 * i + 1] << 8 |
				 (i < 6 ? in[3 * i + 2] : 0);

		for (int k = 0; k < 4; k++)
			ret[4 * i + k] = digits[group >> (18 - 6 * k) & 63];
	}
	ret[27] = '=';
	ret[28] = '\0';
}

void websocket_accept(struct span key, char ret[WEBSOCKET_ACCEPT])
{
	static const char suffix[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	char text[KEY_BYTES + sizeof(suffix)];
	size_t n = MIN(key.len, (size_t)KEY_BYTES);
	uint8_t hash[SHA1_BYTES];

	memcpy(text, key.data, n);
	memcpy(text + n, suffix, sizeof(suffix) - 1);
	sha1(text, n + sizeof(suffix) - 1, hash);
	encode_accept(hash, ret);
}

/* 16 bytes in base64: 22 digits, of which the last has two significant bits, and "==". */
static bool is_key(struct span key)
{
	if (key.len != KEY_BYTES || key.data[22] != '=' || key.data[23] != '=' ||
	    !strchr("AQgw", key.data[21]))
		return false;
	for (int i = 0; i < 22; i++)
		if (!strchr(digits, key.data[i]))
			return false;
	return true;
}

int websocket_check(const struct http_request *r, char ret[WEBSOCKET_ACCEPT])
{
	struct span key = http_request_field(r, "sec-websocket-key");

	if (r->method != HTTP_GET || !r->upgrade ||
	    !http_list_has(http_request_field(r, "upgrade"), "websocket"))
		return 426;
	if (!span_is(http_request_field(r, "sec-websocket-version"), "13"))
		return 426;
	if (http_head_count(&r->head, "sec-websocket-key") != 1 || !is_key(key))
		return 400;
	websocket_accept(key, ret);
	return 0;
}
