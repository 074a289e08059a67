/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of JSON as tables of fields, one row a key. One table serves every form of its noun: the reader of a request or a file (read.h),
 * the writer of a result (emit.h), JSON Schema, and the check of a tool's arguments. A row that is only described has no functions; a
 * row without a type is read or written, but is not described. A field's type is a short text:
 *
 *   string integer number boolean object null any
 *                                                a JSON type
 *   integer 1..9                                 one with bounds; number has them, too
 *   time  bytes                                  a string: RFC 3339; a body of any bytes
 *   a|b|c  =a                                    one of these words; this word
 *   Name                                         another shape of the book; Limits is made from spec/knob.h
 *   [T]  {T}  T?  T or U                         a list of T, an object whose values are T, T or null, either
 */
#pragma once

#include "base/error.h"
#include "base/span.h"

#include <jansson.h>
#include <stdbool.h>

/* Rows of tables leave out the members that they do not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

struct reader;
struct emitter;
struct schema_field;

/* Reads a value into the object. */
typedef int field_reader(const struct reader *r, const struct schema_field *f, const json_t *value,
			 void *object);
/* Writes the key and its value from the object. */
typedef void field_writer(struct emitter *e, const struct schema_field *f, const void *object);

struct schema_field {
	const char *key, *type;
	const char *help; /* or NULL */
	field_reader *read;
	field_writer *emit;
	size_t offset;	  /* of the member in the object, for the shared readers and writers */
	size_t beside;	  /* of a second member: the number of entries, or the set of limits */
	size_t max;	  /* most bytes of a text or a word */
	size_t max_count; /* most entries of a list */
	/* The table of a part, or of the entries of a list; and the size of one in memory. */
	const struct schema_field *of;
	size_t size;
	bool sparse; /* left out of an answer that has nothing for it */
};

/* A key of other interfaces, and what says the same here. */
struct key_hint {
	const char *key, *instead;
};

struct schema {
	const char *name, *help;
	const struct schema_field *fields; /* ends with a row whose key is NULL */
	/* Keys, one blank between; "*": all that are not sparse; "*-KEY…": all but these; NULL: none. */
	const char *required;
	const struct key_hint *hints; /* ends with an empty row; NULL: none */
};

/* The fields of a shape, in its row. */
#define FIELDS(...) ((const struct schema_field[]){ __VA_ARGS__, { 0 } })
#define NO_FIELDS   ((const struct schema_field[]){ { 0 } })

/* One of several shapes. Only books with a place have unions. */
struct schema_union {
	const char *name, *help;
	const char *members; /* names of shapes, one blank between */
	const char *told_by; /* the key whose type "=WORD" tells the members apart, or NULL */
};

struct schema_example {
	const char *name; /* of a shape or union */
	const char *json;
};

/* The shapes that types may name. */
struct schema_book {
	/* Each table ends with an empty row, the list with NULL. */
	const struct schema *const *tables;
	/* These two end with an empty row; or NULL. */
	const struct schema_union *unions;
	const struct schema_example *examples;
	/* "#/components/schemas/": a shape is a reference to a place there. NULL: the shape itself stands where it is named. */
	const char *place;
	const char *const *limits; /* keys of Limits, ends with NULL; NULL: all */
	bool closed;		   /* keys that a shape does not have are refused */
};

static inline void *field_member(const struct schema_field *f, void *object)
{
	return (char *)object + f->offset;
}

static inline const void *field_in(const struct schema_field *f, const void *object)
{
	return (const char *)object + f->offset;
}

/* NULL: the book has no such shape. */
const struct schema *schema_find(const struct schema_book *book, struct span name);
/* Is the word in the list? In the list, one blank stands between words. NULL: an empty list. */
bool schema_lists(const char *list, const char *word);
/* JSON Schema (2020-12) of a type; NULL: no memory, or no such type. */
json_t *schema_type(const struct schema_book *book, const char *type);
json_t *schema_make(const struct schema_book *book, const struct schema *schema);
/* {NAME: schema} of all shapes. NULL: no memory. */
json_t *schema_make_all(const struct schema_book *book);
/* Does an object have this shape? The error names the key, and says what to give. Limits are checked by their own reader. */
int schema_check(const struct schema_book *book, const struct schema *schema, const json_t *object,
		 struct error *err) _must_check_;
