/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See kept.h. A sweep reads the whole directory, because only the sum of its entries tells whether one of them must go: that takes
 * time only after an entry was written, when no request waits.
 */
#include "run/toolchain/kept.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/toolchain/toolchain.h"

enum { ENTRIES_MAX = 65536 /* read by one sweep */, STALE_SECONDS = 3600 };

bool kept_is_key(const char *name)
{
	return strlen(name) == KEPT_KEY_LEN && strspn(name, "0123456789abcdef") == KEPT_KEY_LEN;
}

int kept_hash_language(struct sha256 *hash, const char *image, const struct language *lang)
{
	const char *path = lang->runtime.path;

	for (const char **need = lang->runtime.needs; path; path = *need++) {
		struct tool_id id;
		int r = tool_identify(image, path, &id);

		if (r < 0)
			return r;
		sha256_update(hash, path, strlen(path) + 1);
		sha256_update(hash, &id, sizeof(id));
	}
	return 0;
}

void kept_hash(const void *data, size_t len, char ret[SHA256_HEX])
{
	struct sha256 hash;

	sha256_init(&hash);
	sha256_update(&hash, data, len);
	sha256_final(&hash, ret);
}

int kept_name(const char *prefix, char ret[KEPT_NAME])
{
	uint64_t salt;

	if (getrandom(&salt, sizeof(salt), 0) != (ssize_t)sizeof(salt))
		return -EIO;
	(void)snprintf(ret, KEPT_NAME, "%s%016llx", prefix, (unsigned long long)salt);
	return 0;
}

int kept_write(int dir_fd, const char *key, const void *data, size_t len)
{
	_cleanup_close_ int fd = -EBADF;
	char temporary[KEPT_NAME];
	int r = kept_name(KEPT_NEW, temporary);

	if (r < 0)
		return r;
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, data, len);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, key) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, temporary, 0);
	return r;
}

static bool kept_is_left_over(int dir_fd, const char *name)
{
	struct stat st;

	return (strncmp(name, KEPT_NEW, strlen(KEPT_NEW)) == 0 ||
		strncmp(name, KEPT_OLD, strlen(KEPT_OLD)) == 0) &&
	       fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtim.tv_sec + STALE_SECONDS < time(NULL);
}

static int kept_newest_first(const void *a, const void *b)
{
	const struct kept_entry *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec > y->used.tv_sec ? -1 : 1;
	return (x->used.tv_nsec < y->used.tv_nsec) - (x->used.tv_nsec > y->used.tv_nsec);
}

void kept_sweep(int dir_fd, const struct kept_rules *rules)
{
	_cleanup_free_ struct kept_entry *entries = NULL;
	size_t n = 0, capacity = 0;
	int64_t sum = 0;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir) {
		(void)fd_close(fd);
		return;
	}
	for (struct dirent *d; n < ENTRIES_MAX && (d = readdir(dir));) {
		struct kept_entry entry = { .bytes = 0 };

		if (!kept_is_key(d->d_name)) {
			if (kept_is_left_over(dir_fd, d->d_name))
				rules->remove(dir_fd, d->d_name);
			continue;
		}
		if (!rules->look(dir_fd, d->d_name, &entry)) {
			rules->remove(dir_fd, d->d_name);
			continue;
		}
		memcpy(entry.name, d->d_name, sizeof(entry.name));
		if (n == capacity) {
			size_t more = capacity ? capacity * 2 : 64;
			struct kept_entry *grown = realloc(entries, more * sizeof(*entries));

			if (!grown)
				break;
			entries = grown;
			capacity = more;
		}
		entries[n++] = entry;
	}
	(void)closedir(dir);
	if (n > 0)
		qsort(entries, n, sizeof(*entries), kept_newest_first);
	for (size_t i = 0; i < n; i++) {
		sum += entries[i].bytes;
		if (i >= rules->max_entries || sum > rules->max_bytes)
			rules->remove(dir_fd, entries[i].name);
	}
}
