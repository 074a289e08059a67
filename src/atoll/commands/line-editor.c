/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See line-editor.h. Written by hand: this program is linked statically, and a line editor with what people use of readline is smaller
 * than the three libraries that libedit would bring along.
 *
 * The cursor is placed by writing the text before it once more, so only the terminal has to know how wide characters are. When memory is out,
 * a key has no effect.
 */
#include "atoll/commands/line-editor.h"

#include "base/macro.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { TAB = 4, SCREEN_MAX = 1 << 20 };

void line_editor_init(struct line_editor *e, size_t line_max)
{
	*e = (struct line_editor){ 0 };
	buf_init(&e->text, line_max);
	buf_init(&e->draft, line_max);
	buf_init(&e->screen, SCREEN_MAX);
}

void line_editor_done(struct line_editor *e)
{
	for (size_t i = 0; i < e->n_history; i++)
		free(e->history[i]);
	buf_done(&e->text);
	buf_done(&e->draft);
	buf_done(&e->screen);
}

/* --- characters of UTF-8 --- */

static bool utf8_continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t line_after(const struct line_editor *e, size_t at)
{
	if (at < e->text.len)
		at++;
	while (at < e->text.len && utf8_continues(e->text.data[at]))
		at++;
	return at;
}

static size_t line_before(const struct line_editor *e, size_t at)
{
	if (at > 0)
		at--;
	while (at > 0 && utf8_continues(e->text.data[at]))
		at--;
	return at;
}

/* At most: nearly all characters from U+3000 on are two columns wide. */
static size_t line_width(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += utf8_continues(text[i]) ? 0 : (unsigned char)text[i] >= 0xe3 ? 2 : 1;
	return n;
}

/* --- the screen --- */

static void line_show(struct line_editor *e, const char *text, size_t len)
{
	(void)!buf_append(&e->screen, text, len);
}

static void line_show_text(struct line_editor *e, const char *text)
{
	line_show(e, text, strlen(text));
}

/* How many columns the line may take; the last column stays free, because a terminal would go to the next row. */
static size_t line_room(const struct line_editor *e)
{
	size_t taken = line_width(e->prompt, strlen(e->prompt)) + 1;

	return e->columns > taken + TAB ? e->columns - taken : TAB;
}

static void line_draw(struct line_editor *e)
{
	size_t first = 0, last;

	assert(e->cursor <= e->text.len && e->at <= e->n_history);
	while (first < e->cursor &&
	       line_width(e->text.data + first, e->cursor - first) > line_room(e))
		first = line_after(e, first);
	last = e->cursor;
	while (last < e->text.len &&
	       line_width(e->text.data + first, line_after(e, last) - first) <= line_room(e))
		last = line_after(e, last);
	line_show_text(e, "\r");
	line_show_text(e, e->prompt);
	if (last > first)
		line_show(e, e->text.data + first, last - first);
	line_show_text(e, "\x1b[K");
	if (last == e->cursor)
		return;
	line_show_text(e, "\r");
	line_show_text(e, e->prompt);
	if (e->cursor > first)
		line_show(e, e->text.data + first, e->cursor - first);
}

/* --- changes --- */

static void line_insert(struct line_editor *e, const char *bytes, size_t len)
{
	size_t tail = e->text.len - e->cursor;

	if (buf_append(&e->text, bytes, len) < 0)
		return;
	memmove(e->text.data + e->cursor + len, e->text.data + e->cursor, tail);
	memcpy(e->text.data + e->cursor, bytes, len);
	e->cursor += len;
	if (tail == 0 && line_width(e->text.data, e->text.len) <= line_room(e))
		line_show(e, bytes, len);
	else
		line_draw(e);
}

static bool is_word(const struct line_editor *e, size_t at)
{
	unsigned char c = (unsigned char)e->text.data[at];

	return isalnum(c) || c == '_' || c >= 0x80;
}

