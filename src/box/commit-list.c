/* SPDX-License-Identifier: Apache-2.0 */
/* See commit.h: the records of changes, written in pieces; beyond their bound they are only counted. */
#include "box/commit-private.h"

#include "base/sys/kernel.h"

#include <assert.h>

static_assert(sizeof(struct change) <= LIST_BYTES, "the buffer must hold any record");

static enum change_type change_type_of(mode_t mode)
{
	return S_ISREG(mode)   ? CHANGE_FILE
	       : S_ISDIR(mode) ? CHANGE_DIRECTORY
	       : S_ISLNK(mode) ? CHANGE_LINK
			       : CHANGE_OTHER;
}

int list_flush(struct commit_work *w)
{
	size_t n = w->list_n;

	w->list_n = 0;
	return n ? sys_write(w->c->list_fd, w->list, n) : 0;
}

static void count_change(struct commit_outcome *out, const struct list_entry *entry)
{
	uint32_t *const counts[_CHANGE_MAX] = { [CHANGE_ADDED] = &out->added,
						[CHANGE_CHANGED] = &out->changed,
						[CHANGE_REMOVED] = &out->removed,
						[CHANGE_SKIPPED] = &out->skipped };

	++*counts[entry->kind];
	out->conflicts += entry->conflict;
}

int commit_list_add(struct commit_work *w, const struct list_entry *entry)
{
	const char *path = entry->path ? entry->path : w->walk.path;
	size_t path_bytes = strlen(path) + 1;
	size_t length = (offsetof(struct change, path) + path_bytes + 7) & ~(size_t)7;
	struct change *c;
	int r = 0;

	count_change(w->out, entry);
	if (w->list_bytes + (int64_t)length > w->c->list_bytes_max) {
		w->out->unlisted++;
		return 0;
	}
	if (w->list_n + length > sizeof(w->list))
		r = list_flush(w);
	if (r < 0)
		return r;
	c = (struct change *)(w->list + w->list_n);
	memset(c, 0, length);
	c->length = (uint32_t)length;
	c->kind = (uint8_t)entry->kind;
	c->type = (uint8_t)change_type_of(entry->st->st_mode);
	c->skip = (uint8_t)entry->skip;
	c->conflict = entry->conflict;
	c->mode = entry->st->st_mode & 0777;
	c->size = S_ISREG(entry->st->st_mode) ? entry->st->st_size : 0;
	if (entry->sha256)
		memcpy(c->sha256, entry->sha256, SHA256_HEX);
	memcpy(c->path, path, path_bytes);
	w->list_n += length;
	w->list_bytes += (int64_t)length;
	return 0;
}
