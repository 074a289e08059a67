/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-1 (FIPS 180-4) of a short text. WebSocket's handshake needs it as a checksum. Where a hash must resist an
 * attacker, use base/sha256.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA1_BYTES = 20, SHA1_INPUT_MAX = 119 };

/* n is at most SHA1_INPUT_MAX: two blocks. */
void sha1(const void *data, size_t n, uint8_t ret[SHA1_BYTES]);
