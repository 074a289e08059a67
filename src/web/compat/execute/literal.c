/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See literal.h. A recursive descent with bounded depth. Each function moves `at` behind what it has read, and
 * returns false if the text is no literal; parsing then stops. Decoded text is written only for keys of the
 * outermost dictionary and for one value.
 */
#include "web/compat/execute/literal.h"

#include "base/parse.h"

#include <stdbool.h>
#include <string.h>

enum literal_kind { KIND_OTHER, KIND_TEXT };

struct parser {
	const char *at, *end;
	unsigned depth;
	bool no_memory;
};

struct pick { /* what to find in the outermost dictionary */
	const char *key;
	struct buf *ret;
	bool found;
};

static bool parse_value(struct parser *p, struct buf *out, enum literal_kind *kind);

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char peek(const struct parser *p, size_t n)
{
	return (size_t)(p->end - p->at) > n ? p->at[n] : '\0';
}

static void skip_space(struct parser *p)
{
	while (p->at < p->end) {
		if (*p->at == '#')
			while (p->at < p->end && *p->at != '\n')
				p->at++;
		else if (memchr(" \t\n\r\f", *p->at, 5))
			p->at++;
		else if (*p->at == '\\' && (peek(p, 1) == '\n' || peek(p, 1) == '\r'))
			p->at++;
		else
			return;
	}
}

