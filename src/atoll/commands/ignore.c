/* SPDX-License-Identifier: Apache-2.0 */
/* See ignore.h. run/glob.h matches: with a slash in front, pattern and path are both taken from the directory on. */
#include "atoll/commands/ignore.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "run/glob.h"

enum { RULES_MAX = 4096 };

struct ignore_rule {
	char *pattern; /* begins with a slash if it has one */
	bool in, only_dirs;
};

struct ignore_file {
	struct ignore_rule *rules;
	size_t n;
};

/* The line without what is no part of the pattern; *n 0: none. */
static const char *trim_line(const char *line, size_t *n, struct ignore_rule *ret)
{
	while (*n > 0 &&
	       (line[*n - 1] == '\r' || (line[*n - 1] == ' ' && !(*n > 1 && line[*n - 2] == '\\'))))
		--*n;
	if (*n > 0 && *line == '#')
		*n = 0;
	ret->in = *n > 0 && *line == '!';
	if (ret->in) {
		line++;
		--*n;
	}
	ret->only_dirs = *n > 0 && line[*n - 1] == '/';
	if (ret->only_dirs)
		--*n;
	return line;
}

/* false: no memory. */
static bool add_rule(struct ignore_file *f, const char *line, size_t n)
{
	struct ignore_rule *rule = &f->rules[f->n];
	bool has_slash;

	line = trim_line(line, &n, rule);
	if (n == 0)
		return true;
	has_slash = memchr(line, '/', n);
	if (asprintf(&rule->pattern, "%s%.*s", has_slash && *line != '/' ? "/" : "", (int)n, line) <
	    0)
		return false;
	f->n++;
	return true;
}

struct ignore_file *ignore_file_new(const char *text, size_t n)
{
	struct ignore_file *f = calloc(1, sizeof(*f));
	const char *end = text + n;
	bool good = f && (f->rules = calloc(RULES_MAX, sizeof(*f->rules)));

	while (good && text < end && f->n < RULES_MAX) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((newline ?: end) - text);

		good = add_rule(f, text, len);
		text += len + 1;
	}
	return good ? f : ignore_file_free(f);
}

struct ignore_file *ignore_file_free(struct ignore_file *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->n; i++)
		free(f->rules[i].pattern);
	free(f->rules);
	free(f);
	return NULL;
}

enum ignore_verdict ignore_file_says(const struct ignore_file *f, const char *path, bool is_dir)
{
	char whole[PATH_MAX];

	(void)snprintf(whole, sizeof(whole), "/%s", path);
	for (size_t i = f->n; i-- > 0;) {
		const struct ignore_rule *rule = &f->rules[i];
		const char *const patterns[] = { rule->pattern, NULL };

		if ((is_dir || !rule->only_dirs) && glob_any(patterns, whole))
			return rule->in ? IGNORE_IN : IGNORE_OUT;
	}
	return IGNORE_UNSAID;
}
