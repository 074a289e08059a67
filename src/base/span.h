/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of somebody else's bytes: not necessarily NUL-terminated, valid as long as what it points into. */
#pragma once

#include <stddef.h>

struct span {
	const char *data; /* NULL: there is none (an empty one has a pointer) */
	size_t len;
};
