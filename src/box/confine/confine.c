/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See confine.h: gives rights up in an order in which each step is still possible. For a root that holds some paths of the host and
 * nothing else, first each path is copied as a detached mount. Then an empty file system is built from the copies, and it becomes the
 * root. A path has the same name inside as on the host, because settings and databases name it so.
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
#include <sys/prctl.h>
#include <sys/resource.h>
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
static int piece_make_place(char *target, bool is_dir)
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
	r = piece_make_place(target, p->is_dir);
	if (r == 0)
		r = sys_move_mount(p->fd, target);
	if (r < 0)
		return r;
	return p->path->access == CONFINE_STORE	   ? sys_mount_harden_store(target)
	       : p->path->access == CONFINE_DEVICE ? sys_mount_harden_node(target)
						   : sys_mount_harden_tree(target);
}

/* A path below another one comes after it. */
static void pieces_sort(struct root_piece *pieces, size_t n)
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

static int pieces_put(struct root_piece *pieces, size_t n)
{
	_cleanup_close_ int root_fd = sys_tmpfs_detached("1m");
	int r = root_fd < 0 ? root_fd : sys_move_mount(root_fd, STAGE);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = piece_put(&pieces[i]);
	if (r == 0)
		r = sys_mount_readonly(root_fd);
	if (r == 0)
		r = sys_chdir(STAGE);
	if (r == 0)
		r = sys_pivot_root(".", ".");
	if (r == 0)
		r = sys_umount_detach(".");
	return r < 0 ? r : sys_chdir("/");
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
	pieces_sort(pieces, n);
	if (r == 0)
		r = pieces_put(pieces, n);
	while (n > 0)
		(void)fd_close(pieces[--n].fd);
	return r;
}

/* Rights that apply to a file; the others need a directory. */
static const uint64_t file_rights = LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE |
				    LL_IOCTL_DEV;

/* A path that does not exist gets no rule. */
static int files_allow(int ruleset_fd, const struct confine_path *path, uint64_t known)
{
	const uint64_t read = LL_READ_FILE | LL_READ_DIR;
	const uint64_t write = LL_WRITE_FILE | LL_TRUNCATE | LL_REMOVE_FILE | LL_REMOVE_DIR |
			       LL_MAKE_REG | LL_MAKE_DIR | LL_MAKE_SYM | LL_REFER;
	_cleanup_close_ int fd = sys_open(path->path, O_PATH, 0);
	uint64_t rights = path->access == CONFINE_STORE	   ? read | write
			  : path->access == CONFINE_DEVICE ? LL_READ_FILE | LL_WRITE_FILE
							   : read;
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT || fd == -EACCES || fd == -ENOTDIR ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	rights &= known;
	if (!S_ISDIR(st.st_mode))
		rights &= file_rights;
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
		r = files_allow(fd, paths, attr.fs);
		if (r < 0)
			return r;
	}
	r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
	return r < 0 ? r : sys_landlock_restrict(fd);
}

int confine_memory(uint64_t bytes)
{
	return SANITIZED ? 0 : sys_setrlimit(RLIMIT_DATA, bytes);
}

int confine_enter(enum confine_role role)
{
	struct filter filter;
	int r = confine_build(role, filter_native(), &filter);

	/* The archive process is forked by the unpacker, which has no rights left to give up, and whose filter kills these calls. */
	if (r == 0 && role != CONFINE_ARCHIVE) {
		const bool root = geteuid() == 0;

		r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
		if (r == 0 && (role != CONFINE_BROKER || root))
			r = sys_prctl(PR_SET_DUMPABLE, 0, 0);
		if (r == 0 && root)
			r = sys_keep_caps(confine_caps(role));
	}
	return r < 0 ? r : sys_seccomp_install(filter.insns, filter.len);
}
