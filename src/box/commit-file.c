/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a commit: compared, copied with their holes, hashed meanwhile. The run's disk limit bounds the time,
 * and file_size for holes.
 */
#include "box/commit-private.h"

#include "base/sys/kernel.h"

#include <fcntl.h>
#include <unistd.h>

static ssize_t read_file_at(int fd, char *to, size_t n, int64_t offset)
{
	ssize_t got = pread(fd, to, n, offset);

	return got < 0 ? -errno : got;
}

int file_compare(struct commit_work *w, int a_fd, int b_fd, int64_t size)
{
	for (int64_t at = 0; at < size;) {
		size_t want = (size_t)MIN(size - at, (int64_t)COPY_BYTES);
		ssize_t a = read_file_at(a_fd, w->copy, want, at);
		ssize_t b = a < 0 ? a : read_file_at(b_fd, w->compare, want, at);

		if (a < 0 || b < 0)
			return (int)MIN(a, b);
		if (a != b || a == 0 || memcmp(w->copy, w->compare, (size_t)a) != 0)
			return 0;
		at += a;
	}
	return 1;
}

struct copying {
	struct file_copy *f;
	struct sha256 hash;
	int64_t at;
};

static int copy_data(struct commit_work *w, struct copying *c, int64_t end)
{
	while (c->at < end) {
		ssize_t n = read_file_at(c->f->from_fd, w->copy,
					 (size_t)MIN(end - c->at, (int64_t)COPY_BYTES), c->at);
		int r = n <= 0 ? (n < 0 ? (int)n : -EIO) : 0;

		if (r < 0)
			return r;
		sha256_update(&c->hash, w->copy, (size_t)n);
		if (c->f->to_fd >= 0)
			r = sys_write(c->f->to_fd, w->copy, (size_t)n);
		if (r < 0)
			return r;
		c->at += n;
	}
	return 0;
}

static int pass_hole(struct commit_work *w, struct copying *c, int64_t end)
{
	memset(w->compare, 0, sizeof(w->compare));
	for (int64_t left = end - c->at; left > 0; left -= COPY_BYTES)
		sha256_update(&c->hash, w->compare, (size_t)MIN(left, (int64_t)COPY_BYTES));
	c->at = end;
	if (c->f->to_fd >= 0 && lseek(c->f->to_fd, end, SEEK_SET) < 0)
		return -errno;
	return 0;
}

static int copy_sparse(struct commit_work *w, struct copying *c)
{
	int r = 0;

	while (r == 0 && c->at < c->f->size) {
		int64_t data = lseek(c->f->from_fd, c->at, SEEK_DATA), hole;

		if (data < 0 && errno != ENXIO)
			return -errno;
		data = data < 0 ? c->f->size : MIN(data, c->f->size);
		if (data > c->at)
			r = pass_hole(w, c, data);
		if (r < 0 || data == c->f->size)
			break;
		hole = lseek(c->f->from_fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		r = copy_data(w, c, MIN(hole, c->f->size));
	}
	/* The hole at the end is not written. */
	if (r == 0 && c->f->to_fd >= 0 && ftruncate(c->f->to_fd, c->f->size) < 0)
		return -errno;
	return r;
}

int file_copy(struct commit_work *w, struct file_copy *f)
{
	struct copying c = { .f = f };
	int r;

	sha256_init(&c.hash);
	r = f->sparse ? copy_sparse(w, &c) : copy_data(w, &c, f->size);
	if (r == 0)
		sha256_final(&c.hash, f->sha256);
	return r;
}

int file_finish(const struct commit_work *w, int fd, const struct stat *like, mode_t mode)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, like->st_mtim };

	if (geteuid() == 0 && fchown(fd, w->c->owner_uid, w->c->owner_gid) < 0)
		return -errno;
	if (fchmod(fd, mode & 0777) < 0 || futimens(fd, times) < 0)
		return -errno;
	return 0;
}

/*
 * `depth` directories are above the link within the workspace. A link may climb only at its beginning:
 * directories it descends through may be links themselves, and climbing again would then start elsewhere.
 */
bool link_stays_inside(const char *target, int depth)
{
	bool down = false;

	if (*target == '/' || !*target)
		return false;
	while (*target) {
		size_t n = strcspn(target, "/");
		bool up = n == 2 && memcmp(target, "..", 2) == 0;

		if (up && (down || --depth < 0))
			return false;
		if (n > 0 && !up && !(n == 1 && *target == '.'))
			down = true;
		target += n;
		target += *target == '/';
	}
	return true;
}
