/* SPDX-License-Identifier: Apache-2.0 */
/* See cgroup-paths.h. */
#include "base/sys/cgroup-paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/sys/textfile.h"

static const char *const hierarchy_names[_HIERARCHY_V1_MAX] = {
	[HIERARCHY_PIDS] = "pids",
	[HIERARCHY_MEMORY] = "memory",
	[HIERARCHY_CPU] = "cpu",
	[HIERARCHY_CPUACCT] = "cpuacct",
};

/* A piece of text, not NUL-terminated. */
struct cgroup_word {
	const char *at;
	size_t len;
};

struct mount_line {
	struct cgroup_word root, point, options, type, super;
};

static bool word_is(struct cgroup_word w, const char *s)
{
	return w.len == strlen(s) && memcmp(w.at, s, w.len) == 0;
}

/* Is name one of the comma-separated parts of list? */
static bool controller_list_has(struct cgroup_word list, const char *name)
{
	const char *p = list.at, *end = list.at + list.len;

	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop = comma ? comma : end;

		if (word_is((struct cgroup_word){ p, (size_t)(stop - p) }, name))
			return true;
		p = stop + 1;
	}
	return false;
}

/* The next space-separated word of [*p, end). */
static struct cgroup_word next_word(const char **p, const char *end)
{
	const char *start, *at = *p;

	while (at < end && *at == ' ')
		at++;
	start = at;
	while (at < end && *at != ' ')
		at++;
	*p = at;
	return (struct cgroup_word){ start, (size_t)(at - start) };
}

/*
 * Parses "36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/root rw"; false: the line has another form.
 */
static bool parse_mount_line(const char *p, const char *end, struct mount_line *ret)
{
	struct cgroup_word w;

	for (int i = 0; i < 3; i++)
		(void)next_word(&p, end);
	ret->root = next_word(&p, end);
	ret->point = next_word(&p, end);
	ret->options = next_word(&p, end);
	do {
		w = next_word(&p, end);
		if (w.len == 0)
			return false;
	} while (!word_is(w, "-"));
	ret->type = next_word(&p, end);
	(void)next_word(&p, end);
	ret->super = next_word(&p, end);
	return ret->point.len > 0 && ret->type.len > 0;
}

static bool octal(char c)
{
	return c >= '0' && c <= '7';
}

/* mountinfo writes space, tab, newline and backslash as \ooo. False: ret is too small. */
static bool unescape(struct cgroup_word w, char *ret, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < w.len; i++) {
		const char *s = w.at + i;
		char c = *s;

		if (c == '\\' && i + 3 < w.len && octal(s[1]) && octal(s[2]) && octal(s[3])) {
			c = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			i += 3;
		}
		if (n + 1 >= size)
			return false;
		ret[n++] = c;
	}
	ret[n] = '\0';
	return true;
}

/* This process's path in hierarchy h, from /proc/self/cgroup; an empty word if h is not listed. */
static struct cgroup_word own_path(const char *text, enum hierarchy h)
{
	while (*text) {
		const char *end = strchrnul(text, '\n');
		const char *list = memchr(text, ':', (size_t)(end - text));
		const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;

		if (path) {
			struct cgroup_word names = { list + 1, (size_t)(path - list - 1) };
			bool hit = h == HIERARCHY_UNIFIED
					   ? names.len == 0
					   : controller_list_has(names, hierarchy_names[h]);

			if (hit)
				return (struct cgroup_word){ path + 1, (size_t)(end - path - 1) };
		}
		text = *end ? end + 1 : end;
	}
	return (struct cgroup_word){ "", 0 };
}

/*
 * Directory = mount point + (own path - the mount's root). If the path is outside of the mount's root ("/../x"
 * in a cgroup namespace, or a bind of something else), it is the mount point itself.
 */
