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

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t after(const struct line_editor *e, size_t at)
{
	if (at < e->text.len)
		at++;
	while (at < e->text.len && continues(e->text.data[at]))
		at++;
	return at;
}

static size_t before(const struct line_editor *e, size_t at)
{
	if (at > 0)
		at--;
	while (at > 0 && continues(e->text.data[at]))
		at--;
	return at;
}

/* At most: nearly all characters from U+3000 on are two columns wide. */
static size_t width(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += continues(text[i]) ? 0 : (unsigned char)text[i] >= 0xe3 ? 2 : 1;
	return n;
}

/* --- the screen --- */

static void show(struct line_editor *e, const char *text, size_t len)
{
	(void)!buf_append(&e->screen, text, len);
}

static void show_text(struct line_editor *e, const char *text)
{
	show(e, text, strlen(text));
}

/* How many columns the line may take; the last column stays free, because a terminal would go to the next row. */
static size_t room(const struct line_editor *e)
{
	size_t taken = width(e->prompt, strlen(e->prompt)) + 1;

	return e->columns > taken + TAB ? e->columns - taken : TAB;
}

static void draw(struct line_editor *e)
{
	size_t first = 0, last;

	while (first < e->cursor && width(e->text.data + first, e->cursor - first) > room(e))
		first = after(e, first);
	last = e->cursor;
	while (last < e->text.len && width(e->text.data + first, after(e, last) - first) <= room(e))
		last = after(e, last);
	show_text(e, "\r");
	show_text(e, e->prompt);
	if (last > first)
		show(e, e->text.data + first, last - first);
	show_text(e, "\x1b[K");
	if (last == e->cursor)
		return;
	show_text(e, "\r");
	show_text(e, e->prompt);
	if (e->cursor > first)
		show(e, e->text.data + first, e->cursor - first);
}

/* --- changes --- */

static void insert(struct line_editor *e, const char *bytes, size_t len)
{
	size_t tail = e->text.len - e->cursor;

	if (buf_append(&e->text, bytes, len) < 0)
		return;
	memmove(e->text.data + e->cursor + len, e->text.data + e->cursor, tail);
	memcpy(e->text.data + e->cursor, bytes, len);
	e->cursor += len;
	if (tail == 0 && width(e->text.data, e->text.len) <= room(e))
		show(e, bytes, len);
	else
		draw(e);
}

static void cut(struct line_editor *e, size_t from, size_t to)
{
	if (from == to)
		return;
	memmove(e->text.data + from, e->text.data + to, e->text.len - to);
	e->text.len -= to - from;
	e->cursor = from;
	draw(e);
}

static void go(struct line_editor *e, size_t to)
{
	e->cursor = to;
	draw(e);
}

static bool is_word(const struct line_editor *e, size_t at)
{
	unsigned char c = (unsigned char)e->text.data[at];

	return isalnum(c) || c == '_' || c >= 0x80;
}

static size_t word_before(const struct line_editor *e)
{
	size_t at = e->cursor;

	while (at > 0 && !is_word(e, at - 1))
		at--;
	while (at > 0 && is_word(e, at - 1))
		at--;
	return at;
}

static size_t word_after(const struct line_editor *e)
{
	size_t at = e->cursor;

	while (at < e->text.len && !is_word(e, at))
		at++;
	while (at < e->text.len && is_word(e, at))
		at++;
	return at;
}

/* Shows an entry of the history; the new line is kept when it is left. */
static void show_entry(struct line_editor *e, size_t at)
{
	const struct buf *draft = &e->draft;

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
	go(e, e->text.len);
}

/* --- keys --- */

static void key_home(struct line_editor *e)
{
	go(e, 0);
}

static void key_end(struct line_editor *e)
{
	go(e, e->text.len);
}

static void key_left(struct line_editor *e)
{
	go(e, before(e, e->cursor));
}

static void key_right(struct line_editor *e)
{
	go(e, after(e, e->cursor));
}

static void key_word_left(struct line_editor *e)
{
	go(e, word_before(e));
}

