/* SPDX-License-Identifier: Apache-2.0 */
/* See schema.h: reads types, and checks values against the tables. */
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "spec/schema-private.h"

static bool is_plain(struct span type)
{
	static const char *const plain[] = { "string",	"integer", "number",
					     "boolean", "object",  "null" };

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (span_is(type, plain[i]))
			return true;
	return false;
}

/* "integer", or "integer 1..9" */
static struct schema_word plain_word(struct span type)
{
	struct schema_word w = { .kind = WORD_UNKNOWN, .inner = type };
	struct span bounds = type;
	long long min, max;

	if (memchr(type.data ? type.data : "", ' ', type.len) &&
	    span_split(&bounds, ' ', &w.inner) &&
	    sscanf(bounds.data, "%lld..%lld", &min, &max) == 2) {
		w.has_bounds = true;
		w.min = min;
		w.max = max;
	}
	if (is_plain(w.inner))
		w.kind = WORD_PLAIN;
	return w;
}

/* "T or U": where the first " or " stands that is not inside of a list or map. NULL: there is none. */
static const char *find_or(struct span type)
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

/* A string of a certain form. */
static struct schema_word text_word(struct span type)
{
	return (struct schema_word){ .kind = WORD_PLAIN,
				     .inner = span_of("string"),
				     .format = span_is(type, "time") ? "date-time" : "binary" };
}

struct schema_word schema_word(struct span type)
{
	const char first = type.len > 0 ? type.data[0] : '\0';
	const char last = type.len > 0 ? type.data[type.len - 1] : '\0';
	const char *either = find_or(type);

	if (either)
		return (struct schema_word){
			.kind = WORD_EITHER,
			.inner = { type.data, (size_t)(either - type.data) },
			.other = { either + 4, type.len - 4 - (size_t)(either - type.data) }
		};
	if (last == '?')
		return (struct schema_word){ .kind = WORD_OR_NULL,
					     .inner = { type.data, type.len - 1 } };
	if (type.len > 2 && first == '[' && last == ']')
		return (struct schema_word){ .kind = WORD_LIST,
					     .inner = { type.data + 1, type.len - 2 } };
	if (type.len > 2 && first == '{' && last == '}')
		return (struct schema_word){ .kind = WORD_MAP,
					     .inner = { type.data + 1, type.len - 2 } };
	if (first == '=')
		return (struct schema_word){ .kind = WORD_CHOICE,
					     .inner = { type.data + 1, type.len - 1 } };
	if (type.len > 0 && memchr(type.data, '|', type.len))
		return (struct schema_word){ .kind = WORD_CHOICE, .inner = type };
	if (first >= 'A' && first <= 'Z')
		return (struct schema_word){ .kind = WORD_SHAPE, .inner = type };
	if (span_is(type, "any"))
		return (struct schema_word){ .kind = WORD_ANY, .inner = type };
	if (span_is(type, "time") || span_is(type, "bytes"))
		return text_word(type);
	return plain_word(type);
}

const struct schema *schema_find(const struct schema_book *book, struct span name)
{
	for (const struct schema *const *t = book->tables; *t; t++)
		for (const struct schema *s = *t; s->name; s++)
			if (span_is(name, s->name))
				return s;
	return NULL;
}

/* A value, and where it stands: its key, or "KEY.KEY". */
struct value_place {
	const struct schema_book *book;
	const char *name;
};

static int check_value(const struct value_place *at, struct span type, const json_t *value,
		       struct error *err);

static bool has_plain_type(struct span type, const json_t *value)
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

static int check_plain(const struct value_place *at, const struct schema_word *w,
		       const json_t *value, struct error *err)
{
	static const struct {
		const char *type, *words;
	} asked[] = {
		{ "string", "a text" },	   { "integer", "a whole number" },
		{ "number", "a number" },  { "boolean", "true or false" },
		{ "object", "an object" }, { "null", "null" },
	};
	double number = json_number_value(value);
	size_t i = 0;

	while (!span_is(w->inner, asked[i].type))
		i++;
	if (!has_plain_type(w->inner, value))
		return error_field(err, at->name, "%s: give %s", at->name, asked[i].words);
	if (!w->has_bounds || (number >= (double)w->min && number <= (double)w->max))
		return 0;
	return error_field(err, at->name, "%s: give %s from %lld to %lld", at->name, asked[i].words,
			   (long long)w->min, (long long)w->max);
}

