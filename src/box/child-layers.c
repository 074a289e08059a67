/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child's side of layers.h: makes the lower directory and those of the upper layer, and mounts the overlay of
 * both, or asks the mounter to mount it. Every path is relative to the root that is being built, which is the working
 * directory.
 */
#include "box/child.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "base/sys/mount-table.h"
#include "box/text.h"
#include "spec/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* S/scratch/layer<number><below> */
static void text_add_place(struct text *t, uint32_t number, const char *below)
{
	text_add(t, "../scratch/layer");
	text_add_number(t, number, 10);
	text_add(t, below);
}

int child_mount_overlay(const struct overlay *overlay, bool trusted)
{
	struct text options = { 0 };

	text_add(&options, trusted ? "" : "userxattr,");
	text_add(&options,
		 overlay->guarded ? "lowerdir=../guard,upperdir=" : "lowerdir=../lower,upperdir=");
	text_add_place(&options, overlay->number, "/upper,workdir=");
	text_add_place(&options, overlay->number, "/work,");
	text_add(&options, "index=off,metacopy=off,redirect_dir=nofollow,xino=off,uuid=off");
	return sys_mount(&(struct mount_request){ .source = "overlay",
						  .target = overlay->target,
						  .type = "overlay",
						  .flags = MS_NOSUID | MS_NODEV,
						  .data = options.data });
}

/* Without privilege: the directory exists already, and its path leads to it here as well. */
static int bind_workspace(const struct child *c, const char *name)
{
	const struct workspace_place *place = workspace_find(c->host->workspaces, name);
	int tree, fd;

	if (!place)
		return -ENOENT;
	fd = name[0] == '/' ? sys_open_exact(name, O_RDONLY | O_DIRECTORY)
			    : sys_open(place->path, O_RDONLY | O_DIRECTORY, 0);
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

/* The directories of the next layer. */
static int make_overlay(struct child *c, const char *target, struct overlay *ret)
{
	static const char *const dirs[] = { "", "/work", "/upper" };
	int r = 0;

	*ret = (struct overlay){ .number = c->layers.n++ };
	strncpy(ret->target, target, sizeof(ret->target) - 1);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++) {
		struct text path = { 0 };

		text_add_place(&path, ret->number, dirs[i]);
		r = sys_mkdir(path.data, 0755);
	}
	return r;
}

static int ask_mounter(const struct child *c, const struct overlay *overlay, int source_fd)
{
	int32_t answer = 0;
	int r = sys_send_record(c->layers.mounter_fd, overlay, sizeof(*overlay), &source_fd,
				source_fd >= 0);

	if (r < 0)
		return r;
	if (recv(c->layers.mounter_fd, &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer))
		return -EPIPE;
	return answer;
}

