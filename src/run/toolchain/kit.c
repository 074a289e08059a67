/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest is a header, then a record a file: its identity (as toolchain.h), for files of the kit the hash of the content, its path.
 * Finding a kit reads its manifest and stats each file without opening it: a thousand files take less than a
 * millisecond. Only kit_verify() compares contents; that takes too long for a request.
 *
 * A draft is a directory beside its place, and one rename makes it a kit. Removing goes the other way: a rename hides the kit, then
 * its files are removed.
 */
#include "run/toolchain/kit.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/toolchain/data.h"
#include "run/toolchain/kept.h"
#include "run/toolchain/toolchain.h"
#include "spec/request.h"

#define KIT_MAGIC "ATOLLKT1"
#define KIT_TREE  "tree"

enum {
	KIT_MAGIC_LEN = 8,
	KIT_HASH_LEN = KEPT_KEY_LEN,
	KIT_MANIFEST_MAX = 4 << 20,
	PATH_BYTES_MAX = 1023, /* the longest path in a plan */
	CHUNK = 65536,
	DEPTH_MAX = 8, /* deep enough for any kit; deeper directories belong to no kit and stay */
};

struct kit_header {
	char magic[KIT_MAGIC_LEN];
	char sum[KIT_HASH_LEN]; /* over everything after it */
	int64_t bytes;		/* of the tree */
};

struct kit_record {
	struct tool_id id;
	char sha256[KIT_HASH_LEN]; /* zeros: a file of the host */
	uint32_t path_len;	   /* without the NUL that follows the path */
	uint32_t own;
};

/* An opened kit: its manifest is complete, its files have not been checked. */
struct kit_opened {
	int dir_fd, tree_fd, manifest_fd;
	struct buf manifest;
	int64_t bytes;
};
#define KIT_CLOSED                                                                                 \
	{                                                                                          \
		-EBADF, -EBADF, -EBADF, { 0 }, 0                                                   \
	}

int kit_key(const struct language *lang, const struct policy *policy, char ret[SHA256_HEX])
{
	const char *const *const lists[] = {
		(const char *const *)lang->kit.make, (const char *const *)lang->kit.words,
		(const char *const *)lang->kit.env,  (const char *const *)lang->compile.argv,
		(const char *const *)lang->env,	     (const char *const *)lang->etc,
		(const char *const *)policy->usr,    (const char *const *)policy->etc,
	};
	struct sha256 hash;
	int r;

	sha256_init(&hash);
	sha256_update(&hash, KIT_MAGIC, KIT_MAGIC_LEN);
	sha256_update(&hash, lang->name, strlen(lang->name) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		sha256_words(&hash, lists[i]);
	r = kept_hash_language(&hash, NULL, lang);
	if (r == 0)
		sha256_final(&hash, ret);
	return r;
}

/* Other users may read it: a kit holds no secrets, and sandboxes run as other users. */
static int open_shared(const char *path)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat st;

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* Owned by this user, or made by root for all users. */
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
		return -EPERM;
	return TAKE_FD(fd);
}

int kit_place_open(int cache_fd)
{
	const char *named = getenv("ATOLL_KIT_DIR");

	if (named && *named)
		return named[0] == '/' ? open_shared(named) : -ENOENT;
	return geteuid() == 0 ? open_shared("/var/cache/atoll") : cache_open_dir(cache_fd, "kit");
}

/* The path of a directory, in a form that a plan accepts. */
static int kit_path_of(int fd, char *ret, size_t size)
{
	char link[40];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, size);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size || n > PATH_BYTES_MAX)
		return -ENAMETOOLONG;
	ret[n] = '\0';
	/* These characters have a meaning in an overlay's options, so a plan with them is refused. */
	return ret[0] != '/' || strpbrk(ret, ":,\\\"") ? -EINVAL : 0;
}

static int kit_open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void kit_opened_done(struct kit_opened *k)
{
	(void)fd_close(k->dir_fd);
	(void)fd_close(k->tree_fd);
	(void)fd_close(k->manifest_fd);
	buf_done(&k->manifest);
}

