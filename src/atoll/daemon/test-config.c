/* SPDX-License-Identifier: Apache-2.0 */
#include "atoll/daemon/config.h"

#include "atoll/daemon/settings.h"
#include "base/fd.h"
#include "spec/test-support.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Directories and files of a test, and what it gives the loader. */
struct config_fixture {
	char dir[64], system[96], user[96], named[96], tokens[96];
	char *env[24];
	size_t n_env;
	struct config_flag flags[12];
	struct config_source source;
	struct config config;
	struct error err;
};

static void write_text(const char *path, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void set_variable(struct config_fixture *f, const char *name, const char *value)
{
	assert_true(f->n_env + 1 < ARRAY_SIZE(f->env));
	assert_true(asprintf(&f->env[f->n_env++], "%s=%s", name, value) > 0);
}

static void set_flag(struct config_fixture *f, const char *key, const char *value)
{
	f->flags[f->source.n_flags++] = (struct config_flag){ key, value };
}

static int setup(void **state)
{
	struct config_fixture *f = calloc(1, sizeof(*f));
	char path[96];

	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/tests-config-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(path, sizeof(path), "%s/atoll", f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(f->system, sizeof(f->system), "%s/system.yaml", f->dir);
	(void)snprintf(f->user, sizeof(f->user), "%s/atoll/atoll.yaml", f->dir);
	(void)snprintf(f->named, sizeof(f->named), "%s/named.yaml", f->dir);
	(void)snprintf(f->tokens, sizeof(f->tokens), "%s/tokens", f->dir);
	set_variable(f, "XDG_CONFIG_HOME", f->dir);
	set_variable(f, "HOME", "/home/person");
	f->source = (struct config_source){ .system_file = f->system,
					    .env = (const char *const *)f->env,
					    .flags = f->flags,
					    .cores = 4,
					    .memory_bytes = 16 * GiB };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct config_fixture *f = *state;
	char path[96];

	config_done(&f->config);
	(void)unlink(f->system);
	(void)unlink(f->user);
	(void)unlink(f->named);
	(void)unlink(f->tokens);
	(void)snprintf(path, sizeof(path), "%s/atoll", f->dir);
	(void)rmdir(path);
	assert_int_equal(rmdir(f->dir), 0);
	for (size_t i = 0; i < f->n_env; i++)
		free(f->env[i]);
	free(f);
	return 0;
}

static struct config *load(struct config_fixture *f)
{
	config_done(&f->config);
	if (config_load(&f->source, &f->config, &f->err) < 0)
		fail_msg("%s", f->err.text);
	return &f->config;
}

static void assert_refused(struct config_fixture *f, const char *text)
{
	struct config c;

	f->err = (struct error){ 0 };
	assert_int_not_equal(config_load(&f->source, &c, &f->err), 0);
	assert_string_equal(f->err.text, text);
}

static void test_presets(void **state)
{
	struct config *c = load(*state);
	struct limits presets;

	limits_presets(&presets);
	assert_string_equal(c->listening.addresses[0], "127.0.0.1:8700");
	assert_string_equal(c->listening.addresses[1], "127.0.0.1:6000");
	assert_null(c->listening.addresses[2]);
	assert_false(c->listening.named);
	assert_string_equal(c->places.state_dir, "/home/person/.local/state/atoll");
	assert_string_equal(c->listening.socket, "/home/person/.local/state/atoll/atoll.sock");
	assert_string_equal(c->audit.file, "/home/person/.local/state/atoll/audit.log");
	assert_int_equal(c->log.level, LOG_INFO);
	assert_int_equal(c->queue.running, 32);
	assert_int_equal(c->queue.judging, 4);
	assert_memory_equal(&c->limits.defaults, &presets, sizeof(presets));
	assert_int_equal(c->limits.ceilings.cpus_milli, 4000);
	assert_int_equal(c->limits.defaults_set | c->limits.ceilings_set, 0);
	assert_null(c->access.tokens[0]);
	assert_null(c->access.hosts[0]);
}

static void test_places(void **state)
{
	struct config_fixture *f = *state;

	f->source.root = true;
	assert_string_equal(load(f)->places.state_dir, "/var/lib/atoll");
	assert_string_equal(f->config.listening.socket, "/run/atoll/atoll.sock");
	f->source.root = false;
	set_variable(f, "XDG_STATE_HOME", "/s");
	set_variable(f, "XDG_RUNTIME_DIR", "/r");
	assert_string_equal(load(f)->places.state_dir, "/s/atoll");
	assert_string_equal(f->config.listening.socket, "/r/atoll/atoll.sock");
	set_flag(f, "socket", "off");
	set_flag(f, "audit.file", "off");
	assert_string_equal(load(f)->listening.socket, "");
	assert_string_equal(f->config.audit.file, "");
}

/* Each layer overrides the one before, and keeps what it does not name. */
static void test_precedence(void **state)
{
	struct config_fixture *f = *state;

	write_text(f->system, "queue: {max: 1, per_caller: 1, running: 1}\ndrain: 1\n", 0644);
	assert_int_equal(load(f)->queue.max, 1);
	write_text(f->user, "queue: {max: 2, per_caller: 2, running: 2}\n", 0644);
	assert_int_equal(load(f)->queue.max, 2);
	write_text(f->named, "queue:\n  max: 3\n  per_caller: 3\n", 0644);
	f->source.named_file = f->named;
	assert_int_equal(load(f)->queue.max, 3);
	set_variable(f, "ATOLL_QUEUE_MAX", "4");
	assert_int_equal(load(f)->queue.max, 4);
	set_flag(f, "queue.max", "5");
	assert_int_equal(load(f)->queue.max, 5);
	assert_int_equal(f->config.queue.per_caller, 3);
	assert_int_equal(f->config.queue.running, 2);
	assert_int_equal(f->config.drain_ms, 1000);
}

static void test_kinds(void **state)
{
	struct config_fixture *f = *state;

	write_text(f->system,
		   "listen: ['0.0.0.0:80', '[::]:81']\nallow_unauthenticated: true\n"
		   "durability: full\nlog: {format: json, level: warning, file: /var/log/x}\n"
		   "retention: {age: 2h, count: none, bytes: 1.5g}\nadaptive: {factor: 1.25}\n"
		   "pool: {spares: 0}\nqueue: null\n",
		   0644);
	load(f);
	assert_string_equal(f->config.listening.addresses[1], "[::]:81");
	assert_null(f->config.listening.addresses[2]);
	assert_true(f->config.listening.named);
	assert_true(f->config.access.unauthenticated);
	assert_int_equal(f->config.history.durability, DURABILITY_FULL);
	assert_int_equal(f->config.log.format, LOG_JSON);
	assert_int_equal(f->config.log.level, LOG_WARNING);
	assert_string_equal(f->config.log.file, "/var/log/x");
	assert_int_equal(f->config.history.age_ms, 7200000);
	assert_int_equal(f->config.history.count, 0);
	assert_int_equal(f->config.history.bytes, 3 * GiB / 2);
	assert_int_equal(f->config.adaptive.factor_milli, 1250);
	assert_int_equal(f->config.pool.spares, 0);
}

static void test_lists_from_text(void **state)
{
	struct config_fixture *f = *state;

	set_variable(f, "ATOLL_ALLOW_HOSTS", "a, b");
	set_flag(f, "listen", "127.0.0.1:1");
	set_flag(f, "queue.max", "9");
	set_flag(f, "listen", "127.0.0.1:2");
	set_flag(f, "allow_unauthenticated", "yes");
	load(f);
	assert_string_equal(f->config.access.hosts[0], "a");
	assert_string_equal(f->config.access.hosts[1], "b");
	assert_null(f->config.access.hosts[2]);
	assert_string_equal(f->config.listening.addresses[0], "127.0.0.1:1");
	assert_string_equal(f->config.listening.addresses[1], "127.0.0.1:2");
	assert_null(f->config.listening.addresses[2]);
	assert_true(f->config.access.unauthenticated);
}

static void test_relative_paths(void **state)
{
	struct config_fixture *f = *state;
	char cwd[512], wanted[600];

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	(void)snprintf(wanted, sizeof(wanted), "%s/here", cwd);
	set_flag(f, "state_dir", "here");
	assert_string_equal(load(f)->places.state_dir, wanted);
}

static void test_foreign_variables(void **state)
{
	struct config_fixture *f = *state;

	set_variable(f, "ATOLL_LIMITS_DEFAULTS_TIMEOUT", "20");
	set_variable(f, "ATOLL_LIMITS_CEILINGS_MEMORY", "2g");
	load(f);
	assert_int_equal(f->config.limits.defaults.timeout_ms, 20000);
	assert_int_equal(f->config.limits.ceilings.memory_bytes, 2 * GiB);
	set_variable(f, "SANDBOX_DEFAULT_TIMEOUT_SECONDS", "7");
	set_variable(f, "SANDBOX_GLOBAL_MAX_TIMEOUT_SECONDS", "60");
	set_variable(f, "SANDBOX_DEFAULT_MEMORY_LIMIT_MB", "256");
	set_variable(f, "SANDBOX_DEFAULT_CPU_QUOTA_PERCENT", "50");
	set_variable(f, "SANDBOX_PID_LIMIT", "50");
	set_variable(f, "SANDBOX_LANGUAGE_CONFIG_FILE", "/etc/languages.json");
	set_variable(f, "OUTPUT_DATA_PATH", "/data");
	set_variable(f, "SANDBOX_HOST", "::1");
	set_variable(f, "SANDBOX_PORT", "6001");
	set_variable(f, "DEBUG", "1");
	load(f);
	assert_int_equal(f->config.limits.defaults.timeout_ms, 7000);
	assert_int_equal(f->config.limits.ceilings.timeout_ms, 60000);
	assert_int_equal(f->config.limits.defaults.memory_bytes, 256 * MiB);
	assert_int_equal(f->config.limits.defaults.cpus_milli, 500);
	assert_int_equal(f->config.limits.defaults.pids, 50);
	assert_string_equal(f->config.languages.file, "/etc/languages.json");
	assert_string_equal(f->config.places.output_data_path, "/data");
	assert_string_equal(f->config.listening.addresses[0], "127.0.0.1:8700");
	assert_string_equal(f->config.listening.addresses[1], "[::1]:6001");
	assert_int_equal(f->config.log.level, LOG_DEBUG);
	set_flag(f, "limits.defaults.timeout", "8");
	set_flag(f, "listen", "127.0.0.1:1");
	load(f);
	assert_int_equal(f->config.limits.defaults.timeout_ms, 8000);
	assert_string_equal(f->config.listening.addresses[0], "127.0.0.1:1");
}

/* A shipped default is lowered to a lower ceiling; a configured one is refused. */
static void test_defaults_and_ceilings(void **state)
{
	struct config_fixture *f = *state;

	set_flag(f, "limits.ceilings.timeout", "10");
	set_flag(f, "limits.ceilings.cpu_time", "none");
	load(f);
	assert_int_equal(f->config.limits.defaults.timeout_ms, 10000);
	assert_int_equal(f->config.limits.ceilings.cpu_time_ms, knob_find("cpu_time")->max);
	set_flag(f, "limits.defaults.timeout", "11");
	assert_refused(f, "limits.defaults.timeout: 11 s is above limits.ceilings.timeout, which "
			  "is 10 s");
}

static void test_refusals(void **state)
{
	static const struct {
		const char *yaml, *place, *text;
	} cases[] = {
		{ "queue: {max: 0}", ":1:9",
		  "queue.max: 0 is below the minimum of 1 (allowed: 1 to 100000)" },
		{ "queue: {max: 1.5}", ":1:9",
		  "queue.max: 1.5 is not a whole number (allowed: 1 to 100000)" },
		{ "queue: {max: [1]}", ":1:9",
		  "queue.max: a list is not a whole number (allowed: 1 to 100000)" },
		{ "queue: {maxx: 1}", ":1:9",
		  "there is no setting 'queue.maxx'; did you mean 'queue.max'?" },
		{ "queue: 7", ":1:1", "queue: 7 is not an object of settings" },
		{ "frobnicate: 1", ":1:1",
		  "there is no setting 'frobnicate'; doc/atoll.yaml.example lists all" },
		{ "listen: 127.0.0.1:1", ":1:1",
		  "listen: '127.0.0.1:1' is not a list of at most 64 texts" },
		{ "allow_hosts: [1]", ":1:1",
		  "allow_hosts: 1 is not a text of at most 1000 bytes without "
		  "control characters" },
		{ "allow_unauthenticated: 'yes'", ":1:1",
		  "allow_unauthenticated: 'yes' is not true or false" },
		{ "durability: maybe", ":1:1", "durability: 'maybe' is not one of: normal, full" },
		{ "log: {level: 3}", ":1:7",
		  "log.level: 3 is not one of: debug, info, warning, error" },
		{ "state_dir: here", ":1:1", "state_dir: 'here' is not an absolute path" },
		{ "user: \"a\\nb\"", ":1:1",
		  "user: 'a?b' is not a text without control characters" },
		{ "retention: {age: soon}", ":1:13",
		  "retention.age: 'soon' is not a time, in seconds or like "
		  "\"500ms\" (allowed: 1 s to "
		  "316224000 s)" },
		{ "http: {body_max: 1t}", ":1:8",
		  "http.body_max: '1t' is above the maximum of 320 MiB "
		  "(allowed: 1 KiB to 320 MiB)" },
		{ "limits: {defaults: {memory: 1}}", ":1:21",
		  "limits.defaults.memory: 1 is below the "
		  "minimum of 4 MiB (allowed: 4 MiB to 1 TiB)" },
		{ "limits: {ceilings: {memry: 1}}", ":1:21",
		  "limits.ceilings.memry: there is no such limit; did you mean 'memory'?" },
		{ "limits: {other: 1}", ":1:10",
		  "there is no setting 'limits.other'; doc/atoll.yaml.example lists all" },
		{ "queu: {max: 1}", ":1:1", "there is no setting 'queu'; did you mean 'queue'?" },
		{ "max: 1", ":1:1", "there is no setting 'max'; did you mean 'queue.max'?" },
		{ "[1]", "", "a list is not an object of settings" },
	};
	struct config_fixture *f = *state;
	char wanted[600];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		write_text(f->system, cases[i].yaml, 0644);
		(void)snprintf(wanted, sizeof(wanted), "%s%s: %s", f->system, cases[i].place,
			       cases[i].text);
		assert_refused(f, wanted);
	}
}

static void test_refusals_name_their_origin(void **state)
{
	struct config_fixture *f = *state;
	char wanted[200];

	set_variable(f, "ATOLL_DRAIN", "x");
	assert_refused(f, "ATOLL_DRAIN: drain: 'x' is not a time, in seconds or like \"500ms\" "
			  "(allowed: 0 ms to 86400 s)");
	f->env[--f->n_env][0] = '_';
	f->n_env++;
	set_variable(f, "SANDBOX_PID_LIMIT", "0");
	assert_refused(f, "SANDBOX_PID_LIMIT: limits.defaults.pids: '0' is below the minimum of 1 "
			  "(allowed: 1 to 4194304)");
	f->env[f->n_env - 1][0] = '_';
	set_variable(f, "SANDBOX_DEFAULT_CPU_QUOTA_PERCENT", "half");
	assert_refused(f, "SANDBOX_DEFAULT_CPU_QUOTA_PERCENT: 'half' is not a number of percent");
	f->env[f->n_env - 1][0] = '_';
	set_variable(f, "SANDBOX_DEFAULT_TIMEOUT_SECONDS", "abc");
	assert_refused(f, "SANDBOX_DEFAULT_TIMEOUT_SECONDS: 'abc' is not a number of seconds");
	f->env[f->n_env - 1][0] = '_';
	set_variable(f, "SANDBOX_DEFAULT_MEMORY_LIMIT_MB", "1g");
	assert_refused(f, "SANDBOX_DEFAULT_MEMORY_LIMIT_MB: '1g' is not a number of MiB");
	f->env[f->n_env - 1][0] = '_';
	set_flag(f, "log.format", "xml");
	assert_refused(f, "--log-format: log.format: 'xml' is not one of: logfmt, json");
	f->flags[0] = (struct config_flag){ "queue.max", "-1" };
	assert_refused(f, "--set: queue.max: '-1' is not a whole number (allowed: 1 to 100000)");
	f->flags[0] = (struct config_flag){ "nothing", "1" };
	assert_refused(f, "--set: there is no setting 'nothing'; doc/atoll.yaml.example lists all");
	f->source.n_flags = 0;
	f->source.named_file = f->named;
	(void)snprintf(wanted, sizeof(wanted),
		       "cannot open the settings '%s': No such file or directory", f->named);
	assert_refused(f, wanted);
}

static void test_exposure(void **state)
{
	struct config_fixture *f = *state;

	assert_int_equal(config_check_exposure(load(f), &f->err), 0);
	set_flag(f, "listen", "127.0.0.1:1");
	set_flag(f, "listen", "0.0.0.0:2");
	assert_int_equal(config_check_exposure(load(f), &f->err), -EINVAL);
	assert_string_equal(f->err.text,
			    "listening on 0.0.0.0:2 lets other machines run code here; give "
			    "--token-file FILE, or --allow-unauthenticated to accept that");
	set_flag(f, "token_file", f->tokens);
	write_text(f->tokens, "0123456789abcdef\n", 0600);
	assert_int_equal(config_read_tokens(load(f), &f->err), 0);
	assert_int_equal(config_check_exposure(&f->config, &f->err), 0);
	f->flags[f->source.n_flags - 1] = (struct config_flag){ "allow_unauthenticated", "true" };
	assert_int_equal(config_check_exposure(load(f), &f->err), 0);
}

/* A file with only comments is valid. */
static void test_no_settings(void **state)
{
	struct config_fixture *f = *state;
	char *example = text_of_file(getenv("ATOLL_TEST_EXAMPLE"));
	const char *const texts[] = { "", "# nothing\n", "---\n...\n", "\n\n", example };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		write_text(f->system, texts[i], 0644);
		write_text(f->named, texts[i], 0644);
		f->source.named_file = f->named;
		assert_int_equal(load(f)->queue.max, 1024);
		assert_false(f->config.listening.named);
	}
	free(example);
}

