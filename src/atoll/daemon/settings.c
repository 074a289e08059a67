/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See settings.h. A file's tree is walked by the dotted keys of the table: a path that is a row gets its value,
 * a path that rows begin with must be an object, any other is unknown. spec/knob.c reads numbers, so messages
 * are those of a request's limits.
 */
#include "atoll/daemon/settings.h"

#include "spec/read.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { KEY_MAX = 64, TEXT_MAX = 4000, WORD_MAX = 1000 };

#define DEFAULTS "limits.defaults"
#define CEILINGS "limits.ceilings"

const struct setting *setting_find(const char *key)
{
	for (size_t i = 0; i < settings_count; i++)
		if (strcmp(settings[i].key, key) == 0)
			return &settings[i];
	return NULL;
}

void setting_variable(const char *key, char *ret, size_t size)
{
	(void)snprintf(ret, size, "ATOLL_%s", key);
	for (char *p = ret; *p; p++)
		*p = *p == '.' ? '_' : (char)toupper((unsigned char)*p);
}

static void *member(const struct setting *s, struct config *c)
{
	return (char *)c + s->offset;
}

static int refuse_value(const struct setting *s, const json_t *value, const char *wanted,
			struct error *err)
{
	return error_field(err, s->key, "%s: %s is not %s", s->key, quote_json(value).text, wanted);
}

/* A text that is safe to open or to print: no NUL, no control characters. */
static bool is_clean(const json_t *value, size_t max)
{
	const unsigned char *p = (const unsigned char *)json_string_value(value);

	if (!p || json_string_length(value) > max)
		return false;
	for (size_t i = 0; i < json_string_length(value); i++)
		if (p[i] < 0x20 || p[i] == 0x7f)
			return false;
	return true;
}

static int apply_number(const struct setting *s, const json_t *value, struct config *c,
			struct error *err)
{
	return knob_parse_at(s->key, &s->number, value, member(s, c), err);
}

static int apply_bool(const struct setting *s, const json_t *value, struct config *c,
		      struct error *err)
{
	if (!json_is_boolean(value))
		return refuse_value(s, value, "true or false", err);
	*(bool *)member(s, c) = json_is_true(value);
	return 0;
}

static int apply_choice(const struct setting *s, const json_t *value, struct config *c,
			struct error *err)
{
	const char *word = is_clean(value, TEXT_MAX) ? json_string_value(value) : "";
	char wanted[200] = "one of:";

	for (int32_t i = 0; s->choices[i]; i++) {
		size_t n = strlen(wanted);

		if (strcmp(word, s->choices[i]) == 0) {
			*(int32_t *)member(s, c) = i;
			return 0;
		}
		(void)snprintf(wanted + n, sizeof(wanted) - n, "%s %s", i > 0 ? "," : "",
			       s->choices[i]);
	}
	return refuse_value(s, value, wanted, err);
}

static int apply_text(const struct setting *s, const json_t *value, struct config *c,
		      struct error *err)
{
	const char *text = json_string_value(value);
	char *copy;

	if (!is_clean(value, TEXT_MAX))
		return refuse_value(s, value, "a text without control characters", err);
	if (s->kind == SETTING_PATH && *text && *text != '/' && strcmp(text, "off") != 0)
		return refuse_value(s, value, "an absolute path", err);
	copy = arena_strndup(&c->memory, text, json_string_length(value));
	if (!copy)
		return error_oom(err);
	*(const char **)member(s, c) = copy;
	return 0;
}

static int apply_words(const struct setting *s, const json_t *value, struct config *c,
		       struct error *err)
{
	const char **list;
	size_t i;
	const json_t *word;

	if (!json_is_array(value) || json_array_size(value) > CONFIG_WORDS_MAX)
		return refuse_value(s, value, "a list of at most 64 texts", err);
	list = arena_alloc(&c->memory, (json_array_size(value) + 1) * sizeof(*list));
	if (!list)
		return error_oom(err);
	json_array_foreach(value, i, word)
	{
		if (!is_clean(word, WORD_MAX) || json_string_length(word) == 0)
			return refuse_value(s, word,
					    "a text of at most 1000 bytes without control "
					    "characters",
					    err);
		list[i] = arena_strndup(&c->memory, json_string_value(word),
					json_string_length(word));
		if (!list[i])
			return error_oom(err);
	}
	*(const char *const **)member(s, c) = list;
	return 0;
}