int child_show_writable(struct child *c, const char *source, const char *where)
{
	struct overlay overlay;
	/* Opened here, with the rights of the sandbox's user: the mounter's would lead through any directory. */
	_cleanup_close_ int fd = sys_open(source, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = fd < 0 ? fd : make_overlay(c, where, &overlay);

	if (r < 0)
		return r;
	overlay.guarded = true;
	r = ask_mounter(c, &overlay, fd);
	/* An overlay whose work directory fails is mounted read-only, without an error. */
	return r == 0 && access(where, W_OK) < 0 && errno == EROFS ? -EROFS : r;
}

/* Lays an overlay over a detached mount. If there can be none, the mount stays at S/shown. */
static int show_tree(struct child *c, int tree, const char *where, bool writable)
{
	static const char place[] = "../shown";
	int r = sys_move_mount(tree, place);

	if (r == 0)
		r = writable ? child_show_writable(c, place, where)
			     : child_mount_lower(c, place, where);
	return r < 0 ? r : sys_umount_detach(place);
}

/*
 * A directory that a caller named: links in its path could lead out of what the policy permits. What was opened is mounted at a place of
 * its own, which the overlay then has as its lower layer. Mounts below the directory are not shown; as a mount of this namespace hides
 * them, the kernel refuses the clone (EINVAL). There is no bind mount instead: it would lead to sockets that the host's programs listen on.
 */
int child_show_exact(struct child *c, const char *source, const char *where)
{
	_cleanup_close_ int fd = sys_open_exact(source, O_PATH | O_DIRECTORY);
	_cleanup_close_ int tree = fd < 0 ? fd : sys_bind_detached(fd, -EBADF);
	int r = tree < 0 ? tree : child_make_dir(c, where, 0755);

	if (r < 0)
		return r;
	return c->command.overlay ? show_tree(c, tree, where, false) : -EOPNOTSUPP;
}

/* A detached mount of a directory without those below it: the kernel makes one unless they hide something, and the broker has sent that. */
static int bare_tree(struct child *c, int dir_fd)
{
	int tree = sys_bind_detached(dir_fd, -EBADF);
	struct stat st, other;

	if (tree != -EINVAL || fstat(dir_fd, &st) < 0)
		return tree;
	for (size_t i = 0; i < c->layers.n_bare; i++)
		if (c->layers.bare_fds[i] >= 0 && fstat(c->layers.bare_fds[i], &other) == 0 &&
		    st.st_dev == other.st_dev && st.st_ino == other.st_ino)
			return TAKE_FD(c->layers.bare_fds[i]);
	return -ENOENT;
}

struct laying {
	struct child *c;
	const char *source, *where;
};

static int bind_readonly(int tree, const char *where)
{
	int r = sys_mount_readonly(tree);

	return r < 0 ? r : sys_move_mount(tree, where);
}

/* What a path leads to that another mount hides is no part; neither is what this user, and so the program, cannot reach. */
static bool is_out_of_reach(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EACCES;
}

static int show_part(void *data, const char *point)
{
	const struct laying *p = data;
	_cleanup_close_ int fd = sys_open_exact(point, O_PATH), tree = -EBADF, there = -EBADF;
	struct text where = { 0 };
	struct stat st;
	int r;

	text_add(&where, p->where);
	text_add(&where, point + strlen(p->source));
	if (where.overflow)
		return -ENAMETOOLONG;
	there = fd < 0 ? fd : sys_open_exact(where.data, O_PATH);
	if (there < 0)
		return is_out_of_reach(there) ? 0 : there;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		tree = bare_tree(p->c, fd);
		r = tree < 0 ? tree : show_tree(p->c, tree, where.data, false);
		if (r != -EINVAL && r != -ENODEV)
			return r;
		/* Its file system cannot be a layer. */
		p->c->lock.missing |= 1U << LAYER_OVERLAY;
		return bind_readonly(tree, where.data);
	}
	if (!S_ISREG(st.st_mode)) {
		/* A device or a socket must not be shown, nor what it hides. */
		(void)close(fd);
		fd = sys_open("../nothing", O_PATH, 0);
	}
	tree = fd < 0 ? fd : sys_bind_detached(fd, -EBADF);
	return tree < 0 ? tree : bind_readonly(tree, where.data);
}

int child_show_parts(struct child *c, const char *source, const char *where, bool writable)
{
	struct laying laying = { c, source, where };
	_cleanup_close_ int fd = sys_open(source, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	_cleanup_close_ int tree = fd < 0 ? fd : bare_tree(c, fd), table = -EBADF;
	int r = tree < 0 ? tree : show_tree(c, tree, where, writable);

	if (r < 0)
		return r;
	table = sys_open(MOUNT_TABLE, O_RDONLY, 0);
	/* The kernel lists a mount behind the one that it is on. */
	return table < 0 ? table : mounts_below(table, source, show_part, &laying);
}

static int open_upper(struct child *c, const struct overlay *overlay)
{
	struct text path = { 0 };

	text_add_place(&path, overlay->number, "/upper");
	c->layers.upper_fd = sys_open(path.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return c->layers.upper_fd < 0 ? c->layers.upper_fd : 0;
}

int child_do_workspace(struct child *c, const struct op *op)
{
	const char *target = op_b(c->plan, op) + 1;
	_cleanup_close_ int fd = -EBADF;
	struct overlay overlay;
	size_t n_fds = 1;
	int r = sys_mkdir(target, 0755);

	if (r == 0 || r == -EEXIST)
		r = child_wait(c, COMMAND_WORKSPACE, &fd, &n_fds);
	if (r < 0)
		return r;
	if (n_fds == 0)
		fd = bind_workspace(c, op_a(c->plan, op));
	r = fd < 0 ? fd : sys_move_mount(fd, "../lower");
	if (r == 0)
		r = make_overlay(c, target, &overlay);
	if (r == 0)
		r = open_upper(c, &overlay);
	if (r < 0)
		return r;
	return c->layers.mounter_fd >= 0 ? ask_mounter(c, &overlay, -EBADF)
					 : child_mount_overlay(&overlay, false);
}
