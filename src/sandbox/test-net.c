/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces that are used again: only clean ones, and without descriptors for what lives long. Needs root. */
#include "sandbox/net.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MANY = 8, FILES_EACH = 3 };

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

/* As a program would: there is no way out, and that is counted. */
static void use(const struct net *net)
{
	const struct sockaddr_in nowhere = { .sin_family = AF_INET,
					     .sin_port = htons(9),
					     .sin_addr.s_addr = htonl(0xc0000201) };
	int fd;

	assert_int_equal(net_enter(net), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	net_leave(net);
	assert_true(fd >= 0);
	assert_int_equal(sendto(fd, "x", 1, 0, (const struct sockaddr *)&nowhere, sizeof(nowhere)),
			 -1);
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
	/* Its first time, when its files are opened for that. */
	use(net);
	net_give_back(net, true);
	assert_int_equal(open_counters(), 0);
	net = nets_take(n);
	first = inode_of(net);
	net_give_back(net, true);
	net = nets_take(n);
	assert_int_equal(inode_of(net), first);
	/* Somebody may still be in there. */
	net_give_back(net, false);
	assert_int_equal(open_counters(), 0);
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
	few.rlim_cur = few.rlim_max = MIN(before.rlim_max, (rlim_t)240); /* of which six */
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
		cmocka_unit_test(test_few_files_stay_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
