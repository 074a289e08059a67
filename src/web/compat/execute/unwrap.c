/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See unwrap.h. Each kind of wrapping is a step that removes it or leaves the text alone. The steps are tried
 * until none applies. Every step makes the text shorter, and the number of steps is bounded.
 */
#include "web/compat/execute/unwrap.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/parse.h"

enum { LAYERS_MAX = 8, LITERAL_DEPTH_MAX = 64, TICKS_MIN = 3 };

static const char KEY[] = "generated_code";

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct span unwrap_trim(struct span text)
{
	while (text.len > 0 && is_space(text.data[0])) {
		text.data++;
		text.len--;
	}
	while (text.len > 0 && is_space(text.data[text.len - 1]))
		text.len--;
	return text;
}

bool unwrap_names_python(struct span word)
{
	static const char *const names[] = { "python", "python3", "py" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (word.len == strlen(names[i]) && strncasecmp(word.data, names[i], word.len) == 0)
			return true;
	return false;
}

static struct span span_between(const char *start, const char *end)
{
	return (struct span){ start, (size_t)(end - start) };
}

/* Moves *rest behind its first line, which is returned without its end; false: no line is left. */
static bool next_line(struct span *rest, struct span *ret)
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

/*
 * --- Python literals ---
 *
 * A literal, as ast.literal_eval() takes it, becomes JSON, which jansson then reads: texts with every prefix, escape and kind of quotes,
 * and implicit concatenation; lists, tuples and sets as lists; a dictionary as a list of pairs; all else as 0, because only texts are
 * wanted. JSON's words are taken, too. Nothing is evaluated. Two differences: a line may end inside single quotes (a client unescaped
 * once too often), and characters that UTF-8 cannot hold (a lone surrogate) or that need the table of character names (\N{...}) stay as
 * written.
 */

struct literal_bracket {
	char open;
	bool begun;	/* the item that follows the last comma */
	bool is_pair;	/* that item has a colon */
	bool has_comma; /* parentheses with one are a tuple */
	int pairs;	/* of braces: whether the items have colons; -1: not known yet */
	size_t at;	/* of its bracket in the JSON */
};

struct literal {
	const char *at, *end;
	struct buf *out;
	struct literal_bracket brackets[LITERAL_DEPTH_MAX];
	size_t depth;
	enum { AFTER_OTHER, AFTER_TEXT, AFTER_BYTES } after; /* the last token */
	bool mute; /* inside of bytes, which are read and not written */
	bool no_memory;
};

struct literal_quotes {
	char mark;
	bool triple, raw, bytes;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char literal_peek(const struct literal *p, size_t n)
{
	return (size_t)(p->end - p->at) > n ? p->at[n] : '\0';
}

static bool literal_take(struct literal *p, char c)
{
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

static void literal_skip_space(struct literal *p)
{
	while (p->at < p->end) {
		if (*p->at == '#')
			while (p->at < p->end && *p->at != '\n')
				p->at++;
		else if (memchr(" \t\n\r\f", *p->at, 5) ||
			 (*p->at == '\\' &&
			  (literal_peek(p, 1) == '\n' || literal_peek(p, 1) == '\r')))
			p->at++;
		else
			return;
	}
}

static void literal_put(struct literal *p, const char *data, size_t n)
{
	if (!p->mute && buf_append(p->out, data, n) < 0)
		p->no_memory = true;
}

/* One character of a text, as JSON's escape. */
static void literal_put_escaped(struct literal *p, uint32_t c)
{
	char text[16];

	if (c >= 0x10000)
		(void)snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
			       0xdc00 + (c & 0x3ff));
	else
		(void)snprintf(text, sizeof(text), "\\u%04x", c);
	literal_put(p, text, strlen(text));
}

static void literal_put_text(struct literal *p, const char *start, const char *end)
{
	for (const char *at = start; at <= end; at++) {
		if (at < end && (unsigned char)*at >= ' ' && *at != '"' && *at != '\\')
			continue;
		literal_put(p, start, (size_t)(at - start));
		if (at < end)
			literal_put_escaped(p, (unsigned char)*at);
		start = at + 1;
	}
}

/* Exactly n hexadecimal digits, n at most 8. */
static bool literal_hex(struct literal *p, unsigned n, uint32_t *ret)
{
	*ret = 0;
	for (unsigned i = 0; i < n; i++) {
		int digit = p->at < p->end ? parse_hex_digit(*p->at) : -1;

		if (digit < 0)
			return false;
		*ret = *ret << 4 | (uint32_t)digit;
		p->at++;
	}
	return true;
}

/* After the letter of \xhh, \uhhhh or \Uhhhhhhhh; JSON writes one character as two surrogates. */
static bool literal_hex_escape(struct literal *p)
{
	const char *start = p->at - 2, *behind;
	uint32_t c, low;

	if (!literal_hex(p, start[1] == 'x' ? 2 : start[1] == 'u' ? 4 : 8, &c) || c > 0x10ffff)
		return false;
	if (c < 0xd800 || c > 0xdfff) {
		literal_put_escaped(p, c);
		return true;
	}
	behind = p->at;
	if (c < 0xdc00 && literal_take(p, '\\') && literal_take(p, 'u') &&
	    literal_hex(p, 4, &low) && low >= 0xdc00 && low <= 0xdfff) {
		literal_put_escaped(p, c);
		literal_put_escaped(p, low);
		return true;
	}
	p->at = behind;
	literal_put_text(p, start, behind);
	return true;
}

/* After the `N` of a named character: kept as written, which means the same in a program's text. */
static bool literal_named(struct literal *p)
{
	const char *start = p->at - 2;

	if (!literal_take(p, '{'))
		return false;
	while (p->at < p->end &&
	       (is_name_letter(*p->at) || is_digit(*p->at) || *p->at == ' ' || *p->at == '-'))
		p->at++;
	if (p->at[-1] == '{' || !literal_take(p, '}'))
		return false;
	literal_put_text(p, start, p->at);
	return true;
}

/* `at` is on the character after the backslash. */
static bool literal_escape(struct literal *p)
{
	static const char letters[] = "\\'\"abfnrtv", meanings[] = "\\'\"\a\b\f\n\r\t\v";
	const char *known = literal_peek(p, 0) ? strchr(letters, *p->at) : NULL;
	uint32_t c = 0;

	if (p->at == p->end)
		return false;
	if (*p->at >= '0' && *p->at <= '7') {
		for (int i = 0; i < 3 && literal_peek(p, 0) >= '0' && literal_peek(p, 0) <= '7';
		     i++)
			c = c << 3 | (uint32_t)(*p->at++ - '0');
		literal_put_escaped(p, c);
		return true;
	}
	p->at++;
	if (known) {
		literal_put_escaped(p, (unsigned char)meanings[known - letters]);
		return true;
	}
	switch (p->at[-1]) {
	case '\r':
		(void)literal_take(p, '\n');
		return true;
	case '\n':
		return true;
	case 'x':
		return literal_hex_escape(p);
	case 'u':
	case 'U':
		if (!p->mute)
			return literal_hex_escape(p);
		break;
	case 'N':
		if (!p->mute)
			return literal_named(p);
		break;
	default:
		break;
	}
	/* No escape: the backslash and the next character stay. */
	p->at--;
	literal_put_escaped(p, '\\');
	return true;
}

/* The length of the string prefix here: 0 to 2; -1: no string begins here. */
static int literal_prefix(const struct literal *p, struct literal_quotes *q)
{
	bool unicode = false;

	*q = (struct literal_quotes){ 0 };
	for (int n = 0; n < 3; n++) {
		char c = literal_peek(p, (size_t)n);

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

/* The content, up to and with the closing quotes. */
static bool literal_body(struct literal *p, const struct literal_quotes *q)
{
	const char *start;

	while (p->at < p->end) {
		if (*p->at == q->mark && (!q->triple || (literal_peek(p, 1) == q->mark &&
							 literal_peek(p, 2) == q->mark))) {
			p->at += q->triple ? 3 : 1;
			return true;
		}
		start = p->at;
		if (*p->at == '\\' && !q->raw) {
			p->at++;
			if (!literal_escape(p))
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
		literal_put_text(p, start, p->at);
	}
	return false;
}

static size_t literal_digits(struct literal *p, bool hex)
{
	size_t n = 0;

	while (p->at < p->end && (is_digit(*p->at) || (*p->at == '_' && n > 0) ||
				  (hex && parse_hex_digit(*p->at) >= 0))) {
		p->at++;
		n++;
	}
	return n;
}

static bool literal_number(struct literal *p)
{
	size_t digits;

	while (literal_take(p, '-') || literal_take(p, '+'))
		literal_skip_space(p);
	if (literal_peek(p, 0) == '0' && literal_peek(p, 1) &&
	    strchr("xXoObB", literal_peek(p, 1))) {
		p->at += 2;
		return literal_digits(p, true) > 0 && !is_name_letter(literal_peek(p, 0));
	}
	digits = literal_digits(p, false);
	if (literal_take(p, '.'))
		digits += literal_digits(p, false);
	if (digits == 0)
		return false;
	if (literal_take(p, 'e') || literal_take(p, 'E')) {
		(void)(literal_take(p, '-') || literal_take(p, '+'));
		if (literal_digits(p, false) == 0)
			return false;
	}
	(void)(literal_take(p, 'j') || literal_take(p, 'J'));
	return !is_name_letter(literal_peek(p, 0)) && !is_digit(literal_peek(p, 0));
}

static bool literal_word(struct literal *p)
{
	static const char *const words[] = { "None",  "True", "False",	  "null", "true",
					     "false", "NaN",  "Infinity", "...",  "set()" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(p->end - p->at) < n || memcmp(p->at, words[i], n) != 0)
			continue;
		p->at += n;
		return !is_name_letter(literal_peek(p, 0)) && !is_digit(literal_peek(p, 0));
	}
	return false;
}

/* A value comes: with it, perhaps, an item of the innermost bracket. */
static void literal_begin(struct literal *p)
{
	struct literal_bracket *b = p->depth > 0 ? &p->brackets[p->depth - 1] : NULL;

	if (!b || b->begun)
		return;
	b->begun = true;
	b->is_pair = false;
	if (b->open == '{')
		literal_put(p, "[", 1);
}

static bool literal_scalar(struct literal *p)
{
	struct literal_quotes q;
	int prefix = literal_prefix(p, &q);
	char c = literal_peek(p, 0);

	if (prefix >= 0) {
		/* Strings side by side are one; all of them text, or all of them bytes. */
		if (p->after != AFTER_OTHER && (p->after == AFTER_BYTES) != q.bytes)
			return false;
		if (p->after == AFTER_TEXT) {
			p->out->len--;
		} else if (p->after == AFTER_OTHER) {
			literal_begin(p);
			literal_put(p, q.bytes ? "0" : "\"", 1);
		}
		p->at += prefix + 1;
		q.triple = literal_peek(p, 0) == q.mark && literal_peek(p, 1) == q.mark;
		p->at += q.triple ? 2 : 0;
		p->mute = q.bytes;
		if (!literal_body(p, &q))
			return false;
		literal_put(p, "\"", 1);
		p->mute = false;
		p->after = q.bytes ? AFTER_BYTES : AFTER_TEXT;
		return true;
	}
	p->after = AFTER_OTHER;
	literal_begin(p);
	literal_put(p, "0", 1);
	if (!is_digit(c) && c != '-' && c != '+' && (c != '.' || !is_digit(literal_peek(p, 1))))
		return literal_word(p);
	if (!literal_number(p))
		return false;
	/* The sum that writes a complex number: -1+2j. */
	literal_skip_space(p);
	c = literal_peek(p, 0);
	return (c != '+' && c != '-') || literal_number(p);
}

/* Only braces hold pairs: all of their items are some, or none is. */
static bool literal_end_item(struct literal *p, struct literal_bracket *b)
{
	b->begun = false;
	if (b->open != '{')
		return true;
	if (b->pairs >= 0 && b->pairs != (int)b->is_pair)
		return false;
	b->pairs = (int)b->is_pair;
	literal_put(p, "]", 1);
	return true;
}

static bool literal_punctuation(struct literal *p, char c)
{
	struct literal_bracket *b = p->depth > 0 ? &p->brackets[p->depth - 1] : NULL;
	bool alone;

	p->after = AFTER_OTHER;
	p->at++;
	if (strchr("([{", c)) {
		if (p->depth == LITERAL_DEPTH_MAX)
			return false;
		literal_begin(p);
		p->brackets[p->depth++] =
			(struct literal_bracket){ .open = c, .pairs = -1, .at = p->out->len };
		literal_put(p, "[", 1);
		return true;
	}
	if (!b)
		return false;
	if (c == ',') {
		if (!b->begun || !literal_end_item(p, b))
			return false;
		b->has_comma = true;
		literal_put(p, ",", 1);
		return true;
	}
	if (c == ':') {
		if (b->open != '{' || !b->begun || b->is_pair)
			return false;
		b->is_pair = true;
		literal_put(p, ",", 1);
		return true;
	}
	if (c != (b->open == '(' ? ')' : b->open == '[' ? ']' : '}'))
		return false;
	/* Parentheses around one value are that value. */
	alone = b->open == '(' && b->begun && !b->has_comma;
	if (!b->begun && b->has_comma)
		p->out->len--;
	else if (b->begun && !literal_end_item(p, b))
		return false;
	if (alone && !p->no_memory)
		p->out->data[b->at] = ' ';
	else
		literal_put(p, "]", 1);
	p->depth--;
	return true;
}

/* 1: the whole text is one dictionary and its value at KEY is a text, which is now in *ret (of equal keys the last counts); else 0. */
static int pick_literal(struct span text, struct buf *ret)
{
	_cleanup_buf_ struct buf json = { 0 };
	struct literal p = { .at = text.data, .end = text.data + text.len, .out = &json };
	json_auto_t *root = NULL;
	const json_t *pair, *found = NULL;
	bool ok = true;
	size_t i;

	/* A byte becomes at most six. */
	buf_init(&json, 6 * text.len + 6);
	for (literal_skip_space(&p); ok && p.at < p.end; literal_skip_space(&p))
		ok = *p.at && strchr("([{}]),:", *p.at) ? literal_punctuation(&p, *p.at)
							: literal_scalar(&p);
	if (p.no_memory)
		return -ENOMEM;
	if (!ok || p.depth > 0 || !json.data)
		return 0;
	root = json_loadb(json.data, json.len, JSON_ALLOW_NUL, NULL);
	json_array_foreach(root, i, pair)
	{
		const json_t *key = json_array_get(pair, 0);

		if (json_array_size(pair) == 2 &&
		    span_is((struct span){ json_string_value(key), json_string_length(key) }, KEY))
			found = json_array_get(pair, 1);
	}
	if (!json_is_string(found))
		return 0;
	return buf_append(ret, json_string_value(found), json_string_length(found)) < 0 ? -ENOMEM
											: 1;
}

/*
 * --- Markdown ---
 *
 * The text is read line by line, once. A small reader of Python's quotes runs beside it and knows
 * for each line whether the line begins inside a string: there no fence opens or closes. An apostrophe in prose
 * confuses the reader only to the end of its line, because only tripled quotes, or a backslash at the end,
 * carry a string into the next line.
 */

struct fence {
	struct span code;   /* the lines between the fences, with their indentation */
	size_t indent;	    /* of the opening line: each line of code may lose as much */
	struct span before; /* the text above the opening line */
	bool closed;
	bool named; /* the opening line names Python */
};

struct quoting {   /* the state of Python's quotes at the start of a line */
	char mark; /* 0: outside of strings */
	bool triple;
};

struct fence_line {
	size_t indent, ticks;
	struct span info;
};

static void quoting_read(struct quoting *q, struct span line)
{
	size_t i = 0;

	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	while (i < line.len) {
		char c = line.data[i];
		bool tripled = line.len - i >= 3 && line.data[i + 1] == c && line.data[i + 2] == c;

		if (q->mark && c == '\\') {
			i += 2;
		} else if (q->mark) {
			bool ends = c == q->mark && (tripled || !q->triple);

			i += ends && q->triple ? 3 : 1;
			q->mark = ends ? '\0' : q->mark;
		} else if (c == '#') {
			i = line.len;
		} else {
			q->mark = c == '\'' || c == '"' ? c : '\0';
			q->triple = tripled;
			i += q->mark && tripled ? 3 : 1;
		}
	}
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
	return word == info.len || unwrap_names_python((struct span){ info.data, word });
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
	ret->info = unwrap_trim((struct span){ line.data + ticks, line.len - ticks });
	return ret->ticks >= TICKS_MIN && !memchr(ret->info.data, '`', ret->info.len) &&
	       is_info(ret->info);
}

static bool fence_closes(struct span line, size_t ticks)
{
	struct fence_line f;

	return fence_line_read(line, &f) && f.ticks >= ticks && f.info.len == 0;
}

static struct fence fence_open(struct span text, struct span line, const struct fence_line *opening)
{
	struct span info = opening->info;
	size_t start = 0, end;

	while (start < info.len && (info.data[start] == '{' || info.data[start] == '.'))
		start++;
	for (end = start; end < info.len && !is_space(info.data[end]) && info.data[end] != '}';)
		end++;
	return (struct fence){ .indent = opening->indent,
			       .before = span_between(text.data, line.data),
			       .named = unwrap_names_python(
				       (struct span){ info.data + start, end - start }) };
}

/* The code ends before the last closing line, or, if there is none, with the text. */
static void fence_close_last(struct fence *f, struct span body, size_t ticks)
{
	struct span rest = body, line;
	const char *end = body.data + body.len;

	while (next_line(&rest, &line)) {
		if (!fence_closes(line, ticks))
			continue;
		f->closed = true;
		end = line.data;
	}
	f->code = span_between(body.data, end);
}

/* *rest begins after the opening line; it is moved after the closing line. */
static void fence_take(struct span *rest, size_t ticks, struct fence *f)
{
	struct span body = *rest, line;
	struct quoting q = { 0 };

	while (next_line(rest, &line)) {
		if (!q.mark && fence_closes(line, ticks)) {
			f->closed = true;
			f->code = span_between(body.data, line.data);
			return;
		}
		quoting_read(&q, line);
	}
	/* If the program's own quotes are broken, the reader misses the closing line. */
	fence_close_last(f, body, ticks);
}

/*
 * The fenced block of a text that has exactly one. Of several, the one that names Python, if exactly one does.
 * A fence inside a Python string does not count.
 */
static bool fence_find_python(struct span text, struct fence *ret)
{
	struct span rest = text, line;
	struct quoting q = { 0 };
	struct fence first = { 0 }, named = { 0 };
	size_t n = 0, n_named = 0;

	while (next_line(&rest, &line)) {
		struct fence_line opening;
		struct fence f;

		if (q.mark || !fence_line_read(line, &opening)) {
			quoting_read(&q, line);
			continue;
		}
		f = fence_open(text, line, &opening);
		fence_take(&rest, opening.ticks, &f);
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

/* The block that begins in the first line and ends with the last fence. */
static bool fence_find_first(struct span text, struct fence *ret)
{
	struct span rest = text, line;
	struct fence_line opening;

	if (!next_line(&rest, &line) || !fence_line_read(line, &opening))
		return false;
	*ret = fence_open(text, line, &opening);
	fence_close_last(ret, rest, opening.ticks);
	return true;
}

/* --- the steps: 1: unwrapped; 0: there is no such wrapping --- */

static int replace_program(struct unwrapped *u, struct buf *program)
{
	size_t len = program->len;

	free(u->owned);
	u->owned = buf_take(program);
	u->code = (struct span){ u->owned ? u->owned : "", u->owned ? len : 0 };
	return 1;
}

/* JSON first: if a text is both, JSON's escapes (\/, pairs of surrogates) were meant. */
static int unwrap_dictionary(struct unwrapped *u, bool python _unused_)
{
	struct span text = unwrap_trim(u->code);
	_cleanup_buf_ struct buf program = { 0 };
	json_auto_t *root = NULL;
	const json_t *value;
	int r;

	if (text.len < 2 || text.data[0] != '{' || text.data[text.len - 1] != '}')
		return 0;
	buf_init(&program, text.len);
	root = json_loadb(text.data, text.len, JSON_ALLOW_NUL, NULL);
	value = json_object_get(root, KEY);
	r = json_is_string(value)
		    ? buf_append(&program, json_string_value(value), json_string_length(value))
		    : pick_literal(text, &program);
	return r < 0 || (r == 0 && !json_is_string(value)) ? r : replace_program(u, &program);
}

static int unwrap_fence(struct unwrapped *u, bool python)
{
	struct span text = unwrap_trim(u->code), line;
	_cleanup_buf_ struct buf program = { 0 };
	struct fence f;

	/*
	 * The first line keeps its indentation, which the other lines are measured by; the last line keeps its
	 * end.
	 */
	while (text.data > u->code.data && (text.data[-1] == ' ' || text.data[-1] == '\t'))
		text.data--;
	text.len = (size_t)(u->code.data + u->code.len - text.data);
	if (!(python ? fence_find_python(text, &f) : fence_find_first(text, &f)))
		return 0;
	/* Only a closing fence is there if the opening line was part of the prompt. */
	if (!f.closed && unwrap_trim(f.code).len == 0 && unwrap_trim(f.before).len > 0) {
		u->code = f.before;
		return 1;
	}
	if (f.indent == 0 || f.code.len == 0) {
		u->code = f.code;
		return 1;
	}
	/* Each line of an indented block loses the indentation of the opening line. */
	buf_init(&program, f.code.len);
	while (next_line(&f.code, &line)) {
		size_t n = 0;

		while (n < f.indent && n < line.len &&
		       (line.data[n] == ' ' || line.data[n] == '\t'))
			n++;
		if (buf_append(&program, line.data + n, (size_t)(f.code.data - line.data) - n) < 0)
			return -ENOMEM;
	}
	return replace_program(u, &program);
}

/* A first line that only names Python, with a line end after it: a lone word is a program. */
static int unwrap_first_line(struct unwrapped *u, bool python)
{
	struct span rest = unwrap_trim(u->code), line;

	rest.len = (size_t)(u->code.data + u->code.len - rest.data);
	if (!python || !memchr(rest.data, '\n', rest.len) || !next_line(&rest, &line) ||
	    !unwrap_names_python(unwrap_trim(line)))
		return 0;
	u->code = rest;
	return 1;
}

static int unwrap_ticks(struct unwrapped *u, bool python)
{
	struct span text = unwrap_trim(u->code);
	size_t head = 0, tail = 0, word = 0;

	while (head < text.len && text.data[head] == '`')
		head++;
	while (tail < text.len && text.data[text.len - 1 - tail] == '`')
		tail++;
	/* In other languages a program may begin and end with a backtick. */
	if (head == 0 || (!python && (head < TICKS_MIN || tail < TICKS_MIN)))
		return 0;
	if (head == text.len) {
		u->code.len = 0;
		return 1;
	}
	text.data += head;
	text.len -= head + tail;
	/* The language is named in "```python print(1)```". */
	while (word < text.len && text.data[word] != ' ' && text.data[word] != '\t')
		word++;
	if (head >= TICKS_MIN && word < text.len &&
	    unwrap_names_python((struct span){ text.data, word }))
		text = (struct span){ text.data + word, text.len - word };
	u->code = unwrap_trim(text);
	return 1;
}

int unwrap(struct span text, bool python, struct unwrapped *ret)
{
	static int (*const steps[])(struct unwrapped *, bool) = {
		unwrap_dictionary,
		unwrap_fence,
		unwrap_first_line,
		unwrap_ticks,
	};
	struct unwrapped u = { .code = text };

	for (size_t layer = 0, i = 0; layer < LAYERS_MAX && i < ARRAY_SIZE(steps); i++) {
		int r = steps[i](&u, python);

		if (r < 0) {
			unwrapped_done(&u);
			return r;
		}
		if (r > 0) {
			layer++;
			i = (size_t)-1;
		}
	}
	*ret = u;
	return 0;
}
