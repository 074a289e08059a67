/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes kits: a draft is a directory beside its place, and one rename makes it a kit. Removing goes the other
 * way: a rename hides the kit, then its files are removed.
 */
#include "run/toolchain/kit-file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "spec/request.h"

/* Deep enough for any kit; deeper directories belong to no kit and stay. */
enum { DEPTH_MAX = 8, STALE_SECONDS = 3600, SWEEP_MAX = 256 };

struct removal {
	DIR *dirs[DEPTH_MAX];
	char names[DEPTH_MAX][NAME_MAX + 1];
	size_t depth;
};

static bool removal_enter(struct removal *r, int at_fd, const char *name)
{
	int fd = r->depth < DEPTH_MAX ? kit_open_dir(at_fd, name) : -ELOOP;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir) {
		(void)fd_close(fd);
		return false;
	}
	(void)snprintf(r->names[r->depth], sizeof(r->names[0]), "%s", name);
	r->dirs[r->depth++] = dir;
	return true;
}

static void remove_dir(int dir_fd, const char *name)
{
	struct removal r = { .depth = 0 };

	if (!removal_enter(&r, dir_fd, name))
		return;
	while (r.depth > 0) {
		int fd = dirfd(r.dirs[r.depth - 1]);
		struct dirent *d = readdir(r.dirs[r.depth - 1]);

		if (!d) {
			(void)closedir(r.dirs[--r.depth]);
			fd = r.depth > 0 ? dirfd(r.dirs[r.depth - 1]) : dir_fd;
			(void)unlinkat(fd, r.names[r.depth], AT_REMOVEDIR);
		} else if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
			   unlinkat(fd, d->d_name, 0) < 0) {
			(void)removal_enter(&r, fd, d->d_name);
		}
	}
}

static int random_name(const char *prefix, char *ret, size_t size)
{
	uint64_t salt;

	if (getrandom(&salt, sizeof(salt), 0) != (ssize_t)sizeof(salt))
		return -EIO;
	(void)snprintf(ret, size, "%s%016llx", prefix, (unsigned long long)salt);
	return 0;
}

/* Hidden from all users in one step, then removed file by file. */
static void discard(int place_fd, const char *name)
{
	char old[32];

	if (random_name(".old-", old, sizeof(old)) < 0 ||
	    renameat(place_fd, name, place_fd, old) < 0)
		return;
	remove_dir(place_fd, old);
}

int kit_draft_begin(int place_fd, struct kit_draft *ret)
{
	struct kit_draft draft = { .place_fd = place_fd };
	_cleanup_close_ int fd = -EBADF;
	int r = random_name(".new-", draft.name, sizeof(draft.name));

	if (r < 0)
		return r;
	if (mkdirat(place_fd, draft.name, 0755) < 0)
		return -errno;
	fd = kit_open_dir(place_fd, draft.name);
	if (fd < 0 || mkdirat(fd, KIT_TREE, 0755) < 0) {
		r = fd < 0 ? fd : -errno;
		(void)unlinkat(place_fd, draft.name, AT_REMOVEDIR);
		return r;
	}
	*ret = draft;
	return 0;
}

int kit_draft_path(const struct kit_draft *draft, char *ret, size_t size)
{
	_cleanup_close_ int fd = kit_open_dir(draft->place_fd, draft->name);
	_cleanup_close_ int tree_fd = fd < 0 ? fd : kit_open_dir(fd, KIT_TREE);

	return tree_fd < 0 ? tree_fd : kit_path_of(tree_fd, ret, size);
}

static int add_record(struct buf *out, struct kit_record rec, const char *path)
{
	int r;

	rec.path_len = (uint32_t)strlen(path);
	r = buf_append(out, &rec, sizeof(rec));
	return r < 0 ? r : buf_append(out, path, rec.path_len + 1);
}

static int add_own(struct buf *out, int tree_fd, const struct kit_file *file, int64_t *bytes)
{
	struct kit_record rec = { .own = 1 };
	int r = request_check_path(file->path, strlen(file->path), NULL);

	if (r < 0 || strlen(file->sha256) != KIT_HASH_LEN)
		return -EINVAL;
	memcpy(rec.sha256, file->sha256, KIT_HASH_LEN);
	/* Sandboxes of root run as other users. */
	if (fchmodat(tree_fd, file->path, 0644, 0) < 0)
		return -errno;
	r = kit_identify(tree_fd, file->path, &rec.id);
	if (r < 0)
		return r;
	*bytes += rec.id.size;
	return add_record(out, rec, file->path);
}

