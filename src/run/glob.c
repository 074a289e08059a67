/* SPDX-License-Identifier: Apache-2.0 */
/* See glob.h. */
#include "run/glob.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* How deep a pattern and a path may be; deeper components form the last part, slashes included. */
enum { PARTS_MAX = 64, PART_BYTES = 256 };

struct parts {
	const char *at[PARTS_MAX];
	size_t len[PARTS_MAX], n;
};

static void split(const char *text, struct parts *ret)
{
	ret->n = 0;
	do {
		size_t n = ret->n + 1 < PARTS_MAX ? strcspn(text, "/") : strlen(text);

		ret->at[ret->n] = text;
		ret->len[ret->n++] = n;
		text += n;
	} while (*text++ == '/');
}

static bool is_any(const struct parts *p, size_t i)
{
	return p->len[i] == 2 && memcmp(p->at[i], "**", 2) == 0;
}

static bool part_matches(const struct parts *pattern, size_t i, const struct parts *path, size_t k)
{
	char wanted[PART_BYTES], name[PART_BYTES];

	if (pattern->len[i] >= sizeof(wanted) || path->len[k] >= sizeof(name))
		return false;
	(void)snprintf(wanted, sizeof(wanted), "%.*s", (int)pattern->len[i], pattern->at[i]);
	(void)snprintf(name, sizeof(name), "%.*s", (int)path->len[k], path->at[k]);
	return fnmatch(wanted, name, 0) == 0;
}

/* Row by row: reached[k] says whether the pattern so far matches the first k parts of the path. */
static bool parts_match(const struct parts *pattern, const struct parts *path)
{
	bool reached[PARTS_MAX + 1] = { true };

	for (size_t i = 0; i < pattern->n; i++) {
		bool any = is_any(pattern, i), last = i + 1 == pattern->n;
		bool next[PARTS_MAX + 1] = { 0 };

		for (size_t k = 0; k <= path->n; k++) {
			if (any)
				/* At the end `**` matches the files below, not the directory itself. */
				next[k] = (reached[k] && !last) || (k > 0 && next[k - 1]) ||
					  (k > 0 && reached[k - 1]);
			else
				next[k] = k > 0 && reached[k - 1] &&
					  part_matches(pattern, i, path, k - 1);
		}
		memcpy(reached, next, sizeof(reached));
	}
	return reached[path->n];
}

static bool matches(const char *pattern, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct parts wanted, given;

	if (!strchr(pattern, '/'))
		return fnmatch(pattern, slash ? slash + 1 : path, 0) == 0;
	split(pattern, &wanted);
	split(path, &given);
	return parts_match(&wanted, &given);
}

bool glob_any(const char *const *patterns, const char *path)
{
	if (!patterns)
		return true;
	for (; *patterns; patterns++)
		if (matches(*patterns, path))
			return true;
	return false;
}
