/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kits: what a compiler would otherwise make anew for each first compile (precompiled headers, a filled
 * cache, a class archive), made once a toolchain by a sandboxed run that sees nothing of any caller, and
 * shown to compile sandboxes read-only.
 *
 *   <place>/<key>/manifest   every file of the kit and every host file it was made from, with identities
 *   <place>/<key>/tree/      the kit itself: what a sandbox sees as SANDBOX_KIT
 *
 * The place is the user's cache directory; root's is /var/cache/atoll, because the users that sandboxes of
 * root run as must be able to reach it. $ATOLL_KIT_DIR names another ("off": none). A kit appears by rename, whole or not
 * at all; one that is not exactly as it was published, or whose inputs have changed, counts as none.
 */
#pragma once

#include "base/sha256.h"
#include "policy/policy.h"
#include "spec/language.h"

#include <stdbool.h>

#define KIT_BYTES_MAX (1 * GiB) /* of all kits together */
enum { KITS_MAX = 16, KIT_FILES_MAX = 1024, KIT_INPUTS_MAX = 8192 };

/* In a kit's tree: one host path a line, of files it was made from. May be missing. */
#define KIT_INPUTS "inputs"

static inline bool language_has_kit(const struct language *lang)
{
	return lang->kit.make && lang->compile_argv[0];
}

/* What a kit depends on: recipe, compile line, toolchain and what of the host is seen. -ENOENT: no toolchain. */
int kit_key(const struct language *lang, const struct policy *policy,
	    char ret[SHA256_HEX]) _must_check_;

/* The directory of all kits; cache_fd is that of cache_open(). Negative: there are none. */
int kit_place_open(int cache_fd) _must_check_;

/* The host path of a kit's tree. -ENOENT: none that can be used. */
int kit_find(int place_fd, const char *key, char *ret, size_t size) _must_check_;
/* 0 when every byte is as it was published; costs reading all of it. */
int kit_verify(int place_fd, const char *key) _must_check_;

struct kit_file {
	const char *path; /* below the tree */
	const char *sha256;
};

/* A kit in the making. */
struct kit_draft {
	int place_fd;
	char name[32]; /* below the place; its subdirectory "tree" is to be filled */
};
int kit_draft_begin(int place_fd, struct kit_draft *ret) _must_check_;
/* The host path of the tree to fill. */
int kit_draft_path(const struct kit_draft *draft, char *ret, size_t size) _must_check_;
/* files: all of the tree. Replaces a kit of that key. Kits not used for longest leave when there are too many. */
int kit_draft_publish(struct kit_draft *draft, const char *key, const struct kit_file *files,
		      size_t n) _must_check_;
/* Removes what is left of one that was not published; harmless behind kit_draft_publish(). */
void kit_draft_end(struct kit_draft *draft);

/* Removes the oldest kits until the rest fits, and what crashed makers left. */
void kit_sweep(int place_fd, int64_t max_bytes, size_t max_kits);
