/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive (tar, tar.gz, zip) file by file, in memory and bounded. Only regular files and directories, relative names; anything
 * else refuses the whole. This is the only code that libarchive runs under, and it runs in a process of its own (unpacker.h).
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

#include <stdbool.h>

enum {
	ARCHIVE_ENTRIES_MAX = 4096,
	ARCHIVE_FILE_MAX = 16 << 20,
	ARCHIVE_TOTAL_MAX = 64 << 20,
	ARCHIVE_PACKED_MAX = 64 << 20,
};

struct archive_file {
	const char *name; /* relative, checked */
	struct span data;
	bool executable;
};

struct archive_sink {
	int (*take)(void *data, const struct archive_file *file, struct error *err);
	void *data;
};

/* Names are text of the thread's locale: archive_locale() makes it UTF-8. Refusals: ERROR_INPUT, ERROR_TOO_LARGE (-EFBIG); field archive. */
int archive_read_all(struct span packed, const struct archive_sink *sink,
		     struct error *err) _must_check_;
/* For the rest of this process's life; reads files of libc's, so that later conversions need none. */
void archive_locale(void);
/* "archive: 'NAME' WHY"; name may be NULL. Returns -errnum. */
int archive_refuse(struct error *err, int errnum, const char *name, const char *why);
