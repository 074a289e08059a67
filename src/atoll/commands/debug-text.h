/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's debug report as plain text for people. */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

/* What the report quotes of the program is escaped. */
int debug_text(const json_t *report, struct buf *out) _must_check_;
