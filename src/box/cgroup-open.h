/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of groups (and of network namespaces, net.c) that are kept open, because opening one costs more than
 * reading it. A broker has a budget of descriptors for that. When it is used up, the group that was made (or
 * reused) longest ago closes all its files: a long run needs few of them, and rarely (its counters at its end;
 * with a limit of CPU time, that counter at every check), and opens each when needed. So a new group always has
 * its files open, however many are alive.
 */
#pragma once

#include <stdbool.h>

enum { OPEN_FILES_MAX = 16 }; /* of one group */

struct open_budget {
	int n, max; /* files; one group may have its files even if max is less */
	struct open_files *oldest, *newest;
};

/* The files of one group; their owner gives each place its meaning. */
struct open_files {
	struct open_budget *budget;
	struct open_files *older, *newer; /* in the list of groups that keep files */
	bool evicted;			  /* keeps none until it is renewed */
	int fd[OPEN_FILES_MAX];		  /* -EBADF: not open */
};

/* The group becomes the newest, with no file open. */
void open_files_init(struct open_files *files, struct open_budget *budget);
/* The group has a new user: it becomes the newest again. */
void open_files_renew(struct open_files *files);
/* Keeps fd in an empty place until it is closed there or evicted. False: the caller must close it. */
bool open_files_keep(struct open_files *files, int place, int fd);
void open_files_close(struct open_files *files, int place);
/* Closes all files and leaves the budget. */
void open_files_done(struct open_files *files);
