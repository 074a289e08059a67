/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers from text, strictly: the whole text or nothing, no leading space or sign, no overflow, no
 * locale. Results are integers in base units.
 */
#pragma once

#include "base/macro.h"

/* The value of one hexadecimal digit; negative: it is none. */
int parse_hex_digit(char c);
/* Decimal digits only. -EINVAL: not a number; -ERANGE: does not fit. */
int parse_i64(const char *text, int64_t *ret) _must_check_;
/* "512", "512b", "64k", "512m", "8g", "1t" (also "kib", "mb"…: all binary), fractions allowed: "1.5g", ".5g". */
int parse_size(const char *text, int64_t *ret_bytes) _must_check_;
/* Seconds as a decimal, or with units: "500ms", "10s", "2m", "1h", "7d", "1m30s", "90sec", "5min". */
int parse_time(const char *text, int64_t *ret_ms) _must_check_;
/* A decimal fraction times 1000: "1.5" -> 1500. */
int parse_milli(const char *text, int64_t *ret_milli) _must_check_;
