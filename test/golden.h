/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden files for unit tests: what the code makes is compared with a file of the source tree (named by
 * ATOLL_SOURCE_ROOT) that a reviewer reads in a diff. ATOLL_GOLDEN_UPDATE=1 writes it anew.
 */
#pragma once

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"

#include <cmocka.h>

enum { GOLDEN_BYTES_MAX = 1 << 20 };

static inline void check_golden(const char *name, const struct buf *have)
{
	const char *root = getenv("ATOLL_SOURCE_ROOT");
	_cleanup_close_ int fd = -EBADF;
	_cleanup_buf_ struct buf want = { 0 };
	char path[4096];

	buf_init(&want, GOLDEN_BYTES_MAX);
	(void)snprintf(path, sizeof(path), "%s/%s", root ? root : ".", name);
	if (getenv("ATOLL_GOLDEN_UPDATE")) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		assert_true(fd >= 0);
		assert_int_equal(fd_write_all(fd, have->data, have->len), 0);
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("%s: cannot be opened", path);
	assert_int_equal(buf_read_fd(&want, fd), 0);
	if (want.len != have->len || memcmp(want.data, have->data, want.len) != 0)
		fail_msg("%s differs; ATOLL_GOLDEN_UPDATE=1 writes it anew, then read the diff",
			 path);
}
