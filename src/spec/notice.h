/* SPDX-License-Identifier: Apache-2.0 */
/* What a person at a terminal is told when something other than the program ended it. Pure. */
#pragma once

#include "spec/result.h"

/*
 * "the program used more than 512 MiB of memory; allow more with --memory 1g". Returns 0 and writes
 * nothing when there is nothing to say: it ended by itself.
 */
int notice_text(const struct result *res, char *ret, size_t size);
