/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory and its lock. One daemon uses it at a time: the lock is an flock() on <state>/lock, held
 * by the monitor and its front. A second daemon is refused. A daemon that starts right after a kill -9 waits
 * until the first one's processes have ended.
 *
 *   <state>/       0700, the front's: history, outputs, workspaces
 *   <state>/lock   the monitor's pid
 *   <state>/run/   0711, the monitor's: the broker's socket
 */
#pragma once

#include "base/error.h"
#include "base/log.h"

#include <sys/types.h>

struct state_dir {
	const char *path;
	int state_fd, lock_fd, run_fd; /* -EBADF */
	size_t made;		       /* of state_dir_make_parents() */
};

/* uid and gid: the owner (the front's). */
int state_dir_open(struct state_dir *p, uid_t uid, gid_t gid, struct error *err) _must_check_;
void state_dir_close(struct state_dir *p);

/* After a start that failed: closes it, and removes what state_dir_open() made. */
void state_dir_undo(struct state_dir *p);

/*
 * Creates missing directories of a file's path, with mode 0755. *made is the length of the path of the first that was
 * missing; 0: none was. flag: the one that gives another path, for the message.
 */
int state_dir_make_parents(const char *path, const char *flag, size_t *made,
			   struct error *err) _must_check_;
/* Removes these directories again, as far as they are empty. */
void state_dir_remove_parents(const char *path, size_t made);