/* Hashes a manifest after its sum. */
static void kit_sum(const struct buf *manifest, char ret[SHA256_HEX])
{
	const size_t skip = offsetof(struct kit_header, bytes);

	assert(manifest->len >= sizeof(struct kit_header));
	kept_hash(manifest->data + skip, manifest->len - skip, ret);
}

/* k must be KIT_CLOSED. */
static int kit_open(int place_fd, const char *key, struct kit_opened *k)
{
	char sum[SHA256_HEX];
	struct kit_header head;
	int r;

	buf_init(&k->manifest, KIT_MANIFEST_MAX);
	if (place_fd < 0 || !kept_is_key(key))
		return -ENOENT;
	k->dir_fd = kit_open_dir(place_fd, key);
	if (k->dir_fd < 0)
		return k->dir_fd;
	k->tree_fd = kit_open_dir(k->dir_fd, KIT_TREE);
	k->manifest_fd = openat(k->dir_fd, "manifest",
				O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (k->tree_fd < 0 || k->manifest_fd < 0)
		return -EBADMSG;
	r = buf_read_fd(&k->manifest, k->manifest_fd);
	if (r < 0)
		return r;
	if (k->manifest.len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, k->manifest.data, sizeof(head));
	kit_sum(&k->manifest, sum);
	if (memcmp(head.magic, KIT_MAGIC, KIT_MAGIC_LEN) != 0 ||
	    memcmp(head.sum, sum, KIT_HASH_LEN) != 0)
		return -EBADMSG;
	k->bytes = head.bytes;
	return 0;
}

static int kit_hash_file(int dir_fd, const char *path, char ret[SHA256_HEX])
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ char *chunk = malloc(CHUNK);
	struct sha256 hash;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (!chunk)
		return -ENOMEM;
	sha256_init(&hash);
	while ((n = read(fd, chunk, CHUNK)) > 0)
		sha256_update(&hash, chunk, (size_t)n);
	if (n < 0)
		return -errno;
	sha256_final(&hash, ret);
	return 0;
}