/* Where the cursor would go. */
enum motion { LINE_BEGIN, LINE_END, LEFT, RIGHT, WORD_LEFT, WORD_RIGHT };

static size_t motion_end(const struct line_editor *e, enum motion motion)
{
	size_t at = e->cursor;

	switch (motion) {
	case LINE_BEGIN:
		return 0;
	case LINE_END:
		return e->text.len;
	case LEFT:
		return line_before(e, at);
	case RIGHT:
		return line_after(e, at);
	case WORD_LEFT:
		while (at > 0 && !is_word(e, at - 1))
			at--;
		while (at > 0 && is_word(e, at - 1))
			at--;
		return at;
	case WORD_RIGHT:
		while (at < e->text.len && !is_word(e, at))
			at++;
		while (at < e->text.len && is_word(e, at))
			at++;
	}
	return at;
}

static void line_go(struct line_editor *e, enum motion motion)
{
	e->cursor = motion_end(e, motion);
	line_draw(e);
}

/* Removes what is between the cursor and there. */
static void line_cut(struct line_editor *e, enum motion motion)
{
	size_t to = motion_end(e, motion), from = MIN(e->cursor, to);

	to = MAX(e->cursor, to);
	if (from == to)
		return;
	memmove(e->text.data + from, e->text.data + to, e->text.len - to);
	e->text.len -= to - from;
	e->cursor = from;
	line_draw(e);
}

/* Shows the next entry of the history, if there is one; the new line is kept when it is left. */
static void show_entry(struct line_editor *e, bool newer)
{
	const struct buf *draft = &e->draft;
	size_t at = newer ? e->at + 1 : e->at - 1;

	if (newer ? e->at == e->n_history : e->at == 0)
		return;
	if (e->at == e->n_history) {
		e->draft.len = 0;
		if (e->text.len > 0 && buf_append(&e->draft, e->text.data, e->text.len) < 0)
			return;
	}
	e->text.len = 0;
	if (at < e->n_history)
		(void)!buf_puts(&e->text, e->history[at]);
	else if (draft->len > 0)
		(void)!buf_append(&e->text, draft->data, draft->len);
	e->at = at;
	line_go(e, LINE_END);
}

/* --- keys --- */

static void clear_screen(struct line_editor *e)
{
	line_show_text(e, "\x1b[H\x1b[2J");
	line_draw(e);
}

/* A step to the next column that begins an indentation. */
static void indent(struct line_editor *e)
{
	line_insert(e, "    ", TAB - line_width(e->text.data, e->cursor) % TAB);
}

static void show_older(struct line_editor *e)
{
	show_entry(e, false);
}

static void show_newer(struct line_editor *e)
{
	show_entry(e, true);
}

/* A key acts, or else moves the cursor, or cuts. */
static const struct key {
	const char *bytes;
	void (*act)(struct line_editor *e);
	enum motion motion;
	bool cuts;
} keys[] = {
	{ "\x01", NULL, LINE_BEGIN, false },
	{ "\x02", NULL, LEFT, false },
	{ "\x04", NULL, RIGHT, true },
	{ "\x05", NULL, LINE_END, false },
	{ "\x06", NULL, RIGHT, false },
	{ "\x08", NULL, LEFT, true },
	{ .bytes = "\t", .act = indent },
	{ "\x0b", NULL, LINE_END, true },
	{ .bytes = "\x0c", .act = clear_screen },
	{ .bytes = "\x0e", .act = show_newer },
	{ .bytes = "\x10", .act = show_older },
	{ "\x15", NULL, LINE_BEGIN, true },
	{ "\x17", NULL, WORD_LEFT, true },
	{ "\x7f", NULL, LEFT, true },
	{ .bytes = "\033[A", .act = show_older },
	{ .bytes = "\033[B", .act = show_newer },
	{ "\033[C", NULL, RIGHT, false },
	{ "\033[D", NULL, LEFT, false },
	{ "\033[H", NULL, LINE_BEGIN, false },
	{ "\033[F", NULL, LINE_END, false },
	{ .bytes = "\033OA", .act = show_older },
	{ .bytes = "\033OB", .act = show_newer },
	{ "\033OC", NULL, RIGHT, false },
	{ "\033OD", NULL, LEFT, false },
	{ "\033OH", NULL, LINE_BEGIN, false },
	{ "\033OF", NULL, LINE_END, false },
	{ "\033[1~", NULL, LINE_BEGIN, false },
	{ "\033[3~", NULL, RIGHT, true },
	{ "\033[4~", NULL, LINE_END, false },
	{ "\033[1;5C", NULL, WORD_RIGHT, false },
	{ "\033[1;5D", NULL, WORD_LEFT, false },
	{ "\033b", NULL, WORD_LEFT, false },
	{ "\033f", NULL, WORD_RIGHT, false },
};

