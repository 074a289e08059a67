/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kit.c and kit-make.c. A manifest is a header, then a record per file: its identity (as
 * toolchain.h), for files of the kit the hash of the content, its path.
 */
#pragma once

#include "base/buf.h"
#include "run/toolchain/kit.h"
#include "run/toolchain/toolchain.h"

#define KIT_MAGIC "ATOLLKT1"
#define KIT_TREE  "tree"

enum {
	KIT_MAGIC_LEN = 8,
	KIT_HASH_LEN = SHA256_HEX - 1,
	KIT_MANIFEST_MAX = 4 << 20,
};

struct kit_header {
	char magic[KIT_MAGIC_LEN];
	char sum[KIT_HASH_LEN]; /* over everything after it */
	int64_t bytes;		/* of the tree */
};

struct kit_record {
	struct tool_id id;
	char sha256[KIT_HASH_LEN]; /* zeros: a file of the host */
	uint32_t path_len;	   /* without the NUL that follows the path */
	uint32_t own;
};

bool kit_is_key(const char *key);
int kit_open_dir(int dir_fd, const char *name) _must_check_;
/* The path of a directory, in a form that a plan accepts. */
int kit_path_of(int fd, char *ret, size_t size) _must_check_;
/* Identifies a regular file below the tree. */
int kit_identify(int tree_fd, const char *path, struct tool_id *ret) _must_check_;
/* Hashes a manifest after its sum. */
void kit_sum(const struct buf *manifest, char ret[SHA256_HEX]);

/* An opened kit: its manifest is complete, its files have not been checked. */
struct kit_opened {
	int dir_fd, tree_fd, manifest_fd;
	struct buf manifest;
	int64_t bytes;
};
#define KIT_CLOSED                                                                                 \
	{                                                                                          \
		-EBADF, -EBADF, -EBADF, { 0 }, 0                                                   \
	}
/* k must be KIT_CLOSED. */
int kit_open(int place_fd, const char *key, struct kit_opened *k) _must_check_;
void kit_opened_done(struct kit_opened *k);
