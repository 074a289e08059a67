/* SPDX-License-Identifier: Apache-2.0 */
/* See notify.h. */
#include "atoll/daemon/notify.h"

#include "base/fd.h"
#include "base/parse.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_send(const char *state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	_cleanup_close_ int fd = -EBADF;
	size_t n = path ? strlen(path) : 0;

	if (n < 2 || n >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(address.sun_path, path, n);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL,
			      (const struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}

int64_t notify_watchdog_ms(void)
{
	const char *period = getenv("WATCHDOG_USEC"), *whom = getenv("WATCHDOG_PID");
	int64_t us, pid;

	if (!period || parse_i64(period, &us) < 0 || us <= 0)
		return 0;
	/* The variables are meant for another process of the same service. */
	if (whom && (parse_i64(whom, &pid) < 0 || pid != getpid()))
		return 0;
	return MAX(us / US_PER_MS, 1);
}
