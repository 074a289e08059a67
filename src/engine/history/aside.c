/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store.h. Databases that were found damaged. The open puts such a database aside, under a name that says when, and begins a
 * new one; nothing here or elsewhere ever deletes it.
 *
 *   history.db.damaged-<seconds>   beside it -wal, as SQLite names a log, and .repaired once its rows were taken over (repair.c)
 *   unsound                        this process met damage: the next open checks the database, however large it is
 */
#include "engine/history/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define UNSOUND "unsound"

int aside_put(struct history *h)
{
	int64_t at_s = clock_realtime_ns() / NS_PER_SEC;
	char name[ASIDE_NAME], log[ASIDE_NAME + 8];

	/* A second one of the same second must not take the place of the first. */
	do
		(void)snprintf(name, sizeof(name), ASIDE_PREFIX "%lld", (long long)at_s++);
	while (faccessat(h->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	(void)snprintf(log, sizeof(log), "%s-wal", name);
	/* The log goes first: a new database must not find an old log. */
	if ((renameat(h->dir_fd, HISTORY_LOG, h->dir_fd, log) < 0 && errno != ENOENT) ||
	    renameat(h->dir_fd, HISTORY_DATABASE, h->dir_fd, name) < 0)
		return -errno;
	h->health.replaced = true;
	(void)snprintf(h->health.aside_name, sizeof(h->health.aside_name), "%s", name);
	return 0;
}

bool aside_oldest(struct history *h, char ret[ASIDE_NAME])
{
	int fd = openat(h->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	h->health.aside = 0;
	*ret = '\0';
	if (!dir)
		(void)fd_close(fd);
	while (dir && (entry = readdir(dir))) {
		if (!aside_is_name(entry->d_name) || aside_is_repaired(h->dir_fd, entry->d_name))
			continue;
		h->health.aside++;
		if (!*ret || strverscmp(entry->d_name, ret) < 0)
			(void)snprintf(ret, ASIDE_NAME, "%s", entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return *ret;
}

int aside_repaired(struct history *h, const char *name)
{
	char mark[ASIDE_NAME + 16];
	int fd;

	(void)snprintf(mark, sizeof(mark), "%s" ASIDE_REPAIRED, name);
	fd = openat(h->dir_fd, mark, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	(void)fd_close(fd);
	return 0;
}

void unsound_set(struct history *h)
{
	if (!h->damaged)
		(void)fd_close(openat(h->dir_fd, UNSOUND,
				      O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
	h->damaged = true;
}

bool unsound_is_set(const struct history *h)
{
	return faccessat(h->dir_fd, UNSOUND, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void unsound_clear(struct history *h)
{
	(void)unlinkat(h->dir_fd, UNSOUND, 0);
	h->damaged = false;
}
