/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file of another program: read whole, replaced in one step, with a copy of the old one beside it. A symbolic link
 * stays one: the file that it names is replaced. The new file has the old one's mode and owner.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct config_file {
	char path[PATH_MAX];
	struct buf text; /* "" when it is not there */
	bool exists;
	struct stat seen; /* when it was read */
};

void config_file_done(struct config_file *file);
int config_file_read(struct config_file *file, const char *path, struct error *err) _must_check_;
/* Makes the directory too. backup: the name of the copy, or "" when there was nothing to copy. */
int config_file_replace(const struct config_file *file, const struct buf *text,
			char backup[static PATH_MAX], struct error *err) _must_check_;
/* What would change, as a unified diff with one hunk. */
int config_file_diff(const struct config_file *file, struct span text,
		     struct buf *out) _must_check_;
