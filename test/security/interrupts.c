/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does one thing over and over, to be run by test_interrupts.py inside a sandbox, while it counts the host's function call
 * interrupts. The things are: every system call that the filter allows, with arguments that no call accepts; every socket
 * option that it allows, on a new socket each time; the deeds of deeds.c; and, to show outside that the counting works, options
 * that switch a static key.
 *
 *   interrupts     prints "ITEM NAME" a line and "end"; then reads lines "ITEM MILLISECONDS" and answers each with "ITEM TIMES"
 *
 * Item 0 opens and closes a socket: what the others are compared with.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "deeds.h"
#include "plan/filter-table.h"

enum { ITEMS_MAX = 2048 };

static struct item items[ITEMS_MAX];
static size_t n_items;

struct item *add(const char *name, void (*once)(const int *), int a, int b)
{
	struct item *item = &items[n_items];

	if (n_items++ == ITEMS_MAX)
		abort();
	*item = (struct item){ .once = once, .with = { a, b } };
	(void)snprintf(item->name, sizeof(item->name), "%s", name);
	return item;
}

static void do_socket(const int *with)
{
	(void)close(socket(AF_INET, SOCK_DGRAM, with[0]));
}

/* What some calls return is a descriptor. */
static void do_call(const int *with)
{
	long fd = syscall(with[0], -1, -1, -1, -1, -1, -1);

	if (fd > STDERR_FILENO)
		(void)close((int)fd);
}

/* with: level, option, domain and type in one, set or get. */
static void do_option(const int *with)
{
	int fd = socket(with[2] / 16, with[2] % 16, 0), one = 1;
	char value[256];
	socklen_t size = sizeof(value);

	if (with[3])
		(void)setsockopt(fd, with[0], with[1], &one, sizeof(one));
	else
		(void)getsockopt(fd, with[0], with[1], value, &size);
	(void)close(fd);
}

/* Calls that would end the program, never come back, or are done above with arguments that do something. */
static const char *const left_out[] = {
	"exit",	       "exit_group", "pause",	    "rt_sigreturn",	 "fork",
	"vfork",       "sync",	     "close_range", "sched_setaffinity", "set_tid_address",
	"sigaltstack", "umask"
};

static bool is_left_out(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
		if (strcmp(left_out[i], name) == 0)
			return true;
	return false;
}

static void add_calls(void)
{
	static const uint64_t args[6] = { UINT64_MAX, UINT64_MAX, UINT64_MAX,
					  UINT64_MAX, UINT64_MAX, UINT64_MAX };
	char name[48];

	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
		int nr = row->nr[filter_native()];

		if (nr == NR_NONE || is_left_out(row->name) ||
		    filter_lookup(FILTER_DEFAULT, filter_arches[filter_native()], (uint32_t)nr,
				  args) != filter_answers[TO_ALLOW])
			continue;
		(void)snprintf(name, sizeof(name), "call %s", row->name);
		(void)add(name, do_call, nr, 0);
	}
}

/* `kind` is a domain and a type in one. */
static void add_option(const char *what, int level, int option, int kind)
{
	char name[48];

	for (int set = 0; set < 2; set++) {
		struct item *item;

		(void)snprintf(name, sizeof(name), "%s %s %d/%d of %d/%d", what,
			       set ? "set" : "get", level, option, kind / 16, kind % 16);
		item = add(name, do_option, level, option);
		item->with[2] = kind;
		item->with[3] = set;
	}
}

static bool fits(int level, int kind)
{
	int domain = kind / 16, type = kind % 16;

	return level == SOL_SOCKET ||
	       (level == IPPROTO_TCP && domain == AF_INET && type == SOCK_STREAM) ||
	       (level == IPPROTO_IP && domain == AF_INET) ||
	       (level == IPPROTO_IPV6 && domain == AF_INET6);
}

/* Every value that a rule lets through. */
static void add_options(int level, enum target to)
{
	static const int kinds[] = { AF_INET * 16 + SOCK_STREAM, AF_INET * 16 + SOCK_DGRAM,
				     AF_INET6 * 16 + SOCK_STREAM, AF_INET6 * 16 + SOCK_DGRAM,
				     AF_UNIX * 16 + SOCK_STREAM };
	const struct arg_switch *rule = &filter_switches[to];

	for (size_t i = 0; i < rule->n_cases; i++)
		for (uint32_t option = rule->cases[i].first; option <= rule->cases[i].last;
		     option++)
			for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
				if (fits(level, kinds[k]))
					add_option("option", level, (int)option, kinds[k]);
}

static long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(void)
{
	char *memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int item, ms, fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || memory == MAP_FAILED || ftruncate(fd, 1 << 16) < 0)
		return 1;
	(void)add("socket and close", do_socket, 0, 0);
	add_calls();
	add_options(SOL_SOCKET, TO_SOCKET_OPTION);
	add_options(IPPROTO_TCP, TO_TCP_OPTION);
	add_options(IPPROTO_IP, TO_IPV4_OPTION);
	add_options(IPPROTO_IPV6, TO_IPV6_OPTION);
	add_deeds(memory);
	add_option("proof", IPPROTO_UDP, 104, AF_INET * 16 + SOCK_DGRAM); /* UDP_GRO */
	add_option("proof", SOL_SOCKET, 29, AF_INET * 16 + SOCK_DGRAM);	  /* SO_TIMESTAMP */
	for (size_t i = 0; i < n_items; i++)
		(void)printf("%zu %s\n", i, items[i].name);
	(void)printf("end\n");
	(void)fflush(stdout);
	while (scanf("%d %d", &item, &ms) == 2 && item >= 0 && (size_t)item < n_items) {
		long until = now_ms() + ms, times = 0;

		do {
			items[item].once(items[item].with);
			times++;
		} while (now_ms() < until);
		(void)printf("%d %ld\n", item, times);
		(void)fflush(stdout);
	}
	return 0;
}
