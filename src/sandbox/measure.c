/* SPDX-License-Identifier: Apache-2.0 */
/* See measure.h. What is on the stack is held open, so nothing that is renamed meanwhile leads us elsewhere. */
#include "sandbox/measure.h"

#include "base/fd.h"
#include "sys/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 512 }; /* of st_blocks, whatever the file system's are */

static int push(struct measure *m, int from_fd, const char *name)
{
	_cleanup_close_ int fd = -EBADF;
	DIR *dir;

	if (m->depth == MEASURE_DEPTH_MAX)
		return -ENAMETOOLONG;
	fd = sys_openat(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	/* It was there a moment ago. */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)TAKE_FD(fd);
	m->levels[m->depth++] = dir;
	return 0;
}

int measure_begin(struct measure *m, int dir_fd)
{
	struct stat st;

	*m = (struct measure){ 0 };
	if (fstat(dir_fd, &st) < 0)
		return -errno;
	m->device = st.st_dev;
	return push(m, dir_fd, ".");
}

static int count(struct measure *m, const char *name)
{
	int dir_fd = dirfd(m->levels[m->depth - 1]);
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	m->files++;
	if (S_ISDIR(st.st_mode)) {
		m->bytes += (int64_t)st.st_blocks * BLOCK_BYTES;
		return st.st_dev == m->device ? push(m, dir_fd, name) : 0;
	}
	m->bytes += (int64_t)st.st_blocks * BLOCK_BYTES / (int64_t)MAX(st.st_nlink, 1);
	return 0;
}

int measure_step(struct measure *m, size_t entries)
{
	for (; m->depth > 0 && entries > 0; entries--) {
		const struct dirent *entry = readdir(m->levels[m->depth - 1]);
		int r = 0;

		if (!entry)
			(void)closedir(m->levels[--m->depth]);
		else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = count(m, entry->d_name);
		if (r < 0) {
			measure_end(m);
			return r;
		}
	}
	return m->depth == 0;
}

void measure_end(struct measure *m)
{
	while (m->depth > 0)
		(void)closedir(m->levels[--m->depth]);
}
