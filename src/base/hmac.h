/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA-256 (RFC 2104) of a message in several parts. */
#pragma once

#include "base/sha256.h"
#include "base/span.h"

void hmac_sha256(struct span key, const struct span *parts, size_t n, uint8_t ret[SHA256_BYTES]);
