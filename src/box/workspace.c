/* SPDX-License-Identifier: Apache-2.0 */
/* See workspace.h. A link in a path is never followed: users who may write above it are not trusted. */
#include "box/workspace.h"

#include "base/fd.h"
#include "base/sys/idmap.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot(struct error *err, const char *name, int r)
{
	if (name[0] == '/')
		return error_set(err, ERROR_INPUT, -r, "mounts: %.300s cannot be opened: %s", name,
				 r == -ENOTDIR || r == -ELOOP
					 ? "a part of its path is a link, or no directory"
					 : strerror(-r));
	return error_set(err, ERROR_STORAGE, -r, "the workspace '%.64s' cannot be opened: %s", name,
			 strerror(-r));
}

/* A new directory gets the owner of its parent. */
static int make_below(int dir_fd, const char *name, mode_t mode)
{
	struct stat st;
	int r = sys_mkdirat(dir_fd, name, mode);

	if (r < 0)
		return r == -EEXIST ? 0 : r;
	if (fstat(dir_fd, &st) < 0)
		return -errno;
	/* Without privilege both belong to this user. */
	if (geteuid() == 0 && fchownat(dir_fd, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

struct workspace_way {
	const char *path;
	size_t len; /* length of the resolved part */
	bool make;  /* create missing directories */
};

/* One step down, never through a link. The last directory is opened for reading. */
static int step_down(int dir_fd, const char *name, const struct workspace_way *way, bool last)
{
	const int flags = (last ? O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW;
	int fd = sys_openat(dir_fd, name, flags, 0), r;

	if (fd != -ENOENT || !way->make)
		return fd;
	r = make_below(dir_fd, name, 0700);
	return r < 0 ? r : sys_openat(dir_fd, name, flags, 0);
}

static int open_way(const struct workspace_way *way)
{
	const bool top = way->len <= 1;
	_cleanup_close_ int fd = sys_open("/", (top ? O_RDONLY : O_PATH) | O_DIRECTORY, 0);
	const char *end = way->path + way->len;

	for (const char *at = way->path + 1; fd >= 0 && at < end;) {
		size_t n = MIN(strcspn(at, "/"), (size_t)(end - at));
		char name[256];
		int next;

		if (n == 0 || n >= sizeof(name))
			return n ? -ENAMETOOLONG : -EINVAL;
		memcpy(name, at, n);
		name[n] = '\0';
		at += n + 1;
		next = step_down(fd, name, way, at >= end);
		(void)fd_close(fd);
		fd = next;
	}
	return TAKE_FD(fd);
}

/* All workspaces of a directory belong to its owner: a directory of another owner was not made by Atoll. */
static int open_named(int root_fd, const char *name)
{
	struct stat root, st;
	int fd, r = make_below(root_fd, name, 0755);

	if (r < 0)
		return r;
	fd = sys_open_beneath(root_fd, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	if (fstat(root_fd, &root) < 0 || fstat(fd, &st) < 0 || root.st_uid != st.st_uid) {
		(void)close(fd);
		return -EPERM;
	}
	return fd;
}

int workspace_open(const struct workspace_place *places, const char *name, struct error *err)
{
	const struct workspace_place *place = workspace_find(places, name);
	_cleanup_close_ int fd = -EBADF;
	const char *path;
	int r;

	if (!place && name[0] == '/')
		return error_set(err, ERROR_POLICY, EPERM,
				 "mounts: this daemon lets programs write to no '%.300s'; its "
				 "setting `mounts` must list it, as DIR:rw",
				 name);
	if (!place)
		return error_set(err, ERROR_INPUT, ENOENT,
				 "workspace: there is no place for workspaces here; leave it out");
	path = workspace_path(place, name);
	fd = open_way(&(struct workspace_way){ path, strlen(path), name[0] != '/' });
	if (fd < 0)
		return cannot(err, name, fd);
	if (place->name)
		return TAKE_FD(fd);
	r = open_named(fd, name);
	return r < 0 ? cannot(err, name, r) : r;
}

int workspace_open_parent(const struct workspace_place *places, const char *name, bool make,
			  const char **ret_base)
{
	const struct workspace_place *place = workspace_find(places, name);
	struct workspace_way way;

	if (!place)
		return -ENOENT;
	way.path = workspace_path(place, name);
	way.len = strlen(way.path);
	way.make = make;
	*ret_base = name;
	if (place->name) {
		const char *slash = strrchr(way.path, '/');

		/* A path with a slash at its end has no last component. */
		if (!slash[1])
			return -EACCES;
		way.len = (size_t)(slash - way.path);
		*ret_base = slash + 1;
	}
	return open_way(&way);
}

int workspace_mount(int dir_fd, uint32_t seen_id, struct error *err)
{
	struct idmap map = { .seen_id = seen_id };
	_cleanup_close_ int users = -EBADF;
	struct stat st;
	int r;

	if (fstat(dir_fd, &st) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "a workspace cannot be looked at: %s",
				 strerror(errno));
	map.stored_uid = st.st_uid;
	map.stored_gid = st.st_gid;
	users = sys_idmap_open(&map);
	r = users < 0 ? users : sys_bind_detached(dir_fd, users);
	if (r == -EINVAL || r == -EOPNOTSUPP)
		return error_set(err, ERROR_STORAGE, -r,
				 "the workspace's file system cannot be shared between users "
				 "(idmapped mounts); keep workspaces and writable mounts on ext4, "
				 "xfs, btrfs or tmpfs");
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "a workspace cannot be mounted: %s",
				 strerror(-r));
	return r;
}
