/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the file system of a sandbox, in the clone's own mount namespace, before any byte of a tenant is
 * there. Layout while building, on a tmpfs over some host directory S:
 *
 *   S/root     becomes / (tmpfs; the working directory, so every target is its path without the slash)
 *   S/scratch  the tmpfs of work directory and /tmp, bound into root
 *   S/empty    second lower of the read-only overlays: one lower alone is refused
 *   S/lower    a directory of the host under an overlay that the program writes to
 *   S/guard    the same of a writable root, without what only its owner may read (layers.h)
 *   S/shown    a directory under a read-only overlay, while that is mounted
 *   S/nothing  an empty file
 *
 * A writable root is a directory of the scratch tmpfs, so that both share its bounds.
 *
 * After pivot_root the whole old tree, S with it, is detached by one umount.
 */
#include "box/child.h"

#include "base/path.h"
#include "base/sys/kernel.h"
#include "box/text.h"
#include "spec/layer.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

/* Targets are absolute in the plan and relative to the new root here. */
static const char *target(const struct child *c, const struct op *op)
{
	const char *path = op_b(c->plan, op) + 1;

	return *path ? path : ".";
}

static int make_dir(const char *path, mode_t mode)
{
	int r = sys_mkdir(path, mode);

	return r == -EEXIST ? 0 : r;
}

/* Whether the skeleton has it. Operations after the pivot belong to the request. */
static bool is_there(const struct child *c)
{
	return c->skeleton && !c->pivoted;
}

int child_make_dir(const struct child *c, const char *path, mode_t mode)
{
	return is_there(c) ? 0 : make_dir(path, mode);
}

static int make_file(const char *path, mode_t mode)
{
	return sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
}

static bool plan_shows_below(const struct child *c, const char *dir)
{
	for (uint32_t k = 0; c->plan && k < c->plan->n_ops; k++) {
		const struct op *op = &c->plan->ops[k];

		if (plan_span_a(op) == SPAN_SOURCE && path_is_below(op_a(c->plan, op), dir))
			return true;
	}
	return false;
}

/* A host directory to cover: no host path of the plan is below it. The first one nearly always fits. */
static const char *find_cover(const struct child *c)
{
	static const char *const candidates[] = { "/sys", "/mnt", "/srv", "/media", "/tmp" };

	for (size_t i = 0; i < ARRAY_SIZE(candidates); i++) {
		struct stat st;

		if (!plan_shows_below(c, candidates[i]) && stat(candidates[i], &st) == 0 &&
		    S_ISDIR(st.st_mode))
			return candidates[i];
	}
	return NULL;
}

static int build_place(struct child *c, const char *cover, const char *bounds)
{
	static const char *const dirs[] = { "root", "scratch", "empty", "lower", "guard", "shown" };
	int r, fd;

	c->step = "make a place to build the root";
	if (!cover)
		return -ENOENT;
	memset(c->staging, 0, sizeof(c->staging));
	strncpy(c->staging, cover, sizeof(c->staging) - 1);
	r = sys_mount(&(struct mount_request){ .source = "atoll",
					       .target = cover,
					       .type = "tmpfs",
					       .flags = MS_NOSUID | MS_NODEV,
					       .data = bounds });
	if (r == 0)
		r = sys_chdir(cover);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
		r = sys_mkdir(dirs[i], 0755);
	fd = r < 0 ? r : make_file("nothing", 0444);
	if (fd >= 0)
		(void)close(fd);
	return MIN(fd, 0);
}

static const char place_bounds[] = "size=64k,nr_inodes=16,mode=0755";

int child_staging(struct child *c)
{
	int r;

	if (c->skeleton) {
		c->step = "find the skeleton";
		strncpy(c->staging, CHILD_SKELETON_PLACE, sizeof(c->staging) - 1);
		return sys_chdir(c->staging);
	}
	c->step = "take the host's mounts private";
	r = sys_mount(&(struct mount_request){ .target = "/", .flags = MS_REC | MS_PRIVATE });
	return r < 0 ? r : build_place(c, find_cover(c), place_bounds);
}

