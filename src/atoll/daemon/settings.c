/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See settings.h: the table, and how values are applied. doc/atoll.yaml.example shows all settings; a test compares the two.
 *
 * A file's tree is walked by the dotted keys of the table: a path that is a row gets its value,
 * a path that rows begin with must be an object, any other is unknown. spec/knob.c reads numbers, so messages
 * are those of a request's limits.
 */
#include "atoll/daemon/settings.h"

#include "run/broker-choice.h"
#include "spec/read.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SECONDS(n)     ((n)*MS_PER_SEC)
#define HOURS(n)       SECONDS((n)*3600LL)
#define OFFSET(member) .offset = offsetof(struct config, member)
#define COUNT(low, high, usual)                                                                    \
	{                                                                                          \
		.kind = KNOB_COUNT, .min = (low), .max = (high), .preset = (usual)                 \
	}
#define TIME(low, high, usual)                                                                     \
	{                                                                                          \
		.kind = KNOB_TIME, .min = (low), .max = (high), .preset = (usual)                  \
	}
#define SIZE(low, high, usual)                                                                     \
	{                                                                                          \
		.kind = KNOB_SIZE, .min = (low), .max = (high), .preset = (usual)                  \
	}
/* 0 is written "none": no bound. */
#define OR_NONE(unit, low, high, usual)                                                            \
	{                                                                                          \
		.kind = (unit), .min = (low), .max = (high), .preset = (usual), .none_ok = true,   \
		.zero_ok = true                                                                    \
	}

static const char *const execute_words[] = { "python", "all", NULL };
static const char *const durability_words[] = { "normal", "full", NULL };
static const char *const format_words[] = { "logfmt", "json", NULL };
static const char *const level_words[] = { "debug", "info", "warning", "error", NULL };