static bool take_char(struct parser *p, char c)
{
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

static void put_literal_bytes(struct parser *p, struct buf *out, const char *data, size_t n)
{
	if (out && buf_append(out, data, n) < 0)
		p->no_memory = true;
}

static void put_code_point(struct parser *p, struct buf *out, uint32_t c)
{
	char bytes[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char leads[] = { 0, 0x00, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; c >>= 6)
		bytes[i] = (char)(0x80 | (c & 0x3f));
	bytes[0] = (char)(leads[n] | c);
	put_literal_bytes(p, out, bytes, n);
}

/* Exactly n hexadecimal digits, n at most 8. */
static bool take_hex(struct parser *p, unsigned n, uint32_t *ret)
{
	uint32_t value = 0;

	if ((size_t)(p->end - p->at) < n)
		return false;
	for (unsigned i = 0; i < n; i++) {
		int digit = parse_hex_digit(p->at[i]);

		if (digit < 0)
			return false;
		value = value << 4 | (uint32_t)digit;
	}
	p->at += n;
	*ret = value;
	return true;
}

static bool is_surrogate(uint32_t c)
{
	return c >= 0xd800 && c <= 0xdfff;
}

/* After the letter of \xhh, \uhhhh or \Uhhhhhhhh; JSON writes one character as two surrogates. */
static bool take_hex_escape(struct parser *p, struct buf *out)
{
	const char *start = p->at - 2;
	uint32_t c = 0, low = 0;

	if (!take_hex(p, start[1] == 'x' ? 2 : start[1] == 'u' ? 4 : 8, &c) || c > 0x10ffff)
		return false;
	if (c >= 0xd800 && c < 0xdc00 && peek(p, 0) == '\\' && peek(p, 1) == 'u') {
		struct parser next = *p;

		next.at += 2;
		if (take_hex(&next, 4, &low) && low >= 0xdc00 && low <= 0xdfff) {
			p->at = next.at;
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		}
	}
	if (is_surrogate(c))
		put_literal_bytes(p, out, start, (size_t)(p->at - start));
	else
		put_code_point(p, out, c);
	return true;
}

/* After the `N` of a named character: kept as written, which means the same in a program's text. */
static bool take_named(struct parser *p, struct buf *out)
{
	const char *start = p->at - 2;

	if (!take_char(p, '{'))
		return false;
	while (p->at < p->end &&
	       (is_name_letter(*p->at) || is_digit(*p->at) || *p->at == ' ' || *p->at == '-'))
		p->at++;
	if (p->at[-1] == '{' || !take_char(p, '}'))
		return false;
	put_literal_bytes(p, out, start, (size_t)(p->at - start));
	return true;
}

static void take_octal(struct parser *p, struct buf *out)
{
	uint32_t c = 0;

	for (unsigned i = 0; i < 3 && p->at < p->end && *p->at >= '0' && *p->at <= '7'; i++)
		c = c << 3 | (uint32_t)(*p->at++ - '0');
	put_code_point(p, out, c);
}

/* `at` is on the character after the backslash. */
static bool take_escape(struct parser *p, struct buf *out, bool bytes)
{
	static const char letters[] = "\\'\"abfnrtv", meanings[] = "\\'\"\a\b\f\n\r\t\v";
	const char *known;

	if (p->at == p->end)
		return false;
	if (*p->at >= '0' && *p->at <= '7') {
		take_octal(p, out);
		return true;
	}
	known = *p->at ? strchr(letters, *p->at) : NULL;
	p->at++;
	if (known) {
		put_literal_bytes(p, out, &meanings[known - letters], 1);
		return true;
	}
	switch (p->at[-1]) {
	case '\r':
		(void)take_char(p, '\n');
		return true;
	case '\n':
		return true;
	case 'u':
	case 'U':
	case 'N':
		if (bytes)
			break;
		return p->at[-1] == 'N' ? take_named(p, out) : take_hex_escape(p, out);
	case 'x':
		return take_hex_escape(p, out);
	default:
		break;
	}
	/* No escape: the backslash and the next character stay. */
	p->at--;
	put_literal_bytes(p, out, "\\", 1);
	return true;
}

struct quotes {
	char mark;
	bool triple, raw, bytes;
};

static bool take_end(struct parser *p, const struct quotes *q)
{
	if (peek(p, 0) != q->mark)
		return false;
	if (q->triple && (peek(p, 1) != q->mark || peek(p, 2) != q->mark))
		return false;
	p->at += q->triple ? 3 : 1;
	return true;
}

static bool parse_body(struct parser *p, const struct quotes *q, struct buf *out)
{
	while (p->at < p->end) {
		const char *start = p->at;

		if (take_end(p, q))
			return true;
		if (*p->at == '\\' && !q->raw) {
			p->at++;
			if (!take_escape(p, out, q->bytes))
				return false;
			continue;
		}
		/* A run of ordinary characters; in raw text a backslash protects the next one. */
		do {
			if (*p->at == '\\' && p->end - p->at > 1)
				p->at++;
			if (q->bytes && (unsigned char)*p->at >= 0x80)
				return false;
			p->at++;
		} while (p->at < p->end && *p->at != q->mark && *p->at != '\\');
		put_literal_bytes(p, out, start, (size_t)(p->at - start));
	}
	return false;
}

/* The length of the string prefix here: 0 to 2; -1: no string begins here. */
static int prefix_of(const struct parser *p, struct quotes *q)
{
	int n = 0;
	bool unicode = false;

	*q = (struct quotes){ 0 };
	for (; n < 3; n++) {
		char c = peek(p, (size_t)n);

		if (c == '\'' || c == '"') {
			q->mark = c;
			return unicode && n > 1 ? -1 : n;
		}
		if ((c == 'r' || c == 'R') && !q->raw)
			q->raw = true;
		else if ((c == 'b' || c == 'B') && !q->bytes)
			q->bytes = true;
		else if ((c == 'u' || c == 'U') && !unicode)
			unicode = true;
		else
			return -1;
	}
	return -1;
}

/* One string, or several side by side; all of them text, or all of them bytes. */
static bool parse_text(struct parser *p, struct buf *out, enum literal_kind *kind)
{
	struct quotes q;
	int prefix = prefix_of(p, &q);
	bool bytes = q.bytes;

	while (prefix >= 0) {
		p->at += prefix + 1;
		if (q.bytes != bytes)
			return false;
		if (peek(p, 0) == q.mark && peek(p, 1) == q.mark) {
			q.triple = true;
			p->at += 2;
		}
		if (!parse_body(p, &q, out))
			return false;
		skip_space(p);
		prefix = prefix_of(p, &q);
	}
	*kind = bytes ? KIND_OTHER : KIND_TEXT;
	return true;
}

static size_t skip_digits(struct parser *p, bool hex)
{
	size_t n = 0;

	while (p->at < p->end && (is_digit(*p->at) || (*p->at == '_' && n > 0) ||
				  (hex && parse_hex_digit(*p->at) >= 0))) {
		p->at++;
		n++;
	}
	return n;
}

static bool parse_number(struct parser *p)
{
	size_t digits;

	while (take_char(p, '-') || take_char(p, '+'))
		skip_space(p);
	if (peek(p, 0) == '0' && peek(p, 1) && strchr("xXoObB", peek(p, 1))) {
		p->at += 2;
		return skip_digits(p, true) > 0 && !is_name_letter(peek(p, 0));
	}
	digits = skip_digits(p, false);
	if (take_char(p, '.'))
		digits += skip_digits(p, false);
	if (digits == 0)
		return false;
	if (take_char(p, 'e') || take_char(p, 'E')) {
		(void)(take_char(p, '-') || take_char(p, '+'));
		if (skip_digits(p, false) == 0)
			return false;
	}
	(void)(take_char(p, 'j') || take_char(p, 'J'));
	return !is_name_letter(peek(p, 0)) && !is_digit(peek(p, 0));
}

/* A number, or the sum that writes a complex one: -1+2j. */
static bool parse_numbers(struct parser *p)
{
	if (!parse_number(p))
		return false;
	skip_space(p);
	if (peek(p, 0) == '+' || peek(p, 0) == '-')
		return parse_number(p);
	return true;
}

static bool parse_word(struct parser *p)
{
	static const char *const words[] = { "None",  "True", "False",	  "null", "true",
					     "false", "NaN",  "Infinity", "...",  "set()" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(p->end - p->at) < n || memcmp(p->at, words[i], n) != 0)
			continue;
		p->at += n;
		return !is_name_letter(peek(p, 0)) && !is_digit(peek(p, 0));
	}
	return false;
}

/* The value after "key:"; decoded if it is the wanted one. */
static bool parse_member(struct parser *p, const struct buf *key, struct pick *pick)
{
	bool wanted = pick && key->len == strlen(pick->key) &&
		      memcmp(key->data, pick->key, key->len) == 0;
	enum literal_kind kind = KIND_OTHER;

	skip_space(p);
	if (!wanted)
		return parse_value(p, NULL, &kind);
	buf_done(pick->ret);
	if (!parse_value(p, pick->ret, &kind))
		return false;
	pick->found = kind == KIND_TEXT;
	return true;
}

/* The items up to and with the closing bracket. Only braces hold pairs. */
static bool parse_items(struct parser *p, char closing, struct pick *pick)
{
	_cleanup_buf_ struct buf key = { 0 };
	int pairs = -1; /* not known yet */

	buf_init(&key, (size_t)(p->end - p->at) * 2 + 4);
	for (skip_space(p); !take_char(p, closing); skip_space(p)) {
		enum literal_kind kind = KIND_OTHER;
		bool pair;

		buf_done(&key);
		if (!parse_value(p, pick ? &key : NULL, &kind))
			return false;
		skip_space(p);
		pair = closing == '}' && take_char(p, ':');
		if (pairs >= 0 && pairs != (int)pair)
			return false;
		pairs = (int)pair;
		if (pair && !parse_member(p, &key, kind == KIND_TEXT ? pick : NULL))
			return false;
		skip_space(p);
		if (!take_char(p, ',') && peek(p, 0) != closing)
			return false;
	}
	return true;
}

/* Parentheses around one value are that value; with a comma they are a tuple. */
static bool parse_parentheses(struct parser *p, struct buf *out, enum literal_kind *kind)
{
	skip_space(p);
	if (take_char(p, ')'))
		return true;
	if (!parse_value(p, out, kind))
		return false;
	skip_space(p);
	if (take_char(p, ')'))
		return true;
	*kind = KIND_OTHER;
	return take_char(p, ',') && parse_items(p, ')', NULL);
}

static bool parse_brackets(struct parser *p, struct buf *out, enum literal_kind *kind)
{
	char opening = *p->at++;
	bool r;

	if (++p->depth > LITERAL_DEPTH_MAX)
		return false;
	if (opening == '(')
		r = parse_parentheses(p, out, kind);
	else
		r = parse_items(p, opening == '[' ? ']' : '}', NULL);
	p->depth--;
	return r;
}

static bool parse_value(struct parser *p, struct buf *out, enum literal_kind *kind)
{
	char c = peek(p, 0);
	struct quotes q;

	*kind = KIND_OTHER;
	if (c == '(' || c == '[' || c == '{')
		return parse_brackets(p, out, kind);
	if (prefix_of(p, &q) >= 0)
		return parse_text(p, out, kind);
	if (is_digit(c) || c == '-' || c == '+' || (c == '.' && is_digit(peek(p, 1))))
		return parse_numbers(p);
	return parse_word(p);
}

int literal_pick(struct span text, const char *key, struct buf *ret)
{
	struct parser p = { .at = text.data, .end = text.data + text.len };
	struct pick pick = { .key = key, .ret = ret };
	bool whole;

	skip_space(&p);
	if (!take_char(&p, '{'))
		return 0;
	p.depth = 1;
	whole = parse_items(&p, '}', &pick);
	skip_space(&p);
	if (p.no_memory)
		return -ENOMEM;
	return whole && p.at == p.end && pick.found;
}
