/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll history repair` without a daemon: the program atolld, which has SQLite, opens the history of a state directory, takes over
 * what can be read of damaged databases, and ends. The history's lock keeps it and daemons apart. As root it runs as the user that
 * owns the history.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* atolld's argument for that; the state directory follows. */
#define OFFLINE_REPAIR "repair"

/* state_dir NULL: that of the settings. *ret: history_repair_report() as text; to be initialised. */
int offline_repair(const char *state_dir, struct buf *ret, struct error *err) _must_check_;
/* How many damaged databases of the settings' state directory were put aside and not repaired, as far as this user may see it. */
int64_t offline_repair_wanted(void);

/* atolld's part: an exit code. Prints the report, or the sentence that says why there is none. */
int front_repair(const char *state_dir);
