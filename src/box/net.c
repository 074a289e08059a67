/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See net.h. A namespace is held by its descriptor. When it comes back, its counters are compared with those of
 * a new one, and its cached routes are dropped. The files for that are opened inside it, and stay open for
 * namespaces that come back often: a long-lived one keeps none.
 *
 * snmp and snmp6 count every packet and every failed send, netstat every state of TCP. Three things leave no
 * trace there: a connected IPv6 datagram socket has a route (rt6_stats), an IPv4 one too (dropped), and a
 * socket in a message that was never received lives until the kernel collects it (sockstat).
 */
#include "box/net.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/cgroup-open.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	NETS_KEPT_MAX = 64,
	COUNTERS_BYTES_MAX = 16384,
	OPEN_MAX = 512,	 /* files of namespaces, and */
	OPEN_SHARE = 40, /* at most one in so many of a broker's descriptors */
};

enum look {
	LOOK_ALL,	 /* the file reads as in a new namespace */
	LOOK_FIRST_LINE, /* its first line does: the rest is about the whole host */
	LOOK_FLUSH,	 /* a write to it empties a cache */
};

static const struct {
	const char *path;
	enum look look;
} looks[] = {
	{ "/proc/thread-self/net/snmp", LOOK_ALL },
	{ "/proc/thread-self/net/netstat", LOOK_ALL },
	{ "/proc/thread-self/net/snmp6", LOOK_ALL },
	{ "/proc/thread-self/net/rt6_stats", LOOK_ALL },
	{ "/proc/thread-self/net/sockstat", LOOK_FIRST_LINE },
	{ "/proc/sys/net/ipv4/route/flush", LOOK_FLUSH },
};

struct nets {
	int home_fd; /* the broker's own namespace */
	struct open_budget open;
	struct net *kept;
	unsigned n_kept, n_lent;
	bool closing;
	char *pristine[ARRAY_SIZE(looks)]; /* of a new one; "": no such file; NULL: not compared */
	char scratch[COUNTERS_BYTES_MAX];
};

struct net {
	struct net *next;
	struct nets *nets;
	int fd;
	struct open_files open; /* in the order of looks */
};

static void nets_destroy(struct nets *n)
{
	for (size_t i = 0; i < ARRAY_SIZE(looks); i++)
		free(n->pristine[i]);
	n->home_fd = fd_close(n->home_fd);
	free(n);
}

static void net_destroy(struct net *net)
{
	open_files_done(&net->open);
	net->fd = fd_close(net->fd);
	free(net);
}

struct nets *nets_new(void)
{
	struct nets *n = calloc(1, sizeof(*n));
	struct rlimit files;

	if (!n)
		return NULL;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		n->open.max = (int)MIN(files.rlim_max / OPEN_SHARE, (rlim_t)OPEN_MAX);
	n->home_fd = sys_open("/proc/thread-self/ns/net", O_RDONLY, 0);
	if (n->home_fd < 0) {
		nets_destroy(n);
		return NULL;
	}
	return n;
}

struct nets *nets_free(struct nets *n)
{
	if (!n)
		return NULL;
	while (n->kept) {
		struct net *net = n->kept;

		n->kept = net->next;
		net_destroy(net);
	}
	n->closing = true;
	/* The last one that comes back frees the rest. */
	if (n->n_lent == 0)
		nets_destroy(n);
	return NULL;
}

/* The compared part of file i, in scratch; its length, or a negative errno. One read gets all of it. */
static ssize_t read_counters(struct nets *n, size_t i, int fd)
{
	ssize_t len = pread(fd, n->scratch, sizeof(n->scratch), 0);
	const char *end;

	if (len < 0)
		return -errno;
	if (len == (ssize_t)sizeof(n->scratch))
		return -EFBIG;
	end = looks[i].look == LOOK_FIRST_LINE ? memchr(n->scratch, '\n', (size_t)len) : NULL;
	return end ? end - n->scratch : len;
}

