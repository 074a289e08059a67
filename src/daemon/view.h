/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the front sees of the host, and how it is held to that. As root the monitor gives it a root of these paths (confine_root);
 * the front itself adds Landlock over the same paths and its filter, before it has a thread or has read a byte of a caller's.
 */
#pragma once

#include "base/log.h"
#include "confine/confine.h"
#include "daemon/config.h"
#include "spec/host-facts.h"

/* State directory, data, runtimes in /usr and the like, what name resolution and TLS read. Borrows c's strings. */
void view_list(const struct config *c, struct confine_path ret[CONFINE_PATHS_MAX]);
/* In the front. own_root: the monitor has made one. What does not hold is written to the log. */
enum front_kind view_confine(const struct config *c, bool own_root, struct log *log);
