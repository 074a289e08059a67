/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of compile stages, kept by content: <cache>/build/<key> is one file that holds them all and begins
 * with the hash of the rest. The key covers sources, words, variables and the identity of the toolchain. An
 * entry is written beside its place and renamed into it, so readers see all or nothing and concurrent writers
 * do no harm. An entry that does not match its hash is removed and counts as a miss. The directory belongs to
 * the caller and is never shown to a sandbox.
 */
#pragma once

#include "base/sha256.h"
#include "run/toolchain/registry.h"
#include "spec/request.h"

#define BUILDCACHE_BYTES_MAX (512 * MiB) /* of all entries together */
enum { BUILDCACHE_FILES_MAX = 1024 };

struct buildcache_input {
	const struct language *language;
	const char *image;		  /* or NULL */
	const struct request_file *files; /* every source, in any order */
	size_t n_files;
	const char *const *argv; /* expanded, NULL-terminated */
	const char *const *env;	 /* "K=V", NULL-terminated */
};

/* The runtime and every file of `needs` must exist; otherwise -ENOENT. */
int buildcache_key(const struct buildcache_input *in, char ret[SHA256_HEX]) _must_check_;

struct build_product {
	struct request_file *files; /* paths relative to the build directory */
	size_t n_files;
	char *bytes; /* owns paths and data of a loaded product */
};
void build_product_done(struct build_product *p);

/* -ENOENT: a miss (or no cache: cache_fd negative). */
int buildcache_load(int cache_fd, const char *key, struct build_product *ret) _must_check_;
/*
 * The oldest entries are removed when the sum exceeds max_bytes; a product above max_bytes/4 is not kept
 * (-EFBIG).
 */
int buildcache_store(int cache_fd, const char *key, const struct build_product *product,
		     int64_t max_bytes) _must_check_;
