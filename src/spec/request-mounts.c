/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `mounts` of a request: {TARGET: SOURCE}, directories of the host that the program sees, read-only. Here are names and shapes only;
 * plan/policy/ decides which sources may be shown. A target is none of the directories that every sandbox has.
 */
#include "spec/request-read.h"

#include <string.h>

#include "base/path.h"

enum { MOUNT_PATH_MAX = 1000 };

/* An absolute path in normal form. */
static int check_mount_path(const struct reader *r, const char *path)
{
	if (path[0] != '/' || strlen(path) > MOUNT_PATH_MAX ||
	    request_check_path(path + 1, strlen(path + 1), NULL) < 0)
		return reader_refuse(r, "'%s' is not an absolute path without . and ..",
				     quote_text(path).text);
	/* They mean something in the options of the kernel's mounts. */
	if (strpbrk(path, ":,\\\""))
		return reader_refuse(r, "'%s' holds one of : , \\ and \"", quote_text(path).text);
	return 0;
}

static int check_mount_target(const struct reader *r, const struct request *req, const char *path)
{
	static const char *const own[] = { "/bin",    "/sbin", "/lib",	    "/lib32", "/lib64",
					   "/libx32", "/usr",  "/opt",	    "/etc",   "/dev",
					   "/proc",   "/sys",  "/tmp",	    "/var",   "/sandbox",
					   "/build",  "/kit",  "/workspace" };
	int e = check_mount_path(r, path);

	for (size_t i = 0; e == 0 && i < ARRAY_SIZE(own); i++)
		if (path_is_below(path, own[i]))
			e = reader_refuse(r,
					  "'%s' is a place of the sandbox itself; take another, "
					  "such as /data",
					  quote_text(path).text);
	for (size_t i = 0; e == 0 && i < req->n_mounts; i++)
		if (path_is_below(path, req->mounts[i].target) ||
		    path_is_below(req->mounts[i].target, path))
			e = reader_refuse(r, "'%s' and '%s' lie in each other",
					  quote_text(path).text, req->mounts[i].target);
	return e;
}

int request_read_mounts(const struct reader *r, const struct key_rule *rule _unused_,
			const json_t *value, void *object)
{
	struct request *req = object;
	const char *target;
	const json_t *source;
	int e = 0;

	if (!json_is_object(value))
		return reader_refuse(r,
				     "%s is not an object of paths in the sandbox and on the "
				     "host, such as {\"/data\": \"/srv/data\"}",
				     quote_json(value).text);
	if (json_object_size(value) > REQUEST_MOUNTS_MAX)
		return reader_refuse(r, "there are %zu, more than the %d allowed",
				     json_object_size(value), REQUEST_MOUNTS_MAX);
	req->mounts = arena_alloc(r->arena, (json_object_size(value) + 1) * sizeof(*req->mounts));
	if (!req->mounts)
		return reader_no_memory(r);
	json_object_foreach((json_t *)(uintptr_t)value, target, source)
	{
		struct reader at = reader_at(r, target);
		struct request_mount mount = { .target = target };

		e = check_mount_target(r, req, target);
		if (e == 0)
			e = read_string(&at, source, MOUNT_PATH_MAX, &mount.source);
		if (e == 0)
			e = check_mount_path(&at, mount.source);
		if (e < 0)
			return e;
		req->mounts[req->n_mounts++] = mount;
	}
	return 0;
}
