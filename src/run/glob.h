/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `collect`: selects files. A pattern without a slash is matched against the last component, at any depth; a
 * pattern with a slash against the whole path, where `*` stops at a slash, and `**` between slashes (or at an
 * end) stands for any number of directories, also none.
 */
#pragma once

#include <stdbool.h>

/* patterns NULL-terminated; NULL: everything. */
bool glob_any(const char *const *patterns, const char *path);
