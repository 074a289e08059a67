/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All bytes of one stream of one execution. The first SPOOL_MEMORY_MAX are kept in memory; more, or when it runs on, and a
 * file of the history holds everything. Most programs print little, and a file costs more than all else that is done for such
 * a run.
 */
#pragma once

#include "base/buf.h"
#include "engine/history/history.h"

enum { SPOOL_MEMORY_MAX = 64 << 10 };

struct spool {
	struct history *history;
	const char *id; /* borrowed */
	enum history_stream stream;
	struct buf memory; /* as long as there is no file */
	bool nameless;	   /* its file has no name: nothing of it outlives this process */
	int fd;
	int64_t size;
	int error;  /* why bytes are missing behind size, or 0 */
	bool spare; /* its file is not needed: the result has every byte */
};

void spool_init(struct spool *s, struct history *history, const char *id,
		enum history_stream stream);
void spool_done(struct spool *s);
/* Would one more piece of n bytes need a file? Then there must be a row first. */
bool spool_needs_file(const struct spool *s, size_t n);
/* How many were kept: n, or fewer once the disk is full; then s->error says why. */
size_t spool_append(struct spool *s, const void *bytes, size_t n);
/* Puts everything into a file now. */
int spool_keep(struct spool *s) _must_check_;
/* Up to n bytes from offset. */
ssize_t spool_read(const struct spool *s, int64_t offset, void *ret, size_t n) _must_check_;
/* Marks a file that lacks something of what happened, for ever: the file becomes read-only. */
void spool_cut(int fd);
bool spool_is_cut(int fd);
/* A descriptor of the caller's own to read everything there is now from. */
int spool_open(const struct spool *s) _must_check_;
/* Bytes that are given, not the program's own: of an execution that is read back. */
int spool_set(struct spool *s, const char *bytes, size_t n) _must_check_;
