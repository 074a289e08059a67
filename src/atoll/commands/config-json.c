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

/* An object in the text, as offsets. */
struct config_place {
	size_t open, close;	       /* its braces */
	size_t last_end;	       /* behind its last value; 0: the object is empty */
	size_t value_begin, value_end; /* of the key that was looked for; 0: it is not there */
};

static void json_tree_cleanup(json_t **tree)
{
	json_decref(*tree);
}
#define _cleanup_tree_ _cleanup_(json_tree_cleanup)

/* --- the copy --- */

/* i: of the opening quote; the offset behind the closing one. */
static size_t json_string_end(const char *s, size_t i, size_t n)
{
	for (i++; i < n && s[i] != '"'; i++)
		if (s[i] == '\\')
			i++;
	return MIN(i + 1, n);
}

static size_t json_skip_space(const char *s, size_t i)
{
	return i + strspn(s + i, " \t\r\n");
}

static size_t comment_end(const char *s, size_t i, size_t n)
{
	bool is_line = s[i + 1] == '/';
	const char *end = is_line ? memchr(s + i, '\n', n - i)
				  : memmem(s + i + 2, n - i - 2, "*/", 2);

	return end ? (size_t)(end - s) + (is_line ? 0 : 2) : n;
}

static void blank_comments(char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t end = i + 1;

		if (s[i] == '"') {
			end = json_string_end(s, i, n);
		} else if (s[i] == '/' && i + 1 < n && (s[i + 1] == '/' || s[i + 1] == '*')) {
			end = comment_end(s, i, n);
			for (size_t at = i; at < end; at++)
				if (s[at] != '\n' && s[at] != '\r')
					s[at] = ' ';
		}
		i = end;
	}
}

static void blank_trailing_commas(char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		if (s[i] == '"') {
			i = json_string_end(s, i, n);
			continue;
		}
		if (s[i] == ',' && strchr("}]", s[json_skip_space(s, i + 1)]))
			s[i] = ' ';
		i++;
	}
}

/* The copy, and the tree it holds. A byte order mark is blank too. */
static int json_copy_load(struct span text, struct buf *copy, json_t **ret, struct error *err)
{
	json_error_t why;
	json_t *tree;

	if (text.len > CONFIG_TEXT_MAX || memchr(text.data, '\0', text.len))
		return error_set(err, ERROR_INPUT, EINVAL, "it is no text");
	buf_init(copy, CONFIG_TEXT_MAX);
	if (buf_append(copy, text.data, text.len) < 0)
		return error_oom(err);
	if (copy->len >= 3 && memcmp(copy->data, "\xef\xbb\xbf", 3) == 0)
		memset(copy->data, ' ', 3);
	blank_comments(copy->data, copy->len);
	blank_trailing_commas(copy->data, copy->len);
	tree = json_loadb(copy->data, copy->len, 0, &why);
	if (!tree)
		return error_set(err, ERROR_INPUT, EINVAL, "line %d is not valid JSON: %s",
				 why.line, why.text);
	if (!json_is_object(tree)) {
		json_decref(tree);
		return error_set(err, ERROR_INPUT, EINVAL, "it does not hold a JSON object");
	}
	*ret = tree;
	return 0;
}

/* --- places --- */

/* s is valid JSON from i on. */
static size_t json_value_end(const char *s, size_t i, size_t n)
{
	int depth = 0;

	do {
		if (s[i] == '"') {
			i = json_string_end(s, i, n);
			continue;
		}
		depth += s[i] == '{' || s[i] == '[';
		depth -= s[i] == '}' || s[i] == ']';
		i++;
	} while (i < n && (depth > 0 || !strchr(",}] \t\r\n", s[i])));
	return i;
}

static bool json_key_is(const char *s, size_t begin, size_t end, const char *key)
{
	json_t *text = json_loadb(s + begin, end - begin, JSON_DECODE_ANY, NULL);
	bool same = text && strcmp(json_string_value(text), key) == 0;

	json_decref(text);
	return same;
}

/* open: the offset of its brace. Of a key that is there twice, the last counts, as for most readers. */
static struct config_place json_place(const char *s, size_t n, size_t open, const char *key)
{
	struct config_place place = { .open = open };
	size_t i = json_skip_space(s, open + 1);

