/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. Opening, which is recovering; the work between calls; closing. A process that dies leaves the
 * write-ahead log behind: a log at open means that the stop was not clean, and then the database is checked when
 * it is small enough for that, or when SQLite met damage in it, and files without a row are looked for.
 */
#include "engine/history/history.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "engine/history/store.h"

enum {
	CHECK_BYTES_MAX = 64 << 20, /* larger ones take too long to check at a start */
	SETTLE_AFTER_S = 2,	    /* without a write */
	TICK_COUNTED = 512,
	TICK_INDEXED = 128,
	TICK_LISTED = 64,
	CLOSE_STEPS =
		64, /* of files that are deleted: less than a second; the next process does the rest */
};

static int history_open_dir(struct history *h, struct error *err)
{
	struct stat st;

	if (mkdir(h->options.dir, 0700) < 0 && errno != EEXIST)
		return error_set(err, ERROR_STORAGE, errno, "%s cannot be made: %s", h->options.dir,
				 strerror(errno));
	h->dir_fd = open(h->options.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (h->dir_fd < 0 || fstat(h->dir_fd, &st) < 0)
		return error_set(err, ERROR_STORAGE, errno, "%s cannot be opened: %s",
				 h->options.dir, strerror(errno));
	/* Other users must not read the programs' inputs and outputs. */
	if ((st.st_mode & 077) != 0 && fchmod(h->dir_fd, 0700) < 0)
		return error_set(
			err, ERROR_STORAGE, errno,
			"%s can be read by others: chmod 700 it, or name another directory",
			h->options.dir);
	return 0;
}

static int history_lock(struct history *h, struct error *err)
{
	h->lock_fd = openat(h->dir_fd, "history.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			    0600);
	if (h->lock_fd >= 0 && flock(h->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return error_set(err, ERROR_STORAGE, EBUSY,
				 "another daemon uses %s: stop it, or name another directory",
				 h->options.dir);
	return error_set(err, ERROR_STORAGE, errno, "%s cannot be locked: %s", h->options.dir,
			 strerror(errno));
}

/* Born with its mode: SQLite would make it readable by others and the log like it. */
static int history_make_database(struct history *h, struct error *err)
{
	_cleanup_close_ int fd = openat(h->dir_fd, HISTORY_DATABASE,
					O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return error_set(err, ERROR_STORAGE, errno, "%s cannot be opened: %s", h->database,
				 strerror(errno));
	return 0;
}

static int64_t history_size_of(const struct history *h, const char *name)
{
	struct stat st;

	return fstatat(h->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_size;
}

static bool history_is_sound(struct history *h)
{
	sqlite3_stmt *s = NULL;
	bool sound = false;

	if (!unsound_is_set(h) &&
	    (h->health.clean || history_size_of(h, HISTORY_DATABASE) > CHECK_BYTES_MAX))
		return true;
	if (sqlite3_prepare_v2(h->db, "PRAGMA quick_check(1)", -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		sound = strcmp((const char *)sqlite3_column_text(s, 0), "ok") == 0;
	(void)sqlite3_finalize(s);
	return sound;
}

static int history_open_database(struct history *h, struct error *err)
{
	int r = store_connect(h, err);

	if (r >= 0 && !history_is_sound(h)) {
		unsound_set(h);
		r = -EIO;
	}
	if (r >= 0)
		r = schema_migrate(h, err);
	if (r >= 0)
		r = store_say(err, schema_load(h));
	if (r >= 0)
		unsound_clear(h);
	return r;
}

/* The old database is kept, for `atoll history repair`. */
static int history_replace_database(struct history *h, struct error *err)
{
	int r;

	store_disconnect(h);
	r = aside_put(h);
	if (r < 0)
		return store_say(err, r);
	unsound_clear(h);
	h->health.degraded = 0;
	h->last_at = h->burst_at = h->last_n = 0;
	h->marks = (struct marks){ 0 };
	r = history_make_database(h, err);
	return r < 0 ? r : history_open_database(h, err);
}

static int history_recover(struct history *h, struct error *err)
{
	int r = recover_running(h);

	if (r == -ENOSPC && disk_reserve_spend(h))
		r = recover_running(h);
	/* Without room the history can still be read; results follow when there is some. */
	h->recovery_waits = store_is_trouble(r);
	return h->recovery_waits ? 0 : store_say(err, r);
}

static int history_open_all(struct history *h, struct error *err)
{
	char aside[ASIDE_NAME];
	struct timespec now;
	int r = history_open_dir(h, err);

	if (r >= 0)
		r = history_lock(h, err);
	if (r < 0)
		return r;
	disk_reserve_measure(h);
	h->health.clean = history_size_of(h, HISTORY_LOG) == 0 && history_size_of(h, ARRIVALS) == 0;
	h->files.sweep = h->health.clean ? SWEEP_END : 0;
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	h->files.opened_ns = now.tv_sec * NS_PER_SEC + now.tv_nsec;
	r = history_make_database(h, err);
	if (r >= 0)
		r = files_open(h, err);
	if (r >= 0) {
		r = history_open_database(h, err);
		if (r < 0 && h->damaged)
			r = history_replace_database(h, err);
	}
	if (r < 0)
		return r;
	/* Outputs whose rows lie in a database that was put aside are no orphans: it may be repaired yet. */
	if (aside_oldest(h, aside))
		h->files.sweep = SWEEP_END;
	disk_reserve_open(h);
	r = arrivals_open(h, err);
	return r < 0 ? r : history_recover(h, err);
}

int history_open(const struct history_options *options, struct history **ret, struct error *err)
{
	_cleanup_(history_cleanup) struct history *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return store_say(err, -ENOMEM);
	h->dir_fd = h->lock_fd = h->files.outputs_fd = h->files.fd = h->reserve.fd = -EBADF;
	h->arrivals.fd = -EBADF;
	h->options = *options;
	(void)snprintf(h->node, sizeof(h->node), "%s", options->node ? options->node : "");
	h->options.node = NULL;
	if (asprintf(&h->database, "%s/" HISTORY_DATABASE, options->dir) < 0) {
		h->database = NULL;
		return store_say(err, -ENOMEM);
	}
	r = history_open_all(h, err);
	if (r < 0)
		return r;
	h->options.dir = NULL;
	*ret = TAKE_PTR(h);
	return 0;
}

struct history *history_close(struct history *h)
{
	if (!h)
		return NULL;
	if (h->db && !h->group)
		(void)!arrivals_settle(h);
	/* A last checkpoint removes the log: that is how the next open knows. Then nothing must be missing. */
	if (h->db && h->unsettled && !h->health.degraded && !h->group)
		(void)store_settle(h);
	store_disconnect(h);
	arrivals_close(h);
	for (int i = 0; i < CLOSE_STEPS && h->files.fd >= 0 && files_empty_gone(h); i++)
		;
	(void)fd_close(h->files.outputs_fd);
	(void)fd_close(h->files.fd);
	(void)fd_close(h->reserve.fd);
	(void)fd_close(h->lock_fd);
	(void)fd_close(h->dir_fd);
	free(h->database);
	free(h);
	return NULL;
}

struct history_health history_health(const struct history *h)
{
	struct history_health health = h->health;

	health.rows = h->marks.rows;
	health.bytes = h->marks.bytes;
	health.unsound = h->damaged;
	health.backlog = h->last_n - h->marks.indexed + (int64_t)arrivals_waiting(h);
	return health;
}

/* One step of the later work, in this order. 1: there is more. */
static int history_step(struct history *h, int step)
{
	const bool arriving = arrivals_waiting(h) > 0;

	switch (step) {
	case 0:
		return arrivals_list(h, TICK_LISTED);
	/* Few at a time cost as much as many: not while more are about to come. */
	case 1:
		return arriving && h->last_n - h->marks.counted < TICK_COUNTED
			       ? 0
			       : indexer_count(h, TICK_COUNTED);
	case 2:
		return arriving && h->last_n - h->marks.indexed < TICK_INDEXED
			       ? 0
			       : indexer_index(h, TICK_INDEXED);
	case 3:
		return retain_some(h);
	case 4:
		return retain_tallies(h);
	/* The files of an arrival have no row yet. */
	case 5:
		return arriving ? 0 : files_sweep(h);
	default:
		if (h->unsettled && clock_now_ns() - h->written_ns >= SETTLE_AFTER_S * NS_PER_SEC)
			return store_settle(h);
		return h->wal_pages >= h->reserve.log_pages ? store_checkpoint(h) : 0;
	}
}

bool history_tick(struct history *h)
{
	enum { STEPS = 7 };
	bool more = false;

	if (h->group)
		return false;
	more = files_empty_gone(h);
	if (h->health.degraded)
		disk_reserve_probe(h);
	/* Not before all has gone that was to make room. */
	if (h->health.degraded == -ENOSPC && !more)
		more = retain_full(h) > 0;
	if (!h->health.degraded && h->recovery_waits)
		(void)history_recover(h, NULL);
	for (int i = 0; i < STEPS && !h->health.degraded; i++)
		more |= history_step(h, i) > 0;
	return more;
}
