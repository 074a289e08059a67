/* SPDX-License-Identifier: Apache-2.0 */
/* See read.h. */
#include "spec/read.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "spec/knob.h"
#include "spec/request.h"

/* around: bytes to leave free for what is put around the text. */
static struct quoted quote_within(const char *data, size_t len, size_t around)
{
	static const char cut[] = "…";
	struct quoted q = { "" };
	size_t room = sizeof(q.text) - sizeof(cut) - around;
	size_t n = MIN(len, room);

	/* Never cuts inside a character. */
	if (len > room)
		while (n > 0 && ((unsigned char)data[n] & 0xc0) == 0x80)
			n--;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)data[i];

		q.text[i] = c < 0x20 || c == 0x7f ? '?' : data[i];
	}
	if (len > room)
		memcpy(q.text + n, cut, sizeof(cut));
	return q;
}

struct quoted quote(const char *data, size_t len)
{
	return quote_within(data, len, 0);
}

struct quoted quote_text(const char *text)
{
	return quote(text, strlen(text));
}

struct quoted quote_string(const char *data, size_t len)
{
	struct quoted inner = quote_within(data, len, 2), q;

	if (len == 0)
		return quote_text("an empty text");
	(void)snprintf(q.text, sizeof(q.text), "'%.53s'", inner.text);
	return q;
}

struct quoted quote_json(const json_t *value)
{
	struct quoted q = { "null" };

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return quote_text("an object");
	case JSON_ARRAY:
		return quote_text("a list");
	case JSON_STRING:
		return quote_string(json_string_value(value), json_string_length(value));
	case JSON_INTEGER:
		(void)snprintf(q.text, sizeof(q.text), "%" JSON_INTEGER_FORMAT,
			       json_integer_value(value));
		break;
	case JSON_REAL:
		(void)snprintf(q.text, sizeof(q.text), "%.10g", json_real_value(value));
		break;
	case JSON_TRUE:
		return quote_text("true");
	case JSON_FALSE:
		return quote_text("false");
	case JSON_NULL:
		break;
	}
	return q;
}

/* Levenshtein distance at most 2 (1 for short words), over words of at most 31 bytes. */
bool words_are_close(const char *a, const char *b)
{
	enum { WORD_MAX = 31 };
	size_t la = strlen(a), lb = strlen(b);
	unsigned row[WORD_MAX + 1];

	if (la > WORD_MAX || lb > WORD_MAX || la == 0 || lb == 0)
		return false;
	for (size_t j = 0; j <= lb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned change = diagonal + (a[i - 1] != b[j - 1]);
			unsigned skip = MIN(row[j], row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = MIN(change, skip);
		}
	}
	return row[lb] <= (MIN(la, lb) > 4 ? 2u : 1u);
}

/*
 * Called for every key of every request: no printf. A path that is too long is cut; the message still names the
 * fault.
 */
static struct reader descend(const struct reader *r, const char *between, const char *word)
{
	struct reader child = *r;
	char *at = child.field + strlen(child.field), *last = child.field + sizeof(child.field) - 1;

	while (*between && at < last)
		*at++ = *between++;
	while (*word && at < last)
		*at++ = *word++;
	*at = '\0';
	return child;
}

struct reader reader_at(const struct reader *r, const char *key)
{
	return descend(r, *r->field ? "." : "", quote_text(key).text);
}

struct reader reader_index(const struct reader *r, size_t index)
{
	char word[32];

	(void)snprintf(word, sizeof(word), "[%zu]", index);
	return descend(r, "", word);
}

int reader_refuse(const struct reader *r, const char *fmt, ...)
{
	char text[sizeof(r->err->text)];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	return error_field(r->err, r->field, "%s%s%s", r->field, *r->field ? ": " : "", text);
}

int reader_no_memory(const struct reader *r)
{
	return error_set(r->err, ERROR_INTERNAL, ENOMEM, "out of memory while reading %s",
			 *r->field ? r->field : "the input");
}

