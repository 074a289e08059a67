/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of an execution as content for a model: charts that the code gave as rich output, and image files that it wrote. All are
 * data of the tenant's: their bytes are checked, counted and encoded anew.
 */
#pragma once

#include "base/span.h"

#include <jansson.h>

struct mcp_work;

enum { IMAGES_MAX = 4, IMAGE_BYTES_MAX = 2 << 20 };

/* "image/png", "image/jpeg", "image/gif", "image/webp", by the first bytes; NULL: none of these. */
const char *image_type(struct span bytes);
/* A content block; NULL: no image, too large, or no memory. */
json_t *image_of_bytes(struct span bytes);
json_t *image_of_base64(const json_t *text);
/* A list of content blocks, at most IMAGES_MAX; NULL: no memory. The files are of an execution without a session. */
json_t *images_of_result(struct mcp_work *w, const json_t *result);
