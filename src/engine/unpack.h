/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive that came with a request (tar, tar.gz, zip) into the request's `files`, in memory and bounded: nothing touches a
 * disk here. A process of its own reads it (unpacker.h); here its answer is checked and becomes JSON.
 */
#pragma once

#include "base/error.h"
#include "base/span.h"

#include <jansson.h>

/* Adds to files ({path: text | {"base64" | "text", "mode"}}). Refusals: ERROR_INPUT, ERROR_TOO_LARGE (-EFBIG); field archive. */
int unpack_archive(int unpacker_fd, struct span packed, json_t *files,
		   struct error *err) _must_check_;
/* The same from base64 text. */
int unpack_base64(int unpacker_fd, const json_t *text, json_t *files,
		  struct error *err) _must_check_;
