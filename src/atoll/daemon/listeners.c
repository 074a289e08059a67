/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See listeners.h. A unix socket is replaced only if no process listens on it, and has its mode from its
 * creation.
 */
#include "atoll/daemon/listeners.h"

#include "atoll/daemon/state-dir.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096, PORTS_TRIED = 16 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

/*
 * --- sockets that systemd opened and passes on: sd_listen_fds(3) without libsystemd ---
 *
 * They take the place of those that the monitor would open for the same addresses of the settings. So the settings alone say where the daemon
 * listens, and the check of exposure holds for passed sockets, too.
 */

/* Of the protocol: descriptors begin behind the standard streams. */
enum { FIRST_FD = STDERR_FILENO + 1, PASSED_MAX = 32 };

struct passed_sockets {
	int fds[PASSED_MAX]; /* negative: taken */
	size_t n;
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

/* Takes over the descriptors of LISTEN_FDS, if LISTEN_PID names this process, and removes the variables. */
static int passed_sockets_receive(struct passed_sockets *ret, struct error *err)
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
static bool is_same_address(const union address *a, const union address *b)
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
static bool read_address(int fd, union address *ret)
{
	struct sockaddr_storage bytes = { 0 };
	socklen_t size = sizeof(bytes);

	*ret = (union address){ 0 };
	if (getsockname(fd, (struct sockaddr *)&bytes, &size) < 0)
		return false;
	memcpy(ret, &bytes, MIN((size_t)size, sizeof(*ret)));
	if (ret->any.sa_family == AF_UNIX)
		ret->local.sun_path[sizeof(ret->local.sun_path) - 1] = '\0';
	return true;
}

/* The stream socket that listens at this address, now the caller's; -ENOENT: none does. */
static int passed_sockets_take(struct passed_sockets *p, const union address *wanted)
{
	union address found;

	for (size_t i = 0; i < p->n; i++) {
		int fd = p->fds[i];

		if (fd < 0 || !read_address(fd, &found) || !is_same_address(wanted, &found) ||
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
	union address a;

	if (!read_address(fd, &a))
		a = (union address){ 0 };
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

/* Refuses sockets that were not taken, and closes them. */
static int passed_sockets_finish(struct passed_sockets *p, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < p->n; i++) {
		char name[128];

		if (p->fds[i] < 0)
			continue;
		name_socket(p->fds[i], name, sizeof(name));
		r = error_set(
			err, ERROR_INPUT, EADDRNOTAVAIL,
			"systemd passes a listening socket for %s, which the settings do not have; "
			"name it in `listen` or `socket`, or take it out of atoll.socket",
			name);
		p->fds[i] = fd_close(p->fds[i]);
	}
	p->n = 0;
	return r;
}

/* --- opening --- */

static socklen_t fill_address(const struct config_address *a, union address *ret)
{
	*ret = (union address){ 0 };
	if (a->v6) {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons(a->port);
		(void)inet_pton(AF_INET6, a->host, &ret->v6.sin6_addr);
		return sizeof(ret->v6);
	}
	ret->v4.sin_family = AF_INET;
	ret->v4.sin_port = htons(a->port);
	(void)inet_pton(AF_INET, a->host, &ret->v4.sin_addr);
	return sizeof(ret->v4);
}

static int listen_tcp(const struct config_address *a, struct passed_sockets *passed)
{
	union address address;
	socklen_t size = fill_address(a, &address);
	_cleanup_close_ int fd = passed_sockets_take(passed, &address);
	const int on = 1;

	if (fd >= 0) {
		/* systemd sets none of the options of a socket of ours. */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		return TAKE_FD(fd);
	}
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->v6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	/* Answers are small, and clients wait for them; accepted sockets inherit the option. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, &address.any, size) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* A port near that one where this process could listen; 0: none. */
static uint16_t free_port_near(const struct config_address *taken)
{
	struct passed_sockets none = { 0 };

	for (unsigned i = 1; i <= PORTS_TRIED && taken->port + i <= UINT16_MAX; i++) {
		struct config_address a = *taken;
		_cleanup_close_ int fd = -EBADF;

		a.port = (uint16_t)(taken->port + i);
		fd = listen_tcp(&a, &none);
		if (fd >= 0)
			return a.port;
	}
	return 0;
}

/* --- which process has a port already, for the message: the kernel lists sockets and each process's descriptors with the same inodes --- */

enum { STATE_LISTEN = 0x0a, TABLE_BYTES_MAX = 4 << 20 };

struct port_owner {
	pid_t pid;
	char name[32];
};
/* The inode of a socket that listens on the port, or 0. */
static unsigned long inode_in(const char *table, uint16_t port)
{
	_cleanup_buf_ struct buf text = { .max = TABLE_BYTES_MAX };
	_cleanup_close_ int fd = open(table, O_RDONLY | O_CLOEXEC);
	unsigned long inode;
	unsigned local, state;

	if (fd < 0 || buf_read_fd(&text, fd) < 0 || text.len == 0)
		return 0;
	for (const char *line = text.data; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		/* sl: local_address:port remote_address:port state queues timers retransmits uid timeout inode */
		if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*u %*d %lu",
			   &local, &state, &inode) == 3 &&
		    local == port && state == STATE_LISTEN)
			return inode;
	}
	return 0;
}

static bool has_socket(int proc_fd, const char *pid, const char *link)
{
	char path[64], target[64];
	int fd;
	DIR *dir;
	const struct dirent *entry;
	bool found = false;

	(void)snprintf(path, sizeof(path), "%.20s/fd", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		(void)fd_close(fd);
		return false;
	}
	while (!found && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[MAX(n, (ssize_t)0)] = '\0';
		found = strcmp(target, link) == 0;
	}
	(void)closedir(dir);
	return found;
}

static void read_owner_name(int proc_fd, struct port_owner *owner)
{
	char path[64];
	_cleanup_close_ int fd = -EBADF;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%d/comm", (int)owner->pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, owner->name, sizeof(owner->name) - 1);
	owner->name[MAX(n, (ssize_t)0)] = '\0';
	owner->name[strcspn(owner->name, "\n")] = '\0';
}

/* False: none that this user may see. */
static bool port_owner_find(uint16_t port, struct port_owner *ret)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	unsigned long inode = 0;
	char link[64];
	DIR *proc;
	const struct dirent *entry;
	bool found = false;
	int64_t pid;

	for (size_t i = 0; i < ARRAY_SIZE(tables) && !inode; i++)
		inode = inode_in(tables[i], port);
	proc = inode ? opendir("/proc") : NULL;
	if (!proc)
		return false;
	(void)snprintf(link, sizeof(link), "socket:[%lu]", inode);
	while (!found && (entry = readdir(proc)))
		if (parse_i64(entry->d_name, &pid) == 0 &&
		    has_socket(dirfd(proc), entry->d_name, link)) {
			ret->pid = (pid_t)pid;
			read_owner_name(dirfd(proc), ret);
			found = true;
		}
	(void)closedir(proc);
	return found;
}

static int refuse_taken(const char *text, const struct config_address *a, struct error *err)
{
	char who[64] = "another process", other[80] = "";
	uint16_t port = free_port_near(a);
	struct port_owner owner;

	if (port_owner_find(a->port, &owner))
		(void)snprintf(who, sizeof(who), "%.31s (process %d)", owner.name, (int)owner.pid);
	if (port > 0)
		(void)snprintf(other, sizeof(other), a->v6 ? " [%s]:%u" : " %s:%u", a->host,
			       (unsigned)port);
	return error_set(err, ERROR_INPUT, EADDRINUSE,
			 "%s is taken by %s; end it, or give another address with --listen%s", text,
			 who, other);
}

static int refuse_address(const char *text, const struct config_address *a, int errnum,
			  struct error *err)
{
	static const struct {
		int errnum;
		const char *what;
	} table[] = {
		{ EADDRNOTAVAIL, "no interface of this machine has that address" },
		{ EACCES, "only root may use a port below 1024" },
	};
	const char *what = strerror(errnum);

