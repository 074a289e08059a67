/* SPDX-License-Identifier: Apache-2.0 */
/* See hmac.h. */
#include "base/hmac.h"

enum { BLOCK = 64 };

/* Begins a hash with the key, each byte of its block combined with the pad. */
static void begin(struct sha256 *h, const uint8_t key[BLOCK], uint8_t pad)
{
	uint8_t block[BLOCK];

	for (int i = 0; i < BLOCK; i++)
		block[i] = key[i] ^ pad;
	sha256_init(h);
	sha256_update(h, block, BLOCK);
}

void hmac_sha256(struct span key, const struct span *parts, size_t n, uint8_t ret[SHA256_BYTES])
{
	uint8_t block[BLOCK] = { 0 };
	struct sha256 h;

	if (key.len > BLOCK) {
		sha256_init(&h);
		sha256_update(&h, key.data, key.len);
		sha256_final_bytes(&h, block);
	} else if (key.len > 0) {
		memcpy(block, key.data, key.len);
	}
	begin(&h, block, 0x36);
	for (size_t i = 0; i < n; i++)
		sha256_update(&h, parts[i].data, parts[i].len);
	sha256_final_bytes(&h, ret);
	begin(&h, block, 0x5c);
	sha256_update(&h, ret, SHA256_BYTES);
	sha256_final_bytes(&h, ret);
}
