/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. Storage trouble and its end. While all is well a file holds some MiB without content. When
 * the disk is full that room is given up: results of what was accepted can still be written, new work is refused.
 * The trouble is over when the room can be taken back and a write goes through.
 *
 * The room is a part of the disk, so that a state directory of a few MiB can be used, and be well again. The database's log, whose
 * file never shrinks, is bounded by the same measure (log_pages).
 */
#include "engine/history/store.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"

enum {
	PART_OF_DISK = 12,
	LEAST_BYTES = 64 << 10,
	MOST_BYTES = 4 << 20,
	PAGE_BYTES = 4096,
};

static int64_t reserve_free_bytes(const struct history *h, int64_t *ret_all)
{
	struct statvfs disk;

	if (fstatvfs(h->dir_fd, &disk) < 0)
		return -1;
	if (ret_all)
		*ret_all = (int64_t)(disk.f_blocks * disk.f_frsize);
	return (int64_t)(disk.f_bavail * disk.f_frsize);
}

void disk_reserve_measure(struct history *h)
{
	int64_t all = 0;

	if (reserve_free_bytes(h, &all) < 0 || all == 0) /* some file systems do not say */
		all = (int64_t)MOST_BYTES * PART_OF_DISK;
	all /= PART_OF_DISK;
	h->reserve.bytes = MAX(MIN(all, (int64_t)MOST_BYTES), (int64_t)LEAST_BYTES);
	h->reserve.log_pages = (int)(h->reserve.bytes / PAGE_BYTES);
}

/* A file system without fallocate() has no reserve; the probing write alone decides there. */
static bool reserve_fill(const struct history *h)
{
	return h->reserve.fd < 0 || fallocate(h->reserve.fd, 0, 0, h->reserve.bytes) == 0 ||
	       errno == EOPNOTSUPP;
}

void disk_reserve_open(struct history *h)
{
	h->reserve.fd = openat(h->dir_fd, "reserve", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			       0600);
	if (!reserve_fill(h)) {
		h->reserve.spent = true;
		h->health.degraded = -ENOSPC;
	}
}

bool disk_reserve_spend(struct history *h)
{
	assert(h->reserve.bytes > 0);
	if (h->reserve.spent || h->reserve.fd < 0)
		return false;
	h->reserve.spent = true;
	return ftruncate(h->reserve.fd, 0) == 0;
}

void disk_reserve_probe(struct history *h)
{
	int trouble = h->health.degraded, r;

	if (trouble == -EIO || !h->db) {
		/* A connection that saw an I/O error may hold on to it: begin with a new one. */
		store_disconnect(h);
		r = store_connect(h, NULL);
		if (r < 0)
			return;
	}
	/* What the log holds need not be written there again. */
	r = store_checkpoint(h);
	if (r >= 0)
		r = store_begin(h);
	if (r >= 0)
		r = store_end(h, store_save_marks(h, &h->marks));
	if (r < 0 || !reserve_fill(h))
		return;
	h->reserve.spent = false;
	h->health.degraded = 0;
}

int history_trouble(const struct history *h, bool name_dir, struct error *err)
{
	const int n = (int)(strlen(h->database) - strlen("/" HISTORY_DATABASE));
	const int trouble = h->health.degraded;
	/* What must be free for the trouble to be over. */
	const int64_t needed = h->reserve.spent ? h->reserve.bytes : LEAST_BYTES;
	char place[256] = "its state directory";

	if (trouble == 0)
		return 0;
	if (name_dir)
		(void)snprintf(place, sizeof(place), "%.*s", MIN(n, 200), h->database);
	if (trouble == -ENOSPC)
		(void)error_set(err, ERROR_STORAGE, ENOSPC,
				"the disk of %s is full: the server needs %" PRId64
				" bytes there, and "
				"%" PRId64 " are free; make room, or send \"history\": false with "
				"what needs no record",
				place, needed, MAX(reserve_free_bytes(h, NULL), (int64_t)0));
	else
		(void)error_set(err, ERROR_STORAGE, -trouble,
				"the server cannot write to %s (%s); look at its disk, or send "
				"\"history\": false with what needs no record",
				place, strerror(-trouble));
	(void)snprintf(err->field, sizeof(err->field), "history");
	return trouble;
}
