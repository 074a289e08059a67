/* SPDX-License-Identifier: Apache-2.0 */
/* See schema.h: reads types, makes JSON Schema from the tables, and checks values against them. */
#include "spec/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "spec/knob.h"

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

static const struct plain_type {
	const char *name, *asked; /* as a refusal asks for it */
} plain_types[] = {
	{ "string", "a text" },		{ "integer", "a whole number" }, { "number", "a number" },
	{ "boolean", "true or false" }, { "object", "an object" },	 { "null", "null" },
};

static const struct plain_type *schema_plain(struct span type)
{
	for (size_t i = 0; i < ARRAY_SIZE(plain_types); i++)
		if (span_is(type, plain_types[i].name))
			return &plain_types[i];
	return NULL;
}

/* "T or U": where the first " or " stands that is not inside of a list or map. NULL: there is none. */
static const char *schema_find_or(struct span type)
{
	int depth = 0;

	for (size_t i = 0; i + 4 < type.len; i++) {
		depth += type.data[i] == '[' || type.data[i] == '{';
		depth -= type.data[i] == ']' || type.data[i] == '}';
		if (depth == 0 && memcmp(type.data + i, " or ", 4) == 0)
			return type.data + i;
	}
	return NULL;
}

static struct schema_word schema_word(struct span type)
{
	const char first = type.len > 0 ? type.data[0] : '\0';
	const char last = type.len > 0 ? type.data[type.len - 1] : '\0';
	const char *either = schema_find_or(type);
	struct schema_word w = { .kind = WORD_UNKNOWN, .inner = type };
	struct span bounds = type;
	long long min, max;

	if (either) {
		w.kind = WORD_EITHER;
		w.inner.len = (size_t)(either - type.data);
		w.other = (struct span){ either + 4, type.len - 4 - w.inner.len };
	} else if (last == '?') {
		w.kind = WORD_OR_NULL;
		w.inner.len--;
	} else if (type.len > 2 && first == '[' && last == ']') {
		w.kind = WORD_LIST;
		w.inner = (struct span){ type.data + 1, type.len - 2 };
	} else if (type.len > 2 && first == '{' && last == '}') {
		w.kind = WORD_MAP;
		w.inner = (struct span){ type.data + 1, type.len - 2 };
	} else if (first == '=') {
		w.kind = WORD_CHOICE;
		w.inner = (struct span){ type.data + 1, type.len - 1 };
	} else if (type.len > 0 && memchr(type.data, '|', type.len)) {
		w.kind = WORD_CHOICE;
	} else if (first >= 'A' && first <= 'Z') {
		w.kind = WORD_SHAPE;
	} else if (span_is(type, "any")) {
		w.kind = WORD_ANY;
	} else if (span_is(type, "time") || span_is(type, "bytes")) {
		w.kind = WORD_PLAIN;
		w.inner = span_of("string");
		w.format = span_is(type, "time") ? "date-time" : "binary";
	} else {
		/* "integer", or "integer 1..9" */
		if (type.len > 0 && memchr(type.data, ' ', type.len) &&
		    span_split(&bounds, ' ', &w.inner) &&
		    sscanf(bounds.data, "%lld..%lld", &min, &max) == 2) {
			w.has_bounds = true;
			w.min = min;
			w.max = max;
		}
		if (schema_plain(w.inner))
			w.kind = WORD_PLAIN;
	}
	return w;
}

const struct schema *schema_find(const struct schema_book *book, struct span name)
{
	for (const struct schema *const *t = book->tables; *t; t++)
		for (const struct schema *s = *t; s->name; s++)
			if (span_is(name, s->name))
				return s;
	return NULL;
}

