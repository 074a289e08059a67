/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each profile of the seccomp filter costs: building it, installing it (median of 200 processes, each installing
 * it once: the kernel checks, compiles and pre-evaluates the program there), and a call under it.
 *
 *   cc -O2 -D_GNU_SOURCE -Isrc bench/filter-install.c src/plan/filter.c src/plan/filter-rules.c \
 *      src/plan/filter-table.c src/base/sha256*.c src/base/clock.c -o /tmp/filter-install && /tmp/filter-install
 */
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "plan/filter.h"

enum { RUNS = 200, BUILDS = 1000, CALLS = 200000 };

struct sample {
	int64_t install_ns, plain_ns, cached_ns, checked_ns, open_ns;
};

static int64_t time_calls(long nr, long a, long b)
{
	int64_t start = clock_now_ns();

	for (int i = 0; i < CALLS; i++)
		(void)syscall(nr, a, b, 0);
	return (clock_now_ns() - start) / CALLS;
}

static int measure(struct filter *f, struct sample *ret, int with_calls)
{
	struct sock_fprog program = { .len = f->len, .filter = f->insns };
	int64_t start;

	if (with_calls)
		ret->plain_ns = time_calls(SYS_getppid, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 1;
	start = clock_now_ns();
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
		return 1;
	ret->install_ns = clock_now_ns() - start;
	if (with_calls) {
		ret->cached_ns = time_calls(SYS_getppid, 0, 0);
		ret->checked_ns = time_calls(SYS_ioctl, -1, 0x5401);
		ret->open_ns = time_calls(SYS_openat, -1, (long)"x");
	}
	return 0;
}

static int by_install(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->install_ns > y->install_ns) - (x->install_ns < y->install_ns);
}

static int64_t time_build(enum filter_profile profile, struct filter *f)
{
	int64_t start = clock_now_ns();

	for (int i = 0; i < BUILDS; i++) {
		if (filter_build(profile, f) < 0)
			return -1;
	}
	return (clock_now_ns() - start) / BUILDS;
}

static int report(enum filter_profile profile, struct sample *samples)
{
	struct sample last;
	struct filter f;
	int64_t build_ns = time_build(profile, &f);

	if (build_ns < 0)
		return 1;
	for (int i = 0; i < RUNS; i++) {
		int status = 1;
		pid_t pid = fork();

		if (pid == 0)
			_exit(measure(&f, &samples[i], i == RUNS - 1));
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return 1;
	}
	last = samples[RUNS - 1];
	qsort(samples, RUNS, sizeof(*samples), by_install);
	(void)printf("profile               %s\n", filter_profile_name(profile));
	(void)printf("instructions          %d\n", f.len);
	(void)printf("build                 %.1f µs\n", (double)build_ns / 1e3);
	(void)printf("install p50 / p90     %.1f / %.1f µs\n",
		     (double)samples[RUNS / 2].install_ns / 1e3,
		     (double)samples[RUNS * 9 / 10].install_ns / 1e3);
	(void)printf("call without filter   %lld ns (getppid)\n", (long long)last.plain_ns);
	(void)printf("call, cached allow    %lld ns (getppid)\n", (long long)last.cached_ns);
	(void)printf("call, checked         %lld ns (ioctl on a bad fd)\n",
		     (long long)last.checked_ns);
	(void)printf("open                  %lld ns (below a bad fd)\n", (long long)last.open_ns);
	return 0;
}

int main(void)
{
	struct sample *samples = mmap(NULL, RUNS * sizeof(*samples), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r = samples == MAP_FAILED;

	for (int profile = 0; r == 0 && profile < _FILTER_MAX; profile++)
		r = report((enum filter_profile)profile, samples);
	return r;
}