/* The front reads back what the monitor has read. */
static void test_round_trip(void **state)
{
	struct config_fixture *f = *state;
	struct config copy = { 0 };
	json_t *sent, *again;

	write_text(f->system,
		   "limits: {defaults: {cpu_quota: 50000, timeout: 1.5}, ceilings: {memory: 1g}}\n"
		   "retention: {count: none}\ndrain: 250ms\nallow_hosts: [a, b]\n",
		   0644);
	write_text(f->tokens, "0123456789abcdef\n", 0600);
	set_flag(f, "token_file", f->tokens);
	set_flag(f, "socket", "off");
	assert_int_equal(config_read_tokens(load(f), &f->err), 0);
	f->config.callback.secrets = (const char *const[]){ "whsec_", NULL };
	sent = config_to_json(&f->config);
	if (config_from_json(sent, &copy, &f->err) < 0)
		fail_msg("%s", f->err.text);
	again = config_to_json(&copy);
	assert_true(json_equal(sent, again));
	assert_int_equal(copy.history.count, 0);
	assert_int_equal(copy.drain_ms, 250);
	assert_int_equal(copy.limits.defaults.cpus_milli, 500);
	assert_int_equal(copy.limits.defaults.timeout_ms, 1500);
	assert_string_equal(copy.access.tokens[0], "0123456789abcdef");
	assert_string_equal(copy.listening.socket, "");
	json_decref(sent);
	json_decref(again);
	config_done(&copy);
}

