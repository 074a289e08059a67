/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See match-text.h. Matching tries the shortest piece for each hole and backtracks if the rest does not match.
 * A budget of steps per line keeps hostile text from costing more than linear time: a line that exceeds it does
 * not match.
 */
#include "run/analyse/match-text.h"

#include <ctype.h>
#include <string.h>

enum { STEPS_MAX = 20000 };

struct matcher {
	struct span text;
	struct slots *slots;
	int steps;
};

static bool match_from(struct matcher *m, const char *pattern, size_t at);

/* One row a kind of hole: the slot of its piece, the bytes it accepts, its minimum length. */
static bool takes_any(unsigned char c)
{
	return c != '\0';
}

static bool takes_path(unsigned char c)
{
	return c > ' ' && c != '"' && c != '\'' && c != '`';
}

static bool takes_digit(unsigned char c)
{
	return isdigit(c);
}

static bool takes_type(unsigned char c)
{
	return isalnum(c) || (c && strchr("_.$\\:", c)) || c >= 0x80;
}

static bool takes_blank(unsigned char c)
{
	return c == ' ' || c == '\t';
}

static const struct hole {
	char letter;
	char slot; /* 0: not kept */
	bool (*takes)(unsigned char c);
	size_t least;
} holes[] = {
	{ 'f', 'f', takes_path, 1 },  { 'p', 'f', takes_any, 1 },  { 'l', 'l', takes_digit, 1 },
	{ 'c', 'c', takes_digit, 1 }, { 'e', 'e', takes_type, 1 }, { 'm', 'm', takes_any, 0 },
	{ 'n', 'n', takes_any, 1 },   { '1', '1', takes_any, 1 },  { '2', '2', takes_any, 1 },
	{ '3', '3', takes_any, 1 },   { 's', 0, takes_any, 0 },	   { '_', 0, takes_blank, 0 },
};

static const char slot_letters[TEXT_SLOTS + 1] = "flcemn123";

static size_t slot_index(char letter)
{
	return (size_t)(strchr(slot_letters, letter) - slot_letters);
}

/* A type does not begin like a number nor end like a path or a label. */
static bool is_type(struct span s)
{
	unsigned char first = (unsigned char)s.data[0], last = (unsigned char)s.data[s.len - 1];

	return (isalpha(first) || first == '_' || first == '\\' || first >= 0x80) && last != ':' &&
	       last != '.';
}

static bool match_hole(struct matcher *m, const struct hole *hole, const char *rest, size_t at)
{
	if (hole->letter == '_') {
		while (at < m->text.len && hole->takes((unsigned char)m->text.data[at]))
			at++;
		return match_from(m, rest, at);
	}
	for (size_t n = 0; at + n <= m->text.len; n++) {
		struct span piece = { m->text.data + at, n };

		if (n > 0 && !hole->takes((unsigned char)m->text.data[at + n - 1]))
			return false;
		if (n < hole->least)
			continue;
		/* Nothing follows the hole: it takes all the rest. */
		if (!*rest && at + n < m->text.len)
			continue;
		if (--m->steps < 0)
			return false;
		if (*rest && *rest != '%' &&
		    (at + n >= m->text.len || m->text.data[at + n] != *rest))
			continue;
		if (hole->letter == 'e' && !is_type(piece))
			continue;
		if (!match_from(m, rest, at + n))
			continue;
		if (hole->slot)
			m->slots->at[slot_index(hole->slot)] = piece;
		return true;
	}
	return false;
}

static bool match_from(struct matcher *m, const char *pattern, size_t at)
{
	for (; *pattern; pattern++, at++) {
		if (--m->steps < 0)
			return false;
		if (*pattern == '%') {
			for (size_t i = 0; i < ARRAY_SIZE(holes); i++)
				if (holes[i].letter == pattern[1])
					return match_hole(m, &holes[i], pattern + 2, at);
			return false;
		}
		if (at >= m->text.len || m->text.data[at] != *pattern)
			return false;
	}
	return at == m->text.len;
}