/* If a line is no absolute path, or names no file, the recipe does not fit this host. */
static int add_inputs(struct buf *out, int tree_fd)
{
	_cleanup_close_ int fd = openat(tree_fd, KIT_INPUTS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_buf_ struct buf text = { .max = KIT_MANIFEST_MAX };
	char *line, *rest;
	size_t n = 0;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = buf_read_fd(&text, fd);
	rest = text.data;
	while (r == 0 && rest && *rest) {
		struct kit_record rec = { .own = 0 };
		char *newline = strchr(rest, '\n');

		line = rest;
		rest = newline ? newline + 1 : NULL;
		if (newline)
			*newline = '\0';
		if (line[0] != '/' || ++n > KIT_INPUTS_MAX)
			return -EINVAL;
		r = tool_identify(NULL, line, &rec.id);
		if (r == 0)
			r = add_record(out, rec, line);
	}
	return r;
}

static int write_manifest(int dir_fd, struct buf *out, int64_t bytes)
{
	_cleanup_close_ int fd = -EBADF;
	struct kit_header head = { .bytes = bytes };
	char sum[SHA256_HEX];
	int r;

	memcpy(out->data, &head, sizeof(head));
	kit_sum(out, sum);
	memcpy(head.magic, KIT_MAGIC, KIT_MAGIC_LEN);
	memcpy(head.sum, sum, KIT_HASH_LEN);
	memcpy(out->data, &head, sizeof(head));
	fd = openat(dir_fd, "manifest", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, out->data, out->len);
	/* After a crash there is the whole kit or none. No request waits for this. */
	if (r == 0 && syncfs(fd) < 0)
		r = -errno;
	return r;
}

int kit_draft_publish(struct kit_draft *draft, const char *key, const struct kit_file *files,
		      size_t n)
{
	_cleanup_close_ int fd = kit_open_dir(draft->place_fd, draft->name);
	_cleanup_close_ int tree_fd = fd < 0 ? fd : kit_open_dir(fd, KIT_TREE);
	_cleanup_buf_ struct buf out = { 0 };
	const struct kit_header empty = { 0 };
	int64_t bytes = 0;
	int r;

	buf_init(&out, KIT_MANIFEST_MAX);
	if (tree_fd < 0)
		return tree_fd;
	if (!kit_is_key(key) || n == 0 || n > KIT_FILES_MAX)
		return -EINVAL;
	r = buf_append(&out, &empty, sizeof(empty));
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_own(&out, tree_fd, &files[i], &bytes);
	if (r == 0)
		r = add_inputs(&out, tree_fd);
	if (r == 0 && bytes > KIT_BYTES_MAX / 2)
		r = -EFBIG;
	if (r == 0)
		r = write_manifest(fd, &out, bytes);
	if (r < 0)
		return r;
	discard(draft->place_fd, key);
	if (renameat(draft->place_fd, draft->name, draft->place_fd, key) < 0)
		return -errno;
	draft->name[0] = '\0';
	kit_sweep(draft->place_fd, KIT_BYTES_MAX, KITS_MAX);
	return 0;
}

void kit_draft_end(struct kit_draft *draft)
{
	if (draft->name[0])
		discard(draft->place_fd, draft->name);
	draft->name[0] = '\0';
}

/* A kit in the list of a sweep. */
struct cached_kit {
	char name[KIT_HASH_LEN + 1];
	int64_t bytes;
	struct timespec used;
};

static int newest_first(const void *a, const void *b)
{
	const struct cached_kit *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec > y->used.tv_sec ? -1 : 1;
	return (x->used.tv_nsec < y->used.tv_nsec) - (x->used.tv_nsec > y->used.tv_nsec);
}

static bool is_stale_kit(int place_fd, const char *name)
{
	struct stat st;

	return (strncmp(name, ".new-", 5) == 0 || strncmp(name, ".old-", 5) == 0) &&
	       fstatat(place_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtim.tv_sec + STALE_SECONDS < time(NULL);
}

static bool look_at_kit(int place_fd, const char *name, struct cached_kit *ret)
{
	_cleanup_(kit_opened_done) struct kit_opened k = KIT_CLOSED;
	struct stat st;

	if (kit_open(place_fd, name, &k) < 0 || fstat(k.manifest_fd, &st) < 0)
		return false;
	*ret = (struct cached_kit){ .bytes = k.bytes, .used = st.st_mtim };
	memcpy(ret->name, name, KIT_HASH_LEN);
	return true;
}

/* Lists complete kits; removes the others. */
static size_t list_kits(int place_fd, DIR *dir, struct cached_kit *ret, size_t max)
{
	struct dirent *d;
	size_t n = 0;

	while (n < max && (d = readdir(dir))) {
		if (kit_is_key(d->d_name) ? look_at_kit(place_fd, d->d_name, &ret[n]) : false)
			n++;
		else if (kit_is_key(d->d_name) || is_stale_kit(place_fd, d->d_name))
			discard(place_fd, d->d_name);
	}
	return n;
}

void kit_sweep(int place_fd, int64_t max_bytes, size_t max_kits)
{
	_cleanup_free_ struct cached_kit *kits = calloc(SWEEP_MAX, sizeof(*kits));
	int fd = kit_open_dir(place_fd, ".");
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	int64_t sum = 0;
	size_t n;

	if (!dir) {
		(void)fd_close(fd);
		return;
	}
	n = kits ? list_kits(place_fd, dir, kits, SWEEP_MAX) : 0;
	(void)closedir(dir);
	if (n > 0)
		qsort(kits, n, sizeof(*kits), newest_first);
	for (size_t i = 0; i < n; i++) {
		sum += kits[i].bytes;
		if (i >= max_kits || sum > max_bytes)
			discard(place_fd, kits[i].name);
	}
}
