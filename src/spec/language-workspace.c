/* SPDX-License-Identifier: Apache-2.0 */
/* The section `workspace` of a language file (see language.h). */
#include "spec/language-read.h"

enum { WORKSPACE_WORDS_MAX = 32 };

#define WORKSPACE_WORDS(name)                                                                      \
	.offset = offsetof(struct language_workspace, name), .max = TEXT_BYTES_MAX,                \
	.max_count = WORKSPACE_WORDS_MAX

static const struct key_rule workspace_rules[] = {
	{ .key = "words", .read = read_words, WORKSPACE_WORDS(words) },
	{ .key = "env", .read = language_read_env, WORKSPACE_WORDS(env) },
};

int language_read_workspace(const struct reader *r, const struct key_rule *rule _unused_,
			    const json_t *value, void *object)
{
	static const char *no_words[] = { NULL };
	struct language_workspace workspace = { no_words, no_words };
	struct language *lang = object;
	int e = read_object(r, value, KEY_TABLE(workspace_rules), &workspace);

	if (e == 0)
		lang->workspace = workspace;
	return e;
}
