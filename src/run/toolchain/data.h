/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories of Atoll's own files: the data directory (languages/, policies/, runners/; read only) and the
 * caller's cache directory. Reading is bounded; a missing cache is no failure.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum { DATA_FILE_MAX = 1 << 20 };

/* option (may be NULL), $ATOLL_DATA_DIR, beside the program, the system's. The caller frees *ret. */
int data_find(const char *option, char **ret, struct error *err) _must_check_;
/* Reads <dir>/<relative> whole. -ENOENT sets no message, so that callers can say what was looked for. */
int data_read(const char *dir, const char *relative, struct buf *ret,
	      struct error *err) _must_check_;

/*
 * Opens the cache directory, made on demand with mode 0700: option (may be NULL), $XDG_CACHE_HOME/atoll,
 * ~/.cache/atoll. It must belong to the user, be no symbolic link and not be writable by others. After a
 * negative errno, go on without a cache.
 */
int cache_open(const char *option) _must_check_;
/* A directory below the cache under the same rules; a negative cache_fd is passed through. */
int cache_open_dir(int cache_fd, const char *name) _must_check_;
