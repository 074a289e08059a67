/* SPDX-License-Identifier: Apache-2.0 */
/* See systemd.h. */
#include "atoll/daemon/systemd.h"

#include "base/fd.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Of the protocol: descriptors begin behind the standard streams. */
enum { FIRST_FD = STDERR_FILENO + 1 };

union passed_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static bool is_for_us(int64_t *ret_n)
{
	const char *pid_text = getenv("LISTEN_PID"), *n_text = getenv("LISTEN_FDS");
	int64_t pid;
	bool valid = pid_text && n_text && parse_i64(pid_text, &pid) == 0 &&
		     parse_i64(n_text, ret_n) == 0 && pid == getpid() && *ret_n > 0;

	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return valid;
}

int passed_sockets_receive(struct passed_sockets *ret, struct error *err)
{
	int64_t n = 0;

	*ret = (struct passed_sockets){ 0 };
	if (!is_for_us(&n))
		return 0;
	if (n > PASSED_MAX)
		return error_set(err, ERROR_INPUT, E2BIG,
				 "systemd passes %lld sockets; atoll takes at most %d",
				 (long long)n, PASSED_MAX);
	for (int fd = FIRST_FD; fd < FIRST_FD + (int)n; fd++) {
		int r = fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno : fd_set_nonblock(fd, true);

		if (r < 0)
			return error_set(err, ERROR_INPUT, -r,
					 "descriptor %d of LISTEN_FDS cannot be used: %s", fd,
					 strerror(-r));
		ret->fds[ret->n++] = fd;
	}
	return 0;
}

static int socket_option(int fd, int option)
{
	int value = 0;
	socklen_t size = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

/* Whether two addresses name the same place; bytes behind the port or the path may differ. */
static bool is_same_address(const union passed_address *a, const union passed_address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	switch (a->any.sa_family) {
	case AF_INET:
		return a->v4.sin_port == b->v4.sin_port &&
		       a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	case AF_INET6:
		return a->v6.sin6_port == b->v6.sin6_port &&
		       IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
	case AF_UNIX:
		return strcmp(a->local.sun_path, b->local.sun_path) == 0;
	default:
		return false;
	}
}

/* The address of a socket; its path ends with NUL, and is empty for one without a file. */
static bool read_address(int fd, union passed_address *ret)
{
	struct sockaddr_storage bytes = { 0 };
	socklen_t size = sizeof(bytes);

	*ret = (union passed_address){ 0 };
	if (getsockname(fd, (struct sockaddr *)&bytes, &size) < 0)
		return false;
	memcpy(ret, &bytes, MIN((size_t)size, sizeof(*ret)));
	if (ret->any.sa_family == AF_UNIX)
		ret->local.sun_path[sizeof(ret->local.sun_path) - 1] = '\0';
	return true;
}

int passed_sockets_take(struct passed_sockets *p, const struct sockaddr *address, socklen_t size)
{
	union passed_address wanted = { 0 }, found;

	memcpy(&wanted, address, MIN((size_t)size, sizeof(wanted)));
	for (size_t i = 0; i < p->n; i++) {
		int fd = p->fds[i];

		if (fd < 0 || !read_address(fd, &found) || !is_same_address(&wanted, &found) ||
		    socket_option(fd, SO_TYPE) != SOCK_STREAM ||
		    socket_option(fd, SO_ACCEPTCONN) != 1)
			continue;
		p->fds[i] = -EBADF;
		return fd;
	}
	return -ENOENT;
}

/* The address of a socket for people. */
static void name_socket(int fd, char *ret, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "";
	union passed_address a;

	if (!read_address(fd, &a))
		a = (union passed_address){ 0 };
	switch (a.any.sa_family) {
	case AF_INET:
		(void)inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof(host));
		(void)snprintf(ret, size, "%s:%u", host, ntohs(a.v4.sin_port));
		break;
	case AF_INET6:
		(void)inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof(host));
		(void)snprintf(ret, size, "[%s]:%u", host, ntohs(a.v6.sin6_port));
		break;
	default:
		(void)snprintf(ret, size, "%.100s",
			       a.any.sa_family == AF_UNIX && a.local.sun_path[0]
				       ? a.local.sun_path
				       : "an unknown address");
	}
}

int passed_sockets_finish(struct passed_sockets *p, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < p->n; i++) {
		char name[128];

		if (p->fds[i] < 0)
			continue;
		name_socket(p->fds[i], name, sizeof(name));
		r = error_set(
			err, ERROR_INPUT, EADDRNOTAVAIL,
			"systemd passes a listening socket for %s, which the settings do not "
			"have; name it in `listen` or `socket`, or take it out of atoll.socket",
			name);
		p->fds[i] = fd_close(p->fds[i]);
	}
	p->n = 0;
	return r;
}
