/* SPDX-License-Identifier: Apache-2.0 */
/* For unit tests of programs that pass descriptors on. */
#pragma once

#include "base/macro.h"

#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Makes the kernel refuse (-ETOOMANYREFS) to pass on descriptors of this process, and open others: it does so for a process without
 * capabilities when more descriptors of its user than RLIMIT_NOFILE are on their way. The test must have sent one that was not received.
 */
static inline void refuse_descriptors(bool refuse)
{
	static struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3], none[ARRAY_SIZE(caps)];
	static struct rlimit files;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct rlimit limit;

	if (refuse) {
		assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
		assert_int_equal(syscall(SYS_capget, &header, caps), 0);
		memcpy(none, caps, sizeof(none));
		for (size_t i = 0; i < ARRAY_SIZE(none); i++)
			none[i].effective = 0;
	}
	limit = (struct rlimit){ refuse ? 0 : files.rlim_cur, files.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(syscall(SYS_capset, &header, refuse ? none : caps), 0);
}
