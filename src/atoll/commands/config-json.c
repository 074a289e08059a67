/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON with comments and trailing commas, as editors keep it. In a copy of the text, comments and trailing commas become blanks;
 * every other byte keeps its offset. jansson checks the copy, and places are looked for in the copy. Insertions are made in the text.
 */
#include "atoll/commands/config-text.h"

#include <stdio.h>
#include <string.h>

enum { CONFIG_INDENT_MAX = 32, CONFIG_DEPTH_MAX = 8 };

/* How the file is laid out. */
struct config_layout {
	const char *newline;
	char unit[CONFIG_INDENT_MAX + 1]; /* one step of indentation */
};
/* The indentation of one line. */
struct config_indent {
	char text[CONFIG_DEPTH_MAX * (CONFIG_INDENT_MAX + 1)];
};

/* An object in the text, as offsets. */
struct config_place {
	size_t open, close;	       /* its braces */
	size_t last_end;	       /* behind its last value; 0: the object is empty */
	size_t value_begin, value_end; /* of the key that was looked for; 0: it is not there */
};

/* A text that ends with a NUL, and its copy: see above. */
struct config_text {
	struct span text;
	struct buf copy;
	json_t *tree;
};

static void config_text_done(struct config_text *t)
{
	buf_done(&t->copy);
	json_decref(t->tree);
}

/* --- the copy --- */

/* i: of the opening quote; the offset behind the closing one. */
static size_t json_string_end(const char *s, size_t i)
{
	for (i++; s[i] && s[i] != '"'; i++)
		i += s[i] == '\\' && s[i + 1];
	return s[i] ? i + 1 : i;
}

static size_t json_skip_space(const char *s, size_t i)
{
	return i + strspn(s + i, " \t\r\n");
}

static bool json_is_comment(const char *s, size_t i)
{
	return s[i] == '/' && (s[i + 1] == '/' || s[i + 1] == '*');
}

static size_t json_comment_end(const char *s, size_t i)
{
	const char *end = s[i + 1] == '/' ? strchr(s + i, '\n') : strstr(s + i + 2, "*/");

	return !end ? i + strlen(s + i) : (size_t)(end - s) + (s[i + 1] == '/' ? 0 : 2);
}

static void json_blank_extras(char *s)
{
	size_t comma = 0, end; /* comma: behind one that nothing but blanks and comments follow */

	for (size_t i = 0; s[i]; i = end) {
		end = s[i] == '"' ? json_string_end(s, i) : i + 1;
		if (json_is_comment(s, i)) {
			end = json_comment_end(s, i);
			for (size_t at = i; at < end; at++)
				if (s[at] != '\n' && s[at] != '\r')
					s[at] = ' ';
		} else if (s[i] == ',') {
			comma = end;
		} else if (!strchr(" \t\r\n", s[i])) {
			if (comma && (s[i] == '}' || s[i] == ']'))
				s[comma - 1] = ' ';
			comma = 0;
		}
	}
}

/* The copy, and the tree it holds. A byte order mark is blank too. */
static int config_text_load(struct config_text *t, struct error *err)
{
	json_error_t why;

	if (t->text.len > CONFIG_TEXT_MAX || memchr(t->text.data, '\0', t->text.len))
		return error_set(err, ERROR_INPUT, EINVAL, "it is no text");
	buf_init(&t->copy, CONFIG_TEXT_MAX);
	if (buf_append(&t->copy, t->text.data, t->text.len) < 0)
		return error_oom(err);
	if (t->copy.len >= 3 && memcmp(t->copy.data, "\xef\xbb\xbf", 3) == 0)
		memset(t->copy.data, ' ', 3);
	json_blank_extras(t->copy.data);
	t->tree = json_loadb(t->copy.data, t->copy.len, 0, &why);
	if (!t->tree)
		return error_set(err, ERROR_INPUT, EINVAL, "line %d is not valid JSON: %s",
				 why.line, why.text);
	return json_is_object(t->tree)
		       ? 0
		       : error_set(err, ERROR_INPUT, EINVAL, "it does not hold a JSON object");
}

/* --- places --- */

/* s is valid JSON from i on. */
static size_t json_value_end(const char *s, size_t i)
{
	int depth = 0;

	do {
		if (s[i] == '"') {
			i = json_string_end(s, i);
			continue;
		}
		depth += s[i] == '{' || s[i] == '[';
		depth -= s[i] == '}' || s[i] == ']';
		i++;
	} while (s[i] && (depth > 0 || !strchr(",}] \t\r\n", s[i])));
	return i;
}

