/* SPDX-License-Identifier: Apache-2.0 */
/* See schema.h: makes JSON Schema from the tables. */
#include "spec/schema.h"

#include <string.h>

#include "spec/knob.h"
#include "spec/schema-private.h"

static json_t *reference(const struct schema_book *book, struct span name)
{
	json_t *path = json_sprintf("%s%.*s", book->place, (int)name.len, name.data);

	return json_pack("{s:o}", "$ref", path);
}

static json_t *words_of(struct span words)
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

static json_t *limits_schema(const struct schema_book *book);

static json_t *shape_of(const struct schema_book *book, struct span name)
{
	const struct schema *shape = schema_find(book, name);

	if (book->place)
		return reference(book, name);
	if (!shape)
		return span_is(name, "Limits") ? limits_schema(book) : NULL;
	return schema_make(book, shape);
}

static json_t *plain_type(const struct schema_word *w)
{
	if (!w->has_bounds)
		return json_pack("{s:s%, s:s*}", "type", w->inner.data, w->inner.len, "format",
				 w->format);
	return json_pack("{s:s%, s:I, s:I}", "type", w->inner.data, w->inner.len, "minimum",
			 (json_int_t)w->min, "maximum", (json_int_t)w->max);
}

static json_t *make_type(const struct schema_book *book, struct span type)
{
	const struct schema_word w = schema_word(type);

	switch (w.kind) {
	case WORD_OR_NULL:
		return json_pack("{s:[o, {s:s}]}", "anyOf", make_type(book, w.inner), "type",
				 "null");
	case WORD_LIST:
		return json_pack("{s:s, s:o}", "type", "array", "items", make_type(book, w.inner));
	case WORD_MAP:
		return json_pack("{s:s, s:o}", "type", "object", "additionalProperties",
				 make_type(book, w.inner));
	case WORD_EITHER:
		return json_pack("{s:[o, o]}", "anyOf", make_type(book, w.inner),
				 make_type(book, w.other));
	case WORD_CHOICE:
		return words_of(w.inner);
	case WORD_SHAPE:
		return shape_of(book, type);
	case WORD_ANY:
		return json_object();
	case WORD_PLAIN:
		return plain_type(&w);
	case WORD_UNKNOWN:
		break;
	}
	return NULL;
}

json_t *schema_type(const struct schema_book *book, const char *type)
{
	return make_type(book, span_of(type));
}

static int add_field(const struct schema_book *book, json_t *properties,
		     const struct schema_field *field)
{
	json_t *value = schema_type(book, field->type);
	int r = value ? 0 : -ENOMEM;

	/* JSON Schema allows keys beside $ref. */
	if (r == 0 && field->help)
		r = json_object_set_new(value, "description", json_string(field->help));
	if (r < 0) {
		json_decref(value);
		return -ENOMEM;
	}
	return json_object_set_new(properties, field->key, value) < 0 ? -ENOMEM : 0;
}

bool schema_lists(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; at && (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
			return true;
	return false;
}

bool schema_requires(const struct schema *schema, const char *key)
{
	const char *list = schema->required;

	if (!list || list[0] != '*')
		return schema_lists(list, key);
	return list[1] != '-' || !schema_lists(list + 2, key);
}

static int fill_schema(const struct schema_book *book, const struct schema *schema,
		       json_t *properties, json_t *required)
{
	int r = 0;

	for (const struct schema_field *f = schema->fields; r == 0 && f->key; f++) {
		r = add_field(book, properties, f);
		if (r == 0 && schema_requires(schema, f->key) &&
		    json_array_append_new(required, json_string(f->key)) < 0)
			r = -ENOMEM;
	}
	return r;
}

json_t *schema_make(const struct schema_book *book, const struct schema *schema)
{
	json_t *properties = json_object(), *required = json_array();

	if (!properties || !required || fill_schema(book, schema, properties, required) < 0) {
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

/* The word of a key whose type is "=WORD". */
static struct span told_word(const struct schema *schema, const char *key)
{
	const struct schema_field *f = schema->fields;

	while (f->key && strcmp(f->key, key) != 0)
		f++;
	return f->key && f->type[0] == '=' ? span_of(f->type + 1) : (struct span){ 0 };
}

static int add_mapping(const struct schema_book *book, const struct schema_union *u,
		       struct span name, json_t *mapping)
{
	const struct schema *member = schema_find(book, name);
	struct span word = member ? told_word(member, u->told_by) : (struct span){ 0 };
	json_t *place = json_sprintf("%s%.*s", book->place, (int)name.len, name.data);

	if (word.data)
		return json_object_setn_new(mapping, word.data, word.len, place);
	json_decref(place);
	return -EINVAL;
}

static json_t *union_make(const struct schema_book *book, const struct schema_union *u)
{
	json_t *members = json_array(), *mapping = json_object(), *made;
	struct span rest = span_of(u->members), name;
	int r = members && mapping ? 0 : -ENOMEM;

	while (r == 0 && span_split(&rest, ' ', &name)) {
		r = json_array_append_new(members, reference(book, name));
		if (r == 0 && u->told_by)
			r = add_mapping(book, u, name, mapping);
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

/*
 * A number, or a text such as "16k" or "5s". No default is stated: generators take a key with a default for one that is always there,
 * and a policy may have another.
 */
static json_t *knob_schema(const struct knob *k)
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

static bool is_wanted(const char *const *keys, const char *key)
{
	while (keys && *keys && strcmp(*keys, key) != 0)
		keys++;
	return !keys || *keys;
}

/* A schema that stands by itself names the limits and no more; a value that is none is refused with its bounds. */
static json_t *limits_schema(const struct schema_book *book)
{
	json_t *properties = json_object();

	for (size_t i = 0; properties && i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];

		if (is_wanted(book->limits, k->key) &&
		    json_object_set_new(properties, k->key,
					book->place ? knob_schema(k) : json_object()) < 0) {
			json_decref(properties);
			return NULL;
		}
	}
	return json_pack("{s:s, s:s, s:o, s:b}", "type", "object", "description",
			 "Sizes in bytes or like \"512m\", times in seconds or like \"500ms\".",
			 "properties", properties, "additionalProperties", 0);
}

static int add_shapes(const struct schema_book *book, const struct schema *shapes, json_t *all)
{
	int r = 0;

	for (const struct schema *s = shapes; r == 0 && s->name; s++)
		r = json_object_set_new(all, s->name, schema_make(book, s));
	return r;
}

static int add_unions(const struct schema_book *book, json_t *all)
{
	int r = 0;

	for (const struct schema_union *u = book->unions; r == 0 && u && u->name; u++)
		r = json_object_set_new(all, u->name, union_make(book, u));
	return r;
}

static int add_examples(const struct schema_book *book, const json_t *all)
{
	int r = 0;

	for (const struct schema_example *e = book->examples; r == 0 && e && e->name; e++)
		r = json_object_set_new(json_object_get(all, e->name), "examples",
					json_pack("[o]", json_loads(e->json, 0, NULL)));
	return r;
}

json_t *schema_make_all(const struct schema_book *book)
{
	json_t *all = json_object();
	int r = all ? json_object_set_new(all, "Limits", limits_schema(book)) : -1;

	for (const struct schema *const *t = book->tables; r == 0 && *t; t++)
		r = add_shapes(book, *t, all);
	if (r == 0)
		r = add_unions(book, all);
	if (r == 0)
		r = add_examples(book, all);
	if (r == 0)
		return all;
	json_decref(all);
	return NULL;
}
