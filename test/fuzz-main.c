/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over saved inputs as an ordinary test: each argument is a file or a directory
 * of files. Without a single input it fails, so that a lost corpus is noticed.
 *
 * Where a sanitizer watches, a second of changed inputs follows: a sample of what `./dev fuzz` does for longer and
 * with an eye on coverage. The changes are the same in each run, so a failure comes again. The input that failed
 * lies in `fuzz-failed` in the working directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if __has_feature(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
#define IS_WATCHED 1
#else
#define IS_WATCHED 0
#endif

enum { INPUT_BYTES_MAX = 64 << 20, SEEDS_MAX = 1024, SEED_BYTES_MAX = 16 << 10 };

struct input {
	uint8_t *data;
	size_t size;
};

/* What changed inputs are made from, and the input that runs. */
static struct input seeds[SEEDS_MAX], current;
static size_t n_seeds;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_input(const void *data, size_t size)
{
	/* A block of exactly this size, so that a sanitizer sees the first byte read past it. */
	_cleanup_free_ uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		abort();
	if (size)
		memcpy(exact, data, size);
	current = (struct input){ exact, size };
	(void)LLVMFuzzerTestOneInput(exact, size);
	current = (struct input){ 0 };
}

static int run_file(int fd)
{
	_cleanup_buf_ struct buf b = { 0 };
	int r;

	buf_init(&b, INPUT_BYTES_MAX);
	r = buf_read_fd(&b, fd);
	if (r < 0)
		return r;
	run_input(b.data, b.len);
	if (IS_WATCHED && n_seeds < SEEDS_MAX && b.len > 0 && b.len <= SEED_BYTES_MAX) {
		uint8_t *copy = malloc(b.len);

		if (!copy)
			return -ENOMEM;
		memcpy(copy, b.data, b.len);
		seeds[n_seeds++] = (struct input){ copy, b.len };
	}
	return 1;
}

static int run_path(int dir, const char *path)
{
	_cleanup_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	struct dirent *entry;
	DIR *d;
	int n = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return run_file(fd);
	d = fdopendir(fd);
	if (!d)
		return -errno;
	(void)TAKE_FD(fd);
	while (n >= 0 && (entry = readdir(d))) {
		int r;

		if (entry->d_name[0] == '.')
			continue;
		r = run_path(dirfd(d), entry->d_name);
		n = r < 0 ? r : n + r;
	}
	(void)closedir(d);
	return n;
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

/* One change: a bit, a byte that decides much, a piece that is left out, repeated, or another input's. */
static size_t change(uint8_t *data, size_t size, uint64_t *state)
{
	static const uint8_t telling[] = "\0\xff\x7f\x80\n\r \"'\\{}[]:;,-+.%0919aeE/";
	const struct input *other = &seeds[draw(state, n_seeds)];
	size_t at = draw(state, size), n = 1 + draw(state, size - at < 32 ? size - at : 32);

	switch (draw(state, 5)) {
	case 0:
		data[at] ^= (uint8_t)(1 << draw(state, 8));
		return size;
	case 1:
		data[at] = telling[draw(state, sizeof(telling) - 1)];
		return size;
	case 2:
		memmove(data + at, data + at + n, size - at - n);
		return size - n ? size - n : 1;
	case 3:
		memmove(data + at + n, data + at, size - at);
		return size + n;
	default:
		n = MIN(n, other->size);
		memcpy(data + at, other->data + draw(state, other->size - n + 1), n);
		return MAX(size, at + n);
	}
}

/* The same changes in every run, for a second of processor time. */
static unsigned run_changed(void)
{
	static uint8_t data[2 * SEED_BYTES_MAX];
	uint64_t state = 0x9e3779b97f4a7c15;
	unsigned runs = 0;

	if (!IS_WATCHED)
		return 0;
	while (n_seeds > 0 && clock() < CLOCKS_PER_SEC) {
		const struct input *seed = &seeds[draw(&state, n_seeds)];
		size_t size = seed->size;

		memcpy(data, seed->data, size);
		for (uint64_t i = draw(&state, 6); i < 6; i++)
			size = change(data, size, &state);
		run_input(data, size);
		runs++;
	}
	return runs;
}

/* Only calls that a signal handler may make. */
static void keep_failed(int sig)
{
	_cleanup_close_ int fd = openat(AT_FDCWD, "fuzz-failed",
					O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd >= 0 && current.data)
		(void)!write(fd, current.data, current.size);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

int main(int argc, char **argv)
{
	unsigned changed;
	int total = 0;

	(void)signal(SIGABRT, keep_failed);

	for (int i = 1; i < argc; i++) {
		int n = run_path(AT_FDCWD, argv[i]);

		if (n <= 0) {
			(void)fprintf(stderr, "%s: %s\n", argv[i],
				      n < 0 ? strerror(-n) : "no inputs");
			return 1;
		}
		total += n;
	}
	changed = run_changed();
	while (n_seeds > 0)
		free(seeds[--n_seeds].data);
	(void)printf("%d inputs, %u changed ones\n", total, changed);
	return total > 0 ? 0 : 1;
}
