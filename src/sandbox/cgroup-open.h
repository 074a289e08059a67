/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of groups (and of network namespaces, net.c) that are kept open, because opening one costs more than reading it: a
 * broker has so many descriptors for that. When they are used up, the group that was made (or taken up again) longest ago
 * gives all of its own back: what runs that long needs few of them, and rarely (its counters at its end; where it has a limit
 * of CPU time, that counter at every look), and opens each for that once. So whatever is new has its files open, however
 * many are alive.
 */
#pragma once

#include <stdbool.h>

enum { OPEN_FILES_MAX = 16 }; /* of one group */

struct open_budget {
	int n, max; /* files; one group may have its files even where max is less */
	struct open_files *oldest, *newest;
};

/* The files of one group; what each place is for is its owner's business. */
struct open_files {
	struct open_budget *budget;
	struct open_files *older, *newer; /* among those that may keep files */
	bool evicted;			  /* it may keep none until it is renewed */
	int fd[OPEN_FILES_MAX];		  /* -EBADF: not open */
};

/* The newest of all, with no file open. */
void open_files_init(struct open_files *files, struct open_budget *budget);
/* As good as new: whoever has the group now has only begun. */
void open_files_renew(struct open_files *files);
/* Keeps fd in an empty place until it is closed there or evicted. False: it stays the caller's to close. */
bool open_files_keep(struct open_files *files, int place, int fd);
void open_files_close(struct open_files *files, int place);
/* Closes all and leaves the budget. */
void open_files_done(struct open_files *files);