static void join_path(const struct mount_line *m, struct cgroup_word own, char ret[CGROUP_PATH_MAX])
{
	char root[CGROUP_PATH_MAX], point[CGROUP_PATH_MAX];
	size_t n;

	ret[0] = '\0';
	if (!unescape(m->root, root, sizeof(root)) || !unescape(m->point, point, sizeof(point)))
		return;
	n = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (own.len < n || memcmp(own.at, root, n) != 0 || (own.len > n && own.at[n] != '/') ||
	    memmem(own.at, own.len, "/..", 3))
		own = (struct cgroup_word){ "", n = 0 };
	own = (struct cgroup_word){ own.at + n, own.len - n };
	if (own.len == 1)
		own.len = 0;
	if (strlen(point) + own.len >= CGROUP_PATH_MAX)
		return;
	(void)snprintf(ret, CGROUP_PATH_MAX, "%s%.*s", point, (int)own.len, own.at);
}

/* A later mount covers an earlier one, but a read-only mount must not hide a writable one. */
static void take_mount(const struct mount_line *m, const char *cgroup_text, bool writable[],
		       struct cgroup_paths *ret)
{
	bool rw = controller_list_has(m->options, "rw");
	bool v2 = word_is(m->type, "cgroup2");

	for (int h = 0; h < _HIERARCHY_MAX; h++) {
		bool match = h == HIERARCHY_UNIFIED
				     ? v2
				     : !v2 && controller_list_has(m->super, hierarchy_names[h]);
		struct cgroup_word own;

		if (!match || (writable[h] && !rw))
			continue;
		own = own_path(cgroup_text, (enum hierarchy)h);
		if (own.len == 0)
			continue;
		writable[h] = rw;
		join_path(m, own, ret->own[h]);
		if (v2 && !unescape(m->point, ret->unified_mount, sizeof(ret->unified_mount)))
			ret->unified_mount[0] = '\0';
	}
}

void cgroup_paths_parse(const char *cgroup_text, const char *mountinfo_text,
			struct cgroup_paths *ret)
{
	bool writable[_HIERARCHY_MAX] = { false };
	const char *p = mountinfo_text;

	for (int h = 0; h < _HIERARCHY_MAX; h++)
		ret->own[h][0] = '\0';
	ret->unified_mount[0] = '\0';
	while (*p) {
		const char *end = strchrnul(p, '\n');
		struct mount_line m;

		if (parse_mount_line(p, end, &m) &&
		    (word_is(m.type, "cgroup") || word_is(m.type, "cgroup2")))
			take_mount(&m, cgroup_text, writable, ret);
		p = *end ? end + 1 : end;
	}
}

/* One line of /proc/self/cgroup, "4:memory:/path", as a directory at the usual mount point of its hierarchy. */
static void guess_line(const char *line, const char *end, struct cgroup_paths *ret)
{
	const char *names = memchr(line, ':', (size_t)(end - line));
	const char *path = names ? memchr(names + 1, ':', (size_t)(end - names - 1)) : NULL;
	struct cgroup_word list, where;

	if (!path)
		return;
	list = (struct cgroup_word){ names + 1, (size_t)(path - names - 1) };
	where = (struct cgroup_word){ path + 1, (size_t)(end - path - 1) };
	if (word_is(where, "/"))
		where.len = 0;
	for (int h = 0; h < _HIERARCHY_V1_MAX; h++)
		if (controller_list_has(list, hierarchy_names[h]))
			(void)snprintf(ret->own[h], sizeof(ret->own[h]), "/sys/fs/cgroup/%.*s%.*s",
				       (int)list.len, list.at, (int)where.len, where.at);
}

bool cgroup_paths_guess(const char *cgroup_text, struct cgroup_paths *ret)
{
	*ret = (struct cgroup_paths){ 0 };
	for (const char *p = cgroup_text; *p;) {
		const char *end = strchrnul(p, '\n');

		guess_line(p, end, ret);
		p = *end ? end + 1 : end;
	}
	/* A wrong guess names a directory that does not exist, or one that is no cgroup. */
	for (int h = 0; h < _HIERARCHY_V1_MAX; h++) {
		char file[CGROUP_PATH_MAX + 16];

		(void)snprintf(file, sizeof(file), "%s/tasks", ret->own[h]);
		if (!ret->own[h][0] || access(file, F_OK) < 0)
			return false;
	}
	return true;
}

