/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log files. They may be in the state directory, which the front owns. The monitor opens them and does not
 * trust the front: no link is followed there, and no file with a second name is written to.
 */
#pragma once

#include "atoll/daemon/config.h"

/* Opens for appending; creates the file if needed. */
int logfile_open(const struct config *c, const char *path, struct error *err) _must_check_;
/*
 * FILE becomes FILE.1, FILE.1 becomes FILE.2, and so on up to FILE.keep, which is replaced. The caller opens
 * FILE again.
 */
int logfile_rotate(const struct config *c, const char *path, int64_t keep) _must_check_;