const struct setting settings[] = {
	{ "listen", "--listen", "ADDR:PORT", SETTING_WORDS, OFFSET(listening.addresses),
	  .preset = NULL,
	  .help = "listen on this address (repeatable) [127.0.0.1:8700, 127.0.0.1:6000]" },
	{ "socket", "--socket", "PATH", SETTING_PATH, OFFSET(listening.socket), .preset = NULL,
	  .help = "unix socket, `off` for none [/run/atoll/atoll.sock; users: "
		  "$XDG_RUNTIME_DIR/atoll/atoll.sock]" },
	{ "state_dir", "--state-dir", "DIR", SETTING_PATH, OFFSET(places.state_dir), .preset = NULL,
	  .help = "history, outputs, workspaces [/var/lib/atoll; users: $XDG_STATE_HOME/atoll]" },
	{ "token_file", "--token-file", "FILE", SETTING_PATH, OFFSET(access.token_file),
	  .preset = "", .help = "tokens for Authorization: Bearer, one a line (mode 0600)" },
	{ "allow_unauthenticated", "--allow-unauthenticated", NULL, SETTING_BOOL,
	  OFFSET(access.unauthenticated),
	  .help = "accept requests of other machines without a token" },
	{ "allow_hosts", "--allow-host", "NAME", SETTING_WORDS, OFFSET(access.hosts), .preset = "",
	  .help = "also accept requests whose Host is this name (repeatable)" },
	{ "allow_origins", "--allow-origin", "URL", SETTING_WORDS, OFFSET(access.origins),
	  .preset = "", .help = "also accept requests of pages from this origin (repeatable)" },
	{ "mcp.resource", NULL, NULL, SETTING_TEXT, OFFSET(mcp.resource), .preset = "",
	  .help = "URL of /mcp as clients reach it, for OAuth's resource metadata" },
	{ "mcp.issuers", NULL, NULL, SETTING_WORDS, OFFSET(mcp.issuers), .preset = "",
	  .help = "authorization servers that hand out the tokens of token_file" },
	{ "data_dir", "--data-dir", "DIR", SETTING_PATH, OFFSET(places.data_dir), .preset = "",
	  .help = "directory with languages/, policies/, runners/ [found automatically]" },
	{ "policies_dir", "--policies-dir", "DIR", SETTING_PATH, OFFSET(places.policies_dir),
	  .preset = "", .help = "directory of further policies" },
	{ "images", NULL, NULL, SETTING_WORDS, OFFSET(places.images), .preset = "",
	  .help = "directories below which callers may choose an image" },
	{ "mounts", NULL, NULL, SETTING_WORDS, OFFSET(places.mounts), .preset = "",
	  .help = "directories that programs may see, or with :rw change, where their policy "
		  "permits "
		  "it too, when the front has a user of its own" },
	{ "output_data_path", "--output-data-path", "DIR", SETTING_PATH,
	  OFFSET(places.output_data_path), .preset = "",
	  .help = "/workspace of POST /execute [in the state directory]" },
	{ "workspaces.bytes", NULL, NULL, SETTING_NUMBER, OFFSET(workspaces.bytes),
	  .number = OR_NONE(KNOB_SIZE, MiB, 1024 * 1024 * GiB, WORKSPACE_BYTES),
	  .help = "bytes of one workspace" },
	{ "workspaces.files", NULL, NULL, SETTING_NUMBER, OFFSET(workspaces.files),
	  .number = OR_NONE(KNOB_COUNT, 1, 1000000000, WORKSPACE_INODES),
	  .help = "files and directories of one workspace" },
	{ "language_config", NULL, NULL, SETTING_PATH, OFFSET(languages.file), .preset = "",
	  .help = "JSON file of Codomyrmex with defaults by language" },
	{ "user", "--user", "NAME", SETTING_TEXT, OFFSET(user), .preset = "",
	  .help = "run the front as this user when started by root [atoll, else a uid of its "
		  "own]" },
	{ "execute_languages", "--execute-languages", "WORD", SETTING_CHOICE,
	  OFFSET(languages.execute), .choices = execute_words,
	  .help = "languages of POST /execute: python or all [python]" },
	{ "adaptive.factor", NULL, NULL, SETTING_NUMBER, OFFSET(adaptive.factor_milli),
	  .number = { .kind = KNOB_CPUS, .min = 1000, .max = 100000, .preset = 2500 },
	  .help = "adaptive timeout: factor on the mean of past runs" },
	{ "adaptive.min", NULL, NULL, SETTING_NUMBER, OFFSET(adaptive.min_ms),
	  .number = TIME(1, HOURS(24), SECONDS(5)), .help = "adaptive timeout: minimum" },
	{ "queue.max", NULL, NULL, SETTING_NUMBER, OFFSET(queue.max),
	  .number = COUNT(1, 100000, 1024), .help = "queued executions; more get 429" },
	{ "queue.per_caller", NULL, NULL, SETTING_NUMBER, OFFSET(queue.per_caller),
	  .number = COUNT(1, 100000, 256),
	  .help = "queued executions of one caller; as many requests wait for their result" },
	{ "queue.bytes", NULL, NULL, SETTING_NUMBER, OFFSET(queue.bytes),
	  .number = OR_NONE(KNOB_SIZE, MiB, 1024 * GiB, 4 * GiB),
	  .help = "bytes of all queued bodies together; more get 429" },
	{ "queue.bytes_per_caller", NULL, NULL, SETTING_NUMBER, OFFSET(queue.bytes_per_caller),
	  .number = OR_NONE(KNOB_SIZE, MiB, 1024 * GiB, GiB),
	  .help = "bytes of the queued bodies of one caller" },
	{ "sessions.max", NULL, NULL, SETTING_NUMBER, OFFSET(sessions.max),
	  .number = COUNT(1, 100000, 1000), .help = "live sessions; more get 429" },
	{ "sessions.per_caller", NULL, NULL, SETTING_NUMBER, OFFSET(sessions.per_caller),
	  .number = COUNT(1, 100000, 1000),
	  .help = "live sessions of one caller; never above 7/8 of sessions.max" },
	{ "sessions.host_calls", NULL, NULL, SETTING_NUMBER, OFFSET(sessions.host_calls),
	  .number = COUNT(1, 10000, 100), .help = "host calls of one execution" },
	{ "queue.running", "--running", "N", SETTING_NUMBER, OFFSET(queue.running),
	  .number = OR_NONE(KNOB_COUNT, 1, 4096, 0),
	  .help = "executions at once [from cores and memory]" },
	{ "queue.judging", NULL, NULL, SETTING_NUMBER, OFFSET(queue.judging),
	  .number = OR_NONE(KNOB_COUNT, 1, 4096, 0),
	  .help = "executions with tests at once [one a core]" },
	{ "drain", "--drain", "TIME", SETTING_NUMBER, OFFSET(drain_ms),
	  .number = TIME(0, HOURS(24), SECONDS(30)),
	  .help = "time for running executions to end after SIGTERM [30s]" },
	{ "http.connections_max", NULL, NULL, SETTING_NUMBER, OFFSET(http.connections_max),
	  .number = COUNT(1, 100000, 4096), .help = "open connections" },
	{ "http.body_max", NULL, NULL, SETTING_NUMBER, OFFSET(http.body_bytes_max),
	  .number = SIZE(KiB, 320 * MiB, 64 * MiB), .help = "bytes of a request's body" },
	{ "http.header_timeout", NULL, NULL, SETTING_NUMBER, OFFSET(http.header_ms),
	  .number = TIME(100, HOURS(1), SECONDS(10)),
	  .help = "time until the head of a request is complete" },
	{ "http.body_timeout", NULL, NULL, SETTING_NUMBER, OFFSET(http.body_ms),
	  .number = TIME(100, HOURS(1), SECONDS(30)),
	  .help = "time that a body, or a message of a WebSocket, may stand still" },
	{ "http.idle_timeout", NULL, NULL, SETTING_NUMBER, OFFSET(http.idle_ms),
	  .number = TIME(100, HOURS(24), SECONDS(75)),
	  .help = "time between two requests of a connection" },
	{ "http.write_timeout", NULL, NULL, SETTING_NUMBER, OFFSET(http.write_ms),
	  .number = TIME(100, HOURS(1), SECONDS(30)),
	  .help = "time until a stalled reader is disconnected" },
	{ "durability", "--durability", "WORD", SETTING_CHOICE, OFFSET(history.durability),
	  .choices = durability_words,
	  .help = "normal: survives kill -9; full: also a power cut [normal]" },
	{ "retention.age", NULL, NULL, SETTING_NUMBER, OFFSET(history.age_ms),
	  .number = OR_NONE(KNOB_TIME, SECONDS(1), HOURS(24LL * 3660), HOURS(24 * 30)),
	  .help = "delete executions that are older than this" },
	{ "retention.count", NULL, NULL, SETTING_NUMBER, OFFSET(history.count),
	  .number = OR_NONE(KNOB_COUNT, 1, 100000000, 1000000),
	  .help = "delete the oldest executions beyond this number" },
	{ "retention.bytes", NULL, NULL, SETTING_NUMBER, OFFSET(history.bytes),
	  .number = OR_NONE(KNOB_SIZE, MiB, 1024 * 1024 * GiB, 10 * GiB),
	  .help = "delete the oldest executions beyond this size" },
	{ "idempotency", NULL, NULL, SETTING_NUMBER, OFFSET(history.idempotency_ms),
	  .number = OR_NONE(KNOB_TIME, SECONDS(1), HOURS(24 * 30), 0),
	  .help = "time that an Idempotency-Key is remembered [as long as its execution]" },
	{ "network.allow", NULL, NULL, SETTING_BOOL, OFFSET(network),
	  .help = "let programs reach other machines where their policy permits it" },
	{ "callbacks.allow", NULL, NULL, SETTING_BOOL, OFFSET(callback.allow),
	  .help = "accept callback_url in requests" },
	{ "callbacks.hosts", NULL, NULL, SETTING_WORDS, OFFSET(callback.hosts), .preset = "",
	  .help = "allowed targets: host, host:port, *.domain [any public address]" },
	{ "callbacks.secret_file", NULL, NULL, SETTING_PATH, OFFSET(callback.secret_file),
	  .preset = "",
	  .help = "secrets that callbacks are signed with, whsec_… one a line (mode 0600)" },
	{ "callbacks.timeout", NULL, NULL, SETTING_NUMBER, OFFSET(callback.timeout_ms),
	  .number = TIME(100, SECONDS(300), SECONDS(10)), .help = "time of one attempt" },
	{ "callbacks.attempts", NULL, NULL, SETTING_NUMBER, OFFSET(callback.attempts),
	  .number = COUNT(1, 20, 5), .help = "attempts for one result" },
	{ "pool.auto", NULL, NULL, SETTING_BOOL, OFFSET(pool.automatic),
	  .help = "`atoll run` leaves a pool behind, as with ATOLL_POOL=auto; the daemon has its "
		  "own" },
	{ "pool.memory", NULL, NULL, SETTING_NUMBER, OFFSET(pool.memory_bytes),
	  .number = OR_NONE(KNOB_SIZE, MiB, 1024 * GiB, 0),
	  .help = "memory of all spares and interpreters [a 16th of the host's, at most 1g]" },
	{ "pool.spares", NULL, NULL, SETTING_NUMBER, OFFSET(pool.spares),
	  .number = COUNT(0, 4096, 128), .help = "spares of one kind" },
	{ "log.format", "--log-format", "WORD", SETTING_CHOICE, OFFSET(log.format),
	  .choices = format_words, .help = "logfmt or json [logfmt]" },
	{ "log.level", "--log-level", "WORD", SETTING_CHOICE, OFFSET(log.level),
	  .choices = level_words, .number.preset = LOG_INFO,
	  .help = "debug, info, warning or error [info]" },
	{ "log.file", "--log-file", "FILE", SETTING_PATH, OFFSET(log.file), .preset = "",
	  .help = "instead of standard error" },
	{ "audit.file", "--audit-file", "FILE", SETTING_PATH, OFFSET(audit.file), .preset = NULL,
	  .help = "audit events, `off` for none [audit.log in the state directory]" },
	{ "audit.size", NULL, NULL, SETTING_NUMBER, OFFSET(audit.bytes),
	  .number = OR_NONE(KNOB_SIZE, 64 * KiB, 1024 * GiB, 64 * MiB),
	  .help = "size at which the file is rotated, checked every second" },
	{ "audit.files", NULL, NULL, SETTING_NUMBER, OFFSET(audit.files),
	  .number = COUNT(1, 1000, 8), .help = "old files that are kept, as FILE.1 and so on" },
	{ "audit.alert_count", NULL, NULL, SETTING_NUMBER, OFFSET(audit.alert_count),
	  .number = COUNT(1, 1000000, 10),
	  .help = "crashes, denials or near-limit runs of one caller that cause an alert" },
	{ "audit.alert_window", NULL, NULL, SETTING_NUMBER, OFFSET(audit.alert_window_ms),
	  .number = TIME(SECONDS(1), HOURS(24), SECONDS(60)),
	  .help = "time within which they are counted" },
};
const size_t settings_count = ARRAY_SIZE(settings);

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

