/* SPDX-License-Identifier: Apache-2.0 */
/* See dev.h. child_do_dev() runs between clone and exec: no heap, no stdio. */
#include "box/dev.h"

#include "base/fd.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct node {
	const char *host; /* its path on the host; after "/dev/" its name here */
	unsigned major, minor;
};

static const struct node nodes[] = {
	{ "/dev/null", 1, 3 },	 { "/dev/zero", 1, 5 },	   { "/dev/full", 1, 7 },
	{ "/dev/random", 1, 8 }, { "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 },
};

static const struct {
	const char *content, *name;
} links[] = {
	{ "/proc/self/fd", "fd" },	 { "/proc/self/fd/0", "stdin" },
	{ "/proc/self/fd/1", "stdout" }, { "/proc/self/fd/2", "stderr" },
	{ "pts/ptmx", "ptmx" },
};

static const char *node_name(const struct node *node)
{
	return node->host + strlen("/dev/");
}

/* The links, and mount points for what plans mount below. */
static int make_links(int dir_fd)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(links); i++)
		r = sys_symlinkat(links[i].content, dir_fd, links[i].name);
	if (r == 0)
		r = sys_mkdirat(dir_fd, "shm", 0755);
	return r < 0 ? r : sys_mkdirat(dir_fd, "pts", 0755);
}

int dev_tree_make(void)
{
	_cleanup_close_ int fd = sys_tmpfs_detached("64k");
	int r;

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		r = sys_mknodat(fd, node_name(&nodes[i]), S_IFCHR | 0666,
				makedev(nodes[i].major, nodes[i].minor));
		if (r < 0)
			return r;
	}
	r = make_links(fd);
	if (r == 0)
		r = sys_mount_readonly(fd);
	return r < 0 ? r : TAKE_FD(fd);
}

int dev_tree_again(int tree_fd)
{
	return sys_clone_mount(tree_fd, "");
}

/*
 * Binds a node of the host read-only: the node is writable for all users, which would be enough to set its
 * times.
 */
static int bind_node(int dir_fd, const struct node *node)
{
	const char *name = node_name(node);
	int r, fd = sys_openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);

	if (fd < 0)
		return fd;
	(void)close(fd);
	r = sys_mount(
		&(struct mount_request){ .source = node->host, .target = name, .flags = MS_BIND });
	return r < 0 ? r : sys_mount_harden_node(name);
}

static int bind_nodes(void)
{
	/* The working directory is the target, so names are enough. */
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		int r = bind_node(AT_FDCWD, &nodes[i]);

		if (r < 0)
			return r;
	}
	return make_links(AT_FDCWD);
}

int child_do_dev(struct child *c, const struct op *op)
{
	const char *where = op_b(c->plan, op) + 1;
	size_t n_fds = 1;
	int tree, r = sys_mkdir(where, 0755);

	if (r == 0 || r == -EEXIST)
		r = child_wait(c, COMMAND_DEV, &tree, &n_fds);
	if (r < 0)
		return r;
	if (n_fds == 1)
		return sys_move_mount(tree, where);
	r = sys_chdir(where);
	if (r == 0)
		r = bind_nodes();
	return r < 0 ? r : sys_chdir("..");
}
