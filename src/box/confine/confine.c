/* SPDX-License-Identifier: Apache-2.0 */
/* See confine.h: gives rights up in an order in which each step is still possible. */
#include "box/confine/confine.h"

#include "base/sys/kernel.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int confine_memory(uint64_t bytes)
{
	return SANITIZED ? 0 : sys_setrlimit(RLIMIT_DATA, bytes);
}

static int drop_rights(enum confine_role role)
{
	const bool root = geteuid() == 0;
	int r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);

	if (r == 0 && (role != CONFINE_BROKER || root))
		r = sys_prctl(PR_SET_DUMPABLE, 0, 0);
	if (r == 0 && root)
		r = sys_keep_caps(confine_caps(role));
	return r;
}

int confine_enter(enum confine_role role)
{
	struct filter filter;
	int r = confine_build(role, filter_native(), &filter);

	/* The archive process is forked by the unpacker, which has no rights left to give up. */
	if (r == 0 && role != CONFINE_ARCHIVE)
		r = drop_rights(role);
	return r < 0 ? r : sys_seccomp_install(filter.insns, filter.len);
}
