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
#include "atoll/commands/printer.h"
#include "atoll/commands/remote.h"
#include "atoll/commands/say.h"
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
			return add_flag(data, settings[i].key, value ? value : "true", err);
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
	{ .flag = "--config",
	  .argument = "FILE",
	  .help = "settings, besides /etc/atoll/atoll.yaml and $XDG_CONFIG_HOME/atoll/atoll.yaml",
	  .apply = option_set_text,
	  .offset = offsetof(struct serve, config) },
	{ .flag = "--set",
	  .argument = "KEY=VALUE",
	  .help = "any setting by its name in that file, such as queue.max=100 (repeatable)",
	  .apply = set_any },
	{ .flag = "--check",
	  .help = "read settings, tokens and policies, print what would be served, and exit: 0 or "
		  "1",
	  .apply = option_set_true,
	  .offset = offsetof(struct serve, check) },
	{ .flag = "--until-eof",
	  .help = "end when standard input ends: for a program that starts a daemon of its own",
	  .apply = option_set_true,
	  .offset = offsetof(struct serve, until_eof) },
};

static const struct option_list serve_options = { .rows = rows,
						  .n = ARRAY_SIZE(rows),
						  .more = setting_row };

static int64_t host_memory_bytes(void)
{
	struct sysinfo info;

	return sysinfo(&info) == 0 ? (int64_t)info.totalram * info.mem_unit : GiB;
}

static int check_settings(const struct config_source *source)
{
	_cleanup_buf_ struct buf out = { .max = REPORT_MAX };
	struct error err = { 0 };
	int r = monitor_check(source, &out, &err);

	if (r == 0)
		return print_out(&out);
	(void)say_error(&err);
	return EXIT_FAILURE;
}

/* A container may be kept to a part of the host's. */
static int32_t usable_cores(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0
		       ? CPU_COUNT(&cpus)
		       : (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

static int serve_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct serve serve = { 0 };
	struct config_source source = { .system_file = CONFIG_SYSTEM_FILE,
					.env = (const char *const *)environ,
					.flags = serve.flags,
					.root = geteuid() == 0,
					.cores = usable_cores(),
					.memory_bytes = host_memory_bytes() };
	struct error err = { 0 };
	int r = options_parse(self->options, &args, &serve, &err);

	if (r > 0)
		return help_command(self);
	source.named_file = serve.config;
	source.until_eof = serve.until_eof;
	source.n_flags = serve.n_flags;
	if (r == 0 && serve.check)
		return check_settings(&source);
	if (r == 0)
		r = monitor_serve(&source, &err);
	return r < 0 ? say_error(&err) : 0;
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
	.main = serve_main,
};
