/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See sha256.h. Follows FIPS 180-4: section 6.2.2 is compress(), 5.1.1 the padding. If the processor has SHA
 * instructions, sha256-x86.c does the work.
 */
#include "base/sha256.h"

#include "base/macro.h"
#include "base/sha256-block.h"

#include <stdatomic.h>
#include <string.h>

enum { ASK_BLOCKS = 256, ASK_BLOCKS_IN_ALL = 4096 };

const uint32_t sha256_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
	return (x >> n) | (x << (32 - n));
}

static uint32_t load_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void compress(uint32_t state[8], const uint8_t block[64])
{
	uint32_t w[64], v[8];

	for (int i = 0; i < 16; i++)
		w[i] = load_be32(block + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
		uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);

		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
	memcpy(v, state, sizeof(v));
	for (int i = 0; i < 64; i++) {
		uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t t1 = v[7] + s1 + choice + sha256_constants[i] + w[i];
		uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
		uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);

		v[7] = v[6];
		v[6] = v[5];
		v[5] = v[4];
		v[4] = v[3] + t1;
		v[3] = v[2];
		v[2] = v[1];
		v[1] = v[0];
		v[0] = t1 + s0 + majority;
	}
	for (int i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256_blocks_plain(uint32_t state[8], const uint8_t *data, size_t n)
{
	for (; n > 0; n--, data += 64)
		compress(state, data);
}

static void blocks(uint32_t state[8], const uint8_t *data, size_t n)
{
	static void (*chosen)(uint32_t state[8], const uint8_t *data, size_t n);
	static _Atomic size_t seen;

	/*
	 * In a virtual machine CPUID costs as much as hashing about 8 KiB, so it is asked only for large data
	 * or after many calls. Threads that get here at the same time make the same choice.
	 */
	if (!chosen &&
	    (n >= ASK_BLOCKS ||
	     atomic_fetch_add_explicit(&seen, n, memory_order_relaxed) >= ASK_BLOCKS_IN_ALL))
		chosen = sha256_has_x86() ? sha256_blocks_x86 : sha256_blocks_plain;
	if (chosen)
		chosen(state, data, n);
	else
		sha256_blocks_plain(state, data, n);
}

void sha256_init(struct sha256 *h)
{
	*h = (struct sha256){
		.state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
			   0x1f83d9ab, 0x5be0cd19 },
	};
}

void sha256_update(struct sha256 *h, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n > 0) {
		size_t have = (size_t)(h->bytes % sizeof(h->block));
		size_t take = MIN(n, sizeof(h->block) - have);

		if (take == sizeof(h->block)) {
			take = n - n % sizeof(h->block);
			blocks(h->state, p, take / sizeof(h->block));
		} else {
			memcpy(h->block + have, p, take);
			if (have + take == sizeof(h->block))
				blocks(h->state, h->block, 1);
		}
		h->bytes += take;
		p += take;
		n -= take;
	}
}

void sha256_words(struct sha256 *h, const char *const *words)
{
	uint64_t n = 0;

	while (words[n])
		n++;
	sha256_update(h, &n, sizeof(n));
	for (; *words; words++)
		sha256_update(h, *words, strlen(*words) + 1);
}

void sha256_final_bytes(struct sha256 *h, uint8_t ret[SHA256_BYTES])
{
	static const uint8_t padding[64] = { 0x80 };
	uint64_t bits = h->bytes * 8;
	size_t have = (size_t)(h->bytes % sizeof(h->block));
	uint8_t length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_update(h, padding, (have < 56 ? 56 : 120) - have);
	sha256_update(h, length, sizeof(length));
	for (int i = 0; i < SHA256_BYTES; i++)
		ret[i] = (uint8_t)(h->state[i / 4] >> (24 - i % 4 * 8));
}

void sha256_final(struct sha256 *h, char ret_hex[SHA256_HEX])
{
	static const char hex[] = "0123456789abcdef";
	uint8_t bytes[SHA256_BYTES];

	sha256_final_bytes(h, bytes);
	for (int i = 0; i < 2 * SHA256_BYTES; i++)
		ret_hex[i] = hex[bytes[i / 2] >> (4 - i % 2 * 4) & 0xf];
	ret_hex[64] = '\0';
}
