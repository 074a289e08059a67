/* SPDX-License-Identifier: Apache-2.0 */
/* Parses points in time as callers write them. */
#pragma once

#include "base/macro.h"

/* "2026-11-15T10:00:00.5Z", "…+01:00" (RFC 3339), "2026-11-15", or seconds since 1970; realtime ns. -EINVAL. */
int timestamp_parse(const char *text, int64_t *ret) _must_check_;
