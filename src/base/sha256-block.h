/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files of SHA-256: feeds whole blocks of 64 bytes into the state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const uint32_t sha256_constants[64];

void sha256_blocks_plain(uint32_t state[8], const uint8_t *data, size_t n);
/* With the processor's SHA instructions, several times as fast. Only if sha256_has_x86(). */
bool sha256_has_x86(void);
void sha256_blocks_x86(uint32_t state[8], const uint8_t *data, size_t n);
