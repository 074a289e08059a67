/* SPDX-License-Identifier: Apache-2.0 */
/* The section `warm` of a language file (see language.h), and its rule for a request's variables. */
#include <stdio.h>
#include <string.h>

#include "spec/language-read.h"
#include "spec/request.h"

#define VARIABLE_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

enum {
	WARM_WORDS_MAX = 48
}; /* together with the base and the language's variables less than a plan takes */

int language_read_env(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object)
{
	const char *name, **words;
	const json_t *text;
	size_t n = 0;

	if (json_is_array(value))
		return read_words(r, rule, value, object);
	if (!json_is_object(value))
		return reader_refuse(r, "%s is neither a map nor a list", quote_json(value).text);
	words = arena_alloc(r->arena, (json_object_size(value) + 1) * sizeof(*words));
	if (!words)
		return reader_no_memory(r);
	json_object_foreach((json_t *)(uintptr_t)value, name, text)
	{
		struct reader at = reader_at(r, name);
		const char *content;
		size_t size;
		char *word;
		int e = read_string(&at, text, rule->max, &content);

		if (e < 0)
			return e;
		size = strlen(name) + strlen(content) + 2;
		word = arena_alloc(r->arena, size);
		if (!word)
			return reader_no_memory(r);
		(void)snprintf(word, size, "%s=%s", name, content);
		words[n++] = word;
	}
	*(const char ***)((char *)object + rule->offset) = words;
	return 0;
}

static int warm_kind(const struct reader *r, const struct key_rule *rule, const json_t *value,
		     void *object)
{
	static const char *const kinds[] = { [WARMTH_FORK] = "fork", [WARMTH_START] = "start" };
	struct language_warm *warm = object;
	const char *text;
	int e = read_string(r, value, rule->max, &text);

	if (e < 0)
		return e;
	for (int i = WARMTH_FORK; i <= WARMTH_START; i++)
		if (strcmp(text, kinds[i]) == 0) {
			warm->kind = (enum warmth)i;
			return 0;
		}
	return reader_refuse(r, "'%s' is neither fork nor start", quote_text(text).text);
}

static int warm_runner(const struct reader *r, const struct key_rule *rule, const json_t *value,
		       void *object)
{
	const struct language_warm *warm = object;
	int e = read_text(r, rule, value, object);

	if (e < 0)
		return e;
	if (request_check_path(warm->runner, strlen(warm->runner), NULL) < 0)
		return reader_refuse(r, "'%s' is not a name below runners/",
				     quote_text(warm->runner).text);
	return 0;
}

static int warm_run(const struct reader *r, const struct key_rule *rule, const json_t *value,
		    void *object)
{
	const struct language_warm *warm = object;
	int e = read_words(r, rule, value, object);

	if (e < 0)
		return e;
	if (!warm->argv[0] || warm->argv[0][0] != '/')
		return reader_refuse(r, "its first word is not an absolute path");
	return 0;
}

static int warm_tiers(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object)
{
	const struct key_rule tier_rule = { .max = rule->max, .max_count = rule->max_count };
	struct language_warm *warm = object;
	size_t n = json_array_size(value);
	const char ***tiers;

	if (!json_is_array(value))
		return reader_refuse(r, "%s is not a list", quote_json(value).text);
	if (n > WARM_TIERS_MAX)
		return reader_refuse(r, "it has %zu entries, more than the %d allowed", n,
				     WARM_TIERS_MAX);
	tiers = arena_alloc(r->arena, (n + 1) * sizeof(*tiers));
	if (!tiers)
		return reader_no_memory(r);
	for (size_t i = 0; i < n; i++) {
		struct reader at = reader_index(r, i);
		int e = read_modules(&at, &tier_rule, json_array_get(value, i), &tiers[i]);

		if (e < 0)
			return e;
		if (!tiers[i][0])
			return reader_refuse(&at, "it is empty; that tier is always there");
	}
	warm->tiers = tiers;
	return 0;
}

static int warm_light(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object)
{
	struct language_warm *warm = object;

	return read_modules(r, rule, value, &warm->light);
}

/* For a broker, light is a tier like others. */
static int add_light_tier(const struct reader *r, struct language_warm *warm)
{
	const char ***tiers;
	size_t n = 0;

	if (!warm->light[0])
		return 0;
	while (warm->tiers[n])
		n++;
	tiers = arena_alloc(r->arena, (n + 2) * sizeof(*tiers));
	if (!tiers)
		return reader_no_memory(r);
	memcpy(tiers, warm->tiers, n * sizeof(*tiers));
	tiers[n] = warm->light;
	warm->tiers = tiers;
	return 0;
}