uint32_t cgroup_controllers_parse(const char *text)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} table[] = { { "memory", CGROUP_MEMORY }, { "pids", CGROUP_PIDS }, { "cpu", CGROUP_CPU } };
	const char *end = text + strcspn(text, "\n");
	uint32_t bits = 0;

	while (text < end) {
		struct cgroup_word w = next_word(&text, end);

		for (size_t i = 0; i < ARRAY_SIZE(table); i++)
			if (word_is(w, table[i].name))
				bits |= table[i].bit;
	}
	return bits;
}

/* Whether every process of the group runs Atoll's own executable: the client and its broker. */
static bool processes_are_ours(int dirfd)
{
	char text[4096], path[32];
	struct stat self, other;
	char *line = text;

	if (stat("/proc/self/exe", &self) < 0)
		return false;
	if (textfile_read_at(dirfd, "cgroup.procs", text, sizeof(text)) < 0)
		return false;
	while (*line) {
		char *end = strchrnul(line, '\n');
		int64_t pid;

		if (*end)
			*end++ = '\0';
		if (parse_i64(line, &pid) < 0)
			return false;
		(void)snprintf(path, sizeof(path), "/proc/%lld/exe", (long long)pid);
		if (stat(path, &other) < 0 || other.st_dev != self.st_dev ||
		    other.st_ino != self.st_ino)
			return false;
		line = end;
	}
	return true;
}

static bool may_write(int dirfd, const char *file)
{
	return faccessat(dirfd, file, W_OK, AT_EACCESS) == 0;
}

/* Whether groups with controllers can be made below dir. Fills ret and returns true, or sets the reason. */
static bool judge_v2(const char *dir, struct cgroup_home *ret)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char available[256], enabled[256];
	uint32_t bits;

	if (fd < 0 || textfile_read_at(fd, "cgroup.controllers", available, sizeof(available)) < 0)
		return false;
	bits = cgroup_controllers_parse(available);
	if (!bits)
		return false;
	if (!may_write(fd, ".") || !may_write(fd, "cgroup.procs") ||
	    !may_write(fd, "cgroup.subtree_control")) {
		(void)snprintf(ret->reason, sizeof(ret->reason), "%s",
			       errno == EROFS
				       ? "cgroups are mounted read-only: mount -o "
					 "remount,bind,rw /sys/fs/cgroup (Docker: -v "
					 "/sys/fs/cgroup:/sys/fs/cgroup)"
				       : "this cgroup is not delegated to us: systemd-run --user "
					 "--scope -p Delegate=yes atoll …");
		return false;
	}
	if (textfile_read_at(fd, "cgroup.subtree_control", enabled, sizeof(enabled)) < 0)
		return false;
	ret->move_self = false;
	/* Only the real top of the hierarchy, which has no cgroup.type, may hold processes as well. */
	if (faccessat(fd, "cgroup.type", F_OK, 0) == 0 &&
	    (cgroup_controllers_parse(enabled) & bits) != bits) {
		if (!processes_are_ours(fd)) {
			(void)snprintf(ret->reason, sizeof(ret->reason), "%s",
				       "other processes share this cgroup: systemd-run --scope -p "
				       "Delegate=yes atoll … (rootless: with --user)");
			return false;
		}
		ret->move_self = true;
	}
	(void)snprintf(ret->base, sizeof(ret->base), "%s", dir);
	ret->controllers = bits;
	return true;
}

