/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock for Atoll's own processes: see confine_files(). */
#include "box/confine/confine.h"

#include "base/fd.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

/* Rights that apply to a file; the others need a directory. */
static const uint64_t of_files = LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE |
				 LL_IOCTL_DEV;

static uint64_t rights_of(const struct confine_path *path)
{
	const uint64_t read = LL_READ_FILE | LL_READ_DIR;
	const uint64_t write = LL_WRITE_FILE | LL_TRUNCATE | LL_REMOVE_FILE | LL_REMOVE_DIR |
			       LL_MAKE_REG | LL_MAKE_DIR | LL_MAKE_SYM | LL_REFER;

	return path->access == CONFINE_STORE	? read | write
	       : path->access == CONFINE_DEVICE ? LL_READ_FILE | LL_WRITE_FILE
						: read;
}

/* A path that does not exist gets no rule. */
static int allow(int ruleset_fd, const struct confine_path *path, uint64_t known)
{
	_cleanup_close_ int fd = sys_open(path->path, O_PATH, 0);
	uint64_t rights = rights_of(path) & known;
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT || fd == -EACCES || fd == -ENOTDIR ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rights &= of_files;
	return sys_landlock_add_path(ruleset_fd, fd, rights);
}

int confine_files(const struct confine_path *paths)
{
	const int abi = sys_landlock_abi();
	struct landlock_attr attr = { .fs = sys_landlock_rights(abi) };
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (abi == 0)
		return -EOPNOTSUPP;
	if (abi >= 6)
		attr.scoped = LL_SCOPE_ABSTRACT_UNIX | LL_SCOPE_SIGNAL;
	fd = sys_landlock_create(&attr);
	if (fd == -EINVAL &&
	    attr.scoped) { /* some vendors' kernels report the ABI but lack the scopes */
		attr.scoped = 0;
		fd = sys_landlock_create(&attr);
	}
	if (fd < 0)
		return fd;
	for (; paths && paths->path; paths++) {
		r = allow(fd, paths, attr.fs);
		if (r < 0)
			return r;
	}
	r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
	return r < 0 ? r : sys_landlock_restrict(fd);
}