/* Whether more bytes belong to the key: of a character, of a key in the table, or of another control sequence. */
static bool is_begun(const struct line_editor *e)
{
	unsigned char lead = (unsigned char)e->key[0], last = (unsigned char)e->key[e->key_len - 1];

	if (e->key_len == LINE_KEY_MAX)
		return false;
	if (lead >= 0xc0)
		return e->key_len < (lead >= 0xf0 ? 4U : lead >= 0xe0 ? 3U : 2U);
	if (lead != 0x1b)
		return false;
	if (e->key_len == 1 || (e->key_len == 2 && (last == '[' || last == 'O')))
		return true;
	return e->key[1] == '[' && last < 0x40;
}

static void line_press(struct line_editor *e)
{
	unsigned char lead = (unsigned char)e->key[0];

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct key *key = &keys[i];

		if (strlen(key->bytes) != e->key_len || memcmp(key->bytes, e->key, e->key_len) != 0)
			continue;
		if (key->act)
			key->act(e);
		else
			(key->cuts ? line_cut : line_go)(e, key->motion);
		return;
	}
	if (lead >= 0xc0 || (lead >= ' ' && lead < 0x7f))
		line_insert(e, e->key, e->key_len);
}

enum line_event line_editor_feed(struct line_editor *e, char byte)
{
	/* A character that is cut off by another one is dropped. */
	if (e->key_len > 0 && (unsigned char)e->key[0] >= 0xc0 && !utf8_continues(byte))
		e->key_len = 0;
	e->key[e->key_len++] = byte;
	if (is_begun(e))
		return LINE_GOES_ON;
	if (e->key_len == 1 && (byte == '\n' || byte == '\r')) {
		e->key_len = 0;
		line_show_text(e, "\n");
		return LINE_ENTERED;
	}
	if (e->key_len == 1 && byte == '\x04' && e->text.len == 0) {
		e->key_len = 0;
		return LINE_ENDED;
	}
	line_press(e);
	e->key_len = 0;
	return LINE_GOES_ON;
}

void line_editor_begin(struct line_editor *e, const char *prompt, size_t columns)
{
	strncpy(e->prompt, prompt, sizeof(e->prompt) - 1);
	e->columns = columns;
	e->text.len = e->cursor = e->key_len = 0;
	e->at = e->n_history;
	line_show_text(e, e->prompt);
}

void line_editor_remember(struct line_editor *e)
{
	const char *newest = e->n_history > 0 ? e->history[e->n_history - 1] : "";
	char *line;
	bool blank = true;

	for (size_t i = 0; i < e->text.len; i++)
		blank = blank && isspace((unsigned char)e->text.data[i]);
	if (blank ||
	    (strlen(newest) == e->text.len && memcmp(newest, e->text.data, e->text.len) == 0))
		return;
	line = strndup(e->text.data, e->text.len);
	if (!line)
		return;
	if (e->n_history == LINE_HISTORY_MAX) {
		free(e->history[0]);
		memmove(e->history, e->history + 1, (LINE_HISTORY_MAX - 1) * sizeof(*e->history));
		e->n_history--;
	}
	e->history[e->n_history++] = line;
}
