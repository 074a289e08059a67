/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File format: 8 bytes magic, 64 hex digits of SHA-256 over all that follows, then a record per file: lengths
 * and mode, path with NUL, bytes. A loaded product borrows everything from the one block it was read into.
 * Loading an entry updates its time, so the sweep after a store removes the least recently used ones.
 */
#include "run/toolchain/buildcache.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/toolchain/data.h"
#include "run/toolchain/kept.h"

#define MAGIC "ATOLLBC1"

enum {
	MAGIC_LEN = 8,
	HASH_LEN = KEPT_KEY_LEN,
	HEADER_LEN = MAGIC_LEN + HASH_LEN,
};

struct record_header {
	uint64_t size;
	uint32_t path_len; /* without the NUL that follows the path */
	uint32_t mode;
};

static int by_path(const void *a, const void *b)
{
	const struct request_file *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

static int hash_files(struct sha256 *hash, const struct request_file *files, size_t n)
{
	_cleanup_free_ const struct request_file **sorted = calloc(n + 1,
								   sizeof(struct request_file *));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &files[i];
	qsort(sorted, n, sizeof(struct request_file *), by_path);
	for (size_t i = 0; i < n; i++) {
		uint64_t len = sorted[i]->data.len;

		sha256_update(hash, sorted[i]->path, strlen(sorted[i]->path) + 1);
		sha256_update(hash, &len, sizeof(len));
		sha256_update(hash, sorted[i]->data.data, len);
	}
	return 0;
}

int buildcache_key(const struct buildcache_input *in, char ret[SHA256_HEX])
{
	struct sha256 hash;
	uint64_t n_files = in->n_files;
	int r;

	sha256_init(&hash);
	sha256_update(&hash, MAGIC, MAGIC_LEN);
	sha256_update(&hash, in->language->name, strlen(in->language->name) + 1);
	sha256_words(&hash, in->argv);
	sha256_words(&hash, in->env);
	r = kept_hash_language(&hash, in->image, in->language);
	if (r < 0)
		return r;
	sha256_update(&hash, &n_files, sizeof(n_files));
	r = hash_files(&hash, in->files, in->n_files);
	if (r < 0)
		return r;
	sha256_final(&hash, ret);
	return 0;
}

void build_product_done(struct build_product *p)
{
	free(p->files);
	free(p->bytes);
	*p = (struct build_product){ 0 };
}

/* Takes one record off [*p, end). The hash has matched, so a bad length means a bug or a forgery. */
static int record_take(char **p, const char *end, struct request_file *ret)
{
	struct record_header head;

	if ((size_t)(end - *p) < sizeof(head))
		return -EBADMSG;
	memcpy(&head, *p, sizeof(head));
	*p += sizeof(head);
	if (head.path_len >= (size_t)(end - *p) || (*p)[head.path_len] != '\0')
		return -EBADMSG;
	*ret = (struct request_file){ .path = *p, .mode = head.mode };
	*p += head.path_len + 1;
	if (head.size > (size_t)(end - *p))
		return -EBADMSG;
	ret->data = (struct span){ .data = *p, .len = head.size };
	*p += head.size;
	return request_check_path(ret->path, strlen(ret->path), NULL);
}

static int product_decode(char *bytes, size_t len, struct build_product *ret)
{
	_cleanup_free_ struct request_file *files = NULL;
	char *p = bytes + HEADER_LEN, sum[SHA256_HEX];
	size_t n = 0;

	if (len < HEADER_LEN || memcmp(bytes, MAGIC, MAGIC_LEN) != 0)
		return -EBADMSG;
	kept_hash(p, len - HEADER_LEN, sum);
	if (memcmp(sum, bytes + MAGIC_LEN, HASH_LEN) != 0)
		return -EBADMSG;
	files = calloc(BUILDCACHE_FILES_MAX, sizeof(*files));
	if (!files)
		return -ENOMEM;
	while (p < bytes + len) {
		if (n == BUILDCACHE_FILES_MAX || record_take(&p, bytes + len, &files[n]) < 0)
			return -EBADMSG;
		n++;
	}
	*ret = (struct build_product){ .files = TAKE_PTR(files), .n_files = n, .bytes = bytes };
	return 0;
}

int buildcache_load(int cache_fd, const char *key, struct build_product *ret)
{
	_cleanup_close_ int dir_fd = cache_open_dir(cache_fd, "build"), fd = -EBADF;
	_cleanup_buf_ struct buf content = { 0 };
	int r;

	buf_init(&content, (size_t)BUILDCACHE_BYTES_MAX);
	if (dir_fd < 0 || !kept_is_key(key))
		return -ENOENT;
	fd = openat(dir_fd, key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -ENOENT;
	r = buf_read_fd(&content, fd);
	if (r == 0 && content.data)
		r = product_decode(content.data, content.len, ret);
	else
		r = -EBADMSG;
	if (r < 0) {
		(void)unlinkat(dir_fd, key, 0);
		return -ENOENT;
	}
	(void)buf_take(&content); /* the product owns the block now */
	(void)futimens(fd, NULL);
	return 0;
}

static int product_encode(const struct build_product *product, struct buf *ret)
{
	char header[HEADER_LEN + 1] = MAGIC, *hash = header + MAGIC_LEN;
	int r;

	memset(hash, '0', HASH_LEN);
	r = buf_append(ret, header, HEADER_LEN);
	for (size_t i = 0; r == 0 && i < product->n_files; i++) {
		const struct request_file *f = &product->files[i];
		struct record_header head = {
			.size = f->data.len,
			.path_len = (uint32_t)strlen(f->path),
			.mode = f->mode & 0777,
		};

		r = request_check_path(f->path, head.path_len, NULL);
		if (r == 0)
			r = buf_append(ret, &head, sizeof(head));
		if (r == 0)
			r = buf_append(ret, f->path, head.path_len + 1);
		if (r == 0)
			r = buf_append(ret, f->data.data, f->data.len);
	}
	if (r < 0)
		return r == -ENOBUFS ? -EFBIG : r;
	kept_hash(ret->data + HEADER_LEN, ret->len - HEADER_LEN, hash);
	memcpy(ret->data, header, HEADER_LEN);
	return 0;
}

static bool build_look(int dir_fd, const char *name, struct kept_entry *ret)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	ret->bytes = st.st_size;
	ret->used = st.st_mtim;
	return true;
}

static void build_remove(int dir_fd, const char *name)
{
	(void)unlinkat(dir_fd, name, 0);
}

int buildcache_store(int cache_fd, const char *key, const struct build_product *product,
		     int64_t max_bytes)
{
	_cleanup_close_ int dir_fd = cache_open_dir(cache_fd, "build");
	_cleanup_buf_ struct buf content = { 0 };
	int r;

	buf_init(&content, (size_t)(max_bytes / 4));
	if (dir_fd < 0)
		return dir_fd;
	if (!kept_is_key(key) || product->n_files == 0 || product->n_files > BUILDCACHE_FILES_MAX)
		return -EINVAL;
	r = product_encode(product, &content);
	if (r == 0)
		r = kept_write(dir_fd, key, content.data, content.len);
	if (r == 0)
		kept_sweep(dir_fd,
			   &(struct kept_rules){ max_bytes, SIZE_MAX, build_look, build_remove });
	return r;
}
