/* SPDX-License-Identifier: Apache-2.0 */
/* Trees for the tests of commits: made from short texts, and read back as text. */
#pragma once

#include "box/commit.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"

enum { TREE_TEXT = 1 << 16 };

static char top[96];

static int remove_one(const char *path, const struct stat *st _unused_, int kind _unused_,
		      struct FTW *at _unused_)
{
	return remove(path);
}

/* Also entries that their owner cannot read. */
static int open_one(const char *path, const struct stat *st, int kind _unused_,
		    struct FTW *at _unused_)
{
	if (S_ISDIR(st->st_mode))
		(void)chmod(path, 0700);
	return 0;
}

static void tree_remove(const char *path)
{
	(void)nftw(path, open_one, 32, FTW_PHYS);
	(void)nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

static const char *in(const char *dir, const char *name)
{
	static char paths[8][512];
	static unsigned next;
	char *path = paths[next++ % 8];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s/%s", top, dir, name);
	return path;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
}

static bool user_xattr;

static void set_opaque(const char *path)
{
	assert_int_equal(setxattr(path,
				  user_xattr ? "user.overlay.opaque" : "trusted.overlay.opaque",
				  "y", 1, 0),
			 0);
}

static void tree_set_time(const char *path, int64_t seconds)
{
	const struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };

	assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static mode_t octal(const char *digits)
{
	mode_t mode = 0;

	for (; *digits; digits++)
		mode = mode * 8 + (mode_t)(*digits - '0');
	return mode;
}

/*
 * One entry below top/dir: "name/" a directory, "name/!" an opaque one, "name-" a whiteout, "name>target" a
 * link, "name|" a fifo, "name=text" a file, "name=text@mode" with that mode; all with an old time. The path may
 * not contain these signs.
 */
static void tree_make_one(const char *dir, const char *word)
{
	char name[128];
	size_t n = strcspn(word, "=->|");
	const char *rest = word + n, *path;

	if (*rest == '\0' && word[n - 1] == '!')
		n--;
	(void)snprintf(name, sizeof(name), "%.*s", (int)n, word);
	path = in(dir, name);
	if (*rest == '=') {
		char text[64];
		const char *at = strchr(rest, '@');

		(void)snprintf(text, sizeof(text), "%.*s",
			       (int)(at ? at - rest - 1 : (long)strlen(rest + 1)), rest + 1);
		write_file(path, text, at ? octal(at + 1) : 0644);
	} else if (*rest == '>') {
		assert_int_equal(symlink(rest + 1, path), 0);
	} else if (*rest == '-') {
		assert_int_equal(mknod(path, S_IFCHR, makedev(0, 0)), 0);
	} else if (*rest == '|') {
		assert_int_equal(mkfifo(path, 0600), 0);
	} else {
		assert_int_equal(mkdir(path, 0755), 0);
		if (word[strlen(word) - 1] == '!')
			set_opaque(path);
	}
	tree_set_time(path, 1000000000);
}

static void tree_make(const char *dir, const char *words)
{
	while (*words) {
		size_t n = strcspn(words, " ");
		char word[128];

		(void)snprintf(word, sizeof(word), "%.*s", (int)n, words);
		tree_make_one(dir, word);
		words += n;
		words += strspn(words, " ");
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct tree_text {
	char text[TREE_TEXT];
	size_t n;
};

static _printf_(2, 3) void tree_add(struct tree_text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	t->n += (size_t)vsnprintf(t->text + t->n, sizeof(t->text) - t->n, fmt, args);
	va_end(args);
	assert_true(t->n < sizeof(t->text));
}

static void tree_say(struct tree_text *t, int dir_fd, const char *name, const struct stat *st)
{
	const mode_t usual = S_ISDIR(st->st_mode) ? 0755 : 0644;
	char content[256] = "";

	if (S_ISLNK(st->st_mode)) {
		assert_true(readlinkat(dir_fd, name, content, sizeof(content) - 1) > 0);
	} else if (S_ISREG(st->st_mode)) {
		_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			(void)!read(fd, content, sizeof(content) - 1);
	}
	tree_add(t, "%s%s",
		 S_ISDIR(st->st_mode)	? "/"
		 : S_ISLNK(st->st_mode) ? ">"
		 : S_ISREG(st->st_mode) ? "="
					: "?",
		 content);
	if (!S_ISLNK(st->st_mode) && (st->st_mode & 07777) != usual)
		tree_add(t, "@%o", st->st_mode & 07777);
	tree_add(t, " ");
}

/* dir_fd is closed. */
static void tree_list(struct tree_text *t, int dir_fd, const char *below)
{
	DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	struct dirent *entry;
	char *names[256];
	size_t n = 0;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    n < ARRAY_SIZE(names))
			names[n++] = strdup(entry->d_name);
	qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++) {
		struct stat st;

		assert_int_equal(fstatat(dir_fd, names[i], &st, AT_SYMLINK_NOFOLLOW), 0);
		tree_add(t, "%s%s", below, names[i]);
		tree_say(t, dir_fd, names[i], &st);
		if (S_ISDIR(st.st_mode)) {
			char path[512];
			int fd = openat(dir_fd, names[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			(void)snprintf(path, sizeof(path), "%.400s%.100s/", below, names[i]);
			tree_list(t, fd, path);
		}
		free(names[i]);
	}
	if (dir)
		(void)closedir(dir);
}

/* In the words of tree_make(), sorted, each followed by a space. */
static const char *tree_read(const char *path)
{
	static struct tree_text texts[4];
	static unsigned next;
	struct tree_text *t = &texts[next++ % 4];

	t->n = 0;
	t->text[0] = '\0';
	tree_list(t, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "");
	return t->text;
}

/* As root, "rootless" makes it another user's. */
static int become(int argc, char **argv)
{
	if (argc < 2 || geteuid() != 0 || strcmp(argv[1], "rootless") != 0)
		return 0;
	if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
		return -1;
	return prctl(PR_SET_DUMPABLE, 1); /* otherwise /proc/self stays root's */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static inline void write_proc(const char *file, const char *text)
{
	_cleanup_close_ int fd = open(file, O_WRONLY | O_CLOEXEC);

	(void)!write(fd, text, strlen(text));
}

/* A mount namespace; for an ordinary user in a user namespace, with these ids. false: not possible here. */
static inline bool enter_namespaces(int inside_uid, int inside_gid)
{
	int uid = (int)geteuid(), gid = (int)getegid();
	char map[64];

	if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) < 0)
		return false;
	if (uid) {
		write_proc("/proc/self/setgroups", "deny");
		(void)snprintf(map, sizeof(map), "%d %d 1", inside_uid, uid);
		write_proc("/proc/self/uid_map", map);
		(void)snprintf(map, sizeof(map), "%d %d 1", inside_gid, gid);
		write_proc("/proc/self/gid_map", map);
	}
	return mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) == 0;
}
