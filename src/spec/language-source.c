/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about a language: which names, files and variables are its, and how its source is named. For Java, the name comes from the
 * source: a small scanner yields identifiers and single characters, and skips comments, strings, character literals and text blocks. A
 * type is declared where `class`, `interface`, `enum` or `record` and a name are outside of all braces and parentheses. A type with
 * `public` wins at once; otherwise one with `void main (` in its body.
 */
#include "spec/language.h"

#include <stdio.h>
#include <string.h>

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* strcasecmp() would depend on the locale. */
static bool equal_folded(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return lower(*a) == lower(*b);
}

static bool holds_folded(const char *const *words, const char *word)
{
	for (; *words; words++)
		if (equal_folded(*words, word))
			return true;
	return false;
}

bool language_matches(const struct language *lang, const char *name)
{
	return equal_folded(lang->name, name) || holds_folded(lang->known.aliases, name);
}

const struct language *language_find_version(const struct language *lang, const char *name)
{
	for (size_t i = 0; i < lang->n_versions; i++)
		if (equal_folded(lang->versions[i]->version_name, name))
			return lang->versions[i];
	return NULL;
}

bool language_has_extension(const struct language *lang, const char *extension)
{
	return holds_folded(lang->known.extensions, extension);
}

static bool holds_span(const char *const *words, struct span word)
{
	for (; *words; words++)
		if (strlen(*words) == word.len && memcmp(*words, word.data, word.len) == 0)
			return true;
	return false;
}

/* The next word of a #! line, without its directories; len 0 at the end. */
static struct span next_program(const char **p, const char *end)
{
	struct span word;

	while (*p < end && (**p == ' ' || **p == '\t'))
		(*p)++;
	word.data = *p;
	while (*p < end && !strchr(" \t\r\n", **p)) {
		if (**p == '/')
			word.data = *p + 1;
		(*p)++;
	}
	word.len = (size_t)(*p - word.data);
	return word;
}

bool language_has_shebang(const struct language *lang, const char *line, size_t len)
{
	const char *newline = memchr(line, '\n', len), *end = newline ? newline : line + len;
	const char *p = line + 2;
	struct span word;

	if (end - line < 2 || memcmp(line, "#!", 2) != 0)
		return false;
	word = next_program(&p, end);
	if (word.len == 3 && memcmp(word.data, "env", 3) == 0)
		do /* env's own options and assignments come before the program */
			word = next_program(&p, end);
		while (word.len > 0 && (word.data[0] == '-' || memchr(word.data, '=', word.len)));
	if (word.len == 0)
		return false;
	if (holds_span(lang->known.shebangs, word))
		return true;
	/* python3.11 is python */
	while (word.len > 1 && strchr("0123456789.", word.data[word.len - 1]))
		word.len--;
	return holds_span(lang->known.shebangs, word);
}

void language_source_name(const struct language *lang, const struct program_text *program,
			  char *ret, size_t size)
{
	static const char mark[] = "{class}";
	const char *at = strstr(lang->source, mark);
	char name[192];

	if (!at) {
		const char *given = program->name, *slash = given ? strrchr(given, '/') : NULL;
		const char *dot = given ? strrchr(slash ? slash : given, '.') : NULL;
		/* Compilers recognise a file by its extension, and Java by the class; an interpreter takes any name. */
		bool kept = given && !lang->class_pattern &&
			    (!lang->compile.argv[0] ||
			     (dot && language_has_extension(lang, dot + 1)));

		(void)snprintf(ret, size, "%s", kept ? given : lang->source);
		return;
	}
	language_class_name(program->code.data, program->code.len, name, sizeof(name));
	(void)snprintf(ret, size, "%.*s%s%s", (int)(at - lang->source), lang->source, name,
		       at + strlen(mark));
}

void language_stage_source(const struct language *lang, size_t stage, const char *code, char *ret,
			   size_t size)
{
	const char *dot = strrchr(lang->source, '.');
	size_t n = dot ? (size_t)(dot - lang->source) : strlen(lang->source);

	if (lang->class_pattern)
		language_source_name(lang, &(struct program_text){ { code, strlen(code) }, NULL },
				     ret, size);
	else
		(void)snprintf(ret, size, "%.*s-%zu%s", (int)n, lang->source, stage + 1,
			       dot ? dot : "");
}

