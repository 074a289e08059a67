/* SPDX-License-Identifier: Apache-2.0 */
/* See constants.h. Strings are skipped by their quotes; other invalid JSON is left for the parser. */
#include "spec/constants.h"

#include <string.h>

/* The index of the constant at the start of rest; JSON_CONSTANTS: none. */
static size_t constant_at(struct span rest, size_t *len)
{
	static const char *const words[JSON_CONSTANTS] = { "NaN", "Infinity", "-Infinity" };

	for (size_t i = 0; i < JSON_CONSTANTS; i++) {
		*len = strlen(words[i]);
		if (rest.len >= *len && memcmp(rest.data, words[i], *len) == 0)
			return i;
	}
	return JSON_CONSTANTS;
}

int json_replace_constants(struct span text, const char *const by[JSON_CONSTANTS], struct buf *out)
{
	bool quoted = false;
	int r = 0;

	/* No replacement is longer than eight times its word. */
	buf_init(out, text.len * 8 + 1);
	for (size_t i = 0; r == 0 && i < text.len;) {
		struct span rest = { text.data + i, text.len - i };
		size_t n, which = quoted ? JSON_CONSTANTS : constant_at(rest, &n);

		if (which < JSON_CONSTANTS) {
			r = buf_puts(out, by[which]);
			i += n;
			continue;
		}
		n = quoted && rest.data[0] == '\\' && rest.len > 1 ? 2 : 1;
		if (n == 1 && rest.data[0] == '"')
			quoted = !quoted;
		r = buf_append(out, rest.data, n);
		i += n;
	}
	return r;
}
