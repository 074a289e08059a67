/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes of a run to its workspace: a list of records. The broker's helper writes it (box/commit.h)
 * and the front reads it. Plain data without JSON, because the broker has none.
 *
 * A record is struct change up to the path's final NUL, padded with NULs to a multiple of 8 bytes; `length`
 * counts all of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* When the writes of a run to its workspace are applied. */
enum commit_when {
	COMMIT_ALWAYS,	   /* after every ending */
	COMMIT_ON_SUCCESS, /* if the main process of every stage ended with 0 */
	COMMIT_NEVER,
	_COMMIT_WHEN_MAX,
};

static inline const char *commit_when_name(enum commit_when when)
{
	static const char *const names[_COMMIT_WHEN_MAX] = { "always", "on_success", "never" };

	return when < _COMMIT_WHEN_MAX ? names[when] : "?";
}

enum change_kind {
	CHANGE_ADDED,
	CHANGE_CHANGED, /* content, mode, or a link's target */
	CHANGE_REMOVED,
	CHANGE_SKIPPED, /* not applied; `skip` says why. The other changes are applied */
	_CHANGE_MAX,
};

enum change_type {
	CHANGE_FILE,
	CHANGE_DIRECTORY,
	CHANGE_LINK,
	CHANGE_OTHER, /* skipped, or a special file of the host that was removed */
	_CHANGE_TYPE_MAX,
};

enum change_skip {
	CHANGE_SKIP_NONE,
	CHANGE_SKIP_SPECIAL, /* a fifo, a socket or a device */
	CHANGE_SKIP_LINK,    /* a link that leaves the workspace, or is absolute */
	CHANGE_SKIP_DEEP,    /* nested too deep, or its path is too long */
	CHANGE_SKIP_OWN,     /* the name of Atoll's own directory */
	CHANGE_SKIP_MOUNT,   /* the host has mounted something there */
	_CHANGE_SKIP_MAX,
};

enum { CHANGE_PATH_MAX = 4096, CHANGE_SHA256_HEX = 65 };

struct change {
	uint32_t length; /* of this record */
	uint8_t kind, type, skip;
	uint8_t conflict; /* another run changed it after this run's workspace was mounted */
	uint32_t mode;	  /* & 0777; of a removed entry: its last mode */
	int64_t size;	  /* of a file; otherwise 0 */
	char sha256[CHANGE_SHA256_HEX]; /* of an added or changed file; otherwise "" */
	char path[CHANGE_PATH_MAX];	/* relative, raw bytes */
};

/*
 * The record at the start of n bytes, *ret_length bytes long, its path ended by NUL. NULL: the end of the list,
 * or no complete record. The bytes are aligned to 8.
 */
static inline const struct change *change_at(const void *bytes, size_t n, size_t *ret_length)
{
	const struct change *c = bytes;

	if (n < offsetof(struct change, path) + 1 || c->length % 8 || c->length > n ||
	    c->length > sizeof(*c) || c->length < offsetof(struct change, path) + 1)
		return NULL;
	if (c->kind >= _CHANGE_MAX || c->type >= _CHANGE_TYPE_MAX || c->skip >= _CHANGE_SKIP_MAX ||
	    !memchr(c->sha256, '\0', sizeof(c->sha256)) ||
	    !memchr(c->path, '\0', c->length - offsetof(struct change, path)))
		return NULL;
	*ret_length = c->length;
	return c;
}