static bool is_pristine(struct nets *n, size_t i, int fd)
{
	ssize_t len;

	if (looks[i].look == LOOK_FLUSH)
		return pwrite(fd, "1", 1, 0) == 1;
	len = read_counters(n, i, fd);
	return len >= 0 && (size_t)len == strlen(n->pristine[i]) &&
	       memcmp(n->scratch, n->pristine[i], (size_t)len) == 0;
}

/* Inside the namespace. */
static bool opens_as_new(struct net *net, size_t i)
{
	int fd = sys_open(looks[i].path, looks[i].look == LOOK_FLUSH ? O_WRONLY : O_RDONLY, 0);
	bool is_new;

	if (fd < 0)
		return false;
	is_new = is_pristine(net->nets, i, fd);
	if (!open_files_keep(&net->open, (int)i, fd))
		(void)fd_close(fd);
	return is_new;
}

static bool is_as_new(struct net *net)
{
	struct nets *n = net->nets;
	bool is_new = true, inside = false;

	for (size_t i = 0; is_new && i < ARRAY_SIZE(looks); i++) {
		if (looks[i].look != LOOK_FLUSH && !*n->pristine[i])
			continue;
		if (net->open.fd[i] >= 0) {
			is_new = is_pristine(n, i, net->open.fd[i]);
			continue;
		}
		inside = inside || net_enter(net) == 0;
		is_new = inside && opens_as_new(net, i);
	}
	if (inside)
		net_leave(net);
	return is_new;
}

/* The content of file i in a new namespace. A missing file (a kernel without IPv6) counts as empty. */
static int learn_one(struct nets *n, size_t i)
{
	_cleanup_close_ int fd = sys_open(looks[i].path, O_RDONLY, 0);
	ssize_t len = fd == -ENOENT ? 0 : fd < 0 ? fd : read_counters(n, i, fd);

	if (len < 0)
		return (int)len;
	n->pristine[i] = strndup(n->scratch, (size_t)len);
	return n->pristine[i] ? 0 : -ENOMEM;
}

/* The first namespace shows how a new one reads. */
static int learn(struct nets *n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(looks); i++)
		if (!n->pristine[i] && looks[i].look != LOOK_FLUSH)
			r = learn_one(n, i);
	return r;
}

/* Inside the new namespace. */
static int open_inside(struct net *net)
{
	int r = sys_loopback_up();

	if (r < 0)
		return r;
	net->fd = sys_open("/proc/thread-self/ns/net", O_RDONLY, 0);
	return net->fd < 0 ? net->fd : learn(net->nets);
}

static struct net *net_new(struct nets *n)
{
	struct net *net = calloc(1, sizeof(*net));
	int r;

	if (!net)
		return NULL;
	*net = (struct net){ .nets = n, .fd = -EBADF };
	open_files_init(&net->open, &n->open);
	r = sys_unshare(CLONE_NEWNET);
	if (r == 0) {
		r = open_inside(net);
		net_leave(net);
	}
	if (r < 0) {
		net_destroy(net);
		return NULL;
	}
	return net;
}

struct net *nets_take(struct nets *n)
{
	struct net *net;

	if (!n)
		return NULL;
	net = n->kept;
	if (net) {
		n->kept = net->next;
		n->n_kept--;
		open_files_renew(&net->open);
	} else {
		net = net_new(n);
	}
	if (net)
		n->n_lent++;
	return net;
}

int net_fd(const struct net *net)
{
	return net->fd;
}

int net_enter(const struct net *net)
{
	return sys_setns(net->fd, CLONE_NEWNET);
}

void net_leave(const struct net *net)
{
	/*
	 * A broker that cannot return would put later sandboxes and its own sockets into a tenant's namespace.
	 */
	if (sys_setns(net->nets->home_fd, CLONE_NEWNET) < 0)
		abort();
}

void net_give_back(struct net *net, bool empty)
{
	struct nets *n;

	if (!net)
		return;
	n = net->nets;
	n->n_lent--;
	if (empty && !n->closing && n->n_kept < NETS_KEPT_MAX && is_as_new(net)) {
		net->next = n->kept;
		n->kept = net;
		n->n_kept++;
		return;
	}
	net_destroy(net);
	if (n->closing && n->n_lent == 0)
		nets_destroy(n);
}
