/* SPDX-License-Identifier: Apache-2.0 */
/* See compare.h. Line by line, without copies. */
#include "client/compare.h"

#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

static struct span trim_end(struct span s)
{
	while (s.len > 0 && is_space(s.data[s.len - 1]))
		s.len--;
	return s;
}

/* Takes the first line off *text, without what ends it. */
static struct span next_line(struct span *text)
{
	const char *end = memchr(text->data, '\n', text->len);
	struct span line = { text->data, end ? (size_t)(end - text->data) : text->len };
	size_t used = line.len + (end != NULL);

	text->data += used;
	text->len -= used;
	return trim_end(line);
}

bool outputs_match(struct span got, struct span expected)
{
	got = trim_end(got);
	expected = trim_end(expected);
	while (got.len > 0 && expected.len > 0) {
		struct span a = next_line(&got), b = next_line(&expected);

		if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0)
			return false;
	}
	return got.len == 0 && expected.len == 0;
}
