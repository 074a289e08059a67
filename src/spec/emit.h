/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a JSON value as text, piece by piece, at a tenth of the cost of making a tree and printing it.
 *
 *   emit_open(e, '{'); emit_key(e, "id"); emit_string(e, id, strlen(id)); emit_close(e, '}');
 *
 * A failure is remembered: emit_text() then returns NULL.
 */
#pragma once

#include "base/buf.h"

#include "spec/schema.h"

#include <stdint.h>

struct emitter {
	struct buf text;
	bool failed;
	bool comma;	 /* before the next value or key */
	const char *key; /* of the next value, or NULL */
};

/* Text of at most `max` bytes. */
void emit_init(struct emitter *e, size_t max);
/* The value so far, for the caller to free; the emitter is empty afterwards. */
char *emit_text(struct emitter *e, size_t *ret_len) _must_check_;

void emit_open(struct emitter *e, char bracket); /* '{' or '[' */
void emit_close(struct emitter *e, char bracket);
/* The key of the next value; plain ASCII, borrowed until the end. It is written with the value: no value, no key. */
void emit_key(struct emitter *e, const char *key);
/* Any bytes: those that are not UTF-8 become U+FFFD. True: that happened. */
bool emit_string(struct emitter *e, const char *data, size_t len);
void emit_word(struct emitter *e, const char *text); /* NULL: null */
void emit_integer(struct emitter *e, int64_t value);
void emit_seconds(struct emitter *e, int64_t us);
void emit_real(struct emitter *e, double value);
void emit_boolean(struct emitter *e, bool value);
void emit_null(struct emitter *e);
/* Adds an existing value; takes no reference. NULL: null. */
void emit_value(struct emitter *e, json_t *value);

/* An object: the rows of its table that write, in their order. */
void emit_fields(struct emitter *e, const struct schema_field *rows, const void *object);
/*
 * Shared writers, of const char *, char [], bool, json_t *, int64_t, and of int64_t and int where negative means null. A sparse row
 * writes no NULL and no 0.
 */
field_writer write_text, write_chars, write_bool, write_json, write_integer, write_count, write_int;
/* The word of the row's type ("never|always") that an enum stands for; one byte if `size` is 1. */
field_writer write_choice;
field_writer write_seconds; /* of microseconds; negative: null */
field_writer write_part;    /* a struct inside of the object, by the table `of` */
field_writer
	write_list; /* an array of structs, by the table `of`; the member beside is their number */
