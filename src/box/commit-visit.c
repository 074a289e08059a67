/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of each entry of the upper layer on the current workspace. A directory that exists on both sides
 * is merged: its entries become operations of their own. A new directory is staged as a whole, and one
 * operation puts it in place.
 */
#include "box/commit-private.h"

#include "base/fd.h"
#include "base/sys/kernel.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

/* --- the records of changes, written in pieces; beyond their bound they are only counted --- */

static_assert(sizeof(struct change) <= LIST_BYTES, "the buffer must hold any record");

int list_flush(struct commit_work *w)
{
	size_t n = w->list_n;

	w->list_n = 0;
	return n ? sys_write(w->c->list_fd, w->list, n) : 0;
}

int commit_list_add(struct commit_work *w, const struct list_entry *entry)
{
	const char *path = entry->path ? entry->path : w->walk.path;
	size_t path_bytes = strlen(path) + 1;
	size_t length = (offsetof(struct change, path) + path_bytes + 7) & ~(size_t)7;
	uint32_t *const counts[_CHANGE_MAX] = { [CHANGE_ADDED] = &w->out->added,
						[CHANGE_CHANGED] = &w->out->changed,
						[CHANGE_REMOVED] = &w->out->removed,
						[CHANGE_SKIPPED] = &w->out->skipped };
	const mode_t mode = entry->st->st_mode;
	struct change *c;
	int r = 0;

	++*counts[entry->kind];
	w->out->conflicts += entry->conflict;
	if (w->list_bytes + (int64_t)length > w->c->list_bytes_max) {
		w->out->unlisted++;
		return 0;
	}
	if (w->list_n + length > sizeof(w->list))
		r = list_flush(w);
	if (r < 0)
		return r;
	c = (struct change *)(w->list + w->list_n);
	memset(c, 0, length);
	c->length = (uint32_t)length;
	c->kind = (uint8_t)entry->kind;
	c->type = S_ISREG(mode)	  ? CHANGE_FILE
		  : S_ISDIR(mode) ? CHANGE_DIRECTORY
		  : S_ISLNK(mode) ? CHANGE_LINK
				  : CHANGE_OTHER;
	c->skip = (uint8_t)entry->skip;
	c->conflict = entry->conflict;
	c->mode = mode & 0777;
	c->size = S_ISREG(mode) ? entry->st->st_size : 0;
	if (entry->sha256)
		memcpy(c->sha256, entry->sha256, SHA256_HEX);
	memcpy(c->path, path, path_bytes);
	w->list_n += length;
	w->list_bytes += (int64_t)length;
	return 0;
}

/* --- operations --- */

/* Adds an operation on the walk's path. */
static int work_add_op(struct commit_work *w, const struct journal_op *op)
{
	int r = 0;

	if (!work_applies(w))
		return 0;
	if (!w->journal_open) {
		r = journal_begin(&w->journal, w->at.store_fd);
		w->journal_open = true;
	}
	return r < 0 ? r : journal_add(&w->journal, op, w->walk.path);
}

/* A record that the walk's path is skipped. */
static int work_skip(struct commit_work *w, const struct stat *st, enum change_skip why)
{
	return commit_list_add(
		w, &(struct list_entry){ .kind = CHANGE_SKIPPED, .skip = why, .st = st });
}

/* --- files: compared, copied with their holes, hashed meanwhile. The run's disk limit bounds the time, and file_size for holes --- */

/* Where a file is copied to; to_fd -EBADF: it is only hashed. */
struct file_copy {
	int from_fd, to_fd;
	int64_t size;
	bool sparse;
	char sha256[SHA256_HEX];
};

static ssize_t read_file_at(int fd, char *to, size_t n, int64_t offset)
{
	ssize_t got = pread(fd, to, n, offset);

	return got < 0 ? -errno : got;
}

