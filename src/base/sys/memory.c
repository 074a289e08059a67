/* SPDX-License-Identifier: Apache-2.0 */
/* See memory.h: as /proc/meminfo has it. */
#include "base/sys/memory.h"

#include "base/sys/textfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

bool memory_is_short(long long share)
{
	char text[2048];
	const char *total, *available;
	long long total_kib, available_kib;

	if (textfile_read_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) < 0)
		return true;
	total = strstr(text, "MemTotal:");
	available = strstr(text, "MemAvailable:");
	return !total || !available || sscanf(total, "MemTotal: %lld", &total_kib) != 1 ||
	       sscanf(available, "MemAvailable: %lld", &available_kib) != 1 ||
	       available_kib < total_kib / share;
}