/* Identifies a regular file below the tree. */
static int kit_identify(int tree_fd, const char *path, struct tool_id *ret)
{
	struct stat st;

	if (fstatat(tree_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	tool_id_of(&st, ret);
	return 0;
}

/* 0: the files are those that were published, by their identity or by their content too. */
static int kit_check(const struct kit_opened *k, bool content)
{
	const char *p = k->manifest.data + sizeof(struct kit_header), *path;
	const char *end = k->manifest.data + k->manifest.len;

	while (p != end) {
		char sum[SHA256_HEX];
		struct kit_record rec;
		struct tool_id id;
		int r;

		if ((size_t)(end - p) < sizeof(rec))
			return -EBADMSG;
		memcpy(&rec, p, sizeof(rec));
		path = p + sizeof(rec);
		if (rec.path_len >= (size_t)(end - path) || path[rec.path_len] != '\0')
			return -EBADMSG;
		p = path + rec.path_len + 1;
		r = rec.own ? kit_identify(k->tree_fd, path, &id) : tool_identify(NULL, path, &id);
		if (r < 0)
			return r;
		if (memcmp(&id, &rec.id, sizeof(id)) != 0)
			return -ESTALE;
		if (!content || !rec.own)
			continue;
		r = kit_hash_file(k->tree_fd, path, sum);
		if (r < 0)
			return r;
		if (memcmp(sum, rec.sha256, KIT_HASH_LEN) != 0)
			return -EBADMSG;
	}
	return 0;
}

int kit_find(int place_fd, const char *key, char *ret, size_t size)
{
	_cleanup_(kit_opened_done) struct kit_opened k = KIT_CLOSED;
	int r = kit_open(place_fd, key, &k);

	if (r >= 0)
		r = kit_check(&k, false);
	if (r >= 0)
		r = kit_path_of(k.tree_fd, ret, size);
	if (r < 0)
		return -ENOENT;
	(void)futimens(k.manifest_fd, NULL);
	return 0;
}

int kit_verify(int place_fd, const char *key)
{
	_cleanup_(kit_opened_done) struct kit_opened k = KIT_CLOSED;
	int r = kit_open(place_fd, key, &k);

	return r < 0 ? r : kit_check(&k, true);
}

static void kit_remove_tree(int dir_fd, const char *name, int depth)
{
	int fd = depth < DEPTH_MAX ? kit_open_dir(dir_fd, name) : -ELOOP;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir) {
		(void)fd_close(fd);
		return;
	}
	for (struct dirent *d; (d = readdir(dir));)
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
		    unlinkat(fd, d->d_name, 0) < 0)
			kit_remove_tree(fd, d->d_name, depth + 1);
	(void)closedir(dir);
	(void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}

/* Hidden from all users in one step, then removed file by file. */
static void kit_discard(int place_fd, const char *name)
{
	char old[KEPT_NAME];

	if (kept_name(KEPT_OLD, old) < 0 || renameat(place_fd, name, place_fd, old) < 0)
		return;
	kit_remove_tree(place_fd, old, 0);
}

int kit_draft_begin(int place_fd, struct kit_draft *ret)
{
	struct kit_draft draft = { .place_fd = place_fd };
	_cleanup_close_ int fd = -EBADF;
	int r = kept_name(KEPT_NEW, draft.name);

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

static int kit_add_record(struct buf *out, struct kit_record rec, const char *path)
{
	int r;

	rec.path_len = (uint32_t)strlen(path);
	r = buf_append(out, &rec, sizeof(rec));
	return r < 0 ? r : buf_append(out, path, rec.path_len + 1);
}

static int kit_add_own(struct buf *out, int tree_fd, const struct kit_file *file, int64_t *bytes)
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
	return kit_add_record(out, rec, file->path);
}

/* If a line is no absolute path, or names no file, the recipe does not fit this host. */
static int kit_add_inputs(struct buf *out, int tree_fd)
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
			r = kit_add_record(out, rec, line);
	}
	return r;
}

static int kit_write_manifest(int dir_fd, struct buf *out, int64_t bytes)
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
	if (!kept_is_key(key) || n == 0 || n > KIT_FILES_MAX)
		return -EINVAL;
	r = buf_append(&out, &empty, sizeof(empty));
	for (size_t i = 0; r == 0 && i < n; i++)
		r = kit_add_own(&out, tree_fd, &files[i], &bytes);
	if (r == 0)
		r = kit_add_inputs(&out, tree_fd);
	if (r == 0 && bytes > KIT_BYTES_MAX / 2)
		r = -EFBIG;
	if (r == 0)
		r = kit_write_manifest(fd, &out, bytes);
	if (r < 0)
		return r;
	kit_discard(draft->place_fd, key);
	if (renameat(draft->place_fd, draft->name, draft->place_fd, key) < 0)
		return -errno;
	draft->name[0] = '\0';
	kit_sweep(draft->place_fd, KIT_BYTES_MAX, KITS_MAX);
	return 0;
}

void kit_draft_end(struct kit_draft *draft)
{
	if (draft->name[0])
		kit_discard(draft->place_fd, draft->name);
	draft->name[0] = '\0';
}

static bool kit_look(int place_fd, const char *name, struct kept_entry *ret)
{
	_cleanup_(kit_opened_done) struct kit_opened k = KIT_CLOSED;
	struct stat st;

	if (kit_open(place_fd, name, &k) < 0 || fstat(k.manifest_fd, &st) < 0)
		return false;
	ret->bytes = k.bytes;
	ret->used = st.st_mtim;
	return true;
}

void kit_sweep(int place_fd, int64_t max_bytes, size_t max_kits)
{
	kept_sweep(place_fd, &(struct kept_rules){ max_bytes, max_kits, kit_look, kit_discard });
}