static void key_word_right(struct line_editor *e)
{
	go(e, word_after(e));
}

static void key_delete(struct line_editor *e)
{
	cut(e, e->cursor, after(e, e->cursor));
}

static void key_rub_out(struct line_editor *e)
{
	cut(e, before(e, e->cursor), e->cursor);
}

static void key_cut_end(struct line_editor *e)
{
	cut(e, e->cursor, e->text.len);
}

static void key_cut_begin(struct line_editor *e)
{
	cut(e, 0, e->cursor);
}

static void key_cut_word(struct line_editor *e)
{
	cut(e, word_before(e), e->cursor);
}

static void key_up(struct line_editor *e)
{
	if (e->at > 0)
		show_entry(e, e->at - 1);
}

static void key_down(struct line_editor *e)
{
	if (e->at < e->n_history)
		show_entry(e, e->at + 1);
}

static void key_clear(struct line_editor *e)
{
	show_text(e, "\x1b[H\x1b[2J");
	draw(e);
}

static void key_indent(struct line_editor *e)
{
	insert(e, "    ", TAB - width(e->text.data, e->cursor) % TAB);
}

static const struct key {
	const char *bytes;
	void (*act)(struct line_editor *e);
} keys[] = {
	{ "\x01", key_home },
	{ "\x02", key_left },
	{ "\x04", key_delete },
	{ "\x05", key_end },
	{ "\x06", key_right },
	{ "\x08", key_rub_out },
	{ "\t", key_indent },
	{ "\x0b", key_cut_end },
	{ "\x0c", key_clear },
	{ "\x0e", key_down },
	{ "\x10", key_up },
	{ "\x15", key_cut_begin },
	{ "\x17", key_cut_word },
	{ "\x7f", key_rub_out },
	{ "\033[A", key_up },
	{ "\033[B", key_down },
	{ "\033[C", key_right },
	{ "\033[D", key_left },
	{ "\033[H", key_home },
	{ "\033[F", key_end },
	{ "\033OA", key_up },
	{ "\033OB", key_down },
	{ "\033OC", key_right },
	{ "\033OD", key_left },
	{ "\033OH", key_home },
	{ "\033OF", key_end },
	{ "\033[1~", key_home },
	{ "\033[3~", key_delete },
	{ "\033[4~", key_end },
	{ "\033[1;5C", key_word_right },
	{ "\033[1;5D", key_word_left },
	{ "\033b", key_word_left },
	{ "\033f", key_word_right },
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

static void press(struct line_editor *e)
{
	unsigned char lead = (unsigned char)e->key[0];

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].bytes) == e->key_len &&
		    memcmp(keys[i].bytes, e->key, e->key_len) == 0) {
			keys[i].act(e);
			return;
		}
	if (lead >= 0xc0 || (lead >= ' ' && lead < 0x7f))
		insert(e, e->key, e->key_len);
}

enum line_event line_editor_feed(struct line_editor *e, char byte)
{
	/* A character that is cut off by another one is dropped. */
	if (e->key_len > 0 && (unsigned char)e->key[0] >= 0xc0 && !continues(byte))
		e->key_len = 0;
	e->key[e->key_len++] = byte;
	if (is_begun(e))
		return LINE_GOES_ON;
	if (e->key_len == 1 && (byte == '\n' || byte == '\r')) {
		e->key_len = 0;
		show_text(e, "\n");
		return LINE_ENTERED;
	}
	if (e->key_len == 1 && byte == '\x04' && e->text.len == 0) {
		e->key_len = 0;
		return LINE_ENDED;
	}
	press(e);
	e->key_len = 0;
	return LINE_GOES_ON;
}

void line_editor_begin(struct line_editor *e, const char *prompt, size_t columns)
{
	strncpy(e->prompt, prompt, sizeof(e->prompt) - 1);
	e->columns = columns;
	e->text.len = e->cursor = e->key_len = 0;
	e->at = e->n_history;
	show_text(e, e->prompt);
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
