/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by schema.c, which makes JSON Schema, and schema-check.c, which checks values: how the text of a type is read. */
#pragma once

#include "spec/schema.h"

enum schema_word_kind {
	WORD_UNKNOWN,
	WORD_PLAIN, /* a JSON type */
	WORD_ANY,
	WORD_CHOICE,
	WORD_SHAPE,
	WORD_LIST, /* these four have an inner type */
	WORD_MAP,
	WORD_OR_NULL,
	WORD_EITHER, /* inner and other */
};

struct schema_word {
	enum schema_word_kind kind;
	struct span inner; /* of WORD_PLAIN: the JSON type; of WORD_CHOICE: the words */
	struct span other;
	const char *format; /* of WORD_PLAIN: JSON Schema's name for what the text is, or NULL */
	bool has_bounds;
	int64_t min, max;
};

struct schema_word schema_word(struct span type);
bool schema_requires(const struct schema *schema, const char *key);
