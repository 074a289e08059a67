/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See fence.h. The text is read line by line, once. A small reader of Python's quotes runs beside it and knows
 * for each line whether the line begins inside a string: there no fence opens or closes. An apostrophe in prose
 * confuses the reader only to the end of its line, because only tripled quotes, or a backslash at the end,
 * carry a string into the next line.
 */
#include "web/compat/execute/fence.h"

#include <string.h>
#include <strings.h>

#include "base/macro.h"

enum { TICKS_MIN = 3 };

struct quoting {   /* the state of Python's quotes at the start of a line */
	char mark; /* 0: outside of strings */
	bool triple;
};

struct fence_line {
	size_t indent, ticks;
	struct span info;
};

bool fence_next_line(struct span *rest, struct span *ret)
{
	const char *end;

	if (rest->len == 0)
		return false;
	end = memchr(rest->data, '\n', rest->len);
	*ret = (struct span){ rest->data, end ? (size_t)(end - rest->data) : rest->len };
	rest->data += ret->len + (end != NULL);
	rest->len -= ret->len + (end != NULL);
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct span fence_trim(struct span text)
{
	while (text.len > 0 && is_space(text.data[0])) {
		text.data++;
		text.len--;
	}
	while (text.len > 0 && is_space(text.data[text.len - 1]))
		text.len--;
	return text;
}

bool fence_names_python(struct span word)
{
	static const char *const names[] = { "python", "python3", "py" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (word.len == strlen(names[i]) && strncasecmp(word.data, names[i], word.len) == 0)
			return true;
	return false;
}

/* One character inside a string: its end, an escaped character, or content. */
static size_t step_inside(struct quoting *q, struct span line, size_t i)
{
	if (line.data[i] == '\\')
		return 2;
	if (line.data[i] != q->mark)
		return 1;
	if (!q->triple) {
		q->mark = 0;
		return 1;
	}
	if (line.len - i < 3 || line.data[i + 1] != q->mark || line.data[i + 2] != q->mark)
		return 1;
	q->mark = 0;
	return 3;
}

static size_t step_outside(struct quoting *q, struct span line, size_t i)
{
	char c = line.data[i];

	if (c == '#')
		return line.len - i;
	if (c != '\'' && c != '"')
		return 1;
	q->mark = c;
	q->triple = line.len - i >= 3 && line.data[i + 1] == c && line.data[i + 2] == c;
	return q->triple ? 3 : 1;
}

static void quoting_read(struct quoting *q, struct span line)
{
	size_t i = 0;

	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	while (i < line.len)
		i += q->mark ? step_inside(q, line, i) : step_outside(q, line, i);
	/* i is past the end: a backslash was the last character. */
	if (q->mark && !q->triple && i == line.len)
		q->mark = 0;
}

/* "python", "{.python}", "python title=x" are an info string; "print(1)" or "import os" is a program. */
static bool is_info(struct span info)
{
	size_t word = 0;

	if (info.len > 1 && info.data[0] == '{' && info.data[info.len - 1] == '}')
		return !memchr(info.data, ':', info.len);
	while (word < info.len && !is_space(info.data[word])) {
		char c = info.data[word++];

		if (!strchr("+#._-", c) && (c < '0' || c > '9') &&
		    ((c | 32) < 'a' || (c | 32) > 'z'))
			return false;
	}
	return word == info.len || fence_names_python((struct span){ info.data, word });
}

static bool info_names_python(struct span info)
{
	size_t start = 0, end;

	while (start < info.len && (info.data[start] == '{' || info.data[start] == '.'))
		start++;
	for (end = start; end < info.len && !is_space(info.data[end]) && info.data[end] != '}';)
		end++;
	return fence_names_python((struct span){ info.data + start, end - start });
}

static bool fence_line_read(struct span line, struct fence_line *ret)
{
	size_t i = 0, ticks;

	while (i < line.len && (line.data[i] == ' ' || line.data[i] == '\t'))
		i++;
	ret->indent = i;
	for (ticks = i; ticks < line.len && line.data[ticks] == '`';)
		ticks++;
	ret->ticks = ticks - i;
	ret->info = fence_trim((struct span){ line.data + ticks, line.len - ticks });
	return ret->ticks >= TICKS_MIN && !memchr(ret->info.data, '`', ret->info.len) &&
	       is_info(ret->info);
}

static bool closes(struct span line, size_t ticks)
{
	struct fence_line f;

	return fence_line_read(line, &f) && f.ticks >= ticks && f.info.len == 0;
}

static struct span between(const char *start, const char *end)
{
	return (struct span){ start, (size_t)(end - start) };
}

/* Where the last closing line begins; NULL: none. */
static const char *last_closing(struct span text, size_t ticks)
{
	const char *found = NULL;
	struct span line;

	while (fence_next_line(&text, &line))
		if (closes(line, ticks))
			found = line.data;
	return found;
}

static struct fence fence_open(struct span text, struct span line, const struct fence_line *opening)
{
	return (struct fence){ .indent = opening->indent,
			       .before = between(text.data, line.data),
			       .named = info_names_python(opening->info) };
}

/* *rest begins after the opening line; it is moved after the closing line. */
static void take_block(struct span *rest, size_t ticks, struct fence *f)
{
	struct span body = *rest, line;
	struct quoting q = { 0 };
	const char *end;

	while (fence_next_line(rest, &line)) {
		if (!q.mark && closes(line, ticks)) {
			f->closed = true;
			f->code = between(body.data, line.data);
			return;
		}
		quoting_read(&q, line);
	}
	/* If the program's own quotes are broken, the reader misses the closing line. */
	end = last_closing(body, ticks);
	f->closed = end != NULL;
	f->code = between(body.data, end ? end : body.data + body.len);
}

bool fence_find_python(struct span text, struct fence *ret)
{
	struct span rest = text, line;
	struct quoting q = { 0 };
	struct fence first = { 0 }, named = { 0 };
	size_t n = 0, n_named = 0;

	while (fence_next_line(&rest, &line)) {
		struct fence_line opening;
		struct fence f;

		if (q.mark || !fence_line_read(line, &opening)) {
			quoting_read(&q, line);
			continue;
		}
		f = fence_open(text, line, &opening);
		take_block(&rest, opening.ticks, &f);
		if (n++ == 0)
			first = f;
		if (f.named && n_named++ == 0)
			named = f;
	}
	if (n == 0 || (n > 1 && n_named != 1))
		return false;
	*ret = n == 1 ? first : named;
	return true;
}

bool fence_find_first(struct span text, struct fence *ret)
{
	struct span rest = text, line;
	struct fence_line opening;
	const char *end;

	if (!fence_next_line(&rest, &line) || !fence_line_read(line, &opening))
		return false;
	*ret = fence_open(text, line, &opening);
	end = last_closing(rest, opening.ticks);
	ret->closed = end != NULL;
	ret->code = between(rest.data, end ? end : rest.data + rest.len);
	return true;
}
