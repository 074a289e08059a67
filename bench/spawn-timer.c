/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times two commands against each other: starts them in turn (A B A B …), waits for each, and prints
 * one line a pair with both durations in nanoseconds. Interleaving makes both see the same noise; C
 * with posix_spawn (vfork inside) keeps the cost of the timer itself far below what it measures.
 *
 *   spawn-timer PAIRS GAP_MS A… -- B…
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Nanoseconds from before the start until the process is reaped; -1 when it did not exit with 0. */
static int64_t time_command(char **argv, const posix_spawn_file_actions_t *actions)
{
	int64_t begin = now_ns();
	int status;
	pid_t pid;

	if (posix_spawn(&pid, argv[0], actions, NULL, argv, environ) != 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? now_ns() - begin : -1;
}

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t actions;
	long pairs, gap_ms;
	int split = 3;

	while (split < argc && strcmp(argv[split], "--") != 0)
		split++;
	if (split < 4 || split + 1 >= argc)
		return 2;
	pairs = strtol(argv[1], NULL, 10);
	gap_ms = strtol(argv[2], NULL, 10);
	argv[split] = NULL;
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	for (long i = 0; i < pairs; i++) {
		const struct timespec gap = { gap_ms / 1000, gap_ms % 1000 * 1000000 };
		int64_t a, b;

		(void)nanosleep(&gap, NULL);
		a = time_command(argv + 3, &actions);
		(void)nanosleep(&gap, NULL);
		b = time_command(argv + split + 1, &actions);
		if (a < 0 || b < 0) {
			fprintf(stderr, "spawn-timer: %s failed\n",
				a < 0 ? argv[3] : argv[split + 1]);
			return 1;
		}
		printf("%lld %lld\n", (long long)a, (long long)b);
	}
	return 0;
}