int child_staging_check(struct child *c)
{
	int r;

	if (c->skeleton || !plan_shows_below(c, c->staging))
		return 0;
	r = sys_chdir("/");
	if (r == 0)
		r = sys_umount_detach(c->staging);
	return r < 0 ? r : build_place(c, find_cover(c), place_bounds);
}

static void text_add_bounds(struct text *options, uint64_t bytes, uint64_t inodes)
{
	text_add(options, "size=");
	text_add_number(options, bytes, 10);
	text_add(options, ",nr_inodes=");
	text_add_number(options, inodes, 10);
}

int child_mount_tmpfs(const char *where, const struct op *op, mode_t mode)
{
	struct text options = { 0 };

	text_add_bounds(&options, (uint64_t)op->value, (uint64_t)op->value2);
	text_add(&options, ",mode=0");
	text_add_number(&options, mode, 8);
	return sys_mount(&(struct mount_request){ .source = "tmpfs",
						  .target = where,
						  .type = "tmpfs",
						  .flags = MS_NOSUID | MS_NODEV,
						  .data = options.data });
}

int child_mount_lower(const struct child *c, const char *source, const char *where)
{
	struct text options = { 0 };

	text_add(&options, "userxattr,lowerdir=");
	text_add(&options, source);
	text_add(&options, ":");
	text_add(&options, c->staging);
	text_add(&options, "/empty");
	if (options.overflow)
		return -ENAMETOOLONG;
	return sys_mount(&(struct mount_request){ .source = "overlay",
						  .target = where,
						  .type = "overlay",
						  .flags = MS_RDONLY | MS_NOSUID | MS_NODEV,
						  .data = options.data });
}

static int mount_writable_root(const struct op *op)
{
	int r = child_mount_tmpfs("scratch", op, 0755);

	if (r == 0)
		r = sys_mkdir("scratch/root", 0755);
	return r < 0 ? r
		     : sys_mount(&(struct mount_request){
			       .source = "scratch/root", .target = "root", .flags = MS_BIND });
}

int child_do_root(struct child *c, const struct op *op)
{
	int r;

	if (op->flags & OP_WRITABLE)
		r = mount_writable_root(op);
	else if (c->skeleton)
		r = child_mount_lower(c, CHILD_SKELETON_PLACE "/skeleton", "root");
	else
		r = child_mount_tmpfs("root", op, 0755);
	return r < 0 ? r : sys_chdir("root");
}

int child_do_dir(struct child *c, const struct op *op)
{
	return child_make_dir(c, target(c, op), op->mode);
}

int child_do_symlink(struct child *c, const struct op *op)
{
	return is_there(c) ? 0 : sys_symlink(op_a(c->plan, op), target(c, op));
}

int child_do_text(struct child *c, const struct op *op)
{
	int fd, r;

	if (is_there(c))
		return 0;
	fd = make_file(target(c, op), op->mode);
	if (fd < 0)
		return fd;
	r = sys_write(fd, op_a(c->plan, op), op->a.len);
	(void)close(fd);
	return r;
}

/* Without overlay the inodes are the host's: locks and inotify then work across sandboxes. */
static int show_by_bind(struct child *c, const char *source, const char *where)
{
	int r = sys_mount(&(struct mount_request){
		.source = source, .target = where, .flags = MS_BIND | MS_REC });

	c->lock.missing |= 1U << LAYER_OVERLAY;
	return r < 0 ? r : sys_mount_harden_tree(where);
}