static const struct schema_field *reader_row(const struct schema *shape, const char *key)
{
	for (const struct schema_field *f = shape->fields; f->key; f++)
		if (f->read && strcmp(f->key, key) == 0)
			return f;
	return NULL;
}

/* A limit outside of "limits", a frequent mistake: its key, or NULL. */
static const char *reader_near_limit(const struct schema *shape, const char *key)
{
	const char *near = NULL;

	if (!reader_row(shape, "limits") || !reader_row(shape, "code"))
		return NULL;
	for (size_t i = 0; i < limit_knobs_count; i++) {
		if (strcmp(limit_knobs[i].key, key) == 0)
			return limit_knobs[i].key;
		if (words_are_close(limit_knobs[i].key, key))
			near = limit_knobs[i].key;
	}
	return near;
}

static int reader_refuse_key(const struct reader *r, const struct schema *shape, const char *key)
{
	enum { KEYS_TOLD = 8 };
	struct reader at = reader_at(r, key);
	const char *limit = reader_near_limit(shape, key);
	char known[160] = "";
	size_t n_known = 0;

	for (const struct key_hint *hint = shape->hints; hint && hint->key; hint++)
		if (strcmp(hint->key, key) == 0)
			return reader_refuse(&at, "there is no such key; here it is %s",
					     hint->instead);
	for (const struct schema_field *f = shape->fields; f->key; f++)
		if (f->read && words_are_close(f->key, key))
			return reader_refuse(&at, "there is no such key; did you mean '%s'?",
					     f->key);
	if (limit)
		return reader_refuse(&at, "there is no such key; did you mean 'limits.%s'?", limit);
	for (const struct schema_field *f = shape->fields; f->key; f++) {
		size_t n = strlen(known);

		if (f->read)
			(void)snprintf(known + n, sizeof(known) - n, "%s%s", n_known++ ? ", " : "",
				       f->key);
	}
	/* A few keys are told all at once. */
	if (n_known > KEYS_TOLD)
		return reader_refuse(&at, "there is no such key");
	return reader_refuse(&at, "there is no such key; known: %s", known);
}

int read_object(const struct reader *r, const json_t *value, const struct schema *shape,
		void *object)
{
	const char *key;
	const json_t *member;

	/* The text is not quoted: if a whole file is wrong, it may be a secret. */
	if (!json_is_object(value))
		return reader_refuse(r, "%s is not an object",
				     json_is_string(value) ? "a text" : quote_json(value).text);
	/* The macro needs a non-const tree but does not change it. */
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		const struct schema_field *f = reader_row(shape, key);
		struct reader at = reader_at(r, key);
		int e;

		if (!f)
			return reader_refuse_key(r, shape, key);
		if (json_is_null(member))
			continue;
		e = f->read(&at, f, member, object);
		if (e < 0)
			return e;
	}
	return 0;
}

int read_string(const struct reader *r, const json_t *value, size_t max, const char **ret)
{
	size_t len = json_string_length(value);

	if (!json_is_string(value))
		return reader_refuse(r, "%s is not a text", quote_json(value).text);
	if (memchr(json_string_value(value), '\0', len))
		return reader_refuse(r, "it holds a NUL byte");
	if (len > max)
		return reader_refuse(r, "it has %zu bytes, more than the %zu allowed", len, max);
	*ret = json_string_value(value);
	return 0;
}

int read_text(const struct reader *r, const struct schema_field *f, const json_t *value,
	      void *object)
{
	const char *text;
	int e = read_string(r, value, f->max, &text);

	if (e < 0)
		return e;
	if (!*text)
		return reader_refuse(r, "it is empty");
	*(const char **)field_member(f, object) = text;
	return 0;
}

int read_bool(const struct reader *r, const struct schema_field *f, const json_t *value,
	      void *object)
{
	if (!json_is_boolean(value))
		return reader_refuse(r, "%s is neither true nor false", quote_json(value).text);
	*(bool *)field_member(f, object) = json_is_true(value);
	return 0;
}

