/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence for a terminal when a limit or a signal ended the program. Pure. */
#pragma once

#include "spec/result.h"

/*
 * "the program used more than 512 MiB of memory; allow more with --memory 1g". If the program ended by itself,
 * the first warning of the result; without one, returns 0 and writes nothing.
 */
int notice_text(const struct result *res, char *ret, size_t size);
/* "isolation is reduced: without landlock; `atoll doctor` says what completes it"; of a full one, and of none, 0 and nothing. */
int reduced_text(const struct isolation *is, char *ret, size_t size);
