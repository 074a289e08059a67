/* SPDX-License-Identifier: Apache-2.0 */
/* The section `kit` of a language file (see language.h). */
#include <string.h>

#include "spec/language-read.h"

enum { KIT_TEXT_MAX = 4096, KIT_WORDS_MAX = 32 };

#define KIT_WORDS(name)                                                                            \
	.offset = offsetof(struct language_kit, name), .max = KIT_TEXT_MAX,                        \
	.max_count = KIT_WORDS_MAX

static const struct key_rule kit_rules[] = {
	{ .key = "make", .read = read_words, KIT_WORDS(make) },
	{ .key = "words", .read = read_words, KIT_WORDS(words) },
	{ .key = "env", .read = language_read_env, KIT_WORDS(env) },
	{ .key = "doubt", .read = read_words, KIT_WORDS(doubt) },
};

int language_read_kit(const struct reader *r, const struct key_rule *rule _unused_,
		      const json_t *value, void *object)
{
	static const char *no_words[] = { NULL };
	struct language_kit kit = { no_words, no_words, no_words, no_words };
	struct language *lang = object;
	struct reader at = reader_at(r, "make");
	int e = read_object(r, value, KEY_TABLE(kit_rules), &kit);

	if (e < 0)
		return e;
	if (!kit.make[0] || kit.make[0][0] != '/')
		return reader_refuse(&at, "its first word is not an absolute path");
	lang->kit = kit;
	return 0;
}
