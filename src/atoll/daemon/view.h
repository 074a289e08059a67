/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the host that the front sees, and how it is enforced. As root the monitor gives the front a root
 * of these paths (confine_root). The front itself adds Landlock over the same paths and its filter, before it
 * has a thread or has read a byte of a caller.
 */
#pragma once

#include "atoll/daemon/config.h"
#include "base/log.h"
#include "base/sys/host-facts.h"
#include "box/confine/confine.h"

/*
 * State directory, data, runtimes in /usr and the like, files for name resolution and TLS. Borrows c's strings.
 */
void view_list(const struct config *c, struct confine_path ret[CONFINE_PATHS_MAX]);
/* In the front. own_root: the monitor has made a root. Logs what does not hold. */
enum front_kind view_confine(const struct config *c, bool own_root, struct log *log);
