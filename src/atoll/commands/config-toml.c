/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOML. Headers of tables are absolute, so a new table can always stand at the end of the file. The text is read statement by
 * statement, just far enough to find where statements begin and end and which key each one sets.
 */
#include "atoll/commands/config-text.h"

#include <string.h>

enum { TOML_KEYS_MAX = 8, TOML_KEY_MAX = 128 };

/* A dotted key. Longer ones are cut: they are not ours. */
struct toml_key {
	char part[TOML_KEYS_MAX][TOML_KEY_MAX];
	size_t n;
};

struct toml_scanner {
	const char *text; /* ends with a NUL */
	size_t len, at;
	/* The statement. */
	size_t begin, end; /* without its line end */
	bool is_header, is_list;
	struct toml_key key;
	struct span value; /* of a key */
};

/* Where ours stands. */
struct toml_found {
	size_t begin, end; /* from its header to the end of its last statement; 0, 0: not there */
	size_t covered;	   /* how many of our members it has as we would write them */
};

/* The offset behind a string; 0: it does not end. */
static size_t toml_string_end(const struct toml_scanner *s, size_t i)
{
	char quote = s->text[i];
	bool is_long = s->text[i + 1] == quote && s->text[i + 2] == quote;
	size_t step = is_long ? 3 : 1;

	for (i += step; i < s->len; i++) {
		if (s->text[i] == '\\' && quote == '"')
			i++;
		else if (s->text[i] == '\n' && !is_long)
			return 0;
		else if (s->text[i] == quote &&
			 (!is_long || (s->text[i + 1] == quote && s->text[i + 2] == quote)))
			return i + step;
	}
	return 0;
}

static size_t toml_line_end(const struct toml_scanner *s, size_t i)
{
	return i + strcspn(s->text + i, "\n");
}

/* The offset behind a value: of its line, and of further ones while a bracket is open. 0: it does not end. */
static size_t toml_value_end(const struct toml_scanner *s, size_t i)
{
	size_t end = i;
	int depth = 0;

	while (i < s->len && (depth > 0 || s->text[i] != '\n')) {
		char c = s->text[i];

		if (c == '#') {
			i = toml_line_end(s, i);
			continue;
		}
		if (c == '"' || c == '\'') {
			i = end = toml_string_end(s, i);
			if (i == 0)
				return 0;
			continue;
		}
		depth += c == '[' || c == '{';
		depth -= c == ']' || c == '}';
		i++;
		if (!strchr(" \t\r\n", c))
			end = i;
	}
	return depth > 0 ? 0 : end;
}