bool text_match(const char *pattern, struct span line, struct slots *ret)
{
	struct slots slots = { 0 };
	struct matcher m = {
		.text = { line.data ? line.data : "", MIN(line.len, (size_t)TEXT_LINE_MAX) },
		.slots = &slots,
		.steps = STEPS_MAX,
	};

	if (!match_from(&m, pattern, 0))
		return false;
	*ret = slots;
	return true;
}

struct span slot(const struct slots *s, char letter)
{
	return s->at[slot_index(letter)];
}

int64_t slot_number(const struct slots *s, char letter)
{
	struct span digits = slot(s, letter);
	int64_t n = 0;

	if (digits.len > 9)
		return 0;
	for (size_t i = 0; i < digits.len; i++)
		n = n * 10 + (digits.data[i] - '0');
	return n;
}

struct span text_line(struct span *rest)
{
	const char *end = rest->len > 0 ? memchr(rest->data, '\n', rest->len) : NULL;
	struct span line = { rest->data, end ? (size_t)(end - rest->data) : rest->len };

	if (rest->len == 0)
		return line;
	rest->data += line.len + (end != NULL);
	rest->len -= line.len + (end != NULL);
	return line;
}

/* How many bytes of an escape sequence stand at the beginning: CSI … letter, OSC … BEL, ESC and one more. */
static size_t escape_len(const char *s, size_t len)
{
	size_t n = 2;

	if (len < 2)
		return len;
	if (s[1] == '[')
		while (n < len && !(s[n] >= '@' && s[n] <= '~'))
			n++;
	else if (s[1] == ']')
		while (n < len && s[n] != '\a' && s[n] != '\n')
			n++;
	else
		return 2;
	return MIN(n + 1, len);
}

static int clean_part(struct span text, struct buf *ret)
{
	for (size_t i = 0; i < text.len;) {
		const char *s = text.data + i;
		size_t left = text.len - i, n = 0;
		int r;

		if (*s == '\033') {
			i += escape_len(s, left);
			continue;
		}
		if (*s == '\r' && (left == 1 || s[1] == '\n')) {
			i++;
			continue;
		}
		while (n < left && s[n] != '\033' && !(s[n] == '\r' && (n > 0 || left == 1)))
			n++;
		n = MAX(n, (size_t)1); /* a lone CR stays */
		r = buf_append(ret, s, n);
		if (r < 0)
			return r;
		i += n;
	}
	return 0;
}

int text_clean(struct span text, struct buf *ret)
{
	size_t half = TEXT_BYTES_MAX / 2;
	int r;

	if (text.len <= TEXT_BYTES_MAX)
		return clean_part(text, ret);
	r = clean_part((struct span){ text.data, half }, ret);
	if (r >= 0)
		r = buf_puts(ret, "\n");
	if (r >= 0)
		r = clean_part((struct span){ text.data + text.len - half, half }, ret);
	return r;
}

int64_t text_caret(struct span line)
{
	int64_t found = -1;

	for (size_t i = 0; i < line.len; i++) {
		if (line.data[i] == '^' && found < 0)
			found = (int64_t)i;
		else if (!strchr(" \t~^", line.data[i]) || line.data[i] == '\0')
			return -1;
	}
	return found;
}

bool span_starts(struct span s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.len >= n && memcmp(s.data, prefix, n) == 0;
}

bool span_has(struct span s, const char *part)
{
	return s.len > 0 && memmem(s.data, s.len, part, strlen(part)) != NULL;
}

struct span text_trim(struct span s)
{
	while (s.len > 0 && isspace((unsigned char)s.data[0])) {
		s.data++;
		s.len--;
	}
	while (s.len > 0 && isspace((unsigned char)s.data[s.len - 1]))
		s.len--;
	return s;
}