static int file_compare(struct commit_work *w, int a_fd, int b_fd, int64_t size)
{
	for (int64_t at = 0; at < size;) {
		size_t want = (size_t)MIN(size - at, (int64_t)COPY_BYTES);
		ssize_t a = read_file_at(a_fd, w->copy, want, at);
		ssize_t b = a < 0 ? a : read_file_at(b_fd, w->compare, want, at);

		if (a < 0 || b < 0)
			return (int)MIN(a, b);
		if (a != b || a == 0 || memcmp(w->copy, w->compare, (size_t)a) != 0)
			return 0;
		at += a;
	}
	return 1;
}

struct copying {
	struct file_copy *f;
	struct sha256 hash;
	int64_t at;
};

static int copy_data(struct commit_work *w, struct copying *c, int64_t end)
{
	while (c->at < end) {
		ssize_t n = read_file_at(c->f->from_fd, w->copy,
					 (size_t)MIN(end - c->at, (int64_t)COPY_BYTES), c->at);
		int r = n <= 0 ? (n < 0 ? (int)n : -EIO) : 0;

		if (r < 0)
			return r;
		sha256_update(&c->hash, w->copy, (size_t)n);
		if (c->f->to_fd >= 0)
			r = sys_write(c->f->to_fd, w->copy, (size_t)n);
		if (r < 0)
			return r;
		c->at += n;
	}
	return 0;
}

static int pass_hole(struct commit_work *w, struct copying *c, int64_t end)
{
	memset(w->compare, 0, sizeof(w->compare));
	for (int64_t left = end - c->at; left > 0; left -= COPY_BYTES)
		sha256_update(&c->hash, w->compare, (size_t)MIN(left, (int64_t)COPY_BYTES));
	c->at = end;
	if (c->f->to_fd >= 0 && lseek(c->f->to_fd, end, SEEK_SET) < 0)
		return -errno;
	return 0;
}

static int copy_sparse(struct commit_work *w, struct copying *c)
{
	int r = 0;

	while (r == 0 && c->at < c->f->size) {
		int64_t data = lseek(c->f->from_fd, c->at, SEEK_DATA), hole;

		if (data < 0 && errno != ENXIO)
			return -errno;
		data = data < 0 ? c->f->size : MIN(data, c->f->size);
		if (data > c->at)
			r = pass_hole(w, c, data);
		if (r < 0 || data == c->f->size)
			break;
		hole = lseek(c->f->from_fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		r = copy_data(w, c, MIN(hole, c->f->size));
	}
	/* The hole at the end is not written. */
	if (r == 0 && c->f->to_fd >= 0 && ftruncate(c->f->to_fd, c->f->size) < 0)
		return -errno;
	return r;
}

static int file_copy(struct commit_work *w, struct file_copy *f)
{
	struct copying c = { .f = f };
	int r;

	sha256_init(&c.hash);
	r = f->sparse ? copy_sparse(w, &c) : copy_data(w, &c, f->size);
	if (r == 0)
		sha256_final(&c.hash, f->sha256);
	return r;
}

static int file_finish(const struct commit_work *w, int fd, const struct stat *like, mode_t mode)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, like->st_mtim };

	if (geteuid() == 0 && fchown(fd, w->c->owner_uid, w->c->owner_gid) < 0)
		return -errno;
	if (fchmod(fd, mode & 0777) < 0 || futimens(fd, times) < 0)
		return -errno;
	return 0;
}

/*
 * `depth` directories are above the link within the workspace. A link may climb only at its beginning:
 * directories it descends through may be links themselves, and climbing again would then start elsewhere.
 */
static bool link_stays_inside(const char *target, int depth)
{
	bool down = false;

	if (*target == '/' || !*target)
		return false;
	while (*target) {
		size_t n = strcspn(target, "/");
		bool up = n == 2 && memcmp(target, "..", 2) == 0;

		if (up && (down || --depth < 0))
			return false;
		if (n > 0 && !up && !(n == 1 && *target == '.'))
			down = true;
		target += n;
		target += *target == '/';
	}
	return true;
}

/* --- entries of the workspace at changed paths, and their removal --- */

/* The entry at a path of the workspace. */
struct past {
	struct stat st;
	int64_t born_ns;
	bool mounted; /* the host has mounted something over it */
};

