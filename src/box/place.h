/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox without namespaces, for hosts where none can be made (SECURITY.md, "The minimal tier"). Its processes are the host's
 * processes, and what bounds them is: a user that no other process has, Landlock, the filter, rlimits, and watching.
 *
 *   place   PLACE_DIR/NUMBER, its directories. Making it reserves the users; it is locked while its broker lives
 *   users   uid_base + 2 * NUMBER is init's, the next one the program's: init can kill the program, not the reverse
 *   init    a subreaper. It kills every process of the program's user by one kill(-1), which no fork can outrun, at the
 *           end of a stage, when it is told to end, and when the broker is gone
 *
 * Needs root with CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_KILL, CAP_SETPCAP and CAP_DAC_OVERRIDE (host_facts.placing).
 */
#pragma once

#include "box/sandbox.h"

bool plan_has_place(const struct plan_view *plan);
/* As sandbox_create(), for a plan with a place. -EBUSY: another sandbox has it. */
int place_create(struct sandbox_host *host, const struct plan_view *plan, struct sandbox **ret,
		 struct error *err) _must_check_;
