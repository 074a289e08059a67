/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive that came with a request (tar, tar.gz, zip) into the request's `files`, in memory and bounded: nothing touches a
 * disk here. Only regular files and directories, relative names, each once; anything else refuses the whole.
 */
#pragma once

#include "base/error.h"
#include "base/span.h"

#include <jansson.h>

enum {
	UNPACK_ENTRIES_MAX = 4096,
	UNPACK_FILE_MAX = 16 << 20,
	UNPACK_TOTAL_MAX = 64 << 20,
	UNPACK_PACKED_MAX = 64 << 20,
};

/* Adds to files ({path: text | {"base64" | "text", "mode"}}). Refusals: ERROR_INPUT, field archive; -EFBIG: too large. */
int unpack_archive(struct span packed, json_t *files, struct error *err) _must_check_;
/* The same from base64 text. */
int unpack_base64(const json_t *text, json_t *files, struct error *err) _must_check_;
