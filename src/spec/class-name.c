/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the type of a Java source file that names the file. A small scanner yields identifiers and single
 * characters, and skips comments, strings, character literals and text blocks. A type is declared where
 * `class`, `interface`, `enum` or `record` and a name are outside of all braces and parentheses. A type with
 * `public` wins at once; otherwise one with `void main (` in its body.
 */
#include "spec/language.h"

#include <stdio.h>
#include <string.h>

struct class_scanner {
	const char *at, *end;
};

struct class_token {
	const char *data;
	size_t len; /* 0: the end */
};

static bool is_class_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool starts(const struct class_scanner *s, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(s->end - s->at) >= len && memcmp(s->at, text, len) == 0;
}

/* Moves past the next `text`, or to the end. A backslash hides the character after it. */
static void skip_past(struct class_scanner *s, const char *text, bool escapes)
{
	while (s->at < s->end && !starts(s, text))
		s->at += escapes && *s->at == '\\' && s->end - s->at > 1 ? 2 : 1;
	if (s->at < s->end)
		s->at += strlen(text);
}

static bool skip_ignored(struct class_scanner *s)
{
	static const struct {
		const char *open, *close;
		bool escapes;
	} spans[] = {
		{ "//", "\n", false }, { "/*", "*/", false }, { "\"\"\"", "\"\"\"", true },
		{ "\"", "\"", true },  { "'", "'", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		if (!starts(s, spans[i].open))
			continue;
		s->at += strlen(spans[i].open);
		skip_past(s, spans[i].close, spans[i].escapes);
		return true;
	}
	if (s->at < s->end && strchr(" \t\r\n\f", *s->at)) {
		s->at++;
		return true;
	}
	return false;
}

static struct class_token next_token(struct class_scanner *s)
{
	struct class_token t;

	while (skip_ignored(s))
		;
	t.data = s->at;
	if (s->at < s->end)
		s->at++;
	if (s->at > t.data && is_class_letter(*t.data))
		while (s->at < s->end && is_class_letter(*s->at))
			s->at++;
	t.len = (size_t)(s->at - t.data);
	return t;
}

static bool is(struct class_token t, const char *text)
{
	return t.len == strlen(text) && memcmp(t.data, text, t.len) == 0;
}

static bool declares_type(struct class_token t)
{
	return is(t, "class") || is(t, "interface") || is(t, "enum") || is(t, "record");
}

static bool names_type(struct class_token t, size_t size)
{
	return t.len > 0 && t.len < size && is_class_letter(t.data[0]) &&
	       !(t.data[0] >= '0' && t.data[0] <= '9');
}

void language_class_name(const char *source, size_t len, char *ret, size_t size)
{
	struct class_scanner s = { source, source + len };
	struct class_token before = { 0 }, last = { 0 }, current = { 0 }, first = { 0 },
			   with_main = { 0 };
	size_t braces = 0, parens = 0;
	bool is_public = false;

	for (struct class_token t; (t = next_token(&s)).len > 0; before = last, last = t) {
		braces += is(t, "{");
		parens += is(t, "(");
		if (is(t, "(") && is(last, "main") && is(before, "void") && braces == 1 &&
		    with_main.len == 0)
			with_main = current;
		if (is(t, ")") && parens > 0)
			parens--;
		if (is(t, "}") && braces > 0)
			braces--;
		if (braces > 0 || parens > 0)
			continue;
		if (is(t, ";") || is(t, "}"))
			is_public = false;
		else if (is(t, "public"))
			is_public = true;
		else if (declares_type(last) && names_type(t, size)) {
			current = t;
			if (first.len == 0)
				first = t;
			if (is_public) {
				with_main = t;
				break;
			}
		}
	}
	if (with_main.len == 0)
		with_main = first;
	if (with_main.len == 0)
		with_main = (struct class_token){ "Main", 4 };
	(void)snprintf(ret, size, "%.*s", (int)with_main.len, with_main.data);
}

void language_main_class(const char *source, size_t len, char *ret, size_t size)
{
	struct class_scanner s = { source, source + len };
	struct class_token t = next_token(&s);
	char name[128];
	size_t n = 0;

	language_class_name(source, len, name, sizeof(name));
	if (is(t, "package"))
		while ((t = next_token(&s)).len > 0 && !is(t, ";") &&
		       n + t.len + sizeof(name) < size) {
			memcpy(ret + n, t.data, t.len);
			n += t.len;
		}
	if (snprintf(ret + n, size - n, "%s%s", n ? "." : "", name) < 0)
		ret[0] = '\0';
}