int read_words(const struct reader *r, const struct schema_field *f, const json_t *value,
	       void *object)
{
	size_t n = json_array_size(value);
	const char **words;

	if (!json_is_array(value))
		return reader_refuse(r, "%s is not a list of texts", quote_json(value).text);
	if (n > f->max_count)
		return reader_refuse(r, "it has %zu entries, more than the %zu allowed", n,
				     f->max_count);
	words = arena_alloc(r->arena, (n + 1) * sizeof(*words));
	if (!words)
		return reader_no_memory(r);
	for (size_t i = 0; i < n; i++) {
		struct reader at = reader_index(r, i);
		int e = read_string(&at, json_array_get(value, i), f->max, &words[i]);

		if (e < 0)
			return e;
	}
	*(const char ***)field_member(f, object) = words;
	return 0;
}

int read_paths(const struct reader *r, const struct schema_field *f, const json_t *value,
	       void *object)
{
	int e = read_words(r, f, value, object);

	for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
		const json_t *path = json_array_get(value, i);
		struct reader at = reader_index(r, i);

		if (json_string_value(path)[0] != '/')
			e = reader_refuse(&at, "%s is not an absolute path", quote_json(path).text);
	}
	return e;
}

int read_etc(const struct reader *r, const struct schema_field *f, const json_t *value,
	     void *object)
{
	int e = read_words(r, f, value, object);

	for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
		const json_t *name = json_array_get(value, i);
		struct reader at = reader_index(r, i);

		if (request_check_path(json_string_value(name), json_string_length(name), NULL) < 0)
			e = reader_refuse(&at, "%s is not a name below /etc",
					  quote_json(name).text);
	}
	return e;
}

int read_choice(const struct reader *r, const struct schema_field *f, const json_t *value,
		void *object)
{
	struct span rest = span_of(f->type), word;
	char words[128] = "";
	unsigned index = 0;

	assert(f->type);
	for (; span_split(&rest, '|', &word); index++) {
		size_t n = strlen(words);

		if (json_is_string(value) && span_is(word, json_string_value(value))) {
			*(unsigned *)field_member(f, object) = index;
			return 0;
		}
		(void)snprintf(words + n, sizeof(words) - n, "%s%.*s",
			       n == 0	   ? ""
			       : rest.data ? ", "
					   : " or ",
			       (int)word.len, word.data);
	}
	return reader_refuse(r, "%s is not %s", quote_json(value).text, words);
}

int read_part(const struct reader *r, const struct schema_field *f, const json_t *value,
	      void *object)
{
	assert(f->of);
	return read_object(r, value, SHAPE_OF(f->of), field_member(f, object));
}

int read_limits(const struct reader *r, const struct schema_field *f, const json_t *value,
		void *object)
{
	return limits_parse_at(r->field, value, field_member(f, object),
			       (uint32_t *)(void *)((char *)object + f->beside), r->err);
}

static bool is_module(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
				      "0123456789.";
	const size_t n_first = sizeof(letters) - 1 - strlen("0123456789.");

	/* No module to preload: `python3 -m` would run it, outside of any sandbox. */
	return *name && memchr(letters, *name, n_first) && !name[strspn(name, letters)] &&
	       !strstr(name, "__main__");
}

int read_modules(const struct reader *r, const struct schema_field *f, const json_t *value,
		 void *object)
{
	int e = read_words(r, f, value, object);
	const char **words = *(const char ***)field_member(f, object);
	size_t n = 0;

	for (size_t i = 0; e == 0 && words[i]; i++) {
		struct reader at = reader_index(r, i);
		bool known = false;

		if (!is_module(words[i]))
			e = reader_refuse(
				&at,
				"'%s' is not the name of a module (letters, digits, _ and "
				". inside)",
				quote_text(words[i]).text);
		for (size_t k = 0; k < n; k++)
			known = known || strcmp(words[k], words[i]) == 0;
		if (!known)
			words[n++] = words[i];
	}
	if (e == 0)
		words[n] = NULL;
	return e;
}