/* open: the offset of its brace. Of a key that is there twice, the last counts, as for most readers. */
static struct config_place json_place(const char *s, size_t open, const char *key)
{
	struct config_place place = { .open = open };
	size_t i = json_skip_space(s, open + 1);

	while (s[i] != '}') {
		size_t key_end = json_string_end(s, i);
		json_auto_t *name = json_loadb(s + i, key_end - i, JSON_DECODE_ANY, NULL);
		size_t begin = json_skip_space(s, json_skip_space(s, key_end) + 1);

		place.last_end = json_value_end(s, begin);
		if (name && strcmp(json_string_value(name), key) == 0) {
			place.value_begin = begin;
			place.value_end = place.last_end;
		}
		i = json_skip_space(s, place.last_end);
		if (s[i] == ',')
			i = json_skip_space(s, i + 1);
	}
	place.close = i;
	return place;
}

/* --- layout --- */

/* The blanks at the begin of the line that holds the byte at `at`. */
static struct span line_indent(const char *s, size_t at)
{
	while (at > 0 && s[at - 1] != '\n')
		at--;
	return (struct span){ s + at, strspn(s + at, " \t") };
}

static bool has_newline(const char *s, size_t from, size_t to)
{
	return memchr(s + from, '\n', to - from) != NULL;
}

static void put_indent(struct config_indent *ret, struct span outer, const char *unit)
{
	(void)snprintf(ret->text, sizeof(ret->text), "%.*s%s",
		       (int)MIN(outer.len, sizeof(ret->text) - CONFIG_INDENT_MAX - 1), outer.data,
		       unit);
}

/* From the first member of the file's object. */
static struct config_layout layout_of(const char *s, size_t open)
{
	struct config_layout layout = { .newline = "\n", .unit = "  " };
	const char *first = strchr(s, '\n');
	size_t member = json_skip_space(s, open + 1);
	struct span indent = line_indent(s, member);

	if (first && first > s && first[-1] == '\r')
		layout.newline = "\r\n";
	if (s[member] == '"' && has_newline(s, open, member) && indent.len > 0 &&
	    indent.len <= CONFIG_INDENT_MAX)
		(void)snprintf(layout.unit, sizeof(layout.unit), "%.*s", (int)indent.len,
			       indent.data);
	return layout;
}

/* A value as text. layout NULL: on one line. indent: that of the line it begins on. */
static int put_json(struct buf *out, json_t *value, const struct config_layout *layout,
		    const char *indent)
{
	struct config_indent inner;
	const char *key, *separator = "";
	json_t *member;
	int r;

	if (!json_is_object(value)) {
		_cleanup_free_ char *text = json_dumps(value, JSON_ENCODE_ANY);

		return text ? buf_puts(out, text) : -ENOMEM;
	}
	put_indent(&inner, span_of(indent), layout ? layout->unit : "");
	r = buf_puts(out, "{");
	json_object_foreach(value, key, member)
	{
		if (r == 0)
			r = layout ? buf_printf(out, "%s%s%s\"%s\": ", separator, layout->newline,
						inner.text, key)
				   : buf_printf(out, "%s\"%s\": ", separator, key);
		if (r == 0)
			r = put_json(out, member, layout, inner.text);
		separator = layout ? "," : ", ";
	}
	if (r == 0 && layout)
		r = buf_printf(out, "%s%s", layout->newline, indent);
	return r < 0 ? r : buf_puts(out, "}");
}

/* --- insertion --- */

/*
 * A new last member. A trailing comma stays the style; a comment behind the last value stays there. layout NULL: on the line of the
 * other members.
 */
static int json_insert(const struct config_text *t, const struct config_place *p,
		       const struct config_layout *layout, const char *key, json_t *value,
		       struct buf *out)
{
	const char *text = t->text.data;
	size_t after = p->last_end ?: p->open + 1, rest = p->close, comma = after;
	size_t first = json_skip_space(t->copy.data, p->open + 1);
	struct span outer = line_indent(text, p->open);
	struct config_indent indent;
	int r = buf_append(out, text, after);

