/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over saved inputs as an ordinary test: each argument is a file or a directory
 * of files. Without a single input it fails, so that a lost corpus is noticed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

enum { INPUT_BYTES_MAX = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(int fd)
{
	_cleanup_buf_ struct buf b = { 0 };
	_cleanup_free_ uint8_t *exact = NULL;
	int r;

	buf_init(&b, INPUT_BYTES_MAX);
	r = buf_read_fd(&b, fd);
	if (r < 0)
		return r;
	/* A block of exactly this size, so that a sanitizer sees the first byte read past it. */
	exact = malloc(b.len ? b.len : 1);
	if (!exact)
		return -ENOMEM;
	memcpy(exact, b.data, b.len);
	(void)LLVMFuzzerTestOneInput(exact, b.len);
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

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int n = run_path(AT_FDCWD, argv[i]);

		if (n <= 0) {
			(void)fprintf(stderr, "%s: %s\n", argv[i],
				      n < 0 ? strerror(-n) : "no inputs");
			return 1;
		}
		total += n;
	}
	(void)printf("%d inputs\n", total);
	return total > 0 ? 0 : 1;
}
