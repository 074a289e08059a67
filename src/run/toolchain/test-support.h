/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of unit tests that lay out files. */
#pragma once

#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

/* Removes a directory with everything in it; 0, or -1: it still exists. */
static inline int remove_tree(char *path)
{
	char *argv[] = { (char *)(uintptr_t) "rm", (char *)(uintptr_t) "-rf", path, NULL };
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		(void)execv("/bin/rm", argv);
		_exit(1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}
