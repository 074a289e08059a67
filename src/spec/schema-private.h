/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by schema.c, which makes JSON Schema, and schema-check.c, which checks values: how the text of a type is read. */
#pragma once

#include "base/span.h"
#include "spec/schema.h"

enum schema_word_kind {
	WORD_UNKNOWN,
	WORD_PLAIN, /* a JSON type */
	WORD_ANY,
	WORD_CHOICE,
	WORD_SHAPE,
	WORD_LIST, /* these three have an inner type */
	WORD_MAP,
	WORD_OR_NULL,
};

struct schema_word {
	enum schema_word_kind kind;
	struct span inner; /* of WORD_PLAIN: the JSON type */
	bool has_bounds;
	int64_t min, max;
};

struct schema_word schema_word(struct span type);
/* NULL: the book has no such shape. */
const struct schema *schema_find(const struct schema_book *book, struct span name);
bool schema_requires(const struct schema *schema, const char *key);