int setting_apply(const struct setting *s, const json_t *value, struct config *c, struct error *err)
{
	static int (*const apply[])(const struct setting *s, const json_t *value, struct config *c,
				    struct error *err) = {
		[SETTING_NUMBER] = apply_number, [SETTING_BOOL] = apply_bool,
		[SETTING_CHOICE] = apply_choice, [SETTING_TEXT] = apply_text,
		[SETTING_PATH] = apply_text,	 [SETTING_WORDS] = apply_words,
	};

	/* As in a request, null counts as not given. */
	return json_is_null(value) ? 0 : apply[s->kind](s, value, c, err);
}

static json_t *list_of_text(const char *text)
{
	json_t *list = json_array();

	while (list && *text) {
		size_t n = strcspn(text, ", ");

		if (n > 0 && json_array_append_new(list, json_stringn(text, n)) < 0) {
			json_decref(list);
			return NULL;
		}
		text += n;
		text += strspn(text, ", ");
	}
	return list;
}

json_t *setting_value_of_text(const struct setting *s, const char *text)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "true", true },   { "1", true },  { "yes", true }, { "on", true },
		{ "false", false }, { "0", false }, { "no", false }, { "off", false },
	};

	if (s->kind == SETTING_WORDS)
		return list_of_text(text);
	for (size_t i = 0; s->kind == SETTING_BOOL && i < ARRAY_SIZE(words); i++)
		if (strcmp(words[i].word, text) == 0)
			return json_boolean(words[i].value);
	return json_string(text);
}

void settings_presets(struct config *c)
{
	static const char *const none[] = { NULL };

	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];
		void *at = member(s, c);

		switch (s->kind) {
		case SETTING_NUMBER:
			*(int64_t *)at = s->number.preset;
			break;
		case SETTING_BOOL:
			*(bool *)at = false;
			break;
		case SETTING_CHOICE:
			*(int32_t *)at = (int32_t)s->number.preset;
			break;
		case SETTING_TEXT:
		case SETTING_PATH:
			*(const char **)at = s->preset;
			break;
		case SETTING_WORDS:
			*(const char *const **)at = s->preset ? none : NULL;
			break;
		}
	}
}

