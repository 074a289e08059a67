/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimal string alignment distance (insert, delete, replace, swap of neighbours), computed over three rows. A
 * candidate counts if its distance is at most a third of the word's length (for short words 1) and less than the
 * length. A candidate that the word begins, by three letters at least, counts as the farthest of these: "mem" means "memory".
 */
#include "base/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"

enum { WORD_MAX = 40, BEGINNING_MIN = 3 };

static size_t min3(size_t a, size_t b, size_t c)
{
	return MIN(MIN(a, b), c);
}

static size_t word_distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1], n = strlen(a), m = strlen(b);
	size_t *before = rows[0], *last = rows[1], *row = rows[2];

	if (n > WORD_MAX || m > WORD_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= m; j++)
		last[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *spare = before;
		int c = tolower((unsigned char)a[i - 1]);

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			int d = tolower((unsigned char)b[j - 1]);

			row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + (c != d));
			if (i > 1 && j > 1 && c == tolower((unsigned char)b[j - 2]) &&
			    d == tolower((unsigned char)a[i - 2]))
				row[j] = MIN(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = spare;
	}
	return last[m];
}

void suggest_offer(struct suggestion *s, const char *word, const char *candidate)
{
	size_t limit = MAX(strlen(word) / 3, (size_t)1);
	size_t distance = word_distance(word, candidate), n = strlen(word);
	bool begins = n - strspn(word, "-") >= BEGINNING_MIN &&
		      strncasecmp(word, candidate, n) == 0;

	if (begins && distance > limit)
		distance = limit;
	/* For a word of one letter every other letter would count. */
	if (distance > limit || distance >= strlen(word))
		return;
	if (!s->best || distance < s->distance)
		*s = (struct suggestion){ .best = candidate, .distance = distance };
}
