/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See imports.h. One pass from left to right without going back: comments and strings are skipped; words are
 * looked at only where a statement can begin; `import`, `from`, `__import__(…)` and `import_module(…)` read on
 * from there. In text that is no Python it finds nonsense, but does no more work and reads no byte past the
 * end.
 */
#include "run/toolchain/imports.h"

#include "base/macro.h"

#include <stdbool.h>
#include <string.h>

enum {
	SCAN_BYTES_MAX = 1 << 20
}; /* imports are at the top; a later import only means that less is loaded ahead */

struct import_scan {
	const char *p, *end;
	void (*found)(void *data, const char *name, size_t len);
	void *data;
	bool fresh; /* a statement may begin here */
};

struct import_word {
	const char *text;
	size_t len;
};

/* Letters of an identifier; a byte that is not ASCII counts as one. */
static bool is_import_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
}

static bool next_is(const struct import_scan *s, char c)
{
	return s->p < s->end && *s->p == c;
}

static struct import_word take_word(struct import_scan *s)
{
	struct import_word w = { s->p, 0 };

	while (s->p < s->end && is_import_letter(*s->p))
		s->p++;
	w.len = (size_t)(s->p - w.text);
	return w;
}

static bool import_word_is(struct import_word w, const char *text)
{
	return w.len == strlen(text) && memcmp(w.text, text, w.len) == 0;
}

/* A backslash at the end of a line joins it with the next. */
static void skip_blanks(struct import_scan *s)
{
	while (s->p < s->end) {
		size_t left = (size_t)(s->end - s->p);

		if (*s->p == ' ' || *s->p == '\t' || *s->p == '\f')
			s->p++;
		else if (left >= 2 && memcmp(s->p, "\\\n", 2) == 0)
			s->p += 2;
		else if (left >= 3 && memcmp(s->p, "\\\r\n", 3) == 0)
			s->p += 3;
		else
			return;
	}
}

static bool at_triple(const struct import_scan *s, char quote)
{
	return s->end - s->p >= 3 && s->p[0] == quote && s->p[1] == quote && s->p[2] == quote;
}

/* An unclosed string ends with its line; with three quotes, with the text. */
static void skip_string(struct import_scan *s)
{
	char quote = *s->p;
	bool triple = at_triple(s, quote);

	s->p += triple ? 3 : 1;
	while (s->p < s->end) {
		if (*s->p == '\\') {
			s->p += MIN(s->end - s->p, 2);
		} else if (triple ? at_triple(s, quote) : *s->p == quote) {
			s->p += triple ? 3 : 1;
			return;
		} else if (!triple && *s->p == '\n') {
			return;
		} else {
			s->p++;
		}
	}
}

/* Reads a.b.c; the name is that of a. False: no name, or a relative one. */
static bool take_module(struct import_scan *s, struct import_word *ret)
{
	skip_blanks(s);
	*ret = take_word(s);
	if (ret->len == 0)
		return false;
	skip_blanks(s);
	while (next_is(s, '.')) {
		s->p++;
		skip_blanks(s);
		(void)take_word(s);
		skip_blanks(s);
	}
	return true;
}

/* `import a.b as c, d`, after its first word. */
static void take_import(struct import_scan *s)
{
	struct import_word module;

	while (take_module(s, &module)) {
		s->found(s->data, module.text, module.len);
		if (!next_is(s, ',')) {
			struct import_word as = take_word(s);

			if (!import_word_is(as, "as"))
				return;
			skip_blanks(s);
			(void)take_word(s);
			skip_blanks(s);
		}
		if (!next_is(s, ','))
			return;
		s->p++;
	}
}

/* `("a.b"` of a call with a literal argument. */
static void take_call(struct import_scan *s)
{
	struct import_scan inside;
	struct import_word module;
	char quote;

	skip_blanks(s);
	if (!next_is(s, '('))
		return;
	s->p++;
	skip_blanks(s);
	if (!next_is(s, '"') && !next_is(s, '\''))
		return;
	quote = *s->p;
	inside = *s;
	inside.p++;
	module = take_word(&inside);
	if (module.len > 0 && (next_is(&inside, '.') || next_is(&inside, quote)))
		s->found(s->data, module.text, module.len);
	skip_string(s);
}

static void take_statement(struct import_scan *s)
{
	bool fresh = s->fresh;
	struct import_word w = take_word(s), module;

	s->fresh = false;
	if (fresh && import_word_is(w, "import")) {
		take_import(s);
	} else if (fresh && import_word_is(w, "from")) {
		/* `from a.b import c` */
		if (take_module(s, &module) && import_word_is(take_word(s), "import"))
			s->found(s->data, module.text, module.len);
	} else if (import_word_is(w, "__import__") || import_word_is(w, "import_module")) {
		take_call(s);
	}
}

void imports_scan(const char *code, size_t len,
		  void (*found)(void *data, const char *name, size_t len), void *data)
{
	static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark, which some editors write */
	struct import_scan s = { code, code + MIN(len, (size_t)SCAN_BYTES_MAX), found, data, true };

	/* Fast path: most programs without imports do not contain the word. */
	if (!memmem(code, (size_t)(s.end - s.p), "import", strlen("import")))
		return;
	if (s.end - s.p >= 3 && memcmp(s.p, mark, 3) == 0)
		s.p += 3;
	for (;;) {
		skip_blanks(&s);
		if (s.p >= s.end)
			return;
		if (is_import_letter(*s.p)) {
			take_statement(&s);
		} else if (*s.p == '#') {
			const char *newline = memchr(s.p, '\n', (size_t)(s.end - s.p));

			s.p = newline ? newline : s.end;
		} else if (*s.p == '"' || *s.p == '\'') {
			skip_string(&s);
			s.fresh = false;
		} else {
			/* `if x: import y`, `a; import b`. A colon elsewhere is not followed by a keyword. */
			s.fresh = *s.p == '\n' || *s.p == '\r' || *s.p == ';' || *s.p == ':';
			s.p++;
		}
	}
}
