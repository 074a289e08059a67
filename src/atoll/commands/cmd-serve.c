/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll serve`: the daemon. Its flags come from the table of settings (atoll/daemon/settings.h); the monitor does
 * the rest.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/daemon/monitor.h"
#include "atoll/daemon/settings.h"

enum { FLAGS_MAX = 256, REPORT_MAX = 64 << 10 };

struct serve {
	const char *config;
	bool until_eof, check;
	struct config_flag flags[FLAGS_MAX];
	char keys[FLAGS_MAX][64]; /* of --set */
	size_t n_flags;
};

static int add_flag(struct serve *serve, const char *key, const char *value, struct error *err)
{
	if (serve->n_flags == FLAGS_MAX)
		return error_set(err, ERROR_INPUT, E2BIG, "more than %d settings; use --config",
				 FLAGS_MAX);
	serve->flags[serve->n_flags++] = (struct config_flag){ key, value };
	return 0;
}

static int set_setting(void *data, const struct option *self, const char *value, struct error *err)
{
	for (size_t i = 0; i < settings_count; i++)
		if (settings[i].flag && strcmp(settings[i].flag, self->flag) == 0)
			return add_flag(data, settings[i].key, value ?: "true", err);
	return -ENOENT;
}

static int set_any(void *data, const struct option *self, const char *value, struct error *err)
{
	struct serve *serve = data;
	const char *equals = strchr(value, '=');
	size_t n = equals ? (size_t)(equals - value) : 0;

	if (n == 0 || n >= sizeof(serve->keys[0]) || serve->n_flags == FLAGS_MAX)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "%s needs KEY=VALUE, such as queue.max=100, not '%.60s'",
				 self->flag, value);
	memcpy(serve->keys[serve->n_flags], value, n);
	return add_flag(serve, serve->keys[serve->n_flags], equals + 1, err);
}

/* The settings with a flag of their own, in the order of their table. */
static const struct option *setting_row(size_t number)
{
	static struct option row;

	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];

		if (!s->flag || number-- > 0)
			continue;
		row = (struct option){ .flag = s->flag,
				       .argument = s->argument,
				       .help = s->help,
				       .apply = set_setting };
		return &row;
	}
	return NULL;
}

static const struct option rows[] = {
	OPTION_TEXT(
		"--config", 0, "FILE", struct serve, config,
		"settings, besides /etc/atoll/atoll.yaml and $XDG_CONFIG_HOME/atoll/atoll.yaml"),
	{ "--set", 0, "KEY=VALUE",
	  "any setting by its name in that file, such as queue.max=100 (repeatable)", set_any, 0 },
	OPTION_SWITCH(
		"--check", 0, struct serve, check,
		"read settings, tokens and policies, print what would be served, and exit: 0 or 1"),
	OPTION_SWITCH(
		"--until-eof", 0, struct serve, until_eof,
		"end when standard input ends: for a program that starts a daemon of its own"),
};

static const struct option_list serve_options = { OPTION_ROWS(rows), .more = setting_row };

static int serve_main(struct invocation *in)
{
	const struct serve *serve = in->data;
	struct config_source source = { .system_file = CONFIG_SYSTEM_FILE,
					.named_file = serve->config,
					.env = (const char *const *)environ,
					.flags = serve->flags,
					.n_flags = serve->n_flags,
					.until_eof = serve->until_eof,
					.root = geteuid() == 0,
					.memory_bytes = GiB };
	_cleanup_buf_ struct buf report = { .max = REPORT_MAX };
	struct error err = { 0 };
	struct sysinfo info;
	cpu_set_t cpus;

	/* A container may be kept to a part of the host's cores. */
	source.cores = sched_getaffinity(0, sizeof(cpus), &cpus) == 0
			       ? CPU_COUNT(&cpus)
			       : (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
	if (sysinfo(&info) == 0)
		source.memory_bytes = (int64_t)info.totalram * info.mem_unit;
	if (!serve->check)
		return monitor_serve(&source, &err) < 0 ? say_error(&err) : 0;
	if (monitor_check(&source, &report, &err) == 0)
		return print_out(&report);
	(void)say_error(&err);
	return EXIT_FAILURE;
}

const struct command cmd_serve = {
	.name = "serve",
	.usage = "[OPTIONS]",
	.summary = "run the daemon: HTTP, streaming, jobs, history",
	.details =
		"After SIGTERM or SIGINT the daemon lets running executions end, then exits. On "
		"SIGHUP it\n"
		"reads the tokens and opens the log files again. Settings come from files, ATOLL_* "
		"variables\n"
		"and these flags; later ones win. doc/atoll.yaml.example explains every setting.\n",
	.options = &serve_options,
	.size = sizeof(struct serve),
	.main = serve_main,
};
