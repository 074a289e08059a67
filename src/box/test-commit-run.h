/* SPDX-License-Identifier: Apache-2.0 */
/* One commit of a workspace and a hand-made upper layer, and its report. */
#pragma once

#include "box/test-commit-tree.h"

static char root[128];
static struct workspace_place places[2];
static struct commit_outcome out;
static char changes[TREE_TEXT];
static int64_t mounted_ns;

static int setup(void **state _unused_)
{
	(void)snprintf(top, sizeof(top), "/tmp/atoll-commit-XXXXXX");
	if (!mkdtemp(top) || mkdir(in(".", "root"), 0700) < 0)
		return -1;
	(void)snprintf(root, sizeof(root), "%s/root", top);
	places[0] = (struct workspace_place){ .path = root };
	if (mkdir(in("root", "w"), 0755) < 0 || mkdir(in(".", "upper"), 0755) < 0)
		return -1;
	write_file(in("upper", "probe"), "", 0600);
	user_xattr = setxattr(in("upper", "probe"), "user.overlay.x", "y", 1, 0) == 0;
	(void)unlink(in("upper", "probe"));
	mounted_ns = INT64_MAX; /* nothing is newer, unless the test sets it */
	return 0;
}

static int teardown(void **state _unused_)
{
	tree_remove(top);
	return 0;
}

static const char *const kinds[] = { "+", "*", "-", "?" };
static const char *const skips[] = { "", "special", "link", "deep", "own", "mount" };

/* The records as text, sorted: + added, * changed, - removed, ? skipped and why, ! a conflict. */
static void say_changes(int fd)
{
	static _Alignas(8) char bytes[1 << 20];
	static char words[64][CHANGE_PATH_MAX + 16];
	char *sorted[64];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	size_t at = 0, length, count = 0, used = 0;
	const struct change *c;

	assert_true(n >= 0);
	while ((c = change_at(bytes + at, (size_t)n - at, &length)) && count < ARRAY_SIZE(words)) {
		(void)snprintf(words[count], sizeof(words[0]), "%s%s%s%s", c->path, kinds[c->kind],
			       skips[c->skip], c->conflict ? "!" : "");
		if (c->type == CHANGE_FILE && c->kind <= CHANGE_CHANGED)
			assert_int_equal(strlen(c->sha256), 64);
		sorted[count] = words[count];
		count++;
		at += length;
	}
	qsort(sorted, count, sizeof(*sorted), by_name);
	changes[0] = '\0';
	for (size_t i = 0; i < count; i++)
		used += (size_t)snprintf(changes + used, sizeof(changes) - used, "%s ", sorted[i]);
}

static struct commit commit_make(void)
{
	struct error err = { 0 };
	struct commit c = {
		.upper_fd = open(in("upper", "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.workspace_fd = open(in("root", "w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.list_fd = memfd_create("list", MFD_CLOEXEC),
		.user_xattr = user_xattr,
		.owner_uid = geteuid() ? geteuid() : 1234,
		.owner_gid = geteuid() ? getegid() : 1234,
		.mounted_ns = mounted_ns,
		.list_bytes_max = 1 << 20,
	};

	c.store_fd = commit_store_open(places, "w", c.workspace_fd, &err);
	assert_true(c.upper_fd >= 0 && c.workspace_fd >= 0 && c.list_fd >= 0 && c.store_fd >= 0);
	return c;
}

static void commit_close(const struct commit *c)
{
	(void)close(c->upper_fd);
	(void)close(c->workspace_fd);
	(void)close(c->list_fd);
	(void)close(c->store_fd);
}

static int commit_with(struct commit *c)
{
	int r = commit_apply(c, &out);

	say_changes(c->list_fd);
	commit_tidy(c);
	commit_close(c);
	return r;
}

static int commit_now(void)
{
	struct commit c = commit_make();

	return commit_with(&c);
}

static void check_store_empty(void)
{
	const char *text = tree_read(in("root", ".atoll-commit/w"));

	assert_string_equal(strncmp(text, "stage/@700 trash/@700 ", 22) == 0 ? "" : text, "");
	assert_null(strstr(text, "journal"));
}