	if (errnum == EADDRINUSE)
		return refuse_taken(text, a, err);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].errnum == errnum)
			what = table[i].what;
	return error_set(err, ERROR_INPUT, errnum,
			 "cannot listen on %s: %s; give another address with --listen", text, what);
}

static int open_address(struct listening_sockets *d, const char *text,
			struct passed_sockets *passed, struct error *err)
{
	struct listening_socket *listening = &d->list[d->n];
	struct config_address a;
	int r = config_address_parse(text, &a, err), fd;

	assert(d->n < LISTENING_MAX);
	if (r < 0)
		return r;
	fd = listen_tcp(&a, passed);
	if (fd < 0)
		return refuse_address(text, &a, -fd, err);
	listening->fd = fd;
	/* With the port that the kernel chose for port 0. */
	name_socket(fd, listening->name, sizeof(listening->name));
	d->n++;
	return 0;
}

static int open_addresses(struct listening_sockets *d, const struct config *c,
			  struct passed_sockets *passed, struct log *log, struct error *err)
{
	for (size_t i = 0; c->listening.addresses[i]; i++) {
		struct error why = { 0 };
		int r = open_address(d, c->listening.addresses[i], passed, &why);

		if (r == 0)
			continue;
		if (c->listening.named ||
		    strcmp(c->listening.addresses[i], CONFIG_LISTEN_COMPAT) != 0 ||
		    r != -EADDRINUSE) {
			*err = why;
			return r;
		}
		log_say(log, LOG_WARNING,
			"another process listens there; clients of the NeMo Agent Toolkit will not "
			"find this daemon",
			LOG_TEXT("address", c->listening.addresses[i]));
	}
	return 0;
}

static socklen_t fill_unix(const char *path, union address *ret)
{
	*ret = (union address){ .local.sun_family = AF_UNIX };
	(void)snprintf(ret->local.sun_path, sizeof(ret->local.sun_path), "%s", path);
	return sizeof(ret->local);
}