static int past_look(int dir_fd, const char *name, struct past *ret)
{
	const struct statx_timestamp *born;
	struct statx x;

	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  STATX_BASIC_STATS | STATX_BTIME, &x) < 0)
		return -errno;
	ret->st = (struct stat){
		.st_mode = x.stx_mode,
		.st_size = (off_t)x.stx_size,
		.st_nlink = x.stx_nlink,
		.st_blocks = (blkcnt_t)x.stx_blocks,
		.st_mtim = { .tv_sec = x.stx_mtime.tv_sec, .tv_nsec = x.stx_mtime.tv_nsec },
		.st_ctim = { .tv_sec = x.stx_ctime.tv_sec, .tv_nsec = x.stx_ctime.tv_nsec },
	};
	born = x.stx_mask & STATX_BTIME ? &x.stx_btime : &x.stx_ctime;
	ret->born_ns = born->tv_sec * NS_PER_SEC + born->tv_nsec;
	ret->mounted = x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	return 0;
}

static bool past_is_newer(const struct commit_work *w, const struct stat *st)
{
	return st->st_ctim.tv_sec * NS_PER_SEC + st->st_ctim.tv_nsec > w->c->mounted_ns;
}

static int gone_entry(struct commit_work *w, const char *name)
{
	struct past past;
	int fd, r = past_look(walk_fd(&w->other), name, &past);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	tree_size_add(&w->removed, &past.st);
	r = commit_list_add(w, &(struct list_entry){ .kind = CHANGE_REMOVED,
						     .st = &past.st,
						     .path = w->other.path,
						     .conflict = past_is_newer(w, &past.st) });
	if (r < 0 || !S_ISDIR(past.st.st_mode) || w->other.depth == COMMIT_DEPTH_MAX)
		return r;
	fd = sys_open_beneath(walk_fd(&w->other), name, O_RDONLY | O_DIRECTORY);
	/* Unreadable, or a mount of the host: it goes with its directory, without a list. */
	return fd < 0 ? 0 : walk_enter(&w->other, fd);
}

/* Lists the content of a directory of the workspace that is removed. */
static int gone_list(struct commit_work *w, int dir_fd, const char *name)
{
	int fd = sys_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY);
	int r = fd < 0 ? 0 : walk_begin(&w->other, fd, w->walk.path);

	while (fd >= 0 && r == 0 && w->other.depth > 0) {
		const char *entry;
		int step = walk_next(&w->other, &entry);

		if (step == WALK_NAME)
			r = gone_entry(w, entry);
		else if (step == WALK_END)
			walk_leave(&w->other);
		else if (step < 0)
			r = step;
	}
	walk_end(&w->other);
	return r;
}

/* Removes the entry of the workspace at the walk's path. */
static int gone_remove(struct commit_work *w, int dir_fd, const char *name)
{
	struct past past;
	int r = past_look(dir_fd, name, &past);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (past.mounted)
		return work_skip(w, &past.st, CHANGE_SKIP_MOUNT);
	tree_size_add(&w->removed, &past.st);
	r = commit_list_add(w, &(struct list_entry){ .kind = CHANGE_REMOVED,
						     .st = &past.st,
						     .conflict = past_is_newer(w, &past.st) });
	if (r == 0 && S_ISDIR(past.st.st_mode))
		r = gone_list(w, dir_fd, name);
	if (r < 0)
		return r;
	return work_add_op(w,
			   &(struct journal_op){ .kind = JOURNAL_REMOVE, .number = ++w->number });
}

/*
 * An opaque directory: entries that its lower directory had when it was mounted are removed; the run never saw
 * later ones.
 */
