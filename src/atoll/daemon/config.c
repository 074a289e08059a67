/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See config.h: applies the layers in order, then fills settings that depend on several others. A refusal names
 * the place of the value: the file, the variable or the flag.
 */
#include "atoll/daemon/config.h"

#include "atoll/daemon/settings.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/span.h"
#include "spec/read.h"
#include "spec/yaml.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_PATH_MAX = 4096, LANGUAGE_FILE_MAX = 64 << 10 };

/* printf into the settings' memory. NULL: no memory, or longer than a path may be. */
_printf_(2, 3) static const char *config_text(struct config *c, const char *fmt, ...)
{
	char text[CONFIG_PATH_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return n < 0 || n >= (int)sizeof(text) ? NULL : arena_strndup(&c->memory, text, (size_t)n);
}

/* NULL: not set, or empty. */
static const char *config_variable(const struct config_source *source, const char *name)
{
	size_t n = strlen(name);

	for (const char *const *v = source->env; *v; v++)
		if (strncmp(*v, name, n) == 0 && (*v)[n] == '=' && (*v)[n + 1])
			return *v + n + 1;
	return NULL;
}

/* The file has only comments and document markers. */
static bool says_nothing(const struct buf *text)
{
	for (struct span rest = { text->data, text->len }, line; span_split(&rest, '\n', &line);) {
		line = span_trim(line);
		while (line.len > 0 && line.data[line.len - 1] == '\r')
			line = span_trim((struct span){ line.data, line.len - 1 });
		if (line.len > 0 && *line.data != '#' && !span_is(line, "---") &&
		    !span_is(line, "..."))
			return false;
	}
	return true;
}

static int read_file(const char *path, bool needed, struct config *c, struct error *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_buf_ struct buf text = { .max = YAML_BYTES_MAX };
	struct document doc = { .name = path };
	struct stat st;
	json_t *root = NULL;
	size_t i;
	int r;

	if (fd < 0 && !needed && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(err, ERROR_INPUT, errno, "cannot open the settings '%.200s': %s",
				 path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_INPUT, EINVAL,
				 "the settings '%.200s' are not a regular file", path);
	for (i = 0; i < CONFIG_FILES_MAX && c->files[i];)
		i++;
	c->files[i] = path;
	r = buf_read_fd(&text, fd);
	if (r < 0)
		return error_set(err, ERROR_INPUT, -r, "cannot read the settings '%.200s': %s",
				 path, strerror(-r));
	if (says_nothing(&text))
		return 0;
	doc.text = text.data;
	doc.len = text.len;
	r = yaml_parse(&doc, &root, err);
	if (r < 0)
		return r; /* err names file and line */
	r = settings_apply_tree(root, c, err);
	json_decref(root);
	return r < 0 ? yaml_place(&doc, r, err) : 0;
}

static int read_files(const struct config_source *source, struct config *c, struct error *err)
{
	const char *xdg = config_variable(source, "XDG_CONFIG_HOME");
	const char *home = config_variable(source, "HOME");
	const char *user = NULL;
	int r = read_file(source->system_file, false, c, err);

	if (r < 0)
		return r;
	if (xdg && *xdg == '/')
		user = config_text(c, "%s/atoll/atoll.yaml", xdg);
	else if (home && *home == '/')
		user = config_text(c, "%s/.config/atoll/atoll.yaml", home);
	if (user)
		r = read_file(user, false, c, err);
	if (r == 0 && source->named_file)
		r = read_file(source->named_file, true, c, err);
	return r;
}

/* On the command line a path may be relative to the current directory. */
static const char *config_absolute(const char *key, const char *text, struct config *c)
{
	const struct setting *s = setting_find(key);
	char cwd[CONFIG_PATH_MAX];

	if (!s || s->kind != SETTING_PATH || *text == '/' || !*text || strcmp(text, "off") == 0 ||
	    !getcwd(cwd, sizeof(cwd)))
		return text;
	text = config_text(c, "%s/%s", cwd, text);
	return text ?: "";
}

/* Sets one setting, by its key, from text; a refusal names origin. */
static int config_apply(const char *origin, const char *key, const char *text, struct config *c,
			struct error *err)
{
	int r = settings_apply_text(key, config_absolute(key, text, c), c, err);

	return r < 0 ? error_wrap(err, r, "%s", origin) : 0;
}

/* --- variables: ATOLL_ and the key for every row and every limit, then those of the systems whose clients Atoll serves --- */

/* One setting from its ATOLL_ variable, if that is set. */
static int config_apply_variable(const struct config_source *source, const char *key,
				 struct config *c, struct error *err)
{
	char variable[96];
	const char *text;

	setting_variable(key, variable, sizeof(variable));
	text = config_variable(source, variable);
	return text ? config_apply(variable, key, text, c, err) : 0;
}

static int apply_limit_variables(const struct config_source *source, const char *group,
				 struct config *c, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < limit_knobs_count; i++) {
		const char *name = limit_knobs[i].key;
		char key[64];

		/* cpus stands for both. */
		if (strcmp(name, "cpu_quota") == 0 || strcmp(name, "cpu_period") == 0)
			continue;
		(void)snprintf(key, sizeof(key), "limits.%s.%s", group, name);
		r = config_apply_variable(source, key, c, err);
	}
	return r;
}

/*
 * A foreign variable, the setting it means, its unit (NULL: the text is used as it is) and how the unit is
 * written here.
 */
static const struct foreign {
	const char *variable, *key, *counts, *unit;
} foreigners[] = {
	{ "SANDBOX_GLOBAL_MAX_TIMEOUT_SECONDS", "limits.ceilings.timeout", "seconds", "s" },
	{ "SANDBOX_DEFAULT_TIMEOUT_SECONDS", "limits.defaults.timeout", "seconds", "s" },
	{ "SANDBOX_DEFAULT_MEMORY_LIMIT_MB", "limits.defaults.memory", "MiB", "m" },
	/* Percent of a core. */
	{ "SANDBOX_DEFAULT_CPU_QUOTA_PERCENT", "limits.defaults.cpus", "percent", NULL },
	{ "SANDBOX_PID_LIMIT", "limits.defaults.pids", NULL, NULL },
	{ "SANDBOX_LANGUAGE_CONFIG_FILE", "language_config", NULL, NULL },
	{ "OUTPUT_DATA_PATH", "output_data_path", NULL, NULL },
};

static int apply_foreign(const struct foreign *f, const char *text, struct config *c,
			 struct error *err)
{
	const char *converted;
	int64_t milli = 0;

	if (f->counts && parse_milli(text, &milli) < 0)
		return error_field(err, f->variable, "%s: '%s' is not a number of %s", f->variable,
				   quote_text(text).text, f->counts);
	if (f->counts && !f->unit)
		converted = config_text(c, "%lld.%05lld", (long long)(milli / 100000),
					(long long)(milli % 100000));
	else
		converted = config_text(c, "%s%s", text, f->unit ?: "");
	return converted ? config_apply(f->variable, f->key, converted, c, err)
			 : error_set(err, ERROR_INPUT, E2BIG, "%s is too long", f->variable);
}

/* Adds the port of the NeMo Agent Toolkit beside 8700, unless the listening addresses are given. */
static int apply_place(const struct config_source *source, struct config *c, struct error *err)
{
	const char *host = config_variable(source, "SANDBOX_HOST");
	const char *port = config_variable(source, "SANDBOX_PORT");
	bool v6 = host && strchr(host, ':') && host[0] != '[';
	const char *list;

	if ((!host && !port) || c->listening.addresses)
		return 0;
	list = config_text(c, CONFIG_LISTEN ",%s%s%s:%s", v6 ? "[" : "", host ?: "127.0.0.1",
			   v6 ? "]" : "", port ?: "6000");
	return list ? config_apply("SANDBOX_HOST, SANDBOX_PORT", "listen", list, c, err) : -ENOMEM;
}

static int config_apply_variables(const struct config_source *source, struct config *c,
				  struct error *err)
{
	const char *debug = config_variable(source, "DEBUG");
	int r = 0;

	for (size_t i = 0; r == 0 && i < settings_count; i++)
		r = config_apply_variable(source, settings[i].key, c, err);
	if (r == 0)
		r = apply_limit_variables(source, "defaults", c, err);
	if (r == 0)
		r = apply_limit_variables(source, "ceilings", c, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(foreigners); i++) {
		const char *text = config_variable(source, foreigners[i].variable);

		if (text)
			r = apply_foreign(&foreigners[i], text, c, err);
	}
	if (r == 0)
		r = apply_place(source, c, err);
	/* Debug logging, as the scripts of the NeMo Agent Toolkit switch it on. */
	if (r == 0 && debug && strcmp(debug, "0") != 0 && strcmp(debug, "false") != 0)
		r = config_apply("DEBUG", "log.level", "debug", c, err);
	return r;
}

/* --- flags --- */

/* All flags of one list setting, joined. */
static const char *join_flags(const struct config_source *source, size_t first, struct config *c)
{
	const char *joined = source->flags[first].value;

	for (size_t i = first + 1; joined && i < source->n_flags; i++)
		if (strcmp(source->flags[i].key, source->flags[first].key) == 0)
			joined = config_text(c, "%s,%s", joined, source->flags[i].value);
	return joined;
}

static int apply_flags(const struct config_source *source, struct config *c, struct error *err)
{
	for (size_t i = 0; i < source->n_flags; i++) {
		const struct config_flag *flag = &source->flags[i];
		const struct setting *s = setting_find(flag->key);
		const char *text = flag->value, *origin = s && s->flag ? s->flag : "--set";
		bool repeated = false;
		int r;

		for (size_t j = 0; s && s->kind == SETTING_WORDS && j < i; j++)
			repeated = repeated || strcmp(source->flags[j].key, flag->key) == 0;
		if (repeated)
			continue;
		if (s && s->kind == SETTING_WORDS)
			text = join_flags(source, i, c);
		if (!text)
			return error_set(err, ERROR_INPUT, E2BIG, "%s: the list is too long",
					 origin);
		r = config_apply(origin, flag->key, text, c, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Directories that depend on the user. */
static int find_places(const struct config_source *source, struct config *c, struct error *err)
{
	const char *state = config_variable(source, "XDG_STATE_HOME");
	const char *home = config_variable(source, "HOME");
	const char *run = source->root ? "/run" : config_variable(source, "XDG_RUNTIME_DIR");

	if (!c->places.state_dir && source->root)
		c->places.state_dir = "/var/lib/atoll";
	else if (!c->places.state_dir && state && *state == '/')
		c->places.state_dir = config_text(c, "%s/atoll", state);
	else if (!c->places.state_dir && home && *home == '/')
		c->places.state_dir = config_text(c, "%s/.local/state/atoll", home);
	if (!c->places.state_dir || !*c->places.state_dir ||
	    strcmp(c->places.state_dir, "off") == 0)
		return error_field(
			err, "state_dir",
			"no place for the daemon's state is known; give --state-dir DIR");
	if (!c->listening.socket && run && *run == '/')
		c->listening.socket = config_text(c, "%s/atoll/atoll.sock", run);
	else if (!c->listening.socket)
		c->listening.socket = config_text(c, "%s/atoll.sock", c->places.state_dir);
	if (!c->audit.file)
		c->audit.file = config_text(c, "%s/audit.log", c->places.state_dir);
	if (!c->listening.socket || !c->audit.file)
		return error_oom(err);
	if (strcmp(c->listening.socket, "off") == 0)
		c->listening.socket = "";
	if (strcmp(c->audit.file, "off") == 0)
		c->audit.file = "";
	return 0;
}

/* A shipped default is lowered to a configured ceiling; a configured default above the ceiling is refused. */
static int fit_defaults(int32_t cores, struct config *c, struct error *err)
{
	struct limits defaults, ceilings;

	limits_presets(&defaults);
	limits_overlay(&defaults, &c->limits.defaults, c->limits.defaults_set);
	limits_ceilings(&ceilings, cores);
	limits_overlay(&ceilings, &c->limits.ceilings, c->limits.ceilings_set);
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		int64_t value = knob_get(k, &defaults), top = knob_get(k, &ceilings);
		char shown[32], most[32];

		if (top == 0 && k->none_ok)
			top = k->max;
		knob_set(k, &ceilings, top);
		if (value <= top)
			continue;
		if (!(c->limits.defaults_set & knob_bit(k))) {
			knob_set(k, &defaults, top);
			continue;
		}
		knob_format(k, value, shown, sizeof(shown));
		knob_format(k, top, most, sizeof(most));
		return error_field(
			err, k->key,
			"limits.defaults.%s: %s is above limits.ceilings.%s, which is %s", k->key,
			shown, k->key, most);
	}
	c->limits.defaults = defaults;
	c->limits.ceilings = ceilings;
	return 0;
}

static int complete_config(const struct config_source *source, struct config *c, struct error *err)
{
	static const char *const usual[] = { CONFIG_LISTEN, CONFIG_LISTEN_COMPAT, NULL };
	static const char *const none[] = { NULL };
	struct config_address address;
	int r = find_places(source, c, err);

	if (!c->listening.addresses)
		c->listening.addresses = usual;
	if (!c->access.tokens)
		c->access.tokens = none;
	if (!c->callback.secrets)
		c->callback.secrets = none;
	/* More than cores: most programs wait or are short, and cgroups share the cores between the others. */
	if (c->queue.running == 0)
		c->queue.running = MIN(
			MAX(MIN(MAX(source->cores, 1) * 8LL, source->memory_bytes / (128 * MiB)),
			    2),
			512);
	/* A test's time is judged: it should not share its core. */
	if (c->queue.judging == 0)
		c->queue.judging = MAX(source->cores, 1);
	for (size_t i = 0; r == 0 && c->listening.addresses[i]; i++)
		r = i < CONFIG_LISTEN_MAX
			    ? config_address_parse(c->listening.addresses[i], &address, err)
			    : error_field(err, "listen", "listen: there are more than %d addresses",
					  CONFIG_LISTEN_MAX);
	for (size_t i = 0; r == 0 && c->places.images[i]; i++)
		if (c->places.images[i][0] != '/')
			r = error_field(err, "images", "images: %.200s is not an absolute path",
					c->places.images[i]);
	for (size_t i = 0; r == 0 && c->places.mounts[i]; i++)
		if (c->places.mounts[i][0] != '/')
			r = error_field(err, "mounts", "mounts: %.200s is not an absolute path",
					c->places.mounts[i]);
	assert(c->queue.running > 0 && c->queue.judging > 0);
	return r < 0 ? r : fit_defaults(source->cores, c, err);
}

int config_load(const struct config_source *source, struct config *ret, struct error *err)
{
	struct config c = { 0 };
	int r;

	settings_presets(&c);
	r = read_files(source, &c, err);
	if (r == 0)
		r = config_apply_variables(source, &c, err);
	if (r == 0)
		r = apply_flags(source, &c, err);
	c.listening.named = c.listening.addresses != NULL;
	if (r == 0)
		r = complete_config(source, &c, err);
	if (r < 0) {
		config_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}

int config_read_pool(const struct config_source *source, bool *ret, struct error *err)
{
	struct config c = { 0 };
	int r;

	settings_presets(&c);
	r = read_files(source, &c, err);
	if (r == 0)
		r = config_apply_variable(source, "pool.auto", &c, err);
	*ret = c.pool.automatic;
	config_done(&c);
	return r;
}

void config_done(struct config *c)
{
	arena_done(&c->memory);
	*c = (struct config){ 0 };
}

static int put_config_value(json_t *root, const char *key, json_t *value)
{
	const char *dot = strchr(key, '.');
	char group[32];
	json_t *object;

	if (!dot)
		return json_object_set_new(root, key, value);
	(void)snprintf(group, sizeof(group), "%.*s", (int)(dot - key), key);
	object = json_object_get(root, group);
	if (!object) {
		object = json_object();
		if (json_object_set_new(root, group, object) < 0) {
			json_decref(value);
			return -1;
		}
	}
	return json_object_set_new(object, dot + 1, value);
}

/* Only the limits that were set; the others are derived again in the same way. cpus stands for a quota, too. */
static json_t *limits_said(const struct limits *l, uint32_t set)
{
	json_t *object = json_object();

	set &= ~(knob_bit(knob_find("cpu_quota")) | knob_bit(knob_find("cpu_period")));
	for (size_t i = 0; object && i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];

		if ((set & knob_bit(k)) &&
		    json_object_set_new(object, k->key, knob_to_json(k, knob_get(k, l))) < 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

json_t *config_to_json(const struct config *c)
{
	json_t *root = json_object();

	for (size_t i = 0; root && i < settings_count; i++)
		if (put_config_value(root, settings[i].key, setting_to_json(&settings[i], c)) < 0) {
			json_decref(root);
			root = NULL;
		}
	return json_pack("{so, so, so, sb, ss*, s{so, so}}", "settings", root, "tokens",
			 settings_list_to_json(c->access.tokens), "secrets",
			 settings_list_to_json(c->callback.secrets), "listen_named",
			 c->listening.named, "languages", c->languages.text, "limits", "defaults",
			 limits_said(&c->limits.defaults, c->limits.defaults_set), "ceilings",
			 limits_said(&c->limits.ceilings, c->limits.ceilings_set));
}

static int read_list(const json_t *list, struct config *c, const char *const **ret)
{
	const char **words = arena_alloc(&c->memory, (json_array_size(list) + 1) * sizeof(*words));
	const json_t *word;
	size_t i;

	json_array_foreach(list, i, word)
	{
		if (!words || !json_is_string(word))
			return -EINVAL;
		words[i] = arena_strndup(&c->memory, json_string_value(word),
					 json_string_length(word));
		if (!words[i])
			return -ENOMEM;
	}
	*ret = words;
	return words ? 0 : -ENOMEM;
}

int config_from_json(const json_t *root, struct config *ret, struct error *err)
{
	static const char *const no_env[] = { NULL };
	const struct config_source here = { .env = no_env,
					    .cores = (int32_t)sysconf(_SC_NPROCESSORS_ONLN) };
	const json_t *limits = json_object_get(root, "limits");
	const json_t *languages = json_object_get(root, "languages");
	struct config c = { 0 };
	int r;

	settings_presets(&c);
	r = settings_apply_tree(json_object_get(root, "settings"), &c, err);
	if (r == 0)
		r = limits_parse_at("limits.defaults", json_object_get(limits, "defaults"),
				    &c.limits.defaults, &c.limits.defaults_set, err);
	if (r == 0)
		r = limits_parse_at("limits.ceilings", json_object_get(limits, "ceilings"),
				    &c.limits.ceilings, &c.limits.ceilings_set, err);
	if (r == 0 && (read_list(json_object_get(root, "tokens"), &c, &c.access.tokens) < 0 ||
		       read_list(json_object_get(root, "secrets"), &c, &c.callback.secrets) < 0))
		r = error_set(err, ERROR_INTERNAL, EINVAL, "the settings came without tokens");
	if (r == 0 && languages) {
		c.languages.text = arena_strndup(&c.memory, json_string_value(languages),
						 json_string_length(languages));
		if (!c.languages.text)
			r = error_oom(err);
	}
	if (r == 0)
		r = complete_config(&here, &c, err);
	if (r < 0) {
		config_done(&c);
		return r;
	}
	c.listening.named = json_is_true(json_object_get(root, "listen_named"));
	*ret = c;
	return 0;
}

/* --- defaults by language: the monitor reads the file, because the front may not have access, and a mistake stops the start --- */

static int refuse_languages(const struct config *c, const char *why, struct error *err)
{
	return error_field(err, "language_config", "language_config: '%.200s': %s",
			   c->languages.file, why);
}

int config_presets(const struct config *c, struct presets *ret, struct error *err)
{
	const struct document doc = { .name = c->languages.file,
				      .text = c->languages.text,
				      .len = strlen(c->languages.text) };
	struct error why = { 0 };
	json_t *root = NULL;
	int r = json_parse(&doc, &root, &why);

	if (r == 0)
		r = presets_parse(root, ret, &why);
	json_decref(root);
	return r < 0 ? refuse_languages(c, why.text, err) : 0;
}

int config_read_languages(struct config *c, struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_buf_ struct buf text = { .max = LANGUAGE_FILE_MAX };
	struct presets presets;
	int r;

	if (!*c->languages.file)
		return 0;
	fd = open(c->languages.file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return refuse_languages(c, strerror(errno), err);
	r = buf_read_fd(&text, fd);
	if (r < 0 || memchr(text.len ? text.data : "", '\0', text.len))
		return refuse_languages(c, "it is not a text of at most 64 KiB", err);
	c->languages.text = arena_strndup(&c->memory, text.len ? text.data : "", text.len);
	if (!c->languages.text)
		return error_oom(err);
	return config_presets(c, &presets, err);
}
