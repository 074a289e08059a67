/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds files. The data directory is trusted (it is part of the installation). It is named explicitly, or found
 * relative to the running program or to libatoll.so, so that build/atoll works in the source tree. The cache directory is in the
 * caller's home: it is opened step by step without following a link at its end, and is used only if no other
 * user can write there.
 */
#include "run/toolchain/data.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static bool has_languages(const char *dir)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/languages", dir) >= (int)sizeof(path))
		return false;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int keep_data_dir(const char *dir, char **ret)
{
	char *copy = strdup(dir);

	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

/* A directory that was named is used or refused, and never silently replaced by another. */
static int use_named(const char *dir, const char *origin, char **ret, struct error *err)
{
	if (!has_languages(dir))
		return error_set(err, ERROR_INPUT, ENOENT,
				 "'%s' (from %s) has no languages/ inside; give the directory "
				 "that holds languages/, policies/ and runners/",
				 dir, origin);
	return keep_data_dir(dir, ret);
}

/* A directory that was found beside the program must belong to the user, to root or to the program's owner. */
static bool is_trusted(const char *dir)
{
	struct stat exe, st;

	if (!has_languages(dir) || stat(dir, &st) < 0 || stat("/proc/self/exe", &exe) < 0)
		return false;
	if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != exe.st_uid)
		return false;
	return !(st.st_mode & S_IWOTH);
}

/*
 * From the directory of the program or library: .. in a source tree; ../share/atoll if installed, or one level up
 * from a directory of libraries that is named after the machine (lib/x86_64-linux-gnu).
 */
static int find_beside(const char *file, char **ret)
{
	static const char *const places[] = { "/..", "/../share/atoll", "/../../share/atoll" };
	const char *slash = strrchr(file, '/');
	char path[PATH_MAX + 32];

	for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
		(void)snprintf(path, sizeof(path), "%.*s%s", (int)(slash - file), file, places[i]);
		if (is_trusted(path))
			return keep_data_dir(path, ret);
	}
	return -ENOENT;
}

/* A program of another author uses libatoll.so: then the data is beside the library. */
static int find_beside_library(char **ret)
{
	Dl_info self;

	if (dladdr(&find_beside_library, &self) == 0 || !self.dli_fname || self.dli_fname[0] != '/')
		return -ENOENT;
	return find_beside(self.dli_fname, ret);
}

int data_find(const char *option, char **ret, struct error *err)
{
	static const char *const system_dirs[] = { "/usr/local/share/atoll", "/usr/share/atoll" };
	const char *named = getenv("ATOLL_DATA_DIR");
	char exe[PATH_MAX];
	ssize_t len;

	if (option)
		return use_named(option, "data_dir", ret, err);
	if (named && *named)
		return use_named(named, "ATOLL_DATA_DIR", ret, err);
	len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (len > 0) {
		exe[len] = '\0';
		if (find_beside(exe, ret) == 0)
			return 0;
	}
	if (find_beside_library(ret) == 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(system_dirs); i++) {
		if (has_languages(system_dirs[i]))
			return keep_data_dir(system_dirs[i], ret);
	}
	return error_set(err, ERROR_INTERNAL, ENOENT,
			 "cannot find Atoll's data directory (languages/, policies/); set "
			 "ATOLL_DATA_DIR to it");
}

int data_read(const char *dir, const char *relative, struct buf *ret, struct error *err)
{
	char path[PATH_MAX];
	_cleanup_close_ int fd = -EBADF;
	struct stat st;
	int r;

	if (snprintf(path, sizeof(path), "%s/%s", dir, relative) >= (int)sizeof(path))
		return error_set(err, ERROR_INPUT, ENAMETOOLONG, "path of '%s' is too long",
				 relative);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return error_set(err, ERROR_INTERNAL, errno, "cannot open '%s': %s", path,
				 strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return error_set(err, ERROR_INTERNAL, EINVAL, "'%s' is not a regular file", path);
	r = buf_read_fd(ret, fd);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot read '%s': %s", path,
				 strerror(-r));
	return 0;
}

/*
 * Opens name below dir_fd and creates it on demand; it must belong to the user and not be writable by others.
 */
static int open_private(int dir_fd, const char *name)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat st;

	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return -EPERM;
	return TAKE_FD(fd);
}

/* The parent may be a link (a home moved to another disk); the last component may not. */
static int open_private_path(const char *path)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int parent = -EBADF;
	char *slash;

	if (!copy)
		return -ENOMEM;
	slash = strrchr(copy, '/');
	if (!slash || slash[1] == '\0')
		return -EINVAL;
	*slash = '\0';
	parent = open(slash == copy ? "/" : copy, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return -errno;
	return open_private(parent, slash + 1);
}

int cache_open(const char *option)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char path[PATH_MAX];
	int n;

	if (option)
		return open_private_path(option);
	if (xdg && xdg[0] == '/') {
		if (mkdir(xdg, 0700) < 0 && errno != EEXIST)
			return -errno;
		n = snprintf(path, sizeof(path), "%s/atoll", xdg);
	} else if (home && home[0] == '/') {
		if (snprintf(path, sizeof(path), "%s/.cache", home) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -errno;
		n = snprintf(path, sizeof(path), "%s/.cache/atoll", home);
	} else {
		return -ENOENT;
	}
	return n >= (int)sizeof(path) ? -ENAMETOOLONG : open_private_path(path);
}

int cache_open_dir(int cache_fd, const char *name)
{
	return cache_fd < 0 ? -ENOENT : open_private(cache_fd, name);
}
