/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the modules that a Python program imports, from its text, so that a runtime can be chosen that has them
 * loaded. A guess for speed only: a wrong name costs time and nothing else.
 */
#pragma once

#include <stddef.h>

/*
 * Calls found with the top-level name of each import: `import a.b` is "a" of length 1. A name may come twice.
 */
void imports_scan(const char *code, size_t len,
		  void (*found)(void *data, const char *name, size_t len), void *data);
