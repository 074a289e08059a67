/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the work directory of a dead sandbox into that of a live one: files, directories and links with their modes and times. Owners become
 * those of the new sandbox, and hard links become files of their own. Pipes, sockets and devices are left out and counted.
 *
 * No process is left that could change the source. In the target a program may run that changes names meanwhile, so each step goes from a held
 * directory to one name in it and follows no link, and each file is a new one.
 *
 * One copy at a time in a process; fixed memory, no heap, no stdio, so it may run in a child forked from the broker. It uses: openat2, openat,
 * close, read, write, lseek, getdents64, fstat, newfstatat, readlinkat, mkdirat, symlinkat, unlinkat, fchmod, fchmodat, utimensat.
 */
#pragma once

#include <stdint.h>

struct carry_report {
	uint32_t carried; /* files and links */
	uint32_t skipped; /* entries that are no file, directory or link, or that cannot be read */
};

/* Stops at the first entry for which there is no room: -ENOSPC, -EDQUOT, -ENOMEM. The report is filled in any case. */
int carry_files(int from_fd, int to_fd, struct carry_report *ret);
