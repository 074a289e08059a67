/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the front runs as: ourselves, or, when we are root, a user of its own without capabilities. What that user needs and cannot
 * reach is found out before anything is started or made, and said with what is in the way.
 */
#pragma once

#include "daemon/config.h"

#include <sys/types.h>

/*
 * Where there is no user `atoll`: between what systemd gives to dynamic users and nobody's, far below the ids of sandboxes.
 */
enum { FRONT_UID = 65520 };

struct identity {
	uid_t uid;
	gid_t gid;
};
int identity_find(const struct config *c, struct identity *ret, struct error *err) _must_check_;

/* This process becomes it, for good: nothing of root's stays. Only system calls. */
int identity_become(const struct identity *id) _must_check_;

/* Whether it can read Atoll's own files: a source tree below /root, say, it cannot. */
int identity_check_data(const struct identity *id, const char *data_dir,
			struct error *err) _must_check_;
/* Whether every directory that leads to the state directory, as far as it is there, lets it pass. */
int identity_check_state(const struct identity *id, const char *state_dir,
			 struct error *err) _must_check_;