static int gone_clear_name(struct commit_work *w, const char *name)
{
	size_t above = w->walk.path_len[w->walk.depth - 1], n = strlen(name);
	int dir_fd = commit_top(w)->workspace_fd;
	struct past past;
	struct stat st;

	if (fstatat(walk_fd(&w->walk), name, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	    past_look(dir_fd, name, &past) < 0 || past.born_ns > w->c->mounted_ns ||
	    above + n + 1 > sizeof(w->walk.path))
		return 0;
	memcpy(w->walk.path + above, name, n + 1);
	return gone_remove(w, dir_fd, name);
}

static int gone_clear(struct commit_work *w)
{
	static struct directory_names names;
	const char *name;
	int r;

	names.at = names.n = 0;
	names.fd = sys_openat(commit_top(w)->workspace_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (names.fd < 0)
		return names.fd;
	while ((r = names_next(&names, &name)) > 0) {
		r = gone_clear_name(w, name);
		if (r < 0)
			break;
	}
	names.fd = fd_close(names.fd);
	return r;
}

/* --- entries of the upper layer --- */

struct visited_entry {
	const char *name;
	struct stat st;
	bool exists;
	struct past old; /* if it exists */
};

/* Only attributes of the overlay's own kind count: a program can set the others. */
static const char *const opaque_names[] = { "trusted.overlay.opaque", "user.overlay.opaque" };
static const char *const whiteout_names[] = { "trusted.overlay.whiteout", "user.overlay.whiteout" };

/* Where the next entry is staged: in the new directory of the walk, or by itself under a number. */
struct spot {
	int dir_fd;
	struct number_text number;
	const char *name;
};

static int visit_spot(struct commit_work *w, const struct visited_entry *e, struct spot *ret)
{
	const struct commit_level *top = commit_top(w);

	ret->dir_fd = top->stage_fd;
	ret->name = e->name;
	if (top->stage_fd >= 0)
		return 0;
	ret->dir_fd = w->at.stage_fd;
	ret->number = number_text(++w->number);
	ret->name = ret->number.text;
	return work_add_op(w, &(struct journal_op){ .kind = JOURNAL_PUT, .number = w->number });
}

/* Replaces an entry by one of another kind, or with other content. */
static int visit_replace(struct commit_work *w, const struct visited_entry *e)
{
	if (!e->exists)
		return 0;
	tree_size_add(&w->removed, &e->old.st);
	if (!S_ISDIR(e->old.st.st_mode))
		return 0;
	return gone_list(w, commit_top(w)->workspace_fd, e->name);
}

static int visit_list(struct commit_work *w, const struct visited_entry *e, const char *sha256)
{
	return commit_list_add(
		w, &(struct list_entry){ .kind = e->exists ? CHANGE_CHANGED : CHANGE_ADDED,
					 .st = &e->st,
					 .sha256 = sha256,
					 .conflict = e->exists && past_is_newer(w, &e->old.st) });
}

static int stage_write(struct commit_work *w, const struct spot *spot, const struct stat *st,
		       struct file_copy *f)
{
	_cleanup_close_ int fd = sys_openat(spot->dir_fd, spot->name,
					    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	struct stat staged;
	int r;

	if (fd < 0)
		return fd;
	f->to_fd = fd;
	r = file_copy(w, f);
	f->to_fd = -EBADF;
	if (r == 0)
		r = file_finish(w, fd, st, st->st_mode);
	if (r == 0 && fstat(fd, &staged) < 0)
		r = -errno;
	if (r == 0)
		tree_size_add(&w->added, &staged);
	return r;
}

/*
 * Staged names of one file of the upper layer are hard links of each other: the first is found by its inode
 * number.
 */
static int stage_linked(struct commit_work *w, const struct spot *spot, const struct stat *st,
			struct file_copy *f)
{
	char link[NUMBER_TEXT + 1] = "l";
	int r;

	memcpy(link + 1, number_text(st->st_ino).text, NUMBER_TEXT);
	r = sys_linkat(w->at.stage_fd, link, spot->dir_fd, spot->name);
	if (r == 0) {
		w->added.inodes++;
		return file_copy(w, f);
	}
	if (r != -ENOENT)
		return r;
	r = stage_write(w, spot, st, f);
	return r < 0 ? r : sys_linkat(spot->dir_fd, spot->name, w->at.stage_fd, link);
}

static int stage_file(struct commit_work *w, const struct visited_entry *e, struct file_copy *f)
{
	struct spot spot;
	int r;

	if (!work_applies(w))
		return file_copy(w, f);
	r = visit_spot(w, e, &spot);
	if (r < 0)
		return r;
	return e->st.st_nlink > 1 ? stage_linked(w, &spot, &e->st, f)
				  : stage_write(w, &spot, &e->st, f);
}

static bool visit_same_mode(const struct visited_entry *e)
{
	return e->exists && ((e->st.st_mode ^ e->old.st.st_mode) & 0777) == 0;
}

static bool visit_same_time(const struct visited_entry *e)
{
	return e->st.st_mtim.tv_sec == e->old.st.st_mtim.tv_sec &&
	       e->st.st_mtim.tv_nsec == e->old.st.st_mtim.tv_nsec;
}

/* The content is the same: nothing is copied. */
static int visit_set_file(struct commit_work *w, const struct visited_entry *e, struct file_copy *f)
{
	const struct journal_op op = { .kind = JOURNAL_SET,
				       .mode = e->st.st_mode & 0777,
				       .mtime_s = e->st.st_mtim.tv_sec,
				       .mtime_nsec = (uint32_t)e->st.st_mtim.tv_nsec };
	int r = 0;

	if (!visit_same_mode(e))
		r = file_copy(w, f);
	else if (visit_same_time(e))
		return 0;
	if (r == 0 && !visit_same_mode(e))
		r = visit_list(w, e, f->sha256);
	return r < 0 ? r : work_add_op(w, &op);
}

static int visit_file(struct commit_work *w, const struct visited_entry *e)
{
	_cleanup_close_ int fd = entry_open(walk_fd(&w->walk), e->name, e->st.st_mode);
	_cleanup_close_ int old_fd = -EBADF;
	struct file_copy f = { .from_fd = fd,
			       .to_fd = -EBADF,
			       .size = e->st.st_size,
			       .sparse = (int64_t)e->st.st_blocks * 512 < e->st.st_size };
	int r, same;

	if (fd < 0)
		return fd;
	if (commit_top(w)->xattr_whiteouts && e->st.st_size == 0 &&
	    fgetxattr(fd, whiteout_names[w->c->user_xattr], NULL, 0) >= 0)
		return e->exists ? gone_remove(w, commit_top(w)->workspace_fd, e->name) : 0;
	if (e->exists && S_ISREG(e->old.st.st_mode) && e->old.st.st_size == e->st.st_size)
		old_fd = sys_open_beneath(commit_top(w)->workspace_fd, e->name,
					  O_RDONLY | O_NONBLOCK);
	/* Unreadable: its content is unknown. */
	same = old_fd < 0 ? 0 : file_compare(w, fd, old_fd, e->st.st_size);
	if (same < 0)
		return same;
	/* If a file has several names in the workspace, only this one changes: the run's copy is no link. */
	if (same && e->st.st_nlink == 1 &&
	    (e->old.st.st_nlink == 1 || (visit_same_mode(e) && visit_same_time(e))))
		return visit_set_file(w, e, &f);
	r = stage_file(w, e, &f);
	if (r == 0 && !(same && visit_same_mode(e)))
		r = visit_list(w, e, f.sha256);
	return r < 0 ? r : visit_replace(w, e);
}

static int stage_link(struct commit_work *w, const struct visited_entry *e)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, e->st.st_mtim };
	struct spot spot;
	struct stat staged;
	int r = visit_spot(w, e, &spot);

	if (r == 0)
		r = sys_symlinkat(w->link, spot.dir_fd, spot.name);
	if (r < 0)
		return r;
	if (geteuid() == 0 && fchownat(spot.dir_fd, spot.name, w->c->owner_uid, w->c->owner_gid,
				       AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (utimensat(spot.dir_fd, spot.name, times, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(spot.dir_fd, spot.name, &staged, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	tree_size_add(&w->added, &staged);
	return 0;
}

/* Returns its length; the kernel has no longer one. */
static ssize_t visit_read_link(int dir_fd, const char *name, char ret[CHANGE_PATH_MAX])
{
	ssize_t n = readlinkat(dir_fd, name, ret, CHANGE_PATH_MAX - 1);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return n;
}

static int visit_link(struct commit_work *w, const struct visited_entry *e)
{
	ssize_t n = visit_read_link(walk_fd(&w->walk), e->name, w->link);
	int r = 0;

	if (n < 0)
		return (int)n;
	if (!link_stays_inside(w->link, w->walk.depth - 1))
		return work_skip(w, &e->st, CHANGE_SKIP_LINK);
	if (e->exists && S_ISLNK(e->old.st.st_mode) &&
	    visit_read_link(commit_top(w)->workspace_fd, e->name, w->old_link) == n &&
	    strcmp(w->link, w->old_link) == 0)
		return 0;
	if (work_applies(w))
		r = stage_link(w, e);
	if (r == 0)
		r = visit_list(w, e, NULL);
	return r < 0 ? r : visit_replace(w, e);
}

static int visit_new_directory(struct commit_work *w, const struct visited_entry *e,
			       struct commit_level *next)
{
	struct spot spot;
	int r = visit_list(w, e, NULL);

	if (r == 0)
		r = visit_replace(w, e);
	if (r < 0 || !work_applies(w))
		return r;
	r = visit_spot(w, e, &spot);
	if (r == 0)
		r = sys_mkdirat(spot.dir_fd, spot.name, 0700);
	if (r < 0)
		return r;
	next->stage_fd = sys_open_beneath(spot.dir_fd, spot.name, O_RDONLY | O_DIRECTORY);
	return next->stage_fd < 0 ? next->stage_fd : 0;
}

static int visit_enter(struct commit_work *w, int fd, const struct commit_level *next)
{
	int r = walk_enter(&w->walk, fd);

	if (r == 0) {
		*commit_top(w) = *next;
		return 0;
	}
	(void)fd_close(next->workspace_fd);
	(void)fd_close(next->stage_fd);
	return r;
}

static int visit_directory(struct commit_work *w, const struct visited_entry *e)
{
	struct commit_level next = { .workspace_fd = -EBADF, .stage_fd = -EBADF, .upper = e->st };
	_cleanup_close_ int fd = -EBADF;
	char mark;
	int r = 0;

	if (w->walk.depth == COMMIT_DEPTH_MAX || strlen(w->walk.path) + 2 > CHANGE_PATH_MAX)
		return work_skip(w, &e->st, CHANGE_SKIP_DEEP);
	fd = entry_open(walk_fd(&w->walk), e->name, e->st.st_mode);
	if (fd < 0)
		return fd;
	if (fgetxattr(fd, opaque_names[w->c->user_xattr], &mark, 1) != 1)
		mark = '\0';
	next.xattr_whiteouts = mark == 'x';
	/* Below an opaque directory nothing is merged, with or without a mark. */
	next.opaque = mark == 'y' || commit_top(w)->opaque;
	if (e->exists && S_ISDIR(e->old.st.st_mode)) {
		next.old = e->old.st;
		next.workspace_fd = entry_open(commit_top(w)->workspace_fd, e->name,
					       e->old.st.st_mode);
		r = MIN(next.workspace_fd, 0);
	} else {
		r = visit_new_directory(w, e, &next);
	}
	if (r < 0)
		return r;
	r = visit_enter(w, TAKE_FD(fd), &next);
	if (r == 0 && next.opaque && next.workspace_fd >= 0)
		r = gone_clear(w);
	return r;
}

int visit_entry(struct commit_work *w, const char *name)
{
	int workspace_fd = commit_top(w)->workspace_fd, r;
	struct visited_entry e = { .name = name };

	if (fstatat(walk_fd(&w->walk), name, &e.st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* At any depth: a writable mount may have stores of other directories inside. */
	if (strcmp(name, STORE_DIR) == 0)
		return work_skip(w, &e.st, CHANGE_SKIP_OWN);
	if (S_ISCHR(e.st.st_mode) && e.st.st_rdev == makedev(0, 0)) /* a whiteout */
		return workspace_fd < 0 ? 0 : gone_remove(w, workspace_fd, name);
	r = workspace_fd < 0 ? -ENOENT : past_look(workspace_fd, name, &e.old);
	if (r < 0 && r != -ENOENT)
		return r;
	e.exists = r == 0;
	if (e.exists && e.old.mounted)
		return work_skip(w, &e.st, CHANGE_SKIP_MOUNT);
	switch (e.st.st_mode & S_IFMT) {
	case S_IFREG:
		return visit_file(w, &e);
	case S_IFLNK:
		return visit_link(w, &e);
	case S_IFDIR:
		return visit_directory(w, &e);
	default:
		return work_skip(w, &e.st, CHANGE_SKIP_SPECIAL);
	}
}

int visit_begin(struct commit_work *w)
{
	struct commit_level top = { .stage_fd = -EBADF };
	int fd;

	/* Opened again: all copies of a descriptor share the directory's position. */
	top.workspace_fd = sys_openat(w->c->workspace_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (top.workspace_fd < 0)
		return top.workspace_fd;
	if (geteuid() != 0)
		(void)fchmod(w->c->upper_fd, 0700);
	fd = sys_openat(w->c->upper_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	w->walk.depth = 0;
	w->walk.path[0] = '\0';
	if (fd < 0) {
		(void)fd_close(top.workspace_fd);
		return fd;
	}
	return visit_enter(w, fd, &top);
}

/*
 * A merged directory: its mode may have changed. Without privilege it may have been made accessible for the
 * walk, and may be again.
 */
static int visit_leave_merged(struct commit_work *w, const struct commit_level *level)
{
	const struct visited_entry e = { .st = level->upper, .exists = true, .old.st = level->old };
	const bool opened = geteuid() != 0 && (level->old.st_mode & 0700) != 0700;
	int r = 0;

	if (opened && fchmod(level->workspace_fd, level->old.st_mode & 0777) < 0)
		return -errno;
	if (!visit_same_mode(&e))
		r = commit_list_add(w, &(struct list_entry){ .kind = CHANGE_CHANGED, .st = &e.st });
	else if (!opened)
		return 0;
	if (r < 0)
		return r;
	return work_add_op(w, &(struct journal_op){ .kind = JOURNAL_SET,
						    .mode = level->upper.st_mode & 0777,
						    .mtime_nsec = JOURNAL_KEEP_TIME });
}

static int visit_leave_staged(struct commit_work *w, const struct commit_level *level)
{
	/* A directory that is moved must be writable, because its ".." changes. */
	const bool late = geteuid() != 0 && !(level->upper.st_mode & 0200) &&
			  w->levels[w->walk.depth - 2].stage_fd < 0;
	struct stat staged;
	int r = file_finish(w, level->stage_fd, &level->upper,
			    level->upper.st_mode | (late ? 0200 : 0));

	if (r < 0)
		return r;
	if (fstat(level->stage_fd, &staged) < 0)
		return -errno;
	tree_size_add(&w->added, &staged);
	if (!late)
		return 0;
	return work_add_op(w, &(struct journal_op){ .kind = JOURNAL_SET,
						    .mode = level->upper.st_mode & 0777,
						    .mtime_nsec = JOURNAL_KEEP_TIME });
}

static void visit_leave_level(struct commit_work *w)
{
	struct commit_level *level = commit_top(w);

	level->stage_fd = fd_close(level->stage_fd);
	level->workspace_fd = fd_close(level->workspace_fd);
	walk_leave(&w->walk);
}

int visit_leave(struct commit_work *w)
{
	const struct commit_level *level = commit_top(w);
	int r = 0;

	if (level->stage_fd >= 0)
		r = visit_leave_staged(w, level);
	else if (level->workspace_fd >= 0 && w->walk.depth > 1)
		r = visit_leave_merged(w, level);
	visit_leave_level(w);
	return r;
}

void visit_drop(struct commit_work *w)
{
	/* Restores the modes that were changed for the walk. */
	for (; w->walk.depth > 0; visit_leave_level(w))
		if (commit_top(w)->workspace_fd >= 0 && w->walk.depth > 1 && geteuid() != 0)
			(void)fchmod(commit_top(w)->workspace_fd,
				     commit_top(w)->old.st_mode & 0777);
}