static void *setting_member(const struct setting *s, struct config *c)
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
	return knob_parse_at(s->key, &s->number, value, setting_member(s, c), err);
}

static int apply_bool(const struct setting *s, const json_t *value, struct config *c,
		      struct error *err)
{
	if (!json_is_boolean(value))
		return refuse_value(s, value, "true or false", err);
	*(bool *)setting_member(s, c) = json_is_true(value);
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
			*(int32_t *)setting_member(s, c) = i;
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
	*(const char **)setting_member(s, c) = copy;
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
			return refuse_value(
				s, word, "a text of at most 1000 bytes without control characters",
				err);
		list[i] = arena_strndup(&c->memory, json_string_value(word),
					json_string_length(word));
		if (!list[i])
			return error_oom(err);
	}
	*(const char *const **)setting_member(s, c) = list;
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

/* Lists: words between commas or spaces. NULL: no memory. */
static json_t *setting_value_of_text(const struct setting *s, const char *text)
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
		void *at = setting_member(s, c);

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

json_t *settings_list_to_json(const char *const *words)
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
		return settings_list_to_json(*(const char *const *const *)at);
	default:
		return json_string(*(const char *const *)at);
	}
}

static int apply_limits(const char *where, const json_t *object, struct config *c,
			struct error *err)
{
	bool defaults = strcmp(where, DEFAULTS) == 0;

	return limits_parse_at(where, object, defaults ? &c->limits.defaults : &c->limits.ceilings,
			       defaults ? &c->limits.defaults_set : &c->limits.ceilings_set, err);
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

static int settings_walk(const char *prefix, const json_t *object, struct config *c,
			 struct error *err)
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
			r = settings_walk(key, value, c, err);
		else if ((s = switch_of(key, value)))
			*(bool *)setting_member(s, c) = true;
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
	return settings_walk("", root, c, err);
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
