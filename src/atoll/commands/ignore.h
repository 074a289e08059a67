/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .gitignore files, as far as they say which files of a directory are left out:
 *
 *   # words       a comment; \# and \! begin a name
 *   name, *.o     at any depth below the file; * ? [a-z] do not match a slash
 *   /name, a/b    a slash at the beginning or inside: from the file's own directory on
 *   two stars     between slashes: any number of directories; at the end, after a slash: everything below
 *   name/         directories only
 *   !name         not left out after all
 *
 * The last line that matches decides, and a file further down before one above. What is below a directory that is left out stays out.
 * Files above the directory that is run, .git/info/exclude and git's own settings are not read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { IGNORE_BYTES_MAX = 64 << 10 };

struct ignore_file;
enum ignore_verdict { IGNORE_UNSAID, IGNORE_OUT, IGNORE_IN };

/* NULL: no memory. */
struct ignore_file *ignore_file_new(const char *text, size_t n);
struct ignore_file *ignore_file_free(struct ignore_file *f); /* NULL is fine; returns NULL */
/* path: below the directory of the file, without a slash at its ends. */
enum ignore_verdict ignore_file_says(const struct ignore_file *f, const char *path, bool is_dir);
