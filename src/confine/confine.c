/* SPDX-License-Identifier: Apache-2.0 */
/* See confine.h: taking the rights away, in the order in which each step is still possible. */
#include "confine/confine.h"

#include "sys/kernel.h"

#include <sys/prctl.h>
#include <unistd.h>

int confine_enter(enum confine_role role)
{
	struct filter filter;
	int r = confine_build(role, filter_native(), &filter);

	if (r == 0)
		r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
	if (r == 0 && (role != CONFINE_BROKER || geteuid() == 0))
		r = sys_prctl(PR_SET_DUMPABLE, 0, 0);
	if (r == 0 && geteuid() == 0)
		r = sys_keep_caps(confine_caps(role));
	return r < 0 ? r : sys_seccomp_install(filter.insns, filter.len);
}