bool schema_lists(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; at && (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
			return true;
	return false;
}

static bool schema_requires(const struct schema *schema, const struct schema_field *f)
{
	const char *list = schema->required;

	if (!list || list[0] != '*')
		return schema_lists(list, f->key);
	return f->type && !f->sparse && (list[1] != '-' || !schema_lists(list + 2, f->key));
}

static const struct schema_field *schema_field(const struct schema *schema, const char *key)
{
	for (const struct schema_field *f = schema->fields; f->key; f++)
		if (f->type && strcmp(f->key, key) == 0)
			return f;
	return NULL;
}

/* --- JSON Schema --- */

static json_t *schema_place(const struct schema_book *book, struct span name)
{
	return json_sprintf("%s%.*s", book->place, (int)name.len, name.data);
}

/*
 * A number, or a text such as "16k" or "5s". No default is stated: generators take a key with a default for one that is always there,
 * and a policy may have another.
 */
static json_t *schema_of_knob(const struct knob *k)
{
	const char *number = k->kind == KNOB_TIME || k->kind == KNOB_CPUS ? "number" : "integer";
	json_t *forms = json_pack("[{s:s, s:o, s:o}, {s:s}]", "type", number, "minimum",
				  knob_to_json(k, k->min), "maximum", knob_to_json(k, k->max),
				  "type", "string");

	if (forms && k->none_ok &&
	    json_array_append_new(forms, json_pack("{s:s}", "type", "null")) < 0) {
		json_decref(forms);
		return NULL;
	}
	return json_pack("{s:o, s:s}", "anyOf", forms, "description", k->help);
}

/* A schema that stands by itself names the limits and no more; a value that is none is refused with its bounds. */
static json_t *schema_of_limits(const struct schema_book *book)
{
	json_t *properties = json_object();

	for (size_t i = 0; properties && i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		const char *const *key = book->limits;

		while (key && *key && strcmp(*key, k->key) != 0)
			key++;
		if ((!key || *key) &&
		    json_object_set_new(properties, k->key,
					book->place ? schema_of_knob(k) : json_object()) < 0) {
			json_decref(properties);
			return NULL;
		}
	}
	return json_pack("{s:s, s:s, s:o, s:b}", "type", "object", "description",
			 "Sizes in bytes or like \"512m\", times in seconds or like \"500ms\".",
			 "properties", properties, "additionalProperties", 0);
}

static json_t *schema_of_shape(const struct schema_book *book, struct span name)
{
	const struct schema *shape = schema_find(book, name);

	if (book->place)
		return json_pack("{s:o}", "$ref", schema_place(book, name));
	if (!shape)
		return span_is(name, "Limits") ? schema_of_limits(book) : NULL;
	return schema_make(book, shape);
}

static json_t *schema_of_choice(struct span words)
{
	json_t *list = json_array();
	struct span word;

	while (list && span_split(&words, '|', &word))
		if (json_array_append_new(list, json_stringn(word.data, word.len)) < 0) {
			json_decref(list);
			return NULL;
		}
	return json_pack("{s:s, s:o}", "type", "string", "enum", list);
}

static json_t *schema_of_type(const struct schema_book *book, struct span type)
{
	const struct schema_word w = schema_word(type);

	switch (w.kind) {
	case WORD_OR_NULL:
		return json_pack("{s:[o, {s:s}]}", "anyOf", schema_of_type(book, w.inner), "type",
				 "null");
	case WORD_LIST:
		return json_pack("{s:s, s:o}", "type", "array", "items",
				 schema_of_type(book, w.inner));
	case WORD_MAP:
		return json_pack("{s:s, s:o}", "type", "object", "additionalProperties",
				 schema_of_type(book, w.inner));
	case WORD_EITHER:
		return json_pack("{s:[o, o]}", "anyOf", schema_of_type(book, w.inner),
				 schema_of_type(book, w.other));
	case WORD_CHOICE:
		return schema_of_choice(w.inner);
	case WORD_SHAPE:
		return schema_of_shape(book, type);
	case WORD_ANY:
		return json_object();
	case WORD_PLAIN:
		if (!w.has_bounds)
			return json_pack("{s:s%, s:s*}", "type", w.inner.data, w.inner.len,
					 "format", w.format);
		return json_pack("{s:s%, s:I, s:I}", "type", w.inner.data, w.inner.len, "minimum",
				 (json_int_t)w.min, "maximum", (json_int_t)w.max);
	case WORD_UNKNOWN:
		break;
	}
	return NULL;
}

json_t *schema_type(const struct schema_book *book, const char *type)
{
	return schema_of_type(book, span_of(type));
}

static int schema_fill(const struct schema_book *book, const struct schema *schema,
		       json_t *properties, json_t *required)
{
	for (const struct schema_field *f = schema->fields; f->key; f++) {
		json_t *value = f->type ? schema_type(book, f->type) : NULL;
		int r = value ? 0 : -1;

		if (!f->type)
			continue;
		/* JSON Schema allows keys beside $ref. */
		if (r == 0 && f->help)
			r = json_object_set_new(value, "description", json_string(f->help));
		if (r < 0)
			json_decref(value);
		else
			r = json_object_set_new(properties, f->key, value);
		if (r == 0 && schema_requires(schema, f))
			r = json_array_append_new(required, json_string(f->key));
		if (r < 0)
			return -ENOMEM;
	}
	return 0;
}

json_t *schema_make(const struct schema_book *book, const struct schema *schema)
{
	json_t *properties = json_object(), *required = json_array();

	if (!properties || !required || schema_fill(book, schema, properties, required) < 0) {
		json_decref(properties);
		json_decref(required);
		return NULL;
	}
	/* Some readers of OpenAPI refuse an empty list of required keys. */
	if (json_array_size(required) == 0) {
		json_decref(required);
		required = NULL;
	}
	return json_pack("{s:s, s:s*, s:o, s:o*, s:o*}", "type", "object", "description",
			 schema->help, "properties", properties, "required", required,
			 "additionalProperties", book->closed ? json_false() : NULL);
}

static json_t *schema_of_union(const struct schema_book *book, const struct schema_union *u)
{
	json_t *members = json_array(), *mapping = json_object(), *made;
	struct span rest = span_of(u->members), name;
	int r = members && mapping ? 0 : -ENOMEM;

	while (r == 0 && span_split(&rest, ' ', &name)) {
		const struct schema *member = schema_find(book, name);
		const struct schema_field *f = member && u->told_by
						       ? schema_field(member, u->told_by)
						       : NULL;

		r = json_array_append_new(members, schema_of_shape(book, name));
		/* The member's word for the key that tells the members apart, whose type is "=WORD". */
		if (r == 0 && u->told_by)
			r = f && f->type[0] == '=' ? json_object_set_new(mapping, f->type + 1,
									 schema_place(book, name))
						   : -EINVAL;
	}
	made = r < 0 ? NULL : json_pack("{s:s, s:O}", "description", u->help, "oneOf", members);
	if (made && u->told_by)
		(void)json_object_set_new(
			made, "discriminator",
			json_pack("{s:s, s:O}", "propertyName", u->told_by, "mapping", mapping));
	json_decref(members);
	json_decref(mapping);
	return made;
}

json_t *schema_make_all(const struct schema_book *book)
{
	json_t *all = json_object();
	int r = all ? json_object_set_new(all, "Limits", schema_of_limits(book)) : -1;

	for (const struct schema *const *t = book->tables; *t; t++)
		for (const struct schema *s = *t; r == 0 && s->name; s++)
			r = json_object_set_new(all, s->name, schema_make(book, s));
	for (const struct schema_union *u = book->unions; r == 0 && u && u->name; u++)
		r = json_object_set_new(all, u->name, schema_of_union(book, u));
	for (const struct schema_example *e = book->examples; r == 0 && e && e->name; e++)
		r = json_object_set_new(json_object_get(all, e->name), "examples",
					json_pack("[o]", json_loads(e->json, 0, NULL)));
	if (r == 0)
		return all;
	json_decref(all);
	return NULL;
}

/* --- checks --- */

/* A value, and where it stands: its key, or "KEY.KEY". */
struct value_place {
	const struct schema_book *book;
	const char *name;
};

static int schema_check_value(const struct value_place *at, struct span type, const json_t *value,
			      struct error *err);

static bool schema_is_plain(struct span type, const json_t *value)
{
	if (span_is(type, "string"))
		return json_is_string(value);
	if (span_is(type, "boolean"))
		return json_is_boolean(value);
	if (span_is(type, "object"))
		return json_is_object(value);
	if (span_is(type, "integer"))
		return json_is_integer(value);
	if (span_is(type, "null"))
		return json_is_null(value);
	return json_is_number(value);
}

static int schema_check_plain(const struct value_place *at, const struct schema_word *w,
			      const json_t *value, struct error *err)
{
	const struct plain_type *plain = schema_plain(w->inner);
	double number = json_number_value(value);

	if (!schema_is_plain(w->inner, value))
		return error_field(err, at->name, "%s: give %s", at->name, plain->asked);
	if (!w->has_bounds || (number >= (double)w->min && number <= (double)w->max))
		return 0;
	return error_field(err, at->name, "%s: give %s from %lld to %lld", at->name, plain->asked,
			   (long long)w->min, (long long)w->max);
}

static int schema_check_choice(const struct value_place *at, struct span type, const json_t *value,
			       struct error *err)
{
	struct span rest = type, word;

	while (json_is_string(value) && span_split(&rest, '|', &word))
		if (span_is(word, json_string_value(value)))
			return 0;
	return error_field(err, at->name, "%s: give one of %.*s", at->name, (int)type.len,
			   type.data);
}

/* The values of a list, or of an object that is a map. */
static int schema_check_values(const struct value_place *at, const struct schema_word *w,
			       const json_t *value, struct error *err)
{
	char name[sizeof(err->field)];
	const struct value_place inner = { at->book, name };
	const char *key;
	json_t *one;
	int r = 0;

	if (w->kind == WORD_LIST ? !json_is_array(value) : !json_is_object(value))
		return error_field(err, at->name, "%s: give %s", at->name,
				   w->kind == WORD_LIST ? "a list" : "an object");
	for (size_t i = 0; r == 0 && i < json_array_size(value); i++) {
		(void)snprintf(name, sizeof(name), "%.40s[%zu]", at->name, i);
		r = schema_check_value(&inner, w->inner, json_array_get(value, i), err);
	}
	json_object_foreach((json_t *)(uintptr_t)value, key, one)
	{
		(void)snprintf(name, sizeof(name), "%.30s.%.30s", at->name, key);
		r = schema_check_value(&inner, w->inner, one, err);
		if (r < 0)
			break;
	}
	return r;
}

static int schema_check_value(const struct value_place *at, struct span type, const json_t *value,
			      struct error *err)
{
	const struct schema_word w = schema_word(type);
	const struct schema *shape;

	switch (w.kind) {
	case WORD_OR_NULL:
		return json_is_null(value) ? 0 : schema_check_value(at, w.inner, value, err);
	case WORD_LIST:
	case WORD_MAP:
		return schema_check_values(at, &w, value, err);
	case WORD_EITHER:
		if (schema_check_value(at, w.inner, value, &(struct error){ 0 }) == 0)
			return 0;
		return schema_check_value(at, w.other, value, err);
	case WORD_CHOICE:
		return schema_check_choice(at, w.inner, value, err);
	case WORD_SHAPE:
		shape = schema_find(at->book, type);
		if (!json_is_object(value))
			return error_field(err, at->name, "%s: give an object", at->name);
		return shape ? schema_check(at->book, shape, value, err) : 0;
	case WORD_PLAIN:
		return schema_check_plain(at, &w, value, err);
	case WORD_ANY:
	case WORD_UNKNOWN:
		break;
	}
	return 0;
}

static int schema_check_keys(const struct schema *schema, const json_t *object, struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		struct suggestion near = { 0 };

		if (schema_field(schema, key))
			continue;
		for (const struct schema_field *f = schema->fields; f->key; f++)
			suggest_offer(&near, key, f->key);
		if (near.best)
			return error_field(err, key,
					   "%.40s: there is no such key; did you mean %s?", key,
					   near.best);
		return error_field(err, key, "%.40s: there is no such key; leave it out", key);
	}
	return 0;
}

int schema_check(const struct schema_book *book, const struct schema *schema, const json_t *object,
		 struct error *err)
{
	int r = book->closed ? schema_check_keys(schema, object, err) : 0;

	for (const struct schema_field *f = schema->fields; r == 0 && f->key; f++) {
		const json_t *value = json_object_get(object, f->key);

		if (value && f->type)
			r = schema_check_value(&(struct value_place){ book, f->key },
					       span_of(f->type), value, err);
		else if (!value && schema_requires(schema, f))
			r = error_field(err, f->key, "%s: it is missing%s%s", f->key,
					f->help ? "; give " : "", f->help ? f->help : "");
	}
	return r;
}
