/* SPDX-License-Identifier: Apache-2.0 */
/* See emit.h. Every function serves both forms, so they stay equal. */
#include "spec/emit.h"

#include "base/utf8.h"

#include <string.h>

#define US_PER_SEC 1000000

void emit_init_text(struct emitter *e, size_t max)
{
	*e = (struct emitter){ .tree = false };
	buf_init(&e->text, max);
}

void emit_init_tree(struct emitter *e)
{
	*e = (struct emitter){ .tree = true };
}

char *emit_text(struct emitter *e, size_t *ret_len)
{
	if (e->failed) {
		buf_done(&e->text);
		return NULL;
	}
	if (ret_len)
		*ret_len = e->text.len;
	return buf_take(&e->text);
}

json_t *emit_tree(struct emitter *e)
{
	json_t *root = TAKE_PTR(e->root);

	if (!e->failed)
		return root;
	json_decref(root);
	return NULL;
}

static void put_emitted(struct emitter *e, const char *data, size_t n)
{
	if (buf_append(&e->text, data, n) < 0)
		e->failed = true;
}

/* What stands before a value: a comma, and the key. */
static void put_before(struct emitter *e)
{
	if (e->comma)
		put_emitted(e, ",", 1);
	if (e->key) {
		put_emitted(e, "\"", 1);
		put_emitted(e, e->key, strlen(e->key));
		put_emitted(e, "\":", 2);
		e->key = NULL;
	}
	e->comma = true;
}

/* A complete value, as text. */
static void put_emitted_value(struct emitter *e, const char *data, size_t n)
{
	put_before(e);
	put_emitted(e, data, n);
}

/* Takes over the value; NULL: no memory for it. */
static void add_tree_value(struct emitter *e, json_t *value)
{
	json_t *in = e->depth > 0 ? e->open[e->depth - 1] : NULL;
	int r = value ? 0 : -1;

	if (!in && !e->root)
		e->root = value;
	else if (in && json_is_array(in))
		r = json_array_append_new(in, value);
	else if (in && e->key)
		r = json_object_set_new_nocheck(in, e->key, value);
	else
		json_decref(value);
	e->key = NULL;
	if (r < 0)
		e->failed = true;
}

void emit_open(struct emitter *e, char bracket)
{
	json_t *made;

	if (!e->tree) {
		put_emitted_value(e, &bracket, 1);
		e->comma = false;
		return;
	}
	made = bracket == '{' ? json_object() : json_array();
	add_tree_value(e, made);
	if (e->failed || e->depth == EMIT_DEPTH_MAX) {
		e->failed = true;
		return;
	}
	e->open[e->depth++] = made;
}

void emit_close(struct emitter *e, char bracket)
{
	if (!e->tree) {
		put_emitted(e, &bracket, 1);
		e->comma = true;
	} else if (e->depth > 0) {
		e->depth--;
	}
}

void emit_key(struct emitter *e, const char *key)
{
	e->key = key;
}

static void put_escaped(struct emitter *e, unsigned char c)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	static const char digits[] = "0123456789ABCDEF";
	const char *at = strchr(plain, c);

	if (c != '\0' && at)
		put_emitted(e, (char[]){ '\\', letters[at - plain] }, 2);
	else
		put_emitted(e, (char[]){ '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] }, 6);
}

/* data must be UTF-8. */
static void put_string(struct emitter *e, const char *data, size_t len)
{
	size_t from = 0;

	put_emitted_value(e, "\"", 1);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		put_emitted(e, data + from, i - from);
		put_escaped(e, c);
		from = i + 1;
	}
	put_emitted(e, data + from, len - from);
	put_emitted(e, "\"", 1);
}

bool emit_string(struct emitter *e, const char *data, size_t len)
{
	_cleanup_buf_ struct buf clean = { .max = 3 * len };
	bool broken = len > 0 && !utf8_is_valid(data, len);

	if (broken && utf8_replace(data, len, &clean) < 0) {
		e->failed = true;
		return true;
	}
	if (broken) {
		data = clean.data;
		len = clean.len;
	}
	if (e->tree)
		add_tree_value(e, json_stringn_nocheck(len ? data : "", len));
	else
		put_string(e, data, len);
	return broken;
}

void emit_word(struct emitter *e, const char *text)
{
	if (text)
		(void)emit_string(e, text, strlen(text));
	else
		emit_null(e);
}

/* Writes backwards from end; returns where the digits begin. */
static char *digits_of(uint64_t value, char *end)
{
	do
		*--end = (char)('0' + value % 10);
	while (value /= 10);
	return end;
}

void emit_integer(struct emitter *e, int64_t value)
{
	char text[24], *end = text + sizeof(text), *at;

	if (e->tree) {
		add_tree_value(e, json_integer(value));
		return;
	}
	at = digits_of(value < 0 ? -(uint64_t)value : (uint64_t)value, end);
	if (value < 0)
		*--at = '-';
	put_emitted_value(e, at, (size_t)(end - at));
}

