/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A root that holds some paths of the host and nothing else: see confine_root(). First each path is copied as a
 * detached mount. Then an empty file system is built from the copies, and it becomes the root. A path has the
 * same name inside as on the host, because settings and databases name it so.
 */
#include "box/confine/confine.h"

#include "base/fd.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* The new root is built here. The mount hides /proc from this process only, after all paths were copied. */
#define STAGE "/proc"

struct root_piece {
	const struct confine_path *path;
	char link[64]; /* the target of a symbolic link; "": no link */
	int fd;	       /* the mount; negative: the path does not exist */
	bool is_dir;
};

static int piece_take(struct root_piece *p, const struct confine_path *path)
{
	struct stat st;

	*p = (struct root_piece){ .path = path, .fd = -EBADF };
	if (path->as_link && readlink(path->path, p->link, sizeof(p->link) - 1) > 0)
		return 0;
	p->fd = sys_clone_tree(path->path);
	if (p->fd < 0)
		return p->fd == -ENOENT || p->fd == -ENOTDIR ? 0 : p->fd;
	if (fstat(p->fd, &st) < 0)
		return -errno;
	p->is_dir = S_ISDIR(st.st_mode);
	return 0;
}

/*
 * Makes the directories that lead there, and the mount point. They may exist already, in a mount that was
 * attached before.
 */
static int make_place(char *target, bool is_dir)
{
	for (char *slash = strchr(target + strlen(STAGE) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(target, 0755) < 0 && errno != EEXIST && errno != EROFS)
			return -errno;
		*slash = '/';
	}
	if (access(target, F_OK) == 0)
		return 0;
	if (is_dir)
		return mkdir(target, 0755) < 0 ? -errno : 0;
	return mknod(target, S_IFREG | 0644, 0) < 0 ? -errno : 0;
}

static int piece_put(const struct root_piece *p)
{
	char target[PATH_MAX];
	int r;

	if (snprintf(target, sizeof(target), STAGE "%s", p->path->path) >= (int)sizeof(target))
		return -ENAMETOOLONG;
	if (*p->link)
		return sys_symlink(p->link, target);
	if (p->fd < 0)
		return 0;
	r = make_place(target, p->is_dir);
	if (r == 0)
		r = sys_move_mount(p->fd, target);
	if (r < 0)
		return r;
	return p->path->access == CONFINE_STORE	   ? sys_mount_harden_store(target)
	       : p->path->access == CONFINE_DEVICE ? sys_mount_harden_node(target)
						   : sys_mount_harden_tree(target);
}

/* A path below another one comes after it. */
static void sort_pieces(struct root_piece *pieces, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = i;
		     j > 0 && strlen(pieces[j].path->path) < strlen(pieces[j - 1].path->path);
		     j--) {
			struct root_piece swap = pieces[j];

			pieces[j] = pieces[j - 1];
			pieces[j - 1] = swap;
		}
}

static int become_root(void)
{
	int r = sys_pivot_root(".", ".");

	if (r == 0)
		r = sys_umount_detach(".");
	return r < 0 ? r : sys_chdir("/");
}

static int put_together(struct root_piece *pieces, size_t n)
{
	_cleanup_close_ int root_fd = sys_tmpfs_detached("1m");
	int r = root_fd < 0 ? root_fd : sys_move_mount(root_fd, STAGE);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = piece_put(&pieces[i]);
	if (r == 0)
		r = sys_mount_readonly(root_fd);
	if (r == 0)
		r = sys_chdir(STAGE);
	return r < 0 ? r : become_root();
}

int confine_root(const struct confine_path *paths)
{
	const struct mount_request own = { "none", "/", NULL, MS_REC | MS_PRIVATE, NULL };
	struct root_piece pieces[CONFINE_PATHS_MAX];
	size_t n = 0;
	int r = sys_unshare(CLONE_NEWNS);

	if (r == 0)
		r = sys_mount(&own);
	for (; r == 0 && paths->path; paths++)
		r = n == ARRAY_SIZE(pieces) ? -E2BIG : piece_take(&pieces[n++], paths);
	sort_pieces(pieces, n);
	if (r == 0)
		r = put_together(pieces, n);
	while (n > 0)
		(void)fd_close(pieces[--n].fd);
	return r;
}
