/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity is (size, mtime, inode, device) of the file that a path leads to inside the root. For an image the
 * path is walked by hand, because its absolute links mean the image's own root. A race does no harm: the answer
 * only words messages and keys caches, and the sandbox itself opens the programs it runs.
 */
#include "run/toolchain/toolchain.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "run/toolchain/data.h"
#include "run/toolchain/kept.h"

enum { LINKS_MAX = 40, VERSION_MAX = 64, PROBE_OUTPUT_MAX = 64 << 10 };

/* One walk through an image: `at` is the resolved part, `rest` the other. */
struct image_walk {
	char at[PATH_MAX];
	char rest[PATH_MAX];
	size_t root_len; /* `at` is never shorter than the root */
	unsigned links;
};

static void walk_up(struct image_walk *w)
{
	char *slash = strrchr(w->at + w->root_len, '/');

	if (slash)
		*slash = '\0';
}

/* Puts the link's text in front of the rest; an absolute link starts at the root again. */
static int walk_link(struct image_walk *w, const char *rest)
{
	char target[PATH_MAX], joined[PATH_MAX];
	ssize_t n = readlink(w->at, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	target[n] = '\0';
	if (snprintf(joined, sizeof(joined), "%s/%s", target, rest) >= (int)sizeof(joined))
		return -ENAMETOOLONG;
	memcpy(w->rest, joined, sizeof(joined));
	if (target[0] == '/')
		w->at[w->root_len] = '\0';
	else
		walk_up(w);
	return 0;
}

/* Takes the first component of `rest`. 1: it was the last one, and `at` is the answer. */
static int walk_step(struct image_walk *w)
{
	char *start = w->rest + strspn(w->rest, "/"), *rest;
	size_t n = strcspn(start, "/"), len = strlen(w->at);
	struct stat st;

	if (n == 0)
		return 1;
	rest = start + n;
	if (n == 2 && memcmp(start, "..", 2) == 0) {
		walk_up(w);
	} else if (n != 1 || *start != '.') {
		if (len + n + 2 > sizeof(w->at))
			return -ENAMETOOLONG;
		w->at[len] = '/';
		memcpy(w->at + len + 1, start, n);
		w->at[len + n + 1] = '\0';
		if (lstat(w->at, &st) < 0)
			return -errno;
		if (S_ISLNK(st.st_mode))
			return walk_link(w, rest + strspn(rest, "/"));
	}
	memmove(w->rest, rest, strlen(rest) + 1);
	return 0;
}

static int stat_in_image(const char *image, const char *path, struct stat *ret)
{
	struct image_walk w = { .root_len = strlen(image) };
	int r;

	if (w.root_len >= sizeof(w.at) || strlen(path) >= sizeof(w.rest))
		return -ENAMETOOLONG;
	memcpy(w.at, image, w.root_len + 1);
	memcpy(w.rest, path, strlen(path) + 1);
	do
		r = walk_step(&w);
	while (r == 0);
	if (r < 0)
		return r;
	return lstat(w.at, ret) < 0 ? -errno : 0;
}

static int stat_in_root(const char *image, const char *path, struct stat *ret)
{
	if (image)
		return stat_in_image(image, path, ret);
	return stat(path, ret) < 0 ? -errno : 0;
}

void tool_id_of(const struct stat *st, struct tool_id *ret)
{
	*ret = (struct tool_id){
		.size = st->st_size,
		.mtime_ns = st->st_mtim.tv_sec * NS_PER_SEC + st->st_mtim.tv_nsec,
		.inode = st->st_ino,
		.device = st->st_dev,
	};
}

int tool_identify(const char *image, const char *path, struct tool_id *ret)
{
	struct stat st;
	int r = stat_in_root(image, path, &st);

	if (r == 0)
		tool_id_of(&st, ret);
	return r;
}

static int missing(const struct language *lang, const char *image, const char *path,
		   struct error *err)
{
	if (image)
		return error_set(
			err, ERROR_RUNTIME, ENOPKG,
			"%s is not installed: image '%.120s' has no %s; install the package "
			"%s there",
			lang->title, image, path, lang->runtime.package);
	return error_set(err, ERROR_RUNTIME, ENOPKG,
			 "%s is not installed: %s is missing; install it with: apt install %s",
			 lang->title, path, lang->runtime.package);
}

int language_available(const struct language *lang, const char *image, struct error *err)
{
	struct stat st;

	if (stat_in_root(image, lang->runtime.path, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !(st.st_mode & 0111))
		return missing(lang, image, lang->runtime.path, err);
	for (const char **need = lang->runtime.needs; *need; need++) {
		if (stat_in_root(image, *need, &st) < 0)
			return missing(lang, image, *need, err);
	}
	return 0;
}

/* The first word that looks like a version: digits, then more with a dot. */
static int extract_version(const char *text, char *ret, size_t size)
{
	for (const char *p = text; *p; p++) {
		size_t n;

		if (!isdigit((unsigned char)*p) || (p > text && isdigit((unsigned char)p[-1])))
			continue;
		n = strspn(p, "0123456789.");
		if (n < 3 || !memchr(p, '.', n))
			continue;
		n = strspn(p,
			   "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+~_-");
		while (n > 0 && !isalnum((unsigned char)p[n - 1]))
			n--;
		if (n >= size)
			return -ENODATA;
		memcpy(ret, p, n);
		ret[n] = '\0';
		return 0;
	}
	return -ENODATA;
}

/* Takes the request. */
static int probe(const struct prober *p, json_t *request, struct buf *out)
{
	int r;

	if (!request)
		return -ENOMEM;
	if (p->image)
		(void)json_object_set_new(request, "image", json_string(p->image));
	r = p->run(p->data, request, out);
	json_decref(request);
	return r;
}

static json_t *probe_words(const char *const *words)
{
	json_t *array = json_array();

	for (; *words; words++)
		(void)json_array_append_new(array, json_string(*words));
	return array;
}

int language_version(const struct language *lang, const struct prober *p, char **ret)
{
	_cleanup_close_ int dir_fd = cache_open_dir(p->cache_fd, "versions"), fd = -EBADF;
	_cleanup_buf_ struct buf out = { .max = PROBE_OUTPUT_MAX };
	char key[SHA256_HEX], number[VERSION_MAX], version[VERSION_MAX * 2];
	struct sha256 hash;
	struct tool_id id;
	ssize_t n;
	int r;

	if (!lang->runtime.version_argv[0] || !lang->runtime.version_prefix)
		return -ENODATA;
	r = tool_identify(p->image, lang->runtime.path, &id);
	if (r < 0)
		return r;
	sha256_init(&hash);
	sha256_update(&hash, &id, sizeof(id));
	sha256_update(&hash, lang->runtime.version_prefix,
		      strlen(lang->runtime.version_prefix) + 1);
	for (const char **word = lang->runtime.version_argv; *word; word++)
		sha256_update(&hash, *word, strlen(*word) + 1);
	sha256_final(&hash, key);
	/* A sandboxed program printed the cached text: only a few bytes of plain text are accepted. */
	if (dir_fd >= 0)
		fd = openat(dir_fd, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	n = fd >= 0 ? read(fd, version, sizeof(version) - 1) : -1;
	if (n > 0) {
		version[n] = '\0';
	} else {
		if (!p->run)
			return -ENODATA;
		r = probe(p,
			  json_pack("{s:s, s:[{s:s, s:o}], s:{s:i}}", "language", lang->id,
				    "stages", "name", "version", "argv",
				    probe_words((const char *const *)lang->runtime.version_argv),
				    "limits", "timeout", 20),
			  &out);
		if (r >= 0)
			r = extract_version(out.data ? out.data : "", number, sizeof(number));
		if (r < 0)
			return r;
		(void)snprintf(version, sizeof(version), "%s%s", lang->runtime.version_prefix,
			       number);
		if (dir_fd >= 0)
			(void)!kept_write(dir_fd, key, version, strlen(version));
	}
	*ret = strdup(version);
	return *ret ? 0 : -ENOMEM;
}

/* runners/<lang>/libraries.<ext>, beside the invoke runner; prints one JSON object. */
static int library_script(const struct language *lang, const struct prober *p, struct buf *ret)
{
	char relative[PATH_MAX];
	const char *slash, *dot;

	if (!lang->runner)
		return -ENOENT;
	slash = strrchr(lang->runner, '/');
	dot = strrchr(lang->runner, '.');
	if (!slash || !dot || dot < slash)
		return -ENOENT;
	if (snprintf(relative, sizeof(relative), "runners/%.*s/libraries%s",
		     (int)(slash - lang->runner), lang->runner, dot) >= (int)sizeof(relative))
		return -ENAMETOOLONG;
	return data_read(p->data_dir, relative, ret, NULL);
}

json_t *language_libraries(const struct language *lang, const char *const *modules,
			   const struct prober *p)
{
	_cleanup_buf_ struct buf script = { .max = DATA_FILE_MAX },
				 out = { .max = PROBE_OUTPUT_MAX };
	json_t *libraries = NULL;
	int r;

	if (!modules[0] || !p->run || library_script(lang, p, &script) < 0)
		return NULL;
	r = probe(p,
		  json_pack("{s:s, s:s, s:o, s:{s:i}}", "language", lang->id, "code",
			    script.data ? script.data : "", "args", probe_words(modules), "limits",
			    "timeout", 20),
		  &out);
	if (r == 0 && out.data)
		libraries = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
	if (libraries && !json_is_object(libraries)) {
		json_decref(libraries);
		libraries = NULL;
	}
	return libraries;
}
