/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all readers of a JSON tree: a table with one row a key reads an object, and each refusal names the
 * field ("stages[1].env.PATH: …"). Text from a caller passes through quote() before it is part of a message.
 */
#pragma once

#include "base/arena.h"
#include "spec/schema.h"

struct reader {
	struct arena *arena;
	struct error *err;
	char field[64]; /* where in the tree; "" is the top */
};

/* A table that is only read. */
#define SHAPE_OF(rows) (&(const struct schema){ .fields = (rows) })

/* A reader for a value below this one: "key" or "field.key". */
struct reader reader_at(const struct reader *r, const char *key);
struct reader reader_index(const struct reader *r, size_t index);
/* -EINVAL, with "field: text" as the message. */
int reader_refuse(const struct reader *r, const char *fmt, ...) _printf_(2, 3);
int reader_no_memory(const struct reader *r);

/* Reads every key by its row. A null counts as not given; keys without a row that reads are refused. */
int read_object(const struct reader *r, const json_t *value, const struct schema *shape,
		void *object) _must_check_;
/* Shared readers, of const char *, bool and const char ** (NULL-terminated). No NUL inside texts. */
field_reader read_text, read_bool, read_words;
/* Lists of absolute paths, and of names below /etc. */
field_reader read_paths, read_etc;
/* One of the words of the row's type ("never|always"), into an enum whose values are in their order. */
field_reader read_choice;
/* An object, by the table `of`, into a struct inside of the object. */
field_reader read_part;
/* An object of limits; the member beside is the set of those that are given. */
field_reader read_limits;
/* Names of modules: letters, digits, _ and ., no name twice. */
field_reader read_modules;
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
