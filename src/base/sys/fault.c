/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See fault.h. Also runs in the cloned child: no heap, no stdio. A test sees from the log line that the fault
 * was reached.
 */
#include "base/sys/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef ATOLL_FAULTS
static const char *current_role = "front";
static long calls;

void fault_role(const char *role)
{
	current_role = role;
	calls = 0;
}

static long digits(const char **text)
{
	long n = 0;

	while (**text >= '0' && **text <= '9' && n < 1000000)
		n = n * 10 + (*(*text)++ - '0');
	return n;
}

static void log_hit(void)
{
	const char *path = getenv("ATOLL_FAULT_LOG");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;

	if (fd < 0)
		return;
	(void)!write(fd, current_role, strlen(current_role));
	(void)!write(fd, "\n", 1);
	(void)close(fd);
}

int fault_point(void)
{
	const char *fault = getenv("ATOLL_FAULT");
	const char *role = getenv("ATOLL_FAULT_PROCESS");
	int errnum = EIO;

	if (!fault || strcmp(role ? role : "front", current_role) != 0)
		return 0;
	if (++calls != digits(&fault))
		return 0;
	if (*fault == ':') {
		fault++;
		errnum = (int)digits(&fault);
	}
	log_hit();
	return errnum;
}
#endif