static int clear_path(const char *path, const union address *address, socklen_t size,
		      struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat st;

	if (lstat(path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return error_set(err, ERROR_INPUT, ENOTSOCK,
				 "'%.200s' is there already and is no socket; give another path "
				 "with --socket",
				 path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* EAGAIN: the queue is full, so a process listens. */
	if (fd >= 0 && (connect(fd, &address->any, size) == 0 || errno == EAGAIN))
		return error_set(err, ERROR_INPUT, EADDRINUSE,
				 "a daemon listens on '%.200s' already; end it first, or give "
				 "another path with --socket",
				 path);
	return unlink(path) < 0
		       ? error_set(err, ERROR_STORAGE, errno,
				   "cannot replace the socket '%.200s': %s", path, strerror(errno))
		       : 0;
}

/* Binds with mode 0600 from the first moment. */
static int bind_private(int type, const union address *address, socklen_t size)
{
	_cleanup_close_ int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || fchmod(fd, 0600) < 0 || bind(fd, &address->any, size) < 0)
		return -errno;
	if (listen(fd, BACKLOG) < 0) {
		int r = -errno;

		(void)unlink(address->local.sun_path);
		return r;
	}
	return TAKE_FD(fd);
}

/* Remembers the socket file, to remove it at the end and to tell it from another one. */
static int note_socket(struct listening_sockets *d, const char *path, struct error *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return error_set(err, ERROR_STORAGE, errno, "cannot look at '%.200s': %s", path,
				 strerror(errno));
	d->socket_dev = st.st_dev;
	d->socket_ino = st.st_ino;
	return 0;
}

static void name_path(struct listening_sockets *d, int fd, const char *path)
{
	struct listening_socket *listening = &d->list[d->n++];

	listening->fd = fd;
	(void)snprintf(listening->name, sizeof(listening->name), "%s", path);
}

static int open_socket(struct listening_sockets *d, const char *path, struct passed_sockets *passed,
		       struct error *err)
{
	union address address;
	socklen_t size = fill_unix(path, &address);
	int r;

	if (strlen(path) >= sizeof(address.local.sun_path))
		return error_set(err, ERROR_INPUT, ENAMETOOLONG,
				 "the socket's path is longer than %zu bytes: '%.200s'; give "
				 "another with --socket",
				 sizeof(address.local.sun_path) - 1, path);
	r = passed_sockets_take(passed, &address);
	if (r >= 0) { /* its file is systemd's, and stays */
		name_path(d, r, path);
		return 0;
	}
	d->socket_path = path;
	r = state_dir_make_parents(path, "--socket", &d->made, err);
	if (r == 0)
		r = clear_path(path, &address, size, err);
	if (r < 0)
		return r;
	r = bind_private(SOCK_STREAM, &address, size);
	if (r < 0)
		return error_set(err, ERROR_STORAGE, -r,
				 "cannot listen on '%.200s': %s; give another path with --socket",
				 path, strerror(-r));
	name_path(d, r, path);
	r = note_socket(d, path, err);
	if (r < 0)
		(void)unlink(path);
	return r;
}

int listening_open(struct listening_sockets *d, const struct config *c, struct log *log,
		   struct error *err)
{
	struct passed_sockets passed;
	int r;

	*d = (struct listening_sockets){ 0 };
	r = passed_sockets_receive(&passed, err);
	if (r == 0)
		r = open_addresses(d, c, &passed, log, err);
	if (r == 0 && *c->listening.socket)
		r = open_socket(d, c->listening.socket, &passed, err);
	if (r == 0)
		r = passed_sockets_finish(&passed, err);
	if (r == 0 && d->n == 0)
		r = error_set(err, ERROR_INPUT, EINVAL,
			      "there is nothing to listen on; give --listen or --socket");
	if (r < 0)
		listening_close(d);
	return r;
}

void listening_leave(struct listening_sockets *d)
{
	for (size_t i = 0; i < d->n; i++)
		d->list[i].fd = fd_close(d->list[i].fd);
	d->n = 0;
}

void listening_close(struct listening_sockets *d)
{
	struct stat st;

	/* Between the daemon's last accept and now another process may have made its own socket there. */
	if (d->socket_path && lstat(d->socket_path, &st) == 0 && st.st_dev == d->socket_dev &&
	    st.st_ino == d->socket_ino)
		(void)unlink(d->socket_path);
	if (d->socket_path)
		state_dir_remove_parents(d->socket_path, d->made);
	listening_leave(d);
	*d = (struct listening_sockets){ 0 };
}

int listen_for_broker(int dir_fd)
{
	char path[64];
	union address address;
	socklen_t size;
	int fd;

	(void)unlinkat(dir_fd, CONTROL_BROKER, 0);
	/* The path of a state directory may be too long for a socket address. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/" CONTROL_BROKER, dir_fd);
	size = fill_unix(path, &address);
	fd = bind_private(SOCK_SEQPACKET, &address, size);
	/* The broker checks the peer's uid; the front's user must be able to connect. */
	if (fd >= 0 && fchmodat(dir_fd, CONTROL_BROKER, 0666, 0) < 0) {
		int r = -errno;

		(void)fd_close(fd);
		return r;
	}
	return fd;
}
