/* SPDX-License-Identifier: Apache-2.0 */
/* See cgroup-v1.h: the broker's own group in each hierarchy, and the groups in it that an earlier broker left behind. */
#include "box/cgroup-v1.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fd.h"

enum { OPEN_SHARE = 10 }; /* one in so many of a broker's descriptors is for files of groups */

/* Each hierarchy separately: brokers may share some of them and not others. */
bool cgroup_v1_sweep(struct cgroup_root *root)
{
	if (cgroup_sweep(&root->sweep, root->fd[root->sweep_at], ".", CGROUP_PREFIX,
			 cgroup_remove_old))
		return true;
	root->sweep_at = (root->sweep_at + 1) % MAX(root->n, 1);
	return root->sweep_at != 0;
}

void cgroup_v1_lift(const struct cgroup_root *root)
{
	int i = root->index[HIERARCHY_CPU];

	if (i >= 0)
		cgroup_lift(root->fd[i], ".", CGROUP_PREFIX);
}

/* Sweeps here, where no request waits. */
struct cgroup_root *cgroup_v1_root_free(struct cgroup_root *root)
{
	if (!root)
		return NULL;
	cgroup_sweep_end(&root->sweep);
	root->sweep_at = 0;
	while (cgroup_v1_sweep(root))
		;
	for (int i = 0; i < root->n; i++)
		(void)fd_close(root->fd[i]);
	free(root);
	return NULL;
}

/* Opens hierarchy h, unless a co-mounted one has its directory. */
static int add_hierarchy(struct cgroup_root *root, const struct cgroup_paths *paths, int h)
{
	int fd;

	for (int other = 0; other < h; other++)
		if (root->index[other] >= 0 && strcmp(paths->own[other], paths->own[h]) == 0) {
			root->index[h] = root->index[other];
			return 0;
		}
	fd = cgroup_open_dir(AT_FDCWD, paths->own[h]);
	if (fd < 0)
		return fd;
	root->index[h] = root->n;
	root->fd[root->n++] = fd;
	return 0;
}

int cgroup_v1_root_open(struct cgroup_root **ret, const struct cgroup_site *site, struct error *err)
{
	struct cgroup_root *root = calloc(1, sizeof(*root));
	struct rlimit files;

	if (!root)
		return error_oom(err);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		root->open.max = (int)MIN(files.rlim_max / OPEN_SHARE, (rlim_t)INT_MAX);
	for (int h = 0; h < _HIERARCHY_V1_MAX; h++)
		root->fd[h] = root->index[h] = -1;
	for (int h = 0; h < _HIERARCHY_V1_MAX; h++) {
		int r = site->home.hierarchies & 1U << h ? add_hierarchy(root, &site->paths, h) : 0;

		if (r < 0) {
			(void)cgroup_v1_root_free(root);
			return error_set(err, ERROR_INTERNAL, -r, "cannot open the cgroup %s: %s",
					 site->paths.own[h], strerror(-r));
		}
	}
	*ret = root;
	return 0;
}
