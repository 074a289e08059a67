/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of JSON for /openapi.json, as tables of fields. A field's type is a short text:
 *
 *   string integer number boolean object any     a JSON type
 *   a|b|c                                        one of these words
 *   Name                                         another shape
 *   [T]  {T}  T?                                 a list of T, an object whose values are T, T or null
 */
#pragma once

#include "base/macro.h"

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

/* All shapes that routes name; the last row has the name NULL. `Limits` is made from spec/knob.h. */
extern const struct schema api_schemas[];

/* JSON Schema (2020-12) of a type; NULL: no memory, or no such type. */
json_t *schema_type(const char *type);
/* {NAME: schema} of all shapes. NULL: no memory. */
json_t *schemas_make(void);
