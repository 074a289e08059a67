/* SPDX-License-Identifier: Apache-2.0 */
/* Small text files of /proc, /sys and cgroups: read whole into memory the caller bounds. */
#pragma once

#include "base/buf.h"
#include "base/macro.h"

/* Reads into ret, NUL-terminated; returns the length, -EFBIG when it does not fit. */
int textfile_read_at(int dirfd, const char *path, char *ret, size_t size) _must_check_;
/* A file that is one non-negative decimal number. */
int textfile_read_i64_at(int dirfd, const char *path, int64_t *ret) _must_check_;
/* The same from an open file, which can be read repeatedly. */
int textfile_read_i64_fd(int fd, int64_t *ret) _must_check_;
/* Appends the file to b, which ends up NUL-terminated; -EFBIG beyond b's bound. */
int textfile_read_buf(const char *path, struct buf *b) _must_check_;
