/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kits: files that a compiler would otherwise make for each first compile (precompiled headers, a filled cache,
 * a class archive). A sandboxed run that sees nothing of any caller makes a kit once for a toolchain; compile
 * sandboxes see it read-only.
 *
 *   <place>/<key>/manifest   every file of the kit and every host file it was made from, with identities
 *   <place>/<key>/tree/      the kit itself: a sandbox sees it as SANDBOX_KIT
 *
 * The place is the user's cache directory. For root it is /var/cache/atoll, because the users of root's
 * sandboxes must be able to reach it. $ATOLL_KIT_DIR names another ("off": none). A kit appears by rename,
 * whole or not at all. If its files differ from what was published, or its inputs have changed, it is not used.
 */
#pragma once

#include "base/sha256.h"
#include "plan/policy/policy.h"
#include "spec/language.h"

#include <stdbool.h>

#define KIT_BYTES_MAX (1 * GiB) /* of all kits together */
enum { KITS_MAX = 16, KIT_FILES_MAX = 1024, KIT_INPUTS_MAX = 8192 };

/* In a kit's tree: one host path a line, of files that the kit was made from. May be missing. */
#define KIT_INPUTS "inputs"

static inline bool language_has_kit(const struct language *lang)
{
	return lang->kit.make && lang->compile.argv[0];
}

/*
 * The key covers everything a kit depends on: recipe, compile line, toolchain, visible part of the host.
 * -ENOENT: no toolchain.
 */
int kit_key(const struct language *lang, const struct policy *policy,
	    char ret[SHA256_HEX]) _must_check_;

/* The directory of all kits; cache_fd is that of cache_open(). Negative: no kits. */
int kit_place_open(int cache_fd) _must_check_;

/* The host path of a kit's tree. -ENOENT: no usable kit. */
int kit_find(int place_fd, const char *key, char *ret, size_t size) _must_check_;
/* 0: every byte is as published. Reads all files. */
int kit_verify(int place_fd, const char *key) _must_check_;

struct kit_file {
	const char *path; /* below the tree */
	const char *sha256;
};

/* A kit that is being made. */
struct kit_draft {
	int place_fd;
	char name[32]; /* below the place; the maker fills its subdirectory "tree" */
};
int kit_draft_begin(int place_fd, struct kit_draft *ret) _must_check_;
/* The host path of the tree to fill. */
int kit_draft_path(const struct kit_draft *draft, char *ret, size_t size) _must_check_;
/*
 * files: all files of the tree. Replaces a kit of that key. If there are too many kits, the least recently used
 * ones are removed.
 */
int kit_draft_publish(struct kit_draft *draft, const char *key, const struct kit_file *files,
		      size_t n) _must_check_;
/* Removes an unpublished draft; harmless after kit_draft_publish(). */
void kit_draft_end(struct kit_draft *draft);

/* Removes the oldest kits until the rest fits, and drafts that crashed makers left. */
void kit_sweep(int place_fd, int64_t max_bytes, size_t max_kits);
