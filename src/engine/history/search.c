/* SPDX-License-Identifier: Apache-2.0 */
/* See search.h. */
#include "engine/history/search.h"

#include <string.h>

enum { SEARCH_WORDS_MAX = 16 };

static bool is_search_word_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (unsigned char)c >= 0x80;
}

/* The next word of a text, which is moved behind it; data NULL: there is none. */
static struct span next_word(struct span *text)
{
	struct span word = { NULL, 0 };

	while (text->len > 0 && !is_search_word_char(*text->data)) {
		text->data++;
		text->len--;
	}
	if (text->len > 0)
		word.data = text->data;
	while (text->len > 0 && is_search_word_char(*text->data)) {
		word.len++;
		text->data++;
		text->len--;
	}
	return word;
}

/*
 * Words are quoted and hold letters and digits only: nothing of the query's grammar can come from a caller. Whole
 * words, because beginnings of words have no bound: FTS5 reads every entry of every word that begins so.
 */
int search_match(const char *text, struct buf *ret, struct error *err)
{
	struct span left = { text, strnlen(text, SEARCH_TEXT_MAX + 1) }, word;
	int words = 0, r = 0;

	if (left.len > SEARCH_TEXT_MAX)
		return error_field(err, "text", "text may have %d bytes at most", SEARCH_TEXT_MAX);
	while (r >= 0 && (word = next_word(&left)).data) {
		if (++words > SEARCH_WORDS_MAX)
			return error_field(err, "text", "text may have %d words at most",
					   SEARCH_WORDS_MAX);
		r = buf_printf(ret, "%s\"%.*s\"", words > 1 ? " AND " : "", (int)word.len,
			       word.data);
	}
	if (r < 0)
		return store_say(err, r);
	return words > 0 ? 0 : error_field(err, "text", "text needs a letter or a digit");
}

static bool is_same_word(struct span a, struct span b)
{
	return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

bool search_has(const char *text, struct span words)
{
	struct span wanted[SEARCH_WORDS_MAX], left = { text, strlen(text) }, word;
	size_t n = 0, i;

	while (n < ARRAY_SIZE(wanted) && (word = next_word(&left)).data)
		wanted[n++] = word;
	while (n > 0 && (word = next_word(&words)).data)
		for (i = 0; i < n;)
			if (is_same_word(wanted[i], word))
				wanted[i] = wanted[--n];
			else
				i++;
	return n == 0;
}
