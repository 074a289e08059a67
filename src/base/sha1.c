/* SPDX-License-Identifier: Apache-2.0 */
/* See sha1.h. The padded message has at most two blocks, so no state is kept between calls. */
#include "base/sha1.h"

#include <assert.h>
#include <string.h>

static uint32_t rotate(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static void expand(const uint8_t block[64], uint32_t w[80])
{
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
}

static void mix(uint32_t state[5], const uint8_t block[64])
{
	static const uint32_t k[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

	expand(block, w);
	for (int i = 0; i < 80; i++) {
		uint32_t f = i < 20   ? (b & c) | (~b & d)
			     : i < 40 ? b ^ c ^ d
			     : i < 60 ? (b & c) | (b & d) | (c & d)
				      : b ^ c ^ d;
		uint32_t next = rotate(a, 5) + f + e + k[i / 20] + w[i];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = next;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

void sha1(const void *data, size_t n, uint8_t ret[SHA1_BYTES])
{
	uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	uint8_t blocks[128] = { 0 };
	size_t last = n < 56 ? 64 : 128;

	assert(n <= SHA1_INPUT_MAX);
	memcpy(blocks, data, n);
	blocks[n] = 0x80;
	blocks[last - 2] = (uint8_t)(n * 8 >> 8);
	blocks[last - 1] = (uint8_t)(n * 8);
	for (size_t at = 0; at < last; at += 64)
		mix(state, blocks + at);
	for (int i = 0; i < SHA1_BYTES; i++)
		ret[i] = (uint8_t)(state[i / 4] >> (24 - i % 4 * 8));
}
