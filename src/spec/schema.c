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

static json_t *limits_schema(const char *const *keys);

static json_t *shape_of(const struct schema_book *book, struct span name)
{
	const struct schema *shape = schema_find(book, name);

	if (book->place)
		return reference(book, name);
	if (!shape)
		return span_is(name, "Limits") ? limits_schema(book->limits) : NULL;
	return schema_make(book, shape);
}

static json_t *plain_type(const struct schema_word *w)
{
	if (!w->has_bounds)
		return json_pack("{s:s%}", "type", w->inner.data, w->inner.len);
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
	case WORD_CHOICE:
		return words_of(type);
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

static bool is_listed(const char *list, const char *key)
{
	size_t n = strlen(key);

	for (const char *at = list; (at = strstr(at, key)); at += n)
		if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
			return true;
	return false;
}

bool schema_requires(const struct schema *schema, const char *key)
{
	const char *list = schema->required;

	if (!list || list[0] != '*')
		return list && is_listed(list, key);
	return list[1] != '-' || !is_listed(list + 2, key);
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
	json_t *properties = json_object(), *required = json_array(), *made;

	if (!properties || !required || fill_schema(book, schema, properties, required) < 0) {
		json_decref(properties);
		json_decref(required);
		return NULL;
	}
	made = json_pack("{s:s, s:s*, s:o, s:o}", "type", "object", "description", schema->help,
			 "properties", properties, "required", required);
	if (!made || !book->closed ||
	    json_object_set_new(made, "additionalProperties", json_false()) == 0)
		return made;
	json_decref(made);
	return NULL;
}

/* A number; also a text with a unit, if the knob's kind has units. */
static json_t *knob_schema(const struct knob *k)
{
	const bool has_unit = k->kind == KNOB_SIZE || k->kind == KNOB_TIME;
	const char *number = k->kind == KNOB_TIME || k->kind == KNOB_CPUS ? "number" : "integer";
	json_t *types = has_unit ? json_pack("[s, s]", number, "string") : json_pack("[s]", number);

	if (types && k->none_ok && json_array_append_new(types, json_string("null")) < 0) {
		json_decref(types);
		return NULL;
	}
	return json_pack("{s:o, s:s, s:o, s:o, s:o}", "type", types, "description", k->help,
			 "minimum", knob_to_json(k, k->min), "maximum", knob_to_json(k, k->max),
			 "default", knob_to_json(k, k->preset));
}

static bool is_wanted(const char *const *keys, const char *key)
{
	while (keys && *keys && strcmp(*keys, key) != 0)
		keys++;
	return !keys || *keys;
}

static json_t *limits_schema(const char *const *keys)
{
	json_t *properties = json_object();

	for (size_t i = 0; properties && i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];

		if (is_wanted(keys, k->key) &&
		    json_object_set_new(properties, k->key, knob_schema(k)) < 0) {
			json_decref(properties);
			return NULL;
		}
	}
	return json_pack("{s:s, s:s, s:o, s:b}", "type", "object", "description",
			 "Sizes in bytes or like \"512m\", times in seconds or like \"500ms\".",
			 "properties", properties, "additionalProperties", 0);
}

json_t *schema_make_all(const struct schema_book *book)
{
	json_t *all = json_object();
	int r = all ? json_object_set_new(all, "Limits", limits_schema(book->limits)) : -1;

	for (const struct schema *s = book->shapes; r == 0 && s->name; s++)
		r = json_object_set_new(all, s->name, schema_make(book, s));
	if (r == 0)
		return all;
	json_decref(all);
	return NULL;
}
