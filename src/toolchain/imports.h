/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which modules a Python program imports, by its text alone, so that a runtime can be picked that has them loaded.
 * A guess for speed, never for safety: a name too many or too few costs time and nothing else.
 */
#pragma once

#include <stddef.h>

/* Calls found with the top-level name of each import: `import a.b` is "a" of length 1. One may come twice. */
void imports_scan(const char *code, size_t len,
		  void (*found)(void *data, const char *name, size_t len), void *data);
