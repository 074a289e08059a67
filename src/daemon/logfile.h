/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of logs. They may lie in the state directory, which the front owns and the monitor, who opens them, does not trust: no
 * link is followed there, and no file of two names is written to.
 */
#pragma once

#include "daemon/config.h"

/* For appending, made when it is not there. */
int logfile_open(const struct config *c, const char *path, struct error *err) _must_check_;
/* FILE becomes FILE.1, that FILE.2, and so on up to FILE.keep, whose content goes. The caller opens FILE anew. */
int logfile_rotate(const struct config *c, const char *path, int64_t keep) _must_check_;
