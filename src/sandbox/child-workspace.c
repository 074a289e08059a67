/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child's side of a workspace (layers.h): makes the lower layer, the directories of the upper one, and the
 * overlay of both, or asks the mounter to mount it. Every path is relative to the root that is being built,
 * which is the working directory.
 */
#include "sandbox/child.h"

#include "base/fd.h"
#include "sys/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#define SPACE "../scratch/space"
#define OVERLAY_DIRS                                                                               \
	"lowerdir=../lower,upperdir=" SPACE "/upper,workdir=" SPACE                                \
	"/work,index=off,metacopy=off,"                                                            \
	"redirect_dir=nofollow,xino=off,uuid=off"

int child_mount_layers(const char *target, bool trusted)
{
	return sys_mount(&(struct mount_request){ .source = "overlay",
						  .target = target,
						  .type = "overlay",
						  .flags = MS_NOSUID | MS_NODEV,
						  .data = trusted ? OVERLAY_DIRS
								  : "userxattr," OVERLAY_DIRS });
}

/* Without privilege: the directory exists already, and its path leads to it here as well. */
static int bind_workspace(const struct child *c, const char *name)
{
	const struct workspace_place *place = workspace_find(c->host->workspaces, name);
	int tree, fd;

	if (!place)
		return -ENOENT;
	fd = sys_open(place->path, O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0 && !place->name) {
		int below = sys_open_beneath(fd, name, O_RDONLY | O_DIRECTORY);

		(void)close(fd);
		fd = below;
	}
	if (fd < 0)
		return fd;
	tree = sys_bind_detached(fd, -EBADF);
	(void)close(fd);
	return tree;
}

static int make_upper(struct child *c)
{
	static const char *const dirs[] = { SPACE, SPACE "/work", SPACE "/upper" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
		r = sys_mkdir(dirs[i], 0755);
	if (r < 0)
		return r;
	c->upper_fd = sys_open(SPACE "/upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return c->upper_fd < 0 ? c->upper_fd : 0;
}

/* Sends the target to the mounter, and waits for its answer. */
static int ask_mounter(int fd, const char *target)
{
	int32_t answer = 0;

	if (send(fd, target, strlen(target) + 1, MSG_NOSIGNAL) < 0)
		return -errno;
	if (recv(fd, &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer))
		return -EPIPE;
	return answer;
}

int child_do_workspace(struct child *c, const struct op *op)
{
	const char *target = op_b(c->plan, op) + 1;
	int fds[2] = { -EBADF, -EBADF };
	size_t n_fds = ARRAY_SIZE(fds);
	int r = sys_mkdir(target, 0755);

	if (r == 0 || r == -EEXIST)
		r = child_wait(c, COMMAND_WORKSPACE, fds, &n_fds);
	if (r < 0)
		return r;
	if (n_fds == 0)
		fds[0] = bind_workspace(c, op_a(c->plan, op));
	r = fds[0] < 0 ? fds[0] : sys_move_mount(fds[0], "../lower");
	if (r == 0)
		r = make_upper(c);
	if (r == 0)
		r = n_fds == 2 ? ask_mounter(fds[1], target) : child_mount_layers(target, false);
	(void)fd_close(fds[0]);
	(void)fd_close(fds[1]);
	return r;
}
