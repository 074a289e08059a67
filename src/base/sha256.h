/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4). Not from a crypto library, because every `atoll run` would pay for loading one (about 1
 * ms for libcrypto) to hash a few files.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

enum { SHA256_HEX = 65, SHA256_BYTES = 32 };

void sha256_init(struct sha256 *h);
void sha256_update(struct sha256 *h, const void *data, size_t n);
/* Hashes a NULL-terminated list. The number of words is hashed first, so two lists never hash as one. */
void sha256_words(struct sha256 *h, const char *const *words);
void sha256_final(struct sha256 *h, char ret_hex[SHA256_HEX]);
void sha256_final_bytes(struct sha256 *h, uint8_t ret[SHA256_BYTES]);