static int show_dir(struct child *c, const char *source, const char *where)
{
	int r = child_make_dir(c, where, 0755);

	if (r < 0)
		return r;
	if (!c->command.overlay)
		return show_by_bind(c, source, where);
	r = child_mount_lower(c, source, where);
	/* A mount below the source, or too many stacked overlays. */
	if (r == -EINVAL && c->layers.n_bare > 0) {
		r = child_show_parts(c, source, where, false);
		if (r < 0)
			(void)!sys_umount_detach(where);
		return r < 0 ? show_by_bind(c, source, where) : 0;
	}
	return r == -EINVAL || r == -ENODEV ? show_by_bind(c, source, where) : r;
}

/* Small files of /etc: a copy has its own inode, so sandboxes share no lock on it. */
static int show_file(const char *source, const char *where)
{
	char chunk[16384];
	int from = sys_open(source, O_RDONLY | O_NOFOLLOW | O_NOCTTY, 0);
	int to, r = 0;

	if (from < 0)
		return from;
	to = make_file(where, 0644);
	if (to < 0) {
		(void)close(from);
		return to;
	}
	for (;;) {
		ssize_t n = read(from, chunk, sizeof(chunk));

		if (n < 0)
			r = -errno;
		if (n <= 0)
			break;
		r = sys_write(to, chunk, (size_t)n);
		if (r < 0)
			break;
	}
	(void)close(from);
	(void)close(to);
	return r;
}

static int show_link(const char *source, const char *where)
{
	char content[PLAN_PATH_MAX];
	ssize_t n = readlink(source, content, sizeof(content));

	if (n < 0)
		return -errno;
	if (n == (ssize_t)sizeof(content))
		return -ENAMETOOLONG;
	content[n] = '\0';
	return sys_symlink(content, where);
}

static int show_writable_dir(struct child *c, const char *source, const char *where)
{
	int r = make_dir(where, 0755);

	if (r < 0)
		return r;
	return c->layers.n_bare > 0 ? child_show_parts(c, source, where, true)
				    : child_show_writable(c, source, where);
}

static int show_host_path(struct child *c, const struct op *op)
{
	const char *source = op_a(c->plan, op), *where = target(c, op);
	struct stat st;

	if (op->flags & OP_EXACT)
		return child_show_exact(c, source, where);
	if (lstat(source, &st) < 0)
		return -errno;
	switch (st.st_mode & S_IFMT) {
	case S_IFDIR:
		return op->flags & OP_WRITABLE ? show_writable_dir(c, source, where)
					       : show_dir(c, source, where);
	case S_IFREG:
		return is_there(c) ? 0 : show_file(source, where);
	case S_IFLNK:
		return is_there(c) ? 0 : show_link(source, where);
	default:
		return -EINVAL;
	}
}

static int passed_over(const struct op *op, int r)
{
	if (r == -ENOENT || r == -EEXIST)
		return op->flags & OP_OPTIONAL ? 0 : r;
	return r == -EACCES && op->flags & OP_READABLE ? 0 : r;
}

int child_do_show(struct child *c, const struct op *op)
{
	/* The skeleton has a copy. */
	if (is_there(c) && op->flags & OP_SMALL)
		return 0;
	return passed_over(op, show_host_path(c, op));
}

int child_do_tmpfs(struct child *c, const struct op *op)
{
	int r = child_make_dir(c, target(c, op), 0755);

	return r < 0 ? r : child_mount_tmpfs(target(c, op), op, op->mode);
}

