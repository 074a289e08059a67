/* SPDX-License-Identifier: Apache-2.0 */
/* One of the programs that run inside and outside: test/languages/test_programs.py. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

int main(void)
{
	int e = eventfd(0, 0), t = timerfd_create(CLOCK_MONOTONIC, 0), i = inotify_init1(0), s, m;
	uint64_t one = 1, got = 0;
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	struct signalfd_siginfo si;
	char buf[256], *name;
	sigset_t set;
	fd_set fds;

	(void)!write(e, &one, 8);
	(void)!read(e, &got, 8);
	printf("%lu ", (unsigned long)got);
	timerfd_settime(t, 0, &soon, NULL);
	FD_ZERO(&fds);
	FD_SET(t, &fds);
	printf("%d ", select(t + 1, &fds, NULL, NULL, &(struct timeval){ 5, 0 }));
	(void)!read(t, &got, 8);
	printf("%lu\n", (unsigned long)got);
	inotify_add_watch(i, ".", IN_CREATE);
	close(open("made", O_CREAT | O_WRONLY, 0600));
	printf("%d %s\n", read(i, buf, sizeof(buf)) > 0, ((struct inotify_event *)buf)->name);
	sigemptyset(&set), sigaddset(&set, SIGUSR1), sigprocmask(SIG_BLOCK, &set, NULL);
	s = signalfd(-1, &set, 0);
	kill(getpid(), SIGUSR1);
	(void)!read(s, &si, sizeof(si));
	printf("%u\n", si.ssi_signo);
	m = posix_openpt(O_RDWR | O_NOCTTY);
	printf("%d %d ", m >= 0, grantpt(m) || unlockpt(m));
	name = ptsname(m);
	s = open(name, O_RDWR | O_NOCTTY);
	(void)!write(s, "tty\n", 4);
	memset(buf, 0, sizeof(buf));
	printf("%zd %s", read(m, buf, sizeof(buf)), "bytes\n");
	printf("%d\n", isatty(s) && !isatty(0));
	return 0;
}
