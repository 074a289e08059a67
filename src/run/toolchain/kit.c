/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a kit reads its manifest and stats each file without opening it: a thousand files take less than a
 * millisecond. Only kit_verify() compares contents; that takes too long for a request.
 */
#include "run/toolchain/kit-file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/toolchain/data.h"

enum { PATH_BYTES_MAX = 1023 /* the longest path in a plan */, CHUNK = 65536 };

static int hash_tool(struct sha256 *hash, const char *path)
{
	struct tool_id id;
	int r = tool_identify(NULL, path, &id);

	if (r < 0)
		return r;
	sha256_update(hash, path, strlen(path) + 1);
	sha256_update(hash, &id, sizeof(id));
	return 0;
}

int kit_key(const struct language *lang, const struct policy *policy, char ret[SHA256_HEX])
{
	const char *const *const lists[] = {
		(const char *const *)lang->kit.make, (const char *const *)lang->kit.words,
		(const char *const *)lang->kit.env,  (const char *const *)lang->compile_argv,
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
	r = hash_tool(&hash, lang->runtime);
	for (const char **need = lang->needs; r == 0 && *need; need++)
		r = hash_tool(&hash, *need);
	if (r == 0)
		sha256_final(&hash, ret);
	return r;
}

bool kit_is_key(const char *key)
{
	return strlen(key) == KIT_HASH_LEN && strspn(key, "0123456789abcdef") == KIT_HASH_LEN;
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

int kit_path_of(int fd, char *ret, size_t size)
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

int kit_open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void kit_opened_done(struct kit_opened *k)
{
	(void)fd_close(k->dir_fd);
	(void)fd_close(k->tree_fd);
	(void)fd_close(k->manifest_fd);
	buf_done(&k->manifest);
}

void kit_sum(const struct buf *manifest, char ret[SHA256_HEX])
{
	const size_t skip = offsetof(struct kit_header, bytes);
	struct sha256 hash;

	sha256_init(&hash);
	sha256_update(&hash, manifest->data + skip, manifest->len - skip);
	sha256_final(&hash, ret);
}

static int check_manifest(struct kit_opened *k)
{
	char sum[SHA256_HEX];
	struct kit_header head;

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

int kit_open(int place_fd, const char *key, struct kit_opened *k)
{
	int r;

	buf_init(&k->manifest, KIT_MANIFEST_MAX);
	if (place_fd < 0 || !kit_is_key(key))
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
	return r < 0 ? r : check_manifest(k);
}

/* Takes one record off [*p, end); 0 at the end. */
static int record_take(const char **p, const char *end, struct kit_record *ret, const char **path)
{
	if (*p == end)
		return 0;
	if ((size_t)(end - *p) < sizeof(*ret))
		return -EBADMSG;
	memcpy(ret, *p, sizeof(*ret));
	*p += sizeof(*ret);
	if (ret->path_len >= (size_t)(end - *p) || (*p)[ret->path_len] != '\0')
		return -EBADMSG;
	*path = *p;
	*p += ret->path_len + 1;
	return 1;
}

static int hash_file(int dir_fd, const char *path, char ret[SHA256_HEX])
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

int kit_identify(int tree_fd, const char *path, struct tool_id *ret)
{
	struct stat st;

	if (fstatat(tree_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	tool_id_of(&st, ret);
	return 0;
}

static int check_record(const struct kit_opened *k, const struct kit_record *rec, const char *path,
			bool content)
{
	char sum[SHA256_HEX];
	struct tool_id id;
	int r = rec->own ? kit_identify(k->tree_fd, path, &id) : tool_identify(NULL, path, &id);

	if (r < 0)
		return r;
	if (memcmp(&id, &rec->id, sizeof(id)) != 0)
		return -ESTALE;
	if (!content || !rec->own)
		return 0;
	r = hash_file(k->tree_fd, path, sum);
	if (r < 0)
		return r;
	return memcmp(sum, rec->sha256, KIT_HASH_LEN) == 0 ? 0 : -EBADMSG;
}

static int check_files(const struct kit_opened *k, bool content)
{
	const char *p = k->manifest.data + sizeof(struct kit_header), *path;
	const char *end = k->manifest.data + k->manifest.len;
	struct kit_record rec;
	int r;

	while ((r = record_take(&p, end, &rec, &path)) > 0) {
		r = check_record(k, &rec, path, content);
		if (r < 0)
			return r;
	}
	return r;
}

int kit_find(int place_fd, const char *key, char *ret, size_t size)
{
	_cleanup_(kit_opened_done) struct kit_opened k = KIT_CLOSED;
	int r = kit_open(place_fd, key, &k);

	if (r >= 0)
		r = check_files(&k, false);
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

	return r < 0 ? r : check_files(&k, true);
}
