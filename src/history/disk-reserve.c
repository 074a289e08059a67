/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. Storage trouble and its end. While all is well a file holds a few MiB without content. When
 * the disk is full that room is given up: results of what was accepted can still be written, new work is refused.
 * The trouble is over when the room can be taken back and a write goes through.
 */
#include "history/store.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

enum { RESERVE_BYTES = 4 << 20 };

/* A file system without fallocate() has no reserve; the probing write alone decides there. */
static bool fill_reserve(const struct history *h)
{
	return h->reserve_fd < 0 || fallocate(h->reserve_fd, 0, 0, RESERVE_BYTES) == 0 ||
	       errno == EOPNOTSUPP;
}

void disk_reserve_open(struct history *h)
{
	h->reserve_fd = openat(h->dir_fd, "reserve", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			       0600);
	if (!fill_reserve(h)) {
		h->reserve_spent = true;
		h->health.degraded = -ENOSPC;
	}
}

bool disk_reserve_spend(struct history *h)
{
	if (h->reserve_spent || h->reserve_fd < 0)
		return false;
	h->reserve_spent = true;
	return ftruncate(h->reserve_fd, 0) == 0;
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
	if (r < 0 || !fill_reserve(h))
		return;
	h->reserve_spent = false;
	h->health.degraded = 0;
}
