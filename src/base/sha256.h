/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4). Ours, because every `atoll run` would pay for loading a crypto library
 * (about 1 ms for libcrypto) to hash a few files.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

enum { SHA256_HEX = 65 };

void sha256_init(struct sha256 *h);
void sha256_update(struct sha256 *h, const void *data, size_t n);
/* A list that ends with NULL. With their number in front, lists cannot run into each other. */
void sha256_words(struct sha256 *h, const char *const *words);
void sha256_final(struct sha256 *h, char ret_hex[SHA256_HEX]);
