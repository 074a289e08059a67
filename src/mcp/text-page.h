/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of read_output and read_file: a page of a text, as the arguments ask for it. */
#pragma once

#include "mcp/work.h"

struct page_source {
	struct text_source text;
	bool complete; /* it grows no more, and nothing of it was left out */
};

/* The shape TextPage. NULL: err says why; or the call was let go, and err is empty. */
json_t *text_page_of(struct mcp_work *w, const struct page_source *source, struct error *err);