/* The swap file exists in every group but the top one, so any other group shows whether swap is limited. */
static bool v2_has_swap(const struct cgroup_paths *paths)
{
	_cleanup_close_ int fd = open(paths->own[HIERARCHY_UNIFIED],
				      O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && faccessat(fd, "memory.swap.max", F_OK, 0) == 0)
		return true;
	/* At the top nothing shows it; a kernel with swap has /proc/swaps. */
	return access("/proc/swaps", F_OK) == 0;
}

static bool find_v2(const struct cgroup_paths *paths, struct cgroup_home *ret)
{
	char own[CGROUP_PATH_MAX];
	size_t n, leaf = strlen("/" CGROUP_SELF_LEAF);
	bool found = false;

	/* A controller belongs to v1 or to v2: if v1 has memory, v2 cannot limit it. */
	if (!paths->unified_mount[0] || paths->own[HIERARCHY_MEMORY][0])
		return false;
	(void)snprintf(own, sizeof(own), "%s", paths->own[HIERARCHY_UNIFIED]);
	n = strlen(own);
	if (n > leaf && strcmp(own + n - leaf, "/" CGROUP_SELF_LEAF) == 0)
		own[n - leaf] = '\0';
	if (geteuid() == 0 && judge_v2(paths->unified_mount, ret))
		found = true;
	else if (geteuid() != 0 || strcmp(own, paths->unified_mount) != 0)
		found = judge_v2(own, ret);
	if (!found)
		return false;
	ret->kind = CGROUP_V2;
	ret->reason[0] = '\0';
	if ((ret->controllers & CGROUP_MEMORY) && v2_has_swap(paths))
		ret->controllers |= CGROUP_SWAP;
	return true;
}

static bool find_v1(const struct cgroup_paths *paths, struct cgroup_home *ret)
{
	static const uint32_t bit[_HIERARCHY_V1_MAX] = {
		[HIERARCHY_PIDS] = CGROUP_PIDS,
		[HIERARCHY_MEMORY] = CGROUP_MEMORY,
		[HIERARCHY_CPU] = CGROUP_CPU,
	};
	char file[CGROUP_PATH_MAX + 32];
	bool mounted = false;

	ret->controllers = 0;
	for (int h = 0; h < _HIERARCHY_V1_MAX; h++) {
		mounted |= paths->own[h][0] != '\0';
		if (paths->own[h][0] == '\0' ||
		    faccessat(AT_FDCWD, paths->own[h], W_OK, AT_EACCESS) < 0)
			continue;
		ret->controllers |= bit[h];
		ret->hierarchies |= 1U << h;
	}
	if (!ret->controllers) {
		if (mounted)
			(void)snprintf(ret->reason, sizeof(ret->reason), "%s",
				       geteuid() == 0
					       ? "cgroups are mounted read-only: for c in memory "
						 "pids cpu; do mount -o remount,bind,rw "
						 "/sys/fs/cgroup/$c; done (Docker: -v "
						 "/sys/fs/cgroup:/sys/fs/cgroup)"
					       : "cgroup v1 cannot be delegated safely: run as "
						 "root: sudo atoll …");
		return false;
	}
	(void)snprintf(file, sizeof(file), "%s/memory.memsw.limit_in_bytes",
		       paths->own[HIERARCHY_MEMORY]);
	if ((ret->controllers & CGROUP_MEMORY) && access(file, F_OK) == 0)
		ret->controllers |= CGROUP_SWAP;
	ret->kind = CGROUP_V1;
	ret->reason[0] = '\0';
	return true;
}

void cgroup_home_find(const struct cgroup_paths *paths, struct cgroup_home *ret)
{
	*ret = (struct cgroup_home){ .kind = CGROUP_NONE };
	if (find_v2(paths, ret) || find_v1(paths, ret))
		return;
	ret->controllers = 0;
	ret->move_self = false;
	if (!ret->reason[0])
		(void)snprintf(ret->reason, sizeof(ret->reason), "%s",
			       "no cgroup file system is mounted: mount -t cgroup2 none "
			       "/sys/fs/cgroup");
}
