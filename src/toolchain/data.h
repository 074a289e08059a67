/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Atoll's own files are: the data directory (languages/, policies/, runners/; read only) and the
 * caller's cache directory. Reading is bounded; a cache that cannot be had is no failure.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum { DATA_FILE_MAX = 1 << 20 };

/* option (may be NULL), $ATOLL_DATA_DIR, beside the program, the system's. Caller frees *ret. */
int data_find(const char *option, char **ret, struct error *err) _must_check_;
/* Reads <dir>/<relative> whole; -ENOENT without a message, so that callers can say what was looked for. */
int data_read(const char *dir, const char *relative, struct buf *ret,
	      struct error *err) _must_check_;

/*
 * Opens the cache directory, made on demand with mode 0700: option (may be NULL),
 * $XDG_CACHE_HOME/atoll, ~/.cache/atoll. It must be a directory of our own, not a symbolic link, not
 * writable by others. A negative errno means: go on without a cache.
 */
int cache_open(const char *option) _must_check_;
/* A directory below it under the same rules; cache_fd < 0 is passed through. */
int cache_open_dir(int cache_fd, const char *name) _must_check_;