static void check_example(const struct setting *s, const json_t *root, struct config *c)
{
	const char *dot = strchr(s->key, '.');
	char group[32] = "";
	json_t *usual, *read;
	struct error err;

	if (dot)
		(void)snprintf(group, sizeof(group), "%.*s", (int)(dot - s->key), s->key);
	read = json_object_get(dot ? json_object_get(root, group) : root, dot ? dot + 1 : s->key);
	if (!read)
		fail_msg("the example lacks %s", s->key);
	if (s->kind != SETTING_NUMBER && s->kind != SETTING_CHOICE && s->kind != SETTING_BOOL)
		return;
	usual = setting_to_json(s, c);
	if (setting_apply(s, read, c, &err) < 0)
		fail_msg("%s", err.text);
	read = setting_to_json(s, c);
	if (!json_equal(usual, read))
		fail_msg("the example has another default of %s", s->key);
	json_decref(usual);
	json_decref(read);
}

/* The example names every setting with its default, and can be parsed once its comment marks are removed. */
static void test_example(void **state)
{
	struct config_fixture *f = *state;
	char *text = text_of_file(getenv("ATOLL_TEST_EXAMPLE"));
	struct document doc = { .name = "example" };
	struct config c = { 0 };
	json_t *root = NULL;
	char *to = text;

	/* "#key: value" and "#  key: value" are settings, "# words" are not. */
	for (const char *from = text; *from;) {
		size_t n = strcspn(from, "\n") + 1;
		bool words = from[0] != '#' || from[1] == '\n' ||
			     (from[1] == ' ' && from[2] != ' ');

		if (!words) {
			memmove(to, from + 1, n - 1);
			to += n - 1;
		}
		from += n;
	}
	*to = '\0';
	doc.text = text;
	doc.len = strlen(text);
	if (yaml_parse(&doc, &root, &f->err) < 0)
		fail_msg("%s", f->err.text);
	settings_presets(&c);
	for (size_t i = 0; i < settings_count; i++)
		check_example(&settings[i], root, &c);
	/* And nothing else. */
	if (settings_apply_tree(root, &c, &f->err) < 0)
		fail_msg("%s", f->err.text);
	json_decref(root);
	free(text);
	config_done(&c);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_presets),	   T(test_places),
		T(test_precedence),	   T(test_kinds),
		T(test_lists_from_text),   T(test_relative_paths),
		T(test_foreign_variables), T(test_defaults_and_ceilings),
		T(test_refusals),	   T(test_refusals_name_their_origin),
		T(test_exposure),	   T(test_no_settings),
		T(test_round_trip),	   T(test_example),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
