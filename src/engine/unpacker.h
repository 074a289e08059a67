/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that archives are unpacked in. The front starts one unpacker before it confines itself; the unpacker waits, and forks a
 * process for each archive that does the work and ends. Neither can open, connect or start anything (box/confine/): the archive's
 * process has memory, one socket and 10 seconds of processor time, and what it says is checked as if an attacker had said it.
 *
 *   front ──one end of a stream socket──▶ unpacker ──fork──▶ archive's process
 *   front ──length, packed bytes──▶ archive's process ──FILE …, then END or REFUSED──▶ front
 */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

enum unpack_kind {
	UNPACK_FILE = 1, /* name and contents follow */
	UNPACK_END,	 /* that was all */
	UNPACK_REFUSED,	 /* a sentence follows as name */
};

struct unpack_record {
	uint32_t kind;
	uint32_t name_len;
	uint32_t executable; /* of a file */
	uint32_t errnum;     /* of a refusal */
	uint64_t size;	     /* of a file's contents */
};

struct unpacker_options {
	void (*serve)(
		int fd); /* what an archive's process does with its socket; unpacker_serve, but for tests */
	uint32_t cpu_s; /* processor time of one archive */
};

extern const struct unpacker_options unpacker_defaults;

/* Returns our end of a socket to the unpacker, which ends when that is closed. Before there are threads and secrets. */
int unpacker_start(const struct unpacker_options *options) _must_check_;
/* A stream socket to a new archive's process. From any thread. */
int unpacker_connect(int unpacker_fd) _must_check_;

void unpacker_serve(int fd);
