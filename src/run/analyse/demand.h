/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory a program wanted at once, if it can be known: from its runtime's message about a failed
 * allocation, or from a constant in its text. A limit below that is not worth a retry. Pure.
 */
#pragma once

#include <stdint.h>

#include "base/span.h"

/* "Unable to allocate 7.45 GiB for an array", "memory allocation of 8589934592 bytes failed": bytes, or 0. */
int64_t demand_in_words(struct span text);
/* bytearray(10**9), "x" * (1 << 30), malloc(1024 * 1024 * 1024): bytes of the largest, or 0. */
int64_t demand_in_code(struct span code);