/* From now on the file system of a writable root may grow by that much: what was put into it so far is not the program's. */
static int bound_writable_root(const struct op *op)
{
	struct text options = { 0 };
	struct statfs fs;

	if (statfs(".", &fs) < 0)
		return -errno;
	text_add_bounds(&options,
			(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize + (uint64_t)op->value,
			fs.f_files - fs.f_ffree + (uint64_t)op->value2);
	return sys_mount(&(struct mount_request){
		.target = ".", .flags = MS_REMOUNT | MS_NOSUID | MS_NODEV, .data = options.data });
}

int child_do_scratch(struct child *c, const struct op *op)
{
	(void)c;
	return op->flags & OP_WRITABLE ? bound_writable_root(op)
				       : child_mount_tmpfs("../scratch", op, 0755);
}

int child_do_scratch_dir(struct child *c, const struct op *op)
{
	struct text source = { 0 };
	int r;

	text_add(&source, "../scratch/");
	text_add(&source, op_a(c->plan, op));
	r = sys_mkdir(source.data, op->mode);
	if (r == 0)
		r = child_make_dir(c, target(c, op), 0755);
	if (r < 0)
		return r;
	/* Work directory and /tmp, held open for collection after the last process has died. */
	if (c->layers.n_scratch < ARRAY_SIZE(c->layers.scratch_fds)) {
		int fd = sys_open(source.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

		if (fd < 0)
			return fd;
		c->layers.scratch_fds[c->layers.n_scratch++] = fd;
	}
	return sys_mount(&(struct mount_request){
		.source = source.data, .target = target(c, op), .flags = MS_BIND });
}

/* The program's terminal: the broker holds the other end. */
static int open_terminal(struct child *c, const char *where)
{
	struct text path = { 0 };
	int unlocked = 0;

	text_add(&path, where);
	text_add(&path, "/ptmx");
	c->terminal_fd = sys_open(path.data, O_RDWR | O_NOCTTY, 0);
	if (c->terminal_fd < 0)
		return c->terminal_fd;
	return ioctl(c->terminal_fd, TIOCSPTLCK, &unlocked) < 0 ? -errno : 0;
}

/*
 * All sandboxes share the kernel's limit of terminals (kernel.pty.max less the host's reserve), so each may
 * open few.
 */
int child_do_devpts(struct child *c, const struct op *op)
{
	int r = child_make_dir(c, target(c, op), 0755);

	if (r == 0)
		r = sys_mount(&(struct mount_request){
			.source = "devpts",
			.target = target(c, op),
			.type = "devpts",
			.flags = MS_NOSUID | MS_NOEXEC,
			.data = "newinstance,ptmxmode=0666,mode=0620,max=16" });
	/* The kernel has none: only a program that needs a terminal fails. */
	if (op->value == 0)
		return r == -ENODEV ? 0 : r;
	return r < 0 ? r : open_terminal(c, target(c, op));
}

int child_do_proc(struct child *c, const struct op *op)
{
	/* Otherwise Landlock forbids the program to write there. */
	const unsigned long readonly = plan_root_is_writable(c->plan) ? MS_RDONLY : 0;
	int r = child_make_dir(c, target(c, op), 0555);

	if (r < 0)
		return r;
	r = c->command.proc ? sys_mount(&(struct mount_request){
				      .source = "proc",
				      .target = target(c, op),
				      .type = "proc",
				      .flags = readonly | MS_NOSUID | MS_NODEV | MS_NOEXEC,
				      .data = "subset=pid,hidepid=invisible" })
			    : -EPERM;
	if (r < 0)
		/* Refused below a masked /proc: then the sandbox has none, and never the host's. */
		c->lock.missing |= 1U << LAYER_PROC;
	return r == -EPERM || r == -EINVAL ? 0 : r;
}

int child_do_pivot(struct child *c, const struct op *op)
{
	struct stat before, after;
	char cwd[8];
	int r;

	(void)op;
	if (stat("/", &before) < 0)
		return -errno;
	r = sys_pivot_root(".", ".");
	if (r == 0)
		r = sys_umount_detach(".");
	if (r == 0)
		r = sys_chdir("/");
	if (r < 0)
		return r;
	/* Check the result: a working directory outside of the root is CVE-2024-21626. */
	if (stat("/", &after) < 0 || after.st_dev == before.st_dev || !getcwd(cwd, sizeof(cwd)) ||
	    strcmp(cwd, "/") != 0)
		return -EXDEV;
	c->pivoted = true;
	return 0;
}

int child_do_readonly(struct child *c, const struct op *op)
{
	return sys_mount(&(struct mount_request){ .target = target(c, op),
						  .flags = MS_REMOUNT | MS_BIND | MS_RDONLY |
							   MS_NOSUID | MS_NODEV });
}

static int copy_tree(const char *source, const char *where, int depth);

static int copy_entry(const char *source, const char *where, const struct dirent64 *e, int depth)
{
	struct text from = { 0 }, to = { 0 };

	text_add(&from, source);
	text_add(&from, "/");
	text_add(&from, e->d_name);
	text_add(&to, where);
	text_add(&to, "/");
	text_add(&to, e->d_name);
	if (from.overflow || to.overflow)
		return -ENAMETOOLONG;
	if (e->d_type == DT_LNK)
		return show_link(from.data, to.data);
	if (e->d_type == DT_REG)
		return show_file(from.data, to.data);
	if (e->d_type != DT_DIR || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
		return 0;
	return depth > 0 ? copy_tree(from.data, to.data, depth - 1) : -ELOOP;
}

/*
 * Copies links, files and directories. After a failure there is no skeleton, and the directory itself is shown:
 * never half a copy.
 */
static int copy_tree(const char *source, const char *where, int depth)
{
	_Alignas(struct dirent64) char entries[8192];
	int dir = sys_open(source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = dir < 0 ? dir : make_dir(where, 0755);
	ssize_t n = 0;

	while (r == 0 && (n = syscall(SYS_getdents64, dir, entries, sizeof(entries))) > 0)
		for (ssize_t at = 0; r == 0 && at < n;) {
			const struct dirent64 *e = (const struct dirent64 *)(entries + at);

			at += e->d_reclen;
			r = copy_entry(source, where, e, depth);
		}
	if (r == 0 && n < 0)
		r = -errno;
	(void)close(dir);
	return r;
}

static int keep_shown(struct child *c, const struct op *op)
{
	const char *source = op_a(c->plan, op);
	struct stat st;

	if (lstat(source, &st) < 0)
		return passed_over(op, -errno);
	if (!S_ISDIR(st.st_mode))
		return child_do_show(c, op);
	return op->flags & OP_SMALL ? copy_tree(source, target(c, op), PLAN_SMALL_DEPTH)
				    : make_dir(target(c, op), 0755);
}

static int keep_target(struct child *c, const struct op *op)
{
	return make_dir(target(c, op), op->kind == OP_PROC ? 0555 : 0755);
}

int child_make_skeleton(struct child *c)
{
	static int (*const parts[_OP_MAX])(struct child *, const struct op *) = {
		[OP_DIR] = child_do_dir,      [OP_SYMLINK] = child_do_symlink,
		[OP_TEXT] = child_do_text,    [OP_SHOW] = keep_shown,
		[OP_TMPFS] = keep_target,     [OP_SCRATCH_DIR] = keep_target,
		[OP_WORKSPACE] = keep_target, [OP_DEV] = keep_target,
		[OP_PROC] = keep_target,
	};
	mode_t mask = umask(0);
	int r = build_place(c, CHILD_SKELETON_PLACE, "size=8m,nr_inodes=8192,mode=0755");

	if (r == 0)
		r = sys_mkdir("skeleton", 0755);
	if (r == 0)
		r = sys_chdir("skeleton");
	for (uint32_t i = 0; r == 0 && i < c->plan->n_ops; i++) {
		const struct op *op = &c->plan->ops[i];

		if (op->kind == OP_PIVOT)
			break;
		if (parts[op->kind])
			r = parts[op->kind](c, op);
	}
	if (r == 0)
		r = sys_chdir("/");
	if (r == 0)
		r = sys_mount(&(struct mount_request){ .target = CHILD_SKELETON_PLACE,
						       .flags = MS_REMOUNT | MS_BIND | MS_RDONLY |
								MS_NOSUID | MS_NODEV });
	(void)umask(mask);
	return r;
}
