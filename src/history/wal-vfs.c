/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See wal-vfs.h. SQLite writes each page of a commit with two pwrite()s, its frame's header and the page, some
 * fifteen calls for one of our transactions; they were two thirds of its cost. Here writes to the log that follow
 * one another are put together and written when the commit's last frame is complete, which its header announces
 * (bytes 4 … 7: the size of the database, zero in all other frames). That write's failure is the failure of the
 * commit's last write as SQLite sees it, so what happens on a full disk is what SQLite does anyway.
 *
 * Anything else that touches the log writes out first what is held back. Files other than the log are untouched.
 */
#include "history/wal-vfs.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

#include "base/macro.h"

#define NAME "atoll"

enum {
	HELD_MAX = 120 << 10, /* SQLite's layer below writes less than 128 KiB at once */
	FRAME_HEADER = 24,
};

struct log_file {
	sqlite3_file base;
	sqlite3_file *real; /* behind this struct, in SQLite's memory */
	char *held;	    /* HELD_MAX bytes */
	int len;
	sqlite3_int64 at; /* where the first of them belongs */
	bool last;	  /* the page that follows completes a commit */
};

static struct log_file *log_of(sqlite3_file *f)
{
	return (struct log_file *)f;
}

static int flush_frames(struct log_file *l)
{
	int len = l->len;

	l->len = 0;
	l->last = false;
	return len == 0 ? SQLITE_OK : l->real->pMethods->xWrite(l->real, l->held, len, l->at);
}

static int log_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at)
{
	struct log_file *l = log_of(f);
	bool completes = l->last;
	const unsigned char *bytes = data;

	if (l->len > 0 && (at != l->at + l->len || n > HELD_MAX - l->len)) {
		int rc = flush_frames(l);

		if (rc != SQLITE_OK)
			return rc;
	}
	if (n > HELD_MAX)
		return l->real->pMethods->xWrite(l->real, data, n, at);
	if (l->len == 0)
		l->at = at;
	(void)memcpy(l->held + l->len, data, (size_t)n);
	l->len += n;
	l->last = n == FRAME_HEADER && (bytes[4] | bytes[5] | bytes[6] | bytes[7]) != 0;
	return completes ? flush_frames(l) : SQLITE_OK;
}

static int log_close(sqlite3_file *f)
{
	struct log_file *l = log_of(f);
	int rc = flush_frames(l), closed = l->real->pMethods->xClose(l->real);

	free(l->held);
	l->held = NULL;
	return rc != SQLITE_OK ? rc : closed;
}

static int log_read(sqlite3_file *f, void *data, int n, sqlite3_int64 at)
{
	struct log_file *l = log_of(f);
	int rc = flush_frames(l);

	return rc != SQLITE_OK ? rc : l->real->pMethods->xRead(l->real, data, n, at);
}

static int log_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct log_file *l = log_of(f);
	int rc = flush_frames(l);

	return rc != SQLITE_OK ? rc : l->real->pMethods->xTruncate(l->real, size);
}

static int log_sync(sqlite3_file *f, int flags)
{
	struct log_file *l = log_of(f);
	int rc = flush_frames(l);

	return rc != SQLITE_OK ? rc : l->real->pMethods->xSync(l->real, flags);
}

static int log_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	struct log_file *l = log_of(f);
	int rc = flush_frames(l);

	return rc != SQLITE_OK ? rc : l->real->pMethods->xFileSize(l->real, ret);
}

static int log_lock(sqlite3_file *f, int level)
{
	return log_of(f)->real->pMethods->xLock(log_of(f)->real, level);
}

static int log_unlock(sqlite3_file *f, int level)
{
	return log_of(f)->real->pMethods->xUnlock(log_of(f)->real, level);
}

static int log_is_reserved(sqlite3_file *f, int *ret)
{
	return log_of(f)->real->pMethods->xCheckReservedLock(log_of(f)->real, ret);
}

static int log_control(sqlite3_file *f, int op, void *arg)
{
	return log_of(f)->real->pMethods->xFileControl(log_of(f)->real, op, arg);
}

static int log_sector(sqlite3_file *f)
{
	return log_of(f)->real->pMethods->xSectorSize(log_of(f)->real);
}

static int log_abilities(sqlite3_file *f)
{
	return log_of(f)->real->pMethods->xDeviceCharacteristics(log_of(f)->real);
}

static sqlite3_vfs
	*system_vfs; /* SQLite's own; written once, before the first database is opened */

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	static const sqlite3_io_methods methods = {
		.iVersion = 1,
		.xClose = log_close,
		.xRead = log_read,
		.xWrite = log_write,
		.xTruncate = log_truncate,
		.xSync = log_sync,
		.xFileSize = log_size,
		.xLock = log_lock,
		.xUnlock = log_unlock,
		.xCheckReservedLock = log_is_reserved,
		.xFileControl = log_control,
		.xSectorSize = log_sector,
		.xDeviceCharacteristics = log_abilities,
	};
	struct log_file *l = log_of(f);
	int rc;

	(void)vfs;
	if (!(flags & SQLITE_OPEN_WAL))
		return system_vfs->xOpen(system_vfs, name, f, flags, ret_flags);
	*l = (struct log_file){ .real = (sqlite3_file *)(l + 1) };
	l->held = malloc(HELD_MAX);
	if (!l->held)
		return SQLITE_NOMEM;
	rc = system_vfs->xOpen(system_vfs, name, l->real, flags, ret_flags);
	if (rc == SQLITE_OK) {
		l->base.pMethods = &methods;
	} else {
		free(l->held);
		l->held = NULL;
	}
	return rc;
}

const char *wal_vfs(void)
{
	static sqlite3_vfs ours;

	if (system_vfs)
		return NAME;
	sqlite3_vfs *found = sqlite3_vfs_find(NULL);

	if (!found)
		return NULL;
	ours = *found;
	ours.pNext = NULL;
	ours.zName = NAME;
	ours.szOsFile = (int)sizeof(struct log_file) + found->szOsFile;
	ours.xOpen = open_file;
	if (sqlite3_vfs_register(&ours, 0) != SQLITE_OK)
		return NULL;
	system_vfs = found;
	return NAME;
}