bool language_version_fits(const char *have, const char *wanted)
{
	size_t n = strlen(wanted);

	if (n == 0 || strncmp(have, wanted, n) != 0)
		return false;
	/* "3.1" is not the beginning of 3.11, but "3.1.2" is that of 3.1.2p20. */
	return have[n] < '0' || have[n] > '9';
}

/* The first pattern that matches decides. */
static bool language_matches_any(const char *const *patterns, const char *name)
{
	for (; *patterns; patterns++) {
		bool excepts = (*patterns)[0] == '!';
		const char *pattern = *patterns + excepts;
		size_t n = strcspn(pattern, "*");

		if (strncmp(pattern, name, n) == 0 && (pattern[n] || !name[n]))
			return !excepts;
	}
	return false;
}

bool language_wants_cold(const struct language *lang, const char *variable)
{
	/* Read once by the C library and the loader, before or soon after a program's first instruction. */
	static const char *const always[] = { "LD_*", "MALLOC_*", "GLIBC_TUNABLES",
					      "LC_*", "LANG",	  "LANGUAGE",
					      "TZ",   NULL };

	return language_matches_any(always, variable) ||
	       language_matches_any((const char *const *)lang->warm.cold_env, variable);
}

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

static bool class_starts(const struct class_scanner *s, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(s->end - s->at) >= len && memcmp(s->at, text, len) == 0;
}

static bool class_skip_ignored(struct class_scanner *s)
{
	static const struct {
		const char *open, *close;
		bool escapes;
	} spans[] = {
		{ "//", "\n", false }, { "/*", "*/", false }, { "\"\"\"", "\"\"\"", true },
		{ "\"", "\"", true },  { "'", "'", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		if (!class_starts(s, spans[i].open))
			continue;
		s->at += strlen(spans[i].open);
		/* A backslash hides the character after it. */
		while (s->at < s->end && !class_starts(s, spans[i].close))
			s->at += spans[i].escapes && *s->at == '\\' && s->end - s->at > 1 ? 2 : 1;
		if (s->at < s->end)
			s->at += strlen(spans[i].close);
		return true;
	}
	if (s->at < s->end && strchr(" \t\r\n\f", *s->at)) {
		s->at++;
		return true;
	}
	return false;
}

static struct class_token class_next(struct class_scanner *s)
{
	struct class_token t;

	while (class_skip_ignored(s))
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

static bool class_is(struct class_token t, const char *text)
{
	return t.len == strlen(text) && memcmp(t.data, text, t.len) == 0;
}

static bool class_names_type(struct class_token t, size_t size)
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

	for (struct class_token t; (t = class_next(&s)).len > 0; before = last, last = t) {
		braces += class_is(t, "{");
		parens += class_is(t, "(");
		if (class_is(t, "(") && class_is(last, "main") && class_is(before, "void") &&
		    braces == 1 && with_main.len == 0)
			with_main = current;
		if (class_is(t, ")") && parens > 0)
			parens--;
		if (class_is(t, "}") && braces > 0)
			braces--;
		if (braces > 0 || parens > 0)
			continue;
		if (class_is(t, ";") || class_is(t, "}"))
			is_public = false;
		else if (class_is(t, "public"))
			is_public = true;
		else if ((class_is(last, "class") || class_is(last, "interface") ||
			  class_is(last, "enum") || class_is(last, "record")) &&
			 class_names_type(t, size)) {
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
	struct class_token t = class_next(&s);
	char name[128];
	size_t n = 0;

	language_class_name(source, len, name, sizeof(name));
	if (class_is(t, "package"))
		while ((t = class_next(&s)).len > 0 && !class_is(t, ";") &&
		       n + t.len + sizeof(name) < size) {
			memcpy(ret + n, t.data, t.len);
			n += t.len;
		}
	if (snprintf(ret + n, size - n, "%s%s", n ? "." : "", name) < 0)
		ret[0] = '\0';
}
