/* SPDX-License-Identifier: Apache-2.0 */
/* The host's memory. */
#pragma once

#include <stdbool.h>

/* Less than one part in `share` of the memory is available, or the kernel does not say. */
bool memory_is_short(long long share);
