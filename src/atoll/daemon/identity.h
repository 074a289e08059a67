/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user that the front runs as: the monitor's own, or, when the monitor is root, a user of its own without
 * capabilities. What that user cannot reach is found before anything is started or made, and the message names
 * the obstacle.
 */
#pragma once

#include "atoll/daemon/config.h"

#include <sys/types.h>

/*
 * Used if there is no user `atoll`: between the ids of systemd's dynamic users and the account nobody, far
 * below the ids of sandboxes.
 */
enum { FRONT_UID = 65520 };

struct identity {
	uid_t uid;
	gid_t gid;
};
int identity_find(const struct config *c, struct identity *ret, struct error *err) _must_check_;

/* This process becomes that user for good and keeps nothing of root. Only system calls. */
int identity_become(const struct identity *id) _must_check_;

/* Whether the user can read Atoll's own files; a source tree below /root, for example, it cannot. */
int identity_check_data(const struct identity *id, const char *data_dir,
			struct error *err) _must_check_;
/* Whether the user can pass every existing directory that leads to the state directory. */
int identity_check_state(const struct identity *id, const char *state_dir,
			 struct error *err) _must_check_;
