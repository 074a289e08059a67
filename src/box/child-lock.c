/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps that give rights up for good. Landlock rules are collected as their records come, and enforced
 * together with the filter, after the capabilities are dropped.
 */
#include "box/child.h"

#include "base/sys/kernel.h"
#include "spec/layer.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int child_do_rlimit(struct child *c, const struct op *op)
{
	if (op->value == RLIMIT_NOFILE) {
		c->lock.open_files = (uint64_t)op->value2;
		return 0;
	}
	return sys_setrlimit((int)op->value, (uint64_t)op->value2);
}

int child_limit_files(const struct child *c)
{
	return c->lock.open_files ? sys_setrlimit(RLIMIT_NOFILE, c->lock.open_files) : 0;
}

static uint64_t rights_of_access(int64_t access)
{
	const uint64_t read = LL_EXECUTE | LL_READ_FILE | LL_READ_DIR;
	const uint64_t write = LL_WRITE_FILE | LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_DIR |
			       LL_MAKE_REG | LL_MAKE_SYM | LL_MAKE_SOCK | LL_MAKE_FIFO | LL_REFER |
			       LL_TRUNCATE;
	const uint64_t device = LL_READ_FILE | LL_READ_DIR | LL_WRITE_FILE | LL_TRUNCATE |
				LL_IOCTL_DEV;
	uint64_t rights = 0;

	if (access & ACCESS_READ)
		rights |= read;
	if (access & ACCESS_WRITE)
		rights |= write;
	if (access & ACCESS_DEVICE)
		rights |= device;
	return rights;
}

static int open_ruleset(struct child *c, bool close_tcp)
{
	int abi = (int)c->command.landlock_abi;
	struct landlock_attr attr = { .fs = sys_landlock_rights(abi) };

	if (abi >= 4 && close_tcp)
		attr.net = LL_NET_BIND_TCP | LL_NET_CONNECT_TCP;
	if (abi >= 6)
		attr.scoped = LL_SCOPE_ABSTRACT_UNIX | LL_SCOPE_SIGNAL;
	c->lock.ruleset_fd = sys_landlock_create(&attr);
	if (c->lock.ruleset_fd == -EINVAL && attr.scoped) {
		/* Some vendor kernels report ABI 6 without the scopes. */
		attr.scoped = 0;
		abi = 5;
		c->lock.ruleset_fd = sys_landlock_create(&attr);
	}
	if (c->lock.ruleset_fd < 0)
		return c->lock.ruleset_fd;
	c->lock.landlock_abi = abi;
	return 0;
}

int child_do_landlock(struct child *c, const struct op *op)
{
	const uint64_t file_rights = LL_EXECUTE | LL_READ_FILE | LL_WRITE_FILE | LL_TRUNCATE |
				     LL_IOCTL_DEV;
	uint64_t rights;
	int fd, r;

	if (c->command.landlock_abi == 0) {
		c->lock.missing |= 1U << LAYER_LANDLOCK;
		return 0;
	}
	if (c->lock.ruleset_fd < 0) {
		r = open_ruleset(c, op->value2 != 0);
		if (r < 0)
			return r;
	}
	fd = sys_open(op_b(c->plan, op), O_PATH, 0);
	if (fd == -ENOENT && op->flags & OP_OPTIONAL)
		return 0;
	if (fd < 0)
		return fd;
	rights = rights_of_access(op->value) & sys_landlock_rights(c->lock.landlock_abi);
	r = sys_landlock_add_path(c->lock.ruleset_fd, fd, rights);
	/* A file takes no rights of directories. */
	if (r == -EINVAL)
		r = sys_landlock_add_path(c->lock.ruleset_fd, fd, rights & file_rights);
	(void)close(fd);
	return r;
}

int child_do_require(struct child *c, const struct op *op)
{
	return c->lock.missing & (uint32_t)op->value ? -EOPNOTSUPP : 0;
}

int child_do_seccomp(struct child *c, const struct op *op)
{
	int r = sys_drop_caps();

	return r < 0 ? r : child_confine(c, op);
}

int child_confine(struct child *c, const struct op *op)
{
	/* Compiled before the clone; the profile's number was checked with the plan. */
	const struct filter *filter = &c->host->filters[op->value];
	int r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);

	if (r == 0 && c->lock.ruleset_fd >= 0)
		r = sys_landlock_restrict(c->lock.ruleset_fd);
	if (r < 0)
		return r;
	return sys_seccomp_install(filter->insns, filter->len);
}
