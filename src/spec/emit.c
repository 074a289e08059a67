/* SPDX-License-Identifier: Apache-2.0 */
/* See emit.h. */
#include "spec/emit.h"

#include "base/utf8.h"

#include <assert.h>
#include <string.h>

#define US_PER_SEC 1000000

void emit_init(struct emitter *e, size_t max)
{
	*e = (struct emitter){ .failed = false };
	buf_init(&e->text, max);
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

static void emit_bytes(struct emitter *e, const char *data, size_t n)
{
	if (buf_append(&e->text, data, n) < 0)
		e->failed = true;
}

/* What stands before a value: a comma, and the key. */
static void emit_before(struct emitter *e)
{
	if (e->comma)
		emit_bytes(e, ",", 1);
	if (e->key) {
		emit_bytes(e, "\"", 1);
		emit_bytes(e, e->key, strlen(e->key));
		emit_bytes(e, "\":", 2);
		e->key = NULL;
	}
	e->comma = true;
}

/* A complete value, as text. */
static void emit_whole(struct emitter *e, const char *data, size_t n)
{
	emit_before(e);
	emit_bytes(e, data, n);
}

void emit_open(struct emitter *e, char bracket)
{
	emit_whole(e, &bracket, 1);
	e->comma = false;
}

void emit_close(struct emitter *e, char bracket)
{
	emit_bytes(e, &bracket, 1);
	e->comma = true;
}

void emit_key(struct emitter *e, const char *key)
{
	e->key = key;
}

static void emit_escaped(struct emitter *e, unsigned char c)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	static const char digits[] = "0123456789ABCDEF";
	const char *at = strchr(plain, c);

	if (c != '\0' && at)
		emit_bytes(e, (char[]){ '\\', letters[at - plain] }, 2);
	else
		emit_bytes(e, (char[]){ '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] }, 6);
}

bool emit_string(struct emitter *e, const char *data, size_t len)
{
	_cleanup_buf_ struct buf clean = { .max = 3 * len };
	bool broken = len > 0 && !utf8_is_valid(data, len);
	size_t from = 0;

	if (broken && utf8_replace(data, len, &clean) < 0) {
		e->failed = true;
		return true;
	}
	if (broken) {
		data = clean.data;
		len = clean.len;
	}
	emit_whole(e, "\"", 1);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		emit_bytes(e, data + from, i - from);
		emit_escaped(e, c);
		from = i + 1;
	}
	if (len > from)
		emit_bytes(e, data + from, len - from);
	emit_bytes(e, "\"", 1);
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
static char *emit_digits(uint64_t value, char *end)
{
	do
		*--end = (char)('0' + value % 10);
	while (value /= 10);
	return end;
}

void emit_integer(struct emitter *e, int64_t value)
{
	char text[24], *end = text + sizeof(text), *at;

	at = emit_digits(value < 0 ? -(uint64_t)value : (uint64_t)value, end);
	if (value < 0)
		*--at = '-';
	emit_whole(e, at, (size_t)(end - at));
}

void emit_seconds(struct emitter *e, int64_t us)
{
	char text[32], *end = text + sizeof(text), *at = end;
	uint64_t fraction = (uint64_t)us % US_PER_SEC;

	if (us < 0) {
		emit_real(e, (double)us / US_PER_SEC);
		return;
	}
	for (int i = 0; i < 6; i++, fraction /= 10)
		*--at = (char)('0' + fraction % 10);
	*--at = '.';
	at = emit_digits((uint64_t)us / US_PER_SEC, at);
	while (end[-1] == '0' && end[-2] != '.')
		end--;
	emit_whole(e, at, (size_t)(end - at));
}

/* Takes no reference. */
static void emit_dump(struct emitter *e, json_t *value, size_t flags)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | flags);

	if (text)
		emit_whole(e, text, strlen(text));
	else
		e->failed = true;
	free(text);
}

void emit_real(struct emitter *e, double value)
{
	json_t *real = json_real(value);

	/* Fifteen digits print 0.1 as 0.1. */
	emit_dump(e, real, JSON_REAL_PRECISION(15));
	json_decref(real);
}

void emit_boolean(struct emitter *e, bool value)
{
	emit_whole(e, value ? "true" : "false", value ? 4 : 5);
}

void emit_null(struct emitter *e)
{
	emit_whole(e, "null", 4);
}

void emit_value(struct emitter *e, json_t *value)
{
	if (value) /* Seventeen digits print every double exactly. */
		emit_dump(e, value, JSON_REAL_PRECISION(17));
	else
		emit_null(e);
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
	assert(f->of);
	emit_fields(e, f->of, field_in(f, object));
}

void write_list(struct emitter *e, const struct schema_field *f, const void *object)
{
	const char *const *entries = field_in(f, object);
	const size_t n = *(const size_t *)(const void *)((const char *)object + f->beside);

	assert(f->of && f->size > 0 && (n == 0 || *entries));
	if (n == 0 && f->sparse)
		return;
	emit_open(e, '[');
	for (size_t i = 0; i < n; i++)
		emit_fields(e, f->of, *entries + i * f->size);
	emit_close(e, ']');
}
