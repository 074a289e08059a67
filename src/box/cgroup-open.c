/* SPDX-License-Identifier: Apache-2.0 */
/* See cgroup-open.h. Evicted groups are not in the list, so making room never looks at a group twice. */
#include "box/cgroup-open.h"

#include "base/fd.h"

#include <errno.h>

static void unlink_files(struct open_files *files)
{
	struct open_budget *b = files->budget;

	*(files->older ? &files->older->newer : &b->oldest) = files->newer;
	*(files->newer ? &files->newer->older : &b->newest) = files->older;
	files->older = files->newer = NULL;
}

static void link_newest(struct open_files *files)
{
	struct open_budget *b = files->budget;

	files->older = b->newest;
	*(b->newest ? &b->newest->newer : &b->oldest) = files;
	b->newest = files;
	files->evicted = false;
}

static void close_all(struct open_files *files)
{
	for (int place = 0; place < OPEN_FILES_MAX; place++)
		open_files_close(files, place);
}

static void evict(struct open_files *files)
{
	close_all(files);
	unlink_files(files);
	files->evicted = true;
}

void open_files_init(struct open_files *files, struct open_budget *budget)
{
	*files = (struct open_files){ .budget = budget };
	for (int place = 0; place < OPEN_FILES_MAX; place++)
		files->fd[place] = -EBADF;
	link_newest(files);
}

void open_files_renew(struct open_files *files)
{
	if (!files->evicted)
		unlink_files(files);
	link_newest(files);
}

bool open_files_keep(struct open_files *files, int place, int fd)
{
	struct open_budget *b = files->budget;

	/* This group itself may be the oldest. */
	while (!files->evicted && b->n >= b->max && b->oldest != b->newest)
		evict(b->oldest);
	if (files->evicted)
		return false;
	files->fd[place] = fd;
	b->n++;
	return true;
}

void open_files_close(struct open_files *files, int place)
{
	if (files->fd[place] >= 0)
		files->budget->n--;
	files->fd[place] = fd_close(files->fd[place]);
}

void open_files_done(struct open_files *files)
{
	close_all(files);
	if (!files->evicted)
		unlink_files(files);
	files->evicted = true;
}