/* "NAME", or "NAME*" for all names that begin so; "!NAME": it is none of these. */
static int warm_cold_env(const struct reader *r, const struct key_rule *rule, const json_t *value,
			 void *object)
{
	const struct language_warm *warm = object;
	int e = read_words(r, rule, value, object);

	for (size_t i = 0; e == 0 && warm->cold_env[i]; i++) {
		struct reader at = reader_index(r, i);
		const char *name = warm->cold_env[i] + (warm->cold_env[i][0] == '!');
		size_t n = strspn(name, VARIABLE_LETTERS);

		if (n == 0 || (name[n] && strcmp(name + n, "*") != 0))
			e = reader_refuse(
				&at,
				"'%s' is not the name of a variable, with * at most at its end",
				quote_text(warm->cold_env[i]).text);
	}
	return e;
}

#define WARM_MEMBER(name) .offset = offsetof(struct language_warm, name)
#define WARM_WORDS(name)  WARM_MEMBER(name), .max = TEXT_BYTES_MAX, .max_count = WARM_WORDS_MAX

static const struct key_rule warm_rules[] = {
	{ .key = "kind", .read = warm_kind, .max = NAME_BYTES_MAX },
	{ .key = "runner", .read = warm_runner, WARM_MEMBER(runner), .max = TEXT_BYTES_MAX },
	{ .key = "run", .read = warm_run, WARM_WORDS(argv) },
	{ .key = "env", .read = language_read_env, WARM_WORDS(env) },
	{ .key = "tiers",
	  .read = warm_tiers,
	  .max = MODULE_BYTES_MAX,
	  .max_count = WARM_MODULES_MAX },
	{ .key = "light",
	  .read = warm_light,
	  .max = MODULE_BYTES_MAX,
	  .max_count = WARM_MODULES_MAX },
	{ .key = "cold_env", .read = warm_cold_env, WARM_WORDS(cold_env) },
};

/* If the agent itself knows when to fork, there is no runner. */
static bool names_runner(const struct language_warm *warm)
{
	for (const char **word = warm->argv; *word; word++)
		if (strstr(*word, "{runner"))
			return true;
	return false;
}

static int check_warm(const struct reader *r, const struct language_warm *warm)
{
	const struct {
		const char *key, *fault;
	} faults[] = {
		{ "kind", warm->kind != WARMTH_NONE ? NULL : "it is missing" },
		{ "runner", warm->runner || !names_runner(warm) ? NULL : "it is missing" },
		{ "run", warm->argv[0] ? NULL : "it is missing" },
		{ "tiers", warm->kind == WARMTH_FORK || !warm->tiers[0]
				   ? NULL
				   : "only what is forked can have modules loaded" },
		{ "light", warm->kind == WARMTH_FORK || !warm->light[0]
				   ? NULL
				   : "only what is forked can have modules loaded" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct reader at = reader_at(r, faults[i].key);

		if (faults[i].fault)
			return reader_refuse(&at, "%s", faults[i].fault);
	}
	return 0;
}

int language_read_warm(const struct reader *r, const struct key_rule *rule _unused_,
		       const json_t *value, void *object)
{
	static const char *no_words[] = { NULL };
	static const char **no_tiers[] = { NULL };
	struct language_warm warm = { .argv = no_words,
				      .env = no_words,
				      .tiers = no_tiers,
				      .light = no_words,
				      .cold_env = no_words };
	struct language *lang = object;
	int e = read_object(r, value, KEY_TABLE(warm_rules), &warm);

	if (e == 0)
		e = check_warm(r, &warm);
	if (e == 0)
		e = add_light_tier(r, &warm);
	if (e == 0)
		lang->warm = warm;
	return e;
}

/* The first pattern that matches decides. */
static bool matches_any(const char *const *patterns, const char *name)
{
	for (; *patterns; patterns++) {
		bool excepts = (*patterns)[0] == '!';
		const char *pattern = *patterns + excepts;
		size_t n = strcspn(pattern, "*");

		if (strncmp(pattern, name, n) == 0 && (pattern[n] || !name[n]))
			return !excepts;
	}
	return false;
}

bool language_wants_cold(const struct language *lang, const char *variable)
{
	/* Read once by the C library and the loader, before or soon after a program's first instruction. */
	static const char *const always[] = { "LD_*", "MALLOC_*", "GLIBC_TUNABLES",
					      "LC_*", "LANG",	  "LANGUAGE",
					      "TZ",   NULL };

	return matches_any(always, variable) ||
	       matches_any((const char *const *)lang->warm.cold_env, variable);
}