	while (s[i] != '}') {
		size_t key_begin = i, key_end = json_string_end(s, i, n), begin;

		i = json_skip_space(s, key_end);   /* the colon */
		begin = json_skip_space(s, i + 1); /* the value */
		place.last_end = json_value_end(s, begin, n);
		if (json_key_is(s, key_begin, key_end, key)) {
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
	size_t begin = at;

	while (begin > 0 && s[begin - 1] != '\n')
		begin--;
	return (struct span){ s + begin, strspn(s + begin, " \t") };
}

static bool has_newline(const char *s, size_t from, size_t to)
{
	return memchr(s + from, '\n', to - from) != NULL;
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
	char inner[CONFIG_DEPTH_MAX * (CONFIG_INDENT_MAX + 1)];
	const char *key, *separator = "";
	json_t *member;
	int r = 0;

	if (!json_is_object(value)) {
		_cleanup_free_ char *text = json_dumps(value, JSON_ENCODE_ANY);

		return text ? buf_puts(out, text) : -ENOMEM;
	}
	(void)snprintf(inner, sizeof(inner), "%s%s", indent, layout ? layout->unit : "");
	r = buf_puts(out, "{");
	json_object_foreach(value, key, member)
	{
		if (r == 0)
			r = layout ? buf_printf(out, "%s%s%s\"%s\": ", separator, layout->newline,
						inner, key)
				   : buf_printf(out, "%s\"%s\": ", separator, key);
		if (r == 0)
			r = put_json(out, member, layout, inner);
		separator = layout ? "," : ", ";
	}
	if (r == 0 && layout)
		r = buf_printf(out, "%s%s", layout->newline, indent);
	return r < 0 ? r : buf_puts(out, "}");
}

/* --- insertion --- */

/* Where to insert, with all that decides how it looks. */
struct config_insertion {
	struct span text;
	const char *copy;
	struct config_layout layout;
	struct config_place place;
};

/* A comma behind the last value, outside of comments. */
static bool has_trailing_comma(const char *text, size_t from, size_t to)
{
	while (from < to && text[from] != ',')
		from = text[from] == '/' ? comment_end(text, from, to) : from + 1;
	return from < to;
}

/* The indentation of the object's members: as its first one has it, or a step more than the line of its brace. */
static void member_indent(const struct config_insertion *in, char *ret, size_t size)
{
	const struct config_place *p = &in->place;
	size_t first = json_skip_space(in->copy, p->open + 1);
	struct span own = line_indent(in->text.data, first),
		    outer = line_indent(in->text.data, p->open);

	if (p->last_end && has_newline(in->text.data, p->open, first))
		(void)snprintf(ret, size, "%.*s", (int)MIN(own.len, size - 1), own.data);
	else
		(void)snprintf(ret, size, "%.*s%s", (int)MIN(outer.len, size / 2), outer.data,
			       in->layout.unit);
}

/* A new last member on lines of its own. A trailing comma stays the style; a comment behind the last value stays there. */
static int insert_on_lines(const struct config_insertion *in, const char *key, json_t *value,
			   struct buf *out)
{
	const struct config_place *p = &in->place;
	const char *text = in->text.data, *newline = in->layout.newline;
	size_t after = p->last_end ? p->last_end : p->open + 1, rest = p->close;
	bool comma = has_trailing_comma(text, after, p->close);
	struct span outer = line_indent(text, p->open);
	char indent[CONFIG_DEPTH_MAX * (CONFIG_INDENT_MAX + 1)];
	int r = buf_append(out, text, after);

	member_indent(in, indent, sizeof(indent));
	while (rest > after && strchr(" \t\r\n", text[rest - 1]))
		rest--;
	if (r == 0 && p->last_end && !comma)
		r = buf_puts(out, ",");
	if (r == 0)
		r = buf_append(out, text + after, rest - after);
	if (r == 0)
		r = buf_printf(out, "%s%s\"%s\": ", newline, indent, key);
	if (r == 0)
		r = put_json(out, value, &in->layout, indent);
	if (r == 0 && comma)
		r = buf_puts(out, ",");
	if (r == 0 && !has_newline(text, rest, p->close)) {
		r = buf_printf(out, "%s%.*s", newline, (int)outer.len, outer.data);
		rest = p->close;
	}
	return r < 0 ? r : buf_append(out, text + rest, in->text.len - rest);
}

static int insert_in_line(const struct config_insertion *in, const char *key, json_t *value,
			  struct buf *out)
{
	size_t after = in->place.last_end ? in->place.last_end : in->place.open + 1;
	int r = buf_append(out, in->text.data, after);

	if (r == 0)
		r = buf_printf(out, "%s\"%s\": ", in->place.last_end ? ", " : "", key);
	if (r == 0)
		r = put_json(out, value, NULL, "");
	return r < 0 ? r : buf_append(out, in->text.data + after, in->text.len - after);
}

static int replace_value(const struct config_insertion *in, json_t *value, struct buf *out)
{
	const struct config_place *p = &in->place;
	struct span outer = line_indent(in->text.data, p->value_begin);
	bool compact = !has_newline(in->text.data, p->open, p->close);
	char indent[CONFIG_DEPTH_MAX * (CONFIG_INDENT_MAX + 1)];
	int r = buf_append(out, in->text.data, p->value_begin);

	(void)snprintf(indent, sizeof(indent), "%.*s", (int)MIN(outer.len, sizeof(indent) - 1),
		       outer.data);
	if (r == 0)
		r = put_json(out, value, compact ? NULL : &in->layout, indent);
	return r < 0 ? r
		     : buf_append(out, in->text.data + p->value_end, in->text.len - p->value_end);
}

/* --- the whole --- */

/* The tree that the new text must hold: the old one with the entry. */
static int tree_with(json_t *tree, const struct config_entry *entry)
{
	json_t *table = json_object_get(tree, entry->table);

	if (!table && json_object_set_new(tree, entry->table, json_object()) < 0)
		return -ENOMEM;
	table = json_object_get(tree, entry->table);
	return json_object_set(table, entry->name, entry->value) < 0 ? -ENOMEM : 0;
}

/* Reads the new text back. */
static int json_check(const struct buf *out, const json_t *expected, struct error *err)
{
	_cleanup_buf_ struct buf copy = { 0 };
	_cleanup_tree_ json_t *tree = NULL;
	int r = json_copy_load((struct span){ out->data, out->len }, &copy, &tree, err);

	if (r == 0 && !json_equal(tree, expected))
		r = error_set(err, ERROR_INTERNAL, EIO,
			      "the entry could not be inserted without a change to the rest");
	return r;
}

static int json_insert(struct config_insertion *in, const struct config_entry *entry,
		       struct buf *out)
{
	size_t root = json_skip_space(in->copy, 0), n = in->text.len;
	struct config_place outer = json_place(in->copy, n, root, entry->table);
	bool one_line = outer.last_end && !has_newline(in->text.data, root, outer.close);
	json_t *table;
	int r;

	in->place = outer;
	if (!outer.value_begin) {
		table = json_pack("{s:O}", entry->name, entry->value);
		if (!table)
			return -ENOMEM;
		r = (one_line ? insert_in_line : insert_on_lines)(in, entry->table, table, out);
		json_decref(table);
		return r;
	}
	in->place = json_place(in->copy, n, outer.value_begin, entry->name);
	if (in->place.value_begin)
		return replace_value(in, entry->value, out);
	if (in->place.last_end)
		one_line = !has_newline(in->text.data, in->place.open, in->place.close);
	return (one_line ? insert_in_line : insert_on_lines)(in, entry->name, entry->value, out);
}

int config_json_set(struct span text, const struct config_entry *entry, struct buf *out,
		    struct error *err)
{
	_cleanup_buf_ struct buf copy = { 0 };
	_cleanup_tree_ json_t *tree = NULL;
	struct config_insertion in = { .text = text };
	json_t *table, *there;
	int r;

	if (text.len == 0 || strspn(text.data, " \t\r\n") == text.len) {
		r = config_json_print(entry, out);
		return r < 0 ? error_oom(err) : CONFIG_ADDED;
	}
	r = json_copy_load(text, &copy, &tree, err);
	if (r < 0)
		return r;
	table = json_object_get(tree, entry->table);
	if (table && !json_is_object(table))
		return error_set(err, ERROR_INPUT, EINVAL, "its '%s' is not an object",
				 entry->table);
	there = json_object_get(table, entry->name);
	if (there && config_entry_covers(there, entry->value))
		return CONFIG_SAME;
	if (there && !entry->replace)
		return config_entry_differs(entry, err);
	r = there ? CONFIG_REPLACED : CONFIG_ADDED;
	in.copy = copy.data;
	in.layout = layout_of(copy.data, json_skip_space(copy.data, 0));
	if (tree_with(tree, entry) < 0 || json_insert(&in, entry, out) < 0)
		return error_oom(err);
	return json_check(out, tree, err) < 0 ? -EIO : r;
}

int config_json_print(const struct config_entry *entry, struct buf *out)
{
	static const struct config_layout layout = { .newline = "\n", .unit = "  " };
	_cleanup_tree_ json_t *tree = json_pack("{s:{s:O}}", entry->table, entry->name,
						entry->value);
	int r = tree ? put_json(out, tree, &layout, "") : -ENOMEM;

	return r < 0 ? r : buf_puts(out, "\n");
}

bool config_entry_covers(const json_t *there, json_t *ours)
{
	const char *key;
	json_t *value;

	json_object_foreach(ours, key, value)
	{
		if (!json_equal(json_object_get(there, key), value))
			return false;
	}
	return true;
}

int config_entry_differs(const struct config_entry *entry, struct error *err)
{
	return error_set(err, ERROR_CONFLICT, EEXIST,
			 "it has another server named '%s'; --replace puts Atoll in its place",
			 entry->name);
}