	if (!layout) {
		if (r == 0)
			r = buf_printf(out, "%s\"%s\": ", p->last_end ? ", " : "", key);
		if (r == 0)
			r = put_json(out, value, NULL, "");
		return r < 0 ? r : buf_append(out, text + after, t->text.len - after);
	}
	/* As the first member has it, or a step more than the line of the brace. */
	if (p->last_end && has_newline(text, p->open, first))
		put_indent(&indent, line_indent(text, first), "");
	else
		put_indent(&indent, outer, layout->unit);
	while (comma < p->close && text[comma] != ',')
		comma = text[comma] == '/' ? json_comment_end(text, comma) : comma + 1;
	while (rest > after && strchr(" \t\r\n", text[rest - 1]))
		rest--;
	if (r == 0 && p->last_end && comma >= p->close)
		r = buf_puts(out, ",");
	if (r == 0)
		r = buf_append(out, text + after, rest - after);
	if (r == 0)
		r = buf_printf(out, "%s%s\"%s\": ", layout->newline, indent.text, key);
	if (r == 0)
		r = put_json(out, value, layout, indent.text);
	if (r == 0 && comma < p->close)
		r = buf_puts(out, ",");
	if (r == 0 && !has_newline(text, rest, p->close)) {
		r = buf_printf(out, "%s%.*s", layout->newline, (int)outer.len, outer.data);
		rest = p->close;
	}
	return r < 0 ? r : buf_append(out, text + rest, t->text.len - rest);
}

/* The text with the entry, in the table that is there or in a new one, or in place of another entry. */
static int json_write(const struct config_text *t, const struct config_entry *entry,
		      struct buf *out)
{
	const char *s = t->copy.data, *text = t->text.data, *key = entry->table;
	const size_t root = json_skip_space(s, 0);
	const struct config_layout layout = layout_of(s, root);
	struct config_place place = json_place(s, root, entry->table);
	json_auto_t *table = json_pack("{s:O}", entry->name, entry->value);
	json_t *value = table;
	bool one_line = place.last_end && !has_newline(text, root, place.close);
	struct config_indent indent;
	int r;

	if (place.value_begin) {
		place = json_place(s, place.value_begin, entry->name);
		key = entry->name;
		value = entry->value;
		if (place.last_end)
			one_line = !has_newline(text, place.open, place.close);
	}
	if (!value)
		return -ENOMEM;
	if (!place.value_begin)
		return json_insert(t, &place, one_line ? NULL : &layout, key, value, out);
	put_indent(&indent, line_indent(text, place.value_begin), "");
	r = buf_append(out, text, place.value_begin);
	if (r == 0)
		r = put_json(out, value, one_line ? NULL : &layout, indent.text);
	return r < 0 ? r : buf_append(out, text + place.value_end, t->text.len - place.value_end);
}

static int json_print(const struct config_entry *entry, struct buf *out)
{
	static const struct config_layout layout = { .newline = "\n", .unit = "  " };
	json_auto_t *tree = json_pack("{s:{s:O}}", entry->table, entry->name, entry->value);
	int r = tree ? put_json(out, tree, &layout, "") : -ENOMEM;

	return r < 0 ? r : buf_puts(out, "\n");
}

static int json_set(struct span text, const struct config_entry *entry, struct buf *out,
		    struct error *err)
{
	_cleanup_(config_text_done) struct config_text old = { .text = text }, new = { 0 };
	json_t *table, *there, *value;
	const char *key;
	bool covers, replaces;
	int r;

	if (strspn(text.data, " \t\r\n") == text.len)
		return json_print(entry, out) < 0 ? error_oom(err) : CONFIG_ADDED;
	r = config_text_load(&old, err);
	if (r < 0)
		return r;
	table = json_object_get(old.tree, entry->table);
	if (table && !json_is_object(table))
		return error_set(err, ERROR_INPUT, EINVAL, "its '%s' is not an object",
				 entry->table);
	there = json_object_get(table, entry->name);
	covers = there;
	json_object_foreach(entry->value, key, value)
		covers = covers && json_equal(json_object_get(there, key), value);
	if (covers)
		return CONFIG_SAME;
	if (there && !entry->replace)
		return config_entry_differs(entry, err);
	replaces = there;
	if (json_write(&old, entry, out) < 0 ||
	    (!table && json_object_set_new(old.tree, entry->table, json_object()) < 0) ||
	    json_object_set(json_object_get(old.tree, entry->table), entry->name, entry->value) < 0)
		return error_oom(err);
	/* The new text is read back. */
	new.text = (struct span){ out->data, out->len };
	if (config_text_load(&new, err) < 0)
		return -EIO;
	if (!json_equal(new.tree, old.tree))
		return error_set(err, ERROR_INTERNAL, EIO,
				 "the entry could not be inserted without a change to the rest");
	return replaces ? CONFIG_REPLACED : CONFIG_ADDED;
}

const struct config_format config_json = { "json", json_set, json_print };

int config_entry_differs(const struct config_entry *entry, struct error *err)
{
	return error_set(err, ERROR_CONFLICT, EEXIST,
			 "it has another server named '%s'; --replace puts Atoll in its place",
			 entry->name);
}