static int check_choice(const struct value_place *at, struct span type, const json_t *value,
			struct error *err)
{
	struct span rest = type, word;

	while (json_is_string(value) && span_split(&rest, '|', &word))
		if (span_is(word, json_string_value(value)))
			return 0;
	return error_field(err, at->name, "%s: give one of %.*s", at->name, (int)type.len,
			   type.data);
}

static int check_items(const struct value_place *at, struct span type, const json_t *list,
		       struct error *err)
{
	char name[sizeof(err->field)];
	const struct value_place inner = { at->book, name };
	int r = 0;

	if (!json_is_array(list))
		return error_field(err, at->name, "%s: give a list", at->name);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		(void)snprintf(name, sizeof(name), "%.40s[%zu]", at->name, i);
		r = check_value(&inner, type, json_array_get(list, i), err);
	}
	return r;
}

static int check_map(const struct value_place *at, struct span type, const json_t *map,
		     struct error *err)
{
	char name[sizeof(err->field)];
	const struct value_place inner = { at->book, name };
	const char *key;
	json_t *value;
	int r = 0;

	if (!json_is_object(map))
		return error_field(err, at->name, "%s: give an object", at->name);
	json_object_foreach((json_t *)(uintptr_t)map, key, value)
	{
		(void)snprintf(name, sizeof(name), "%.30s.%.30s", at->name, key);
		r = check_value(&inner, type, value, err);
		if (r < 0)
			break;
	}
	return r;
}

static int check_shape(const struct value_place *at, struct span type, const json_t *value,
		       struct error *err)
{
	const struct schema *shape = schema_find(at->book, type);

	if (!json_is_object(value))
		return error_field(err, at->name, "%s: give an object", at->name);
	return shape ? schema_check(at->book, shape, value, err) : 0;
}

static int check_value(const struct value_place *at, struct span type, const json_t *value,
		       struct error *err)
{
	const struct schema_word w = schema_word(type);

	switch (w.kind) {
	case WORD_OR_NULL:
		return json_is_null(value) ? 0 : check_value(at, w.inner, value, err);
	case WORD_LIST:
		return check_items(at, w.inner, value, err);
	case WORD_MAP:
		return check_map(at, w.inner, value, err);
	case WORD_EITHER:
		if (check_value(at, w.inner, value, &(struct error){ 0 }) == 0)
			return 0;
		return check_value(at, w.other, value, err);
	case WORD_CHOICE:
		return check_choice(at, w.inner, value, err);
	case WORD_SHAPE:
		return check_shape(at, type, value, err);
	case WORD_PLAIN:
		return check_plain(at, &w, value, err);
	case WORD_ANY:
	case WORD_UNKNOWN:
		break;
	}
	return 0;
}

static int refuse_key(const struct schema *schema, const char *key, struct error *err)
{
	struct suggestion near = { 0 };

	for (const struct schema_field *f = schema->fields; f->key; f++)
		suggest_offer(&near, key, f->key);
	if (near.best)
		return error_field(err, key, "%.40s: there is no such key; did you mean %s?", key,
				   near.best);
	return error_field(err, key, "%.40s: there is no such key; leave it out", key);
}

static int check_keys(const struct schema *schema, const json_t *object, struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		const struct schema_field *f = schema->fields;

		while (f->key && strcmp(f->key, key) != 0)
			f++;
		if (!f->key)
			return refuse_key(schema, key, err);
	}
	return 0;
}

int schema_check(const struct schema_book *book, const struct schema *schema, const json_t *object,
		 struct error *err)
{
	int r = book->closed ? check_keys(schema, object, err) : 0;

	for (const struct schema_field *f = schema->fields; r == 0 && f->key; f++) {
		const json_t *value = json_object_get(object, f->key);

		if (value)
			r = check_value(&(struct value_place){ book, f->key }, span_of(f->type),
					value, err);
		else if (schema_requires(schema, f->key))
			r = error_field(err, f->key, "%s: it is missing%s%s", f->key,
					f->help ? "; give " : "", f->help ? f->help : "");
	}
	return r;
}
