/* SPDX-License-Identifier: Apache-2.0 */
/* The section `startup` of a language file (see language.h). */
#include <string.h>

#include "spec/language-read.h"
#include "spec/request.h"

enum { STARTUP_FILES_MAX = 8 };

#define STARTUP_MEMBER(name) .offset = offsetof(struct language_startup, name)

/* Both sides of each word are paths below something. */
static int read_files(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object)
{
	const struct language_startup *startup = object;
	int e = language_read_env(r, rule, value, object);

	for (size_t i = 0; e == 0 && startup->files[i]; i++) {
		const char *word = startup->files[i], *equals = strchr(word, '=');

		if (i == STARTUP_FILES_MAX)
			return reader_refuse(r, "it has more than %d entries", STARTUP_FILES_MAX);
		if (!equals || request_check_path(word, (size_t)(equals - word), NULL) < 0 ||
		    request_check_path(equals + 1, strlen(equals + 1), NULL) < 0)
			return reader_refuse(r, "'%s' is not NAME=FILE", quote_text(word).text);
	}
	return e;
}

static const struct key_rule startup_rules[] = {
	{ .key = "path", .read = read_text, STARTUP_MEMBER(path), .max = NAME_BYTES_MAX },
	{ .key = "files",
	  .read = read_files,
	  STARTUP_MEMBER(files),
	  .max = TEXT_BYTES_MAX,
	  .max_count = STARTUP_FILES_MAX },
};

int language_read_startup(const struct reader *r, const struct key_rule *rule _unused_,
			  const json_t *value, void *object)
{
	struct language_startup startup = { 0 };
	struct language *lang = object;
	int e = read_object(r, value, KEY_TABLE(startup_rules), &startup);

	if (e < 0)
		return e;
	if (!startup.path || !startup.files)
		return reader_refuse(r, "it needs both path and files");
	lang->startup = startup;
	return 0;
}
