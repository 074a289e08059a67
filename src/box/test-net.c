/* SPDX-License-Identifier: Apache-2.0 */
/* Reused network namespaces: only clean ones, and without open files for long-lived ones. Needs root. */
#include "box/net.h"

#include "base/buf.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MANY = 8, FILES_EACH = 6 };

static ino_t inode_of(const struct net *net)
{
	struct stat st;

	assert_int_equal(fstat(net_fd(net), &st), 0);
	return st.st_ino;
}

static int open_counters(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char target[256] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) > 0)
			n += strstr(target, "/net/") != NULL;
	}
	(void)closedir(dir);
	return n;
}

static int open_socket(const struct net *net, int family, int type)
{
	int fd;

	assert_int_equal(net_enter(net), 0);
	fd = socket(family, type | SOCK_CLOEXEC, 0);
	net_leave(net);
	assert_true(fd >= 0);
	return fd;
}

/* As a program would: there is no route out, which is counted. */
static void use(const struct net *net)
{
	const struct sockaddr_in nowhere = { .sin_family = AF_INET,
					     .sin_port = htons(9),
					     .sin_addr.s_addr = htonl(0xc0000201) };
	int fd = open_socket(net, AF_INET, SOCK_DGRAM);

	assert_int_equal(sendto(fd, "x", 1, 0, (const struct sockaddr *)&nowhere, sizeof(nowhere)),
			 -1);
	close(fd);
}

static const struct sockaddr *here(void)
{
	static struct sockaddr_in at;

	at = (struct sockaddr_in){ .sin_family = AF_INET,
				   .sin_port = htons(4711),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return (const struct sockaddr *)&at;
}

static const struct sockaddr *here6(void)
{
	static struct sockaddr_in6 at;

	at = (struct sockaddr_in6){ .sin6_family = AF_INET6,
				    .sin6_port = htons(4711),
				    .sin6_addr = in6addr_loopback };
	return (const struct sockaddr *)&at;
}

static int listen_here(const struct net *net)
{
	int fd = open_socket(net, AF_INET, SOCK_STREAM);

	assert_int_equal(bind(fd, here(), sizeof(struct sockaddr_in)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void do_listen(const struct net *net)
{
	close(listen_here(net));
}

static void do_datagram(const struct net *net)
{
	int fd = open_socket(net, AF_INET, SOCK_DGRAM);

	assert_int_equal(sendto(fd, "x", 1, 0, here(), sizeof(struct sockaddr_in)), 1);
	close(fd);
}

/* Both ends close at once: one stays for a minute (TIME_WAIT). */
static void do_connection(const struct net *net)
{
	int listener = listen_here(net), fd = open_socket(net, AF_INET, SOCK_STREAM);

	assert_int_equal(connect(fd, here(), sizeof(struct sockaddr_in)), 0);
	close(fd);
	close(listener);
}

static void do_route(const struct net *net)
{
	int fd = open_socket(net, AF_INET, SOCK_DGRAM);

	assert_int_equal(connect(fd, here(), sizeof(struct sockaddr_in)), 0);
	close(fd);
}

static void do_route6(const struct net *net)
{
	int fd = open_socket(net, AF_INET6, SOCK_DGRAM);

	assert_int_equal(connect(fd, here6(), sizeof(struct sockaddr_in6)), 0);
	close(fd);
}

static int in_flight[2] = { -1, -1 };

/* In a message that was not received, where a closed socket goes on listening. */
static void do_send_listener(const struct net *net)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&m);
	int fd = listen_here(net);

	*head = (struct cmsghdr){ CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in_flight), 0);
	assert_int_equal(sendmsg(in_flight[0], &m, 0), 1);
	close(fd);
}

static struct nets *make(void)
{
	struct nets *n = geteuid() == 0 ? nets_new() : NULL;
	struct net *net = nets_take(n);

	if (!net) {
		print_message("# skipped: no network namespaces to be had\n");
		(void)nets_free(n);
		skip();
	}
	net_give_back(net, true);
	return n;
}

static void test_only_clean_ones_are_used_again(void **state)
{
	struct nets *n = make();
	struct net *net = nets_take(n);
	ino_t first = inode_of(net);

	(void)state;
	for (int i = 0; i < 3; i++) {
		net_give_back(net, true);
		net = nets_take(n);
		assert_int_equal(inode_of(net), first);
	}
	use(net);
	net_give_back(net, true);
	net = nets_take(n);
	assert_int_equal(open_counters(), 0);
	/* The first use opens its files. */
	use(net);
	net_give_back(net, true);
	assert_int_equal(open_counters(), 0);
	net = nets_take(n);
	first = inode_of(net);
	net_give_back(net, true);
	net = nets_take(n);
	assert_int_equal(inode_of(net), first);
	/* A process may still be in it. */
	net_give_back(net, false);
	assert_int_equal(open_counters(), 0);
	(void)nets_free(n);
}

static void test_loopback_that_was_touched(void **state)
{
	static const struct {
		void (*act)(const struct net *);
		bool again;
	} rows[] = {
		{ do_listen, true },	{ do_route, true },	  { do_route6, false },
		{ do_datagram, false }, { do_connection, false }, { do_send_listener, false },
	};
	struct nets *n = make();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct net *net = nets_take(n);
		ino_t first = inode_of(net);

		rows[i].act(net);
		net_give_back(net, true);
		net = nets_take(n);
		if ((inode_of(net) == first) != rows[i].again)
			fail_msg("row %zu", i);
		net_give_back(net, true);
	}
	close(in_flight[0]);
	close(in_flight[1]);
	(void)nets_free(n);
}

/* Route lookups without a cached route, over the whole host. */
static unsigned lookups(void)
{
	_cleanup_close_ int fd = open("/proc/thread-self/net/stat/rt_cache", O_RDONLY | O_CLOEXEC);
	_cleanup_buf_ struct buf text = { 0 };
	unsigned sum = 0, one;

	buf_init(&text, MiB);
	assert_int_equal(buf_read_fd(&text, fd), 0);
	for (const char *line = text.data; line; line = strchr(line + 1, '\n'))
		if (sscanf(line, "%*x %*x %*x %*x %*x %*x %*x %*x %*x %x", &one) == 1)
			sum += one;
	return sum;
}

/*
 * On one processor, where the cache is. Other processes of the host count as well, so only this direction can
 * be tested.
 */
static void test_routes_are_dropped(void **state)
{
	struct nets *n = make();
	struct net *net = nets_take(n);
	cpu_set_t all, one;
	unsigned before;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	do_route(net);
	net_give_back(net, true);
	net = nets_take(n);
	before = lookups();
	do_route(net);
	assert_int_not_equal(lookups(), before);
	net_give_back(net, true);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	(void)nets_free(n);
}

static void test_few_files_stay_open(void **state)
{
	struct rlimit before, few;
	struct net *nets[MANY];
	struct nets *n;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = few.rlim_max = MIN(before.rlim_max, (rlim_t)480); /* of which twelve */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	n = make();
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < MANY; i++)
			nets[i] = nets_take(n);
		assert_in_range(open_counters(), 0, 2 * FILES_EACH);
		for (int i = 0; i < MANY; i++)
			net_give_back(nets[i], true);
		assert_in_range(open_counters(), 1, 2 * FILES_EACH);
	}
	(void)nets_free(n);
	assert_int_equal(open_counters(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_clean_ones_are_used_again),
		cmocka_unit_test(test_loopback_that_was_touched),
		cmocka_unit_test(test_routes_are_dropped),
		cmocka_unit_test(test_few_files_stay_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
