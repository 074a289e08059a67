/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `collect`: which files are wanted. A pattern without a slash is matched against the last component, at
 * any depth; one with a slash against the whole path, where `*` stops at a slash and `**`
 * between slashes (or at an end) stands for any number of directories, none included.
 */
#pragma once

#include <stdbool.h>

/* patterns NULL-terminated; NULL: everything. */
bool glob_any(const char *const *patterns, const char *path);
