/* SPDX-License-Identifier: Apache-2.0 */
/* See schema.h: makes JSON Schema from the tables. */
#include "api/schema.h"

#include <string.h>

#include "spec/knob.h"

enum { TYPE_MAX = 256 };

static json_t *schema_type_of(const char *type, size_t len);

static json_t *reference(const char *name, size_t len)
{
	json_t *path = json_sprintf("#/components/schemas/%.*s", (int)len, name);

	return json_pack("{s:o}", "$ref", path);
}

static json_t *words_of(const char *words, size_t len)
{
	json_t *list = json_array();

	for (size_t at = 0, n; list && at < len; at += n + 1) {
		const char *bar = memchr(words + at, '|', len - at);

		n = bar ? (size_t)(bar - words) - at : len - at;
		if (json_array_append_new(list, json_stringn(words + at, n)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return json_pack("{s:s, s:o}", "type", "string", "enum", list);
}

static json_t *or_null(const char *type, size_t len)
{
	return json_pack("{s:[o, {s:s}]}", "anyOf", schema_type_of(type, len), "type", "null");
}

static bool is_plain_type(const char *type, size_t len)
{
	static const char *const plain[] = { "string", "integer", "number", "boolean", "object" };

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (strlen(plain[i]) == len && memcmp(plain[i], type, len) == 0)
			return true;
	return false;
}

static json_t *schema_type_of(const char *type, size_t len)
{
	if (len == 0)
		return NULL;
	if (type[len - 1] == '?')
		return or_null(type, len - 1);
	if (len > 2 && type[0] == '[' && type[len - 1] == ']')
		return json_pack("{s:s, s:o}", "type", "array", "items",
				 schema_type_of(type + 1, len - 2));
	if (len > 2 && type[0] == '{' && type[len - 1] == '}')
		return json_pack("{s:s, s:o}", "type", "object", "additionalProperties",
				 schema_type_of(type + 1, len - 2));
	if (memchr(type, '|', len))
		return words_of(type, len);
	if (type[0] >= 'A' && type[0] <= 'Z')
		return reference(type, len);
	if (len == 3 && memcmp(type, "any", 3) == 0)
		return json_object();
	return is_plain_type(type, len) ? json_pack("{s:s%}", "type", type, len) : NULL;
}

json_t *schema_type(const char *type)
{
	return schema_type_of(type, strnlen(type, TYPE_MAX));
}

static int add_field(json_t *properties, const struct schema_field *field)
{
	json_t *value = schema_type(field->type);

	if (!value)
		return -ENOMEM;
	/* OpenAPI 3.1 allows keys beside $ref. */
	if (field->help &&
	    json_object_set_new(value, "description", json_string(field->help)) < 0) {
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

static bool is_required(const struct schema *schema, const char *key)
{
	const char *list = schema->required;

	if (!list || list[0] != '*')
		return list && is_listed(list, key);
	return list[1] != '-' || !is_listed(list + 2, key);
}

static int fill_schema(const struct schema *schema, json_t *properties, json_t *required)
{
	int r = 0;

	for (const struct schema_field *f = schema->fields; r == 0 && f->key; f++) {
		r = add_field(properties, f);
		if (r == 0 && is_required(schema, f->key) &&
		    json_array_append_new(required, json_string(f->key)) < 0)
			r = -ENOMEM;
	}
	return r;
}

static json_t *schema_make(const struct schema *schema)
{
	json_t *properties = json_object(), *required = json_array();

	if (!properties || !required || fill_schema(schema, properties, required) < 0) {
		json_decref(properties);
		json_decref(required);
		return NULL;
	}
	return json_pack("{s:s, s:s, s:o, s:o}", "type", "object", "description", schema->help,
			 "properties", properties, "required", required);
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

static json_t *limits_schema(void)
{
	json_t *properties = json_object();

	for (size_t i = 0; properties && i < limit_knobs_count; i++) {
		if (json_object_set_new(properties, limit_knobs[i].key,
					knob_schema(&limit_knobs[i])) < 0) {
			json_decref(properties);
			return NULL;
		}
	}
	return json_pack("{s:s, s:s, s:o, s:b}", "type", "object", "description",
			 "Sizes in bytes or like \"512m\", times in seconds or like \"500ms\".",
			 "properties", properties, "additionalProperties", 0);
}

json_t *schemas_make(void)
{
	json_t *all = json_object();
	int r = all ? json_object_set_new(all, "Limits", limits_schema()) : -1;

	for (const struct schema *s = api_schemas; r == 0 && s->name; s++)
		r = json_object_set_new(all, s->name, schema_make(s));
	if (r == 0)
		return all;
	json_decref(all);
	return NULL;
}
