/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of entries that are kept from one run to the next. An entry's name is a hash of everything that it depends on. It appears
 * by one rename, whole or not at all, and its time is that of its last use. Readers check what they read, so that writers need no lock.
 */
#pragma once

#include "base/sha256.h"
#include "spec/language.h"

#include <stdbool.h>
#include <time.h>

enum { KEPT_KEY_LEN = SHA256_HEX - 1, KEPT_NAME = 32 };

bool kept_is_key(const char *name);
/* The identity of the runtime and of each file of `needs`. -ENOENT: one of them is missing. */
int kept_hash_language(struct sha256 *hash, const char *image,
		       const struct language *lang) _must_check_;
/* Of the content of an entry, which begins with it. */
void kept_hash(const void *data, size_t len, char ret[SHA256_HEX]);
/* A name that no other entry has. prefix: KEPT_NEW or KEPT_OLD, of which crashed processes leave entries. */
#define KEPT_NEW ".new-"
#define KEPT_OLD ".old-"
int kept_name(const char *prefix, char ret[KEPT_NAME]) _must_check_;
/* An entry that is one file. */
int kept_write(int dir_fd, const char *key, const void *data, size_t len) _must_check_;

struct kept_entry {
	char name[KEPT_KEY_LEN + 1];
	int64_t bytes;
	struct timespec used;
};

struct kept_rules {
	int64_t max_bytes;
	size_t max_entries;
	/* Fills bytes and used; false: the entry is broken, and goes. */
	bool (*look)(int dir_fd, const char *name, struct kept_entry *ret);
	void (*remove)(int dir_fd, const char *name);
};
/* Removes the least recently used entries until the rest fits, broken ones, and what crashed processes left. */
void kept_sweep(int dir_fd, const struct kept_rules *rules);