void emit_seconds(struct emitter *e, int64_t us)
{
	char text[32], *end = text + sizeof(text), *at = end;
	uint64_t fraction = (uint64_t)us % US_PER_SEC;

	if (e->tree || us < 0) {
		emit_real(e, (double)us / US_PER_SEC);
		return;
	}
	for (int i = 0; i < 6; i++, fraction /= 10)
		*--at = (char)('0' + fraction % 10);
	*--at = '.';
	at = digits_of((uint64_t)us / US_PER_SEC, at);
	while (end[-1] == '0' && end[-2] != '.')
		end--;
	put_emitted_value(e, at, (size_t)(end - at));
}

/* Takes no reference. */
static void put_dump(struct emitter *e, json_t *value, size_t flags)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | flags);

	if (text)
		put_emitted_value(e, text, strlen(text));
	else
		e->failed = true;
	free(text);
}

void emit_real(struct emitter *e, double value)
{
	json_t *real = json_real(value);

	if (e->tree) {
		add_tree_value(e, real);
		return;
	}
	/* Fifteen digits print 0.1 as 0.1. */
	put_dump(e, real, JSON_REAL_PRECISION(15));
	json_decref(real);
}

void emit_boolean(struct emitter *e, bool value)
{
	if (e->tree)
		add_tree_value(e, json_boolean(value));
	else
		put_emitted_value(e, value ? "true" : "false", value ? 4 : 5);
}

void emit_null(struct emitter *e)
{
	if (e->tree)
		add_tree_value(e, json_null());
	else
		put_emitted_value(e, "null", 4);
}

void emit_value(struct emitter *e, json_t *value)
{
	if (!value)
		emit_null(e);
	else if (e->tree)
		add_tree_value(e, json_incref(value));
	else /* Seventeen digits print every double exactly. */
		put_dump(e, value, JSON_REAL_PRECISION(17));
}

void emit_fields(struct emitter *e, const struct schema_field *rows, const void *object)
{
	emit_open(e, '{');
	for (const struct schema_field *f = rows; f->key; f++)
		if (f->emit) {
			e->key = f->key;
			f->emit(e, f, object);
			e->key = NULL;
		}
	emit_close(e, '}');
}

void write_text(struct emitter *e, const struct schema_field *f, const void *object)
{
	const char *const *text = field_in(f, object);

	if (*text || !f->sparse)
		emit_word(e, *text);
}

void write_chars(struct emitter *e, const struct schema_field *f, const void *object)
{
	emit_word(e, field_in(f, object));
}

void write_choice(struct emitter *e, const struct schema_field *f, const void *object)
{
	const void *at = field_in(f, object);
	unsigned index = f->size == 1 ? *(const uint8_t *)at : *(const unsigned *)at;
	struct span rest = span_of(f->type), word = { 0 };

	while (span_split(&rest, '|', &word) && index-- > 0)
		;
	(void)emit_string(e, word.data, word.len);
}

void write_bool(struct emitter *e, const struct schema_field *f, const void *object)
{
	emit_boolean(e, *(const bool *)field_in(f, object));
}

void write_integer(struct emitter *e, const struct schema_field *f, const void *object)
{
	const int64_t *value = field_in(f, object);

	if (*value || !f->sparse)
		emit_integer(e, *value);
}

static void emit_count(struct emitter *e, int64_t value)
{
	if (value < 0)
		emit_null(e);
	else
		emit_integer(e, value);
}

void write_count(struct emitter *e, const struct schema_field *f, const void *object)
{
	emit_count(e, *(const int64_t *)field_in(f, object));
}

void write_int(struct emitter *e, const struct schema_field *f, const void *object)
{
	emit_count(e, *(const int *)field_in(f, object));
}

void write_seconds(struct emitter *e, const struct schema_field *f, const void *object)
{
	const int64_t *us = field_in(f, object);

	if (*us < 0)
		emit_null(e);
	else
		emit_seconds(e, *us);
}

void write_json(struct emitter *e, const struct schema_field *f, const void *object)
{
	json_t *const *value = field_in(f, object);

	if (*value || !f->sparse)
		emit_value(e, *value);
}

void write_part(struct emitter *e, const struct schema_field *f, const void *object)
{
	emit_fields(e, f->of, field_in(f, object));
}

void write_list(struct emitter *e, const struct schema_field *f, const void *object)
{
	const char *const *entries = field_in(f, object);
	const size_t n = *(const size_t *)(const void *)((const char *)object + f->beside);

	if (n == 0 && f->sparse)
		return;
	emit_open(e, '[');
	for (size_t i = 0; i < n; i++)
		emit_fields(e, f->of, *entries + i * f->size);
	emit_close(e, ']');
}
