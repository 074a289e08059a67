/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's changes to its workspace, from the broker's last record into the result. If one request runs
 * several programs (tests), each has its own transaction: their lists are joined, and `applied` is true if all
 * of them were applied.
 */
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHANGES_BYTES_MAX = 4 << 20 };

static int append_list(struct result_commit *c, int fd, uint32_t *omitted)
{
	struct stat st;
	size_t size;
	char *list;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return 0;
	size = (size_t)st.st_size;
	if (size > CHANGES_BYTES_MAX - c->changes_len) {
		(*omitted)++;
		return 0;
	}
	list = realloc(c->changes, c->changes_len + size);
	if (!list)
		return -ENOMEM;
	c->changes = list;
	n = pread(fd, list + c->changes_len, size, 0);
	if (n > 0)
		c->changes_len += (size_t)n;
	return n < 0 ? -errno : 0;
}

static void explain_commit(const struct record_commit *r, char *ret, size_t size)
{
	switch (r->result) {
	case COMMIT_OVER_QUOTA:
		(void)snprintf(
			ret, size,
			"the workspace would hold %lld bytes in %lld files, and may hold %lld in "
			"%lld: remove some, or raise workspaces.bytes or workspaces.files",
			(long long)r->bytes, (long long)r->inodes, (long long)r->quota_bytes,
			(long long)r->quota_inodes);
		break;
	case COMMIT_NO_ROOM:
		(void)snprintf(ret, size, "the disk that the workspace lies on is full: make room");
		break;
	case COMMIT_BROKEN:
		(void)snprintf(ret, size, "the workspace cannot be written to: %s",
			       strerror(r->errnum));
		break;
	default:
		ret[0] = '\0';
	}
}

int flow_take_changes(struct result *res, const struct job_outcome *o)
{
	const struct record_commit *r = &o->done.commit;
	struct result_commit *c = &res->commit;
	uint32_t omitted = r->omitted;
	int e;

	if (r->result == COMMIT_NONE || r->result >= _COMMIT_RESULT_MAX)
		return 0;
	e = append_list(c, o->changes_fd, &omitted);
	if (e < 0)
		return e;
	c->applied = r->result == COMMIT_APPLIED && (!c->present || c->applied);
	c->present = true;
	c->omitted += omitted;
	if (!c->error[0])
		explain_commit(r, c->error, sizeof(c->error));
	return 0;
}
