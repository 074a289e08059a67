/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See match-text.h. A pattern is compiled when a line has its `needs` for the first time, and kept until the process ends: most runs
 * fail in few ways, and none of the patterns costs a start. Threads may compile the same one; the first to be done keeps its own.
 *
 * Output is hostile. PCRE2 gives up on a line that takes more steps than a multiple of its length, or more heap than a small bound,
 * and such a line does not match.
 */
#include "run/analyse/match-text.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <assert.h>
#include <ctype.h>
#include <stdatomic.h>
#include <string.h>

enum {
	STEPS_LEAST = 500,
	STEPS_PER_BYTE = 16,
	STEPS_MAX = 20000,
	HEAP_KIB = 256,
	REGEX_MAX = 4096
};

static const char slot_letters[TEXT_SLOTS + 1] = "flcemn123";

/* A type does not begin like a number nor end like a path or a label. */
static const struct hole {
	char letter;
	char slot; /* 0: not kept */
	const char *takes;
} holes[] = {
	{ 'f', 'f', "[^\\x00-\\x20\"'`]+?" },
	{ 'p', 'f', "[^\\x00]+?" },
	{ 'l', 'l', "[0-9]+?" },
	{ 'c', 'c', "[0-9]+?" },
	{ 'e', 'e', "[A-Za-z_\\\\\\x80-\\xff][\\w.$\\\\:\\x80-\\xff]*?(?<![:.])" },
	{ 'm', 'm', "[^\\x00]*?" },
	{ 'n', 'n', "[^\\x00]+?" },
	{ '1', '1', "[^\\x00]+?" },
	{ '2', '2', "[^\\x00]+?" },
	{ '3', '3', "[^\\x00]+?" },
	{ 's', 0, "[^\\x00]*?" },
	{ '_', 0, "[ \\t]*+" },
};

/* The hole at the front of a pattern's text; NULL: there is none. *ret_len: bytes of that, or of what stands there instead. */
static const struct hole *hole_at(const char *text, size_t *ret_len)
{
	*ret_len = (*text == '%' || *text == '\\') && text[1] ? 2 : 1;
	for (size_t i = 0; *text == '%' && i < ARRAY_SIZE(holes); i++)
		if (holes[i].letter == text[1])
			return &holes[i];
	return NULL;
}

static pcre2_code *pattern_compile(const char *text)
{
	_cleanup_buf_ struct buf regex = { .max = REGEX_MAX };
	pcre2_code *code;
	int r = 0, why;
	PCRE2_SIZE at;

	for (size_t n; r >= 0 && *text; text += n) {
		const struct hole *hole = hole_at(text, &n);

		if (!hole)
			r = buf_append(&regex, text, n);
		else
			r = buf_printf(&regex, hole->slot ? "(%s)" : "%s", hole->takes);
	}
	if (r < 0)
		return NULL;
	code = pcre2_compile((PCRE2_SPTR)(regex.data ? regex.data : ""), regex.len,
			     PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL | PCRE2_NEVER_UTF |
				     PCRE2_NEVER_BACKSLASH_C,
			     &why, &at, NULL);
	assert(code || why == PCRE2_ERROR_HEAP_FAILED); /* the tables are ours, and tested */
	return code;
}

/* NULL: no memory. */
static const pcre2_code *pattern_code(const struct pattern *p)
{
	static pcre2_code *_Atomic kept[PATTERNS_MAX];
	pcre2_code *code = atomic_load(&kept[p->number]), *none = NULL;

	assert(p->number > 0 && p->number < PATTERNS_MAX);
	if (code)
		return code;
	code = pattern_compile(p->text);
	if (code && !atomic_compare_exchange_strong(&kept[p->number], &none, code)) {
		pcre2_code_free(code);
		code = none;
	}
	return code;
}

static bool pattern_run(const pcre2_code *code, const char *text, struct span line,
			struct slots *ret)
{
	size_t steps = STEPS_LEAST + STEPS_PER_BYTE * line.len;
	pcre2_match_data *match = pcre2_match_data_create(TEXT_SLOTS + 1, NULL);
	pcre2_match_context *limits = pcre2_match_context_create(NULL);
	const PCRE2_SIZE *at = NULL;

	if (match && limits) {
		(void)pcre2_set_match_limit(limits, (uint32_t)MIN(steps, (size_t)STEPS_MAX));
		(void)pcre2_set_heap_limit(limits, HEAP_KIB);
		if (pcre2_match(code, (PCRE2_SPTR)line.data, line.len, 0, 0, match, limits) >= 0)
			at = pcre2_get_ovector_pointer(match);
	}
	for (size_t n; at && *text; text += n) {
		const struct hole *hole = hole_at(text, &n);

		if (!hole || !hole->slot)
			continue;
		at += 2;
		if (at[0] != PCRE2_UNSET)
			ret->at[strchr(slot_letters, hole->slot) - slot_letters] =
				(struct span){ line.data + at[0], at[1] - at[0] };
	}
	pcre2_match_context_free(limits);
	pcre2_match_data_free(match);
	return at != NULL;
}

bool text_match(const struct pattern *p, struct span line, struct slots *ret)
{
	struct slots slots = { 0 };
	const pcre2_code *code;

	line = (struct span){ line.data ? line.data : "", MIN(line.len, (size_t)TEXT_LINE_MAX) };
	if (p->text) {
		if (p->needs && !span_has(line, p->needs))
			return false;
		code = pattern_code(p);
		if (!code || !pattern_run(code, p->text, line, &slots))
			return false;
	}
	*ret = slots;
	return true;
}

struct span slot(const struct slots *s, char letter)
{
	return s->at[strchr(slot_letters, letter) - slot_letters];
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
