/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all readers of a JSON tree: a table with one row a key reads an object, and each refusal names the
 * field ("stages[1].env.PATH: …"). Text from a caller passes through quote() before it is part of a message.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

struct reader {
	struct arena *arena;
	struct error *err;
	char field[64]; /* where in the tree; "" is the top */
};

/* A row: the key, how it is read, where the value goes and how long it may be. */
struct key_rule {
	const char *key;
	int (*read)(const struct reader *r, const struct key_rule *rule, const json_t *value,
		    void *object);
	size_t offset; /* of the member in object, for the shared readers below */
	size_t max;    /* most bytes of a text or a word */
	size_t max_count;
};

/* A key of other interfaces, and what says the same here. */
struct key_hint {
	const char *key, *instead;
};

struct key_table {
	const struct key_rule *rules;
	size_t n;
	const struct key_hint *hints; /* ends with an empty row; NULL: none */
};
#define KEY_TABLE(array) ((struct key_table){ (array), ARRAY_SIZE(array), NULL })

/* A reader for a value below this one: "key" or "field.key". */
struct reader reader_at(const struct reader *r, const char *key);
struct reader reader_index(const struct reader *r, size_t index);
/* -EINVAL, with "field: text" as the message. */
int reader_refuse(const struct reader *r, const char *fmt, ...) _printf_(2, 3);
int reader_no_memory(const struct reader *r);

/* Reads every key by its row. A null counts as not given; keys without a row are refused. */
int read_object(const struct reader *r, const json_t *value, struct key_table table,
		void *object) _must_check_;
/* Shared readers: const char *, bool, const char ** (NULL-terminated). No NUL inside texts. */
int read_text(const struct reader *r, const struct key_rule *rule, const json_t *value,
	      void *object) _must_check_;
int read_bool(const struct reader *r, const struct key_rule *rule, const json_t *value,
	      void *object) _must_check_;
int read_words(const struct reader *r, const struct key_rule *rule, const json_t *value,
	       void *object) _must_check_;
/* Names of modules: letters, digits, _ and ., no name twice. */
int read_modules(const struct reader *r, const struct key_rule *rule, const json_t *value,
		 void *object) _must_check_;
enum { MODULE_BYTES_MAX = 63 }; /* the longest name in a plan */
/* A text without NUL of at most max bytes. */
int read_string(const struct reader *r, const json_t *value, size_t max,
		const char **ret) _must_check_;

/* A caller's text, safe for a message: control characters become '?', long text is cut with "…". */
struct quoted {
	char text[56];
};
struct quoted quote(const char *data, size_t len);
struct quoted quote_text(const char *text);
/* A caller's text in the place of a value: 'text', or "an empty text". */
struct quoted quote_string(const char *data, size_t len);
/* "a list", "true", "512", "'512'": describes a value, for messages about wrong types. */
struct quoted quote_json(const json_t *value);
/* Whether the two differ by a typing error: one or two letters. */
bool words_are_close(const char *a, const char *b);
