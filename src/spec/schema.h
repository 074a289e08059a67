/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of JSON as tables of fields: JSON Schema is made from them, and values are checked against them. A field's type is a short
 * text:
 *
 *   string integer number boolean object any     a JSON type
 *   integer 1..9                                 one with bounds; number has them, too
 *   a|b|c                                        one of these words
 *   Name                                         another shape of the book; Limits is made from spec/knob.h
 *   [T]  {T}  T?                                 a list of T, an object whose values are T, T or null
 */
#pragma once

#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

struct schema_field {
	const char *key, *type;
	const char *help; /* or NULL */
};

struct schema {
	const char *name, *help;
	const struct schema_field *fields; /* ends with a row whose key is NULL */
	/* Keys, one blank between; "*": all of them; "*-KEY…": all but these; NULL: none. */
	const char *required;
};

/* The shapes that types may name. */
struct schema_book {
	const struct schema *shapes; /* the last row has the name NULL */
	/* "#/components/schemas/": a shape is a reference to a place there. NULL: the shape itself stands where it is named. */
	const char *place;
	const char *const *limits; /* keys of Limits, ends with NULL; NULL: all */
	bool closed;		   /* keys that a shape does not have are refused */
};

/* JSON Schema (2020-12) of a type; NULL: no memory, or no such type. */
json_t *schema_type(const struct schema_book *book, const char *type);
json_t *schema_make(const struct schema_book *book, const struct schema *schema);
/* {NAME: schema} of all shapes. NULL: no memory. */
json_t *schema_make_all(const struct schema_book *book);
/* Does an object have this shape? The error names the key, and says what to give. Limits are checked by their own reader. */
int schema_check(const struct schema_book *book, const struct schema *schema, const json_t *object,
		 struct error *err) _must_check_;