/* A dotted key from i on; the offset behind it, 0: that is none. */
static size_t toml_key_read(const struct toml_scanner *s, size_t i, struct toml_key *ret)
{
	static const char bare[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	for (ret->n = 0;; i++) {
		struct span part;
		size_t end;

		i += strspn(s->text + i, " \t");
		if (s->text[i] == '"' || s->text[i] == '\'') {
			end = toml_string_end(s, i);
			part = (struct span){ s->text + i + 1, end - i - 2 };
		} else {
			end = i + strspn(s->text + i, bare);
			part = (struct span){ s->text + i, end - i };
		}
		if (end <= i)
			return 0;
		if (ret->n < TOML_KEYS_MAX) {
			size_t n = MIN(part.len, (size_t)TOML_KEY_MAX - 1);

			memcpy(ret->part[ret->n], part.data, n);
			ret->part[ret->n++][n] = '\0';
		}
		i = end + strspn(s->text + end, " \t");
		if (s->text[i] != '.')
			return i;
	}
}

/* The next statement: 1, 0 at the end, or -EINVAL. */
static int toml_next(struct toml_scanner *s)
{
	const char *text = s->text;
	size_t i;

	/* Blanks and comments are passed over. */
	for (;; s->at++) {
		s->at += strspn(text + s->at, " \t\r");
		if (text[s->at] == '#')
			s->at = toml_line_end(s, s->at);
		if (s->at >= s->len || text[s->at] != '\n')
			break;
	}
	if (s->at >= s->len)
		return 0;
	s->begin = s->at;
	s->is_header = text[s->at] == '[';
	s->is_list = s->is_header && text[s->at + 1] == '[';
	i = toml_key_read(s, s->at + s->is_header + s->is_list, &s->key);
	if (i == 0)
		return -EINVAL;
	if (s->is_header) {
		if (text[i] != ']' || (s->is_list && text[i + 1] != ']'))
			return -EINVAL;
		s->end = i + 1 + s->is_list;
	} else {
		if (text[i] != '=')
			return -EINVAL;
		i += 1 + strspn(text + i + 1, " \t");
		s->end = toml_value_end(s, i);
		if (s->end <= i)
			return -EINVAL;
		s->value = (struct span){ text + i, s->end - i };
	}
	s->at = s->end + strspn(text + s->end, " \t\r");
	if (text[s->at] == '#')
		s->at = toml_line_end(s, s->at);
	return s->at < s->len && text[s->at] != '\n' ? -EINVAL : 1;
}

/* The number of the statement's line. */
static int toml_line(const struct toml_scanner *s)
{
	int line = 1;

	for (size_t i = 0; i < s->begin; i++)
		line += s->text[i] == '\n';
	return line;
}

/* Whether the key is table.name, or begins with it. */
static bool toml_key_is(const struct toml_key *key, const struct config_entry *entry, size_t n)
{
	return key->n >= n && strcmp(key->part[0], entry->table) == 0 &&
	       (n == 1 || strcmp(key->part[1], entry->name) == 0);
}

/* A key outside of its own table that sets ours, or makes its table impossible. */
static bool toml_in_the_way(const struct toml_scanner *s, const struct toml_key *table,
			    const struct config_entry *entry)
{
	if (s->is_header)
		return s->is_list && s->key.n <= 2 && toml_key_is(&s->key, entry, s->key.n);
	if (table->n == 0)
		return toml_key_is(&s->key, entry, MIN(s->key.n, (size_t)2));
	return table->n == 1 && toml_key_is(table, entry, 1) &&
	       strcmp(s->key.part[0], entry->name) == 0;
}

static int toml_find(struct span text, const struct config_entry *entry, struct toml_found *ret,
		     struct error *err)
{
	struct toml_scanner s = { .text = text.data, .len = text.len };
	struct toml_key table = { .n = 0 };
	bool ours = false;
	int r;

	while ((r = toml_next(&s)) > 0) {
		if (toml_in_the_way(&s, &table, entry))
			return error_set(err, ERROR_INPUT, EINVAL,
					 "line %d sets '%s' in a form that Atoll does not edit; "
					 "write it as [%s.%s]",
					 toml_line(&s), entry->table, entry->table, entry->name);
		if (s.is_header) {
			table = s.key;
			ours = !s.is_list && s.key.n == 2 && toml_key_is(&s.key, entry, 2);
			if (ours)
				ret->begin = s.begin;
		} else if (ours && s.key.n == 1) {
			json_t *value = json_object_get(entry->value, s.key.part[0]);
			_cleanup_free_ char *own = value ? json_dumps(value, JSON_ENCODE_ANY)
							 : NULL;

			ret->covered += own && span_is(s.value, own);
		}
		if (ours)
			ret->end = s.end;
	}
	return r < 0 ? error_set(err, ERROR_INPUT, EINVAL, "line %d is not valid TOML",
				 toml_line(&s))
		     : 0;
}

static int toml_put(const struct config_entry *entry, const char *newline, struct buf *out)
{
	const char *key;
	json_t *value;
	int r = buf_printf(out, "[%s.%s]", entry->table, entry->name);

	json_object_foreach(entry->value, key, value)
	{
		/* Texts, booleans and lists of them are written as in JSON. */
		_cleanup_free_ char *text = json_dumps(value, JSON_ENCODE_ANY);

		if (r == 0)
			r = text ? buf_printf(out, "%s%s = %s", newline, key, text) : -ENOMEM;
	}
	return r;
}

static int toml_set(struct span text, const struct config_entry *entry, struct buf *out,
		    struct error *err)
{
	const char *first = memchr(text.data, '\n', text.len);
	const char *newline = first && first > text.data && first[-1] == '\r' ? "\r\n" : "\n";
	struct toml_found found = { 0 };
	bool ended = text.len == 0 || text.data[text.len - 1] == '\n';
	int r;

	if (text.len > CONFIG_TEXT_MAX || memchr(text.data, '\0', text.len))
		return error_set(err, ERROR_INPUT, EINVAL, "it is no text");
	r = toml_find(text, entry, &found, err);
	if (r < 0)
		return r;
	if (found.end && found.covered == json_object_size(entry->value))
		return CONFIG_SAME;
	if (found.end && !entry->replace)
		return config_entry_differs(entry, err);
	/* In place of the old table, or behind a blank line at the end. */
	r = buf_append(out, text.data, found.end ? found.begin : text.len);
	if (r == 0 && !found.end)
		r = buf_printf(out, "%s%s", ended ? "" : newline, text.len > 0 ? newline : "");
	if (r == 0)
		r = toml_put(entry, newline, out);
	if (r == 0)
		r = found.end ? buf_append(out, text.data + found.end, text.len - found.end)
			      : buf_puts(out, newline);
	if (r < 0)
		return error_oom(err);
	return found.end ? CONFIG_REPLACED : CONFIG_ADDED;
}

static int toml_print(const struct config_entry *entry, struct buf *out)
{
	int r = toml_put(entry, "\n", out);

	return r < 0 ? r : buf_puts(out, "\n");
}

const struct config_format config_toml = { "toml", toml_set, toml_print };
