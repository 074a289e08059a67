/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences for people about a result: why a limit or a signal ended the program, why a test failed. Pure. */
#pragma once

#include "base/buf.h"
#include "spec/result.h"

/*
 * "the program used more than 512 MiB of memory; allow more with --memory 1g". If the program ended by itself,
 * the first warning of the result; without one, returns 0 and writes nothing.
 */
int notice_text(const struct result *res, char *ret, size_t size);
/*
 * Appends what an entry of a result's `tests` says beside its verdict: the first line of its message, the first difference, the
 * error that ended the program or the reason for its end. Nothing of a passed test without a message. -ENOMEM, -ENOBUFS.
 */
int test_text(const json_t *test, struct buf *out) _must_check_;
/* "isolation is reduced: without landlock; `atoll doctor` says what completes it"; of a full one, and of none, 0 and nothing. */
int reduced_text(const struct isolation *is, char *ret, size_t size);