static json_t *list_to_json(const char *const *words)
{
	json_t *list = json_array();

	for (; list && *words; words++)
		if (json_array_append_new(list, json_string(*words)) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

json_t *setting_to_json(const struct setting *s, const struct config *c)
{
	const void *at = (const char *)c + s->offset;
	int64_t number;

	switch (s->kind) {
	case SETTING_NUMBER:
		number = *(const int64_t *)at;
		/* Not null, which would mean "not given". */
		return number == 0 ? json_integer(0) : knob_to_json(&s->number, number);
	case SETTING_BOOL:
		return json_boolean(*(const bool *)at);
	case SETTING_CHOICE:
		return json_string(s->choices[*(const int32_t *)at]);
	case SETTING_WORDS:
		return list_to_json(*(const char *const *const *)at);
	default:
		return json_string(*(const char *const *)at);
	}
}

static int apply_limits(const char *where, const json_t *object, struct config *c,
			struct error *err)
{
	bool defaults = strcmp(where, DEFAULTS) == 0;

	return limits_parse_at(where, object, defaults ? &c->defaults : &c->ceilings,
			       defaults ? &c->defaults_set : &c->ceilings_set, err);
}

static bool begins_rows(const char *key)
{
	size_t n = strlen(key);

	if (strcmp(key, "limits") == 0)
		return true;
	for (size_t i = 0; i < settings_count; i++)
		if (strncmp(settings[i].key, key, n) == 0 && settings[i].key[n] == '.')
			return true;
	return false;
}

/* The length of the first words of a key, as many as `like` has: "queue" of "queue.max" for "queu". */
static size_t as_deep_as(const char *like, const char *key)
{
	size_t n = strcspn(key, ".");

	for (const char *dot = strchr(like, '.'); dot && key[n]; dot = strchr(dot + 1, '.'))
		n += 1 + strcspn(key + n + 1, ".");
	return n;
}

/* False: no setting or group of settings is nearly written like that. */
static bool find_near_setting(const char *key, char ret[static KEY_MAX])
{
	for (size_t i = 0; i < settings_count; i++) {
		const char *last = strrchr(settings[i].key, '.');
		int n = (int)as_deep_as(key, settings[i].key);

		(void)snprintf(ret, KEY_MAX, "%.*s", n, settings[i].key);
		if (words_are_close(ret, key))
			return true;
		(void)snprintf(ret, KEY_MAX, "%s", settings[i].key);
		if (last && strcmp(last + 1, key) == 0)
			return true;
	}
	return false;
}

static int refuse_setting_key(const char *key, struct error *err)
{
	struct quoted shown = quote_text(key);
	char near[KEY_MAX];

	if (find_near_setting(key, near))
		return error_field(err, shown.text, "there is no setting '%s'; did you mean '%s'?",
				   shown.text, near);
	return error_field(err, shown.text,
			   "there is no setting '%s'; doc/atoll.yaml.example lists all",
			   shown.text);
}

/* `pool: auto` is `pool: {auto: true}`: a group may be one word, the name of a switch in it. NULL: it is none. */
static const struct setting *switch_of(const char *group, const json_t *word)
{
	const char *text = json_string_value(word);
	const struct setting *s;
	char key[KEY_MAX];

	if (!text || snprintf(key, sizeof(key), "%s.%s", group, text) >= (int)sizeof(key))
		return NULL;
	s = setting_find(key);
	return s && s->kind == SETTING_BOOL ? s : NULL;
}

static int walk(const char *prefix, const json_t *object, struct config *c, struct error *err)
{
	const char *name;
	const json_t *value;
	int r = 0;

	json_object_foreach((json_t *)(uintptr_t)object, name, value)
	{
		char key[KEY_MAX];
		const struct setting *s;

		if (snprintf(key, sizeof(key), "%s%s%s", prefix, *prefix ? "." : "", name) >=
		    (int)sizeof(key))
			return refuse_setting_key(name, err);
		s = setting_find(key);
		if (s)
			r = setting_apply(s, value, c, err);
		else if (strcmp(key, DEFAULTS) == 0 || strcmp(key, CEILINGS) == 0)
			r = apply_limits(key, value, c, err);
		else if (!begins_rows(key))
			r = refuse_setting_key(key, err);
		else if (json_is_object(value))
			r = walk(key, value, c, err);
		else if ((s = switch_of(key, value)))
			*(bool *)member(s, c) = true;
		else if (!json_is_null(value))
			r = error_field(err, key, "%s: %s is not an object of settings", key,
					quote_json(value).text);
		if (r < 0)
			return r;
	}
	return 0;
}

int settings_apply_tree(const json_t *root, struct config *c, struct error *err)
{
	/* An empty file. */
	if (json_is_null(root))
		return 0;
	if (!json_is_object(root))
		return error_set(err, ERROR_INPUT, EINVAL, "%s is not an object of settings",
				 quote_json(root).text);
	return walk("", root, c, err);
}

static int apply_limit_text(const char *where, const char *key, const char *text, struct config *c,
			    struct error *err)
{
	json_t *object = json_pack("{ss}", key, text);
	int r;

	if (!object)
		return error_field(err, where, "%s.%s: the value is not text", where,
				   quote_text(key).text);
	r = apply_limits(where, object, c, err);
	json_decref(object);
	return r;
}

int settings_apply_text(const char *key, const char *text, struct config *c, struct error *err)
{
	const struct setting *s = setting_find(key);
	json_t *value;
	int r;

	if (strncmp(key, DEFAULTS ".", sizeof(DEFAULTS)) == 0)
		return apply_limit_text(DEFAULTS, key + sizeof(DEFAULTS), text, c, err);
	if (strncmp(key, CEILINGS ".", sizeof(CEILINGS)) == 0)
		return apply_limit_text(CEILINGS, key + sizeof(CEILINGS), text, c, err);
	if (!s)
		return refuse_setting_key(key, err);
	value = setting_value_of_text(s, text);
	/* No memory, or the bytes are no text. */
	if (!value)
		return error_field(err, key, "%s: '%s' is not text", key, quote_text(text).text);
	r = setting_apply(s, value, c, err);
	json_decref(value);
	return r;
}
