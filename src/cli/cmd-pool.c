/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll pool`: a broker that stays, with runtimes kept ready, for every later `atoll run` and library caller
 * of this user. It prints one line when it listens, and runs until a signal ends it.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "atoll/atoll.h"
#include "base/parse.h"
#include "cli/cmd.h"
#include "cli/say.h"
#include "client/kit-prepare.h"

enum { SPARES_MAX = 4096, NUMBER_MAX = 1000000 };

static int set_memory(void *data, const struct option *self, const char *value, struct error *err)
{
	struct atoll_pool_options *o = data;
	int64_t bytes;

	if (parse_size(value, &bytes) < 0 || bytes <= 0)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "%s needs a size such as 512m, not '%.60s'", self->flag, value);
	o->memory_bytes = bytes;
	return 0;
}

static int set_spares(void *data, const struct option *self, const char *value, struct error *err)
{
	struct atoll_pool_options *o = data;
	int64_t n;

	if (parse_i64(value, &n) < 0 || n > SPARES_MAX)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "%s needs a number from 0 to %d, not '%.60s'", self->flag,
				 SPARES_MAX, value);
	o->spares = n > 0 ? (int)n : -1;
	return 0;
}

/* A whole number; 0: the default. */
static int set_number(void *data, const struct option *self, const char *value, struct error *err)
{
	int64_t n;

	if (parse_i64(value, &n) < 0 || n < 0 || n > NUMBER_MAX)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "%s needs a number from 0 to %d, not '%.60s'", self->flag,
				 NUMBER_MAX, value);
	*(int *)(void *)((char *)data + self->offset) = (int)n;
	return 0;
}

static const struct option rows[] = {
	{ .flag = "--socket",
	  .argument = "PATH",
	  .help = "listen here [/run/atoll/pool.sock; users: $XDG_RUNTIME_DIR/atoll/pool.sock]",
	  .apply = option_set_text,
	  .offset = offsetof(struct atoll_pool_options, socket) },
	{ .flag = "--memory",
	  .argument = "SIZE",
	  .help = "memory of all spares and interpreters [a 16th of the host's, at most 1g]",
	  .apply = set_memory },
	{ .flag = "--spares",
	  .argument = "N",
	  .help = "keep at most this many spares of one kind [16]",
	  .apply = set_spares },
	{ .flag = "--rotate-forks",
	  .argument = "N",
	  .help = "replace an interpreter after so many programs [2000]",
	  .apply = set_number,
	  .offset = offsetof(struct atoll_pool_options, rotate_forks) },
	{ .flag = "--rotate-seconds",
	  .argument = "N",
	  .help = "replace an interpreter after this many seconds [900]",
	  .apply = set_number,
	  .offset = offsetof(struct atoll_pool_options, rotate_seconds) },
	{ .flag = "--idle-seconds",
	  .argument = "N",
	  .help = "halve the spares of a kind that was not used for this many seconds [20]",
	  .apply = set_number,
	  .offset = offsetof(struct atoll_pool_options, idle_seconds) },
};

static const struct option_list pool_options = { .rows = rows, .n = ARRAY_SIZE(rows) };

static void on_ready(void *data, const char *socket)
{
	(void)data;
	(void)fprintf(stderr, "atoll pool: ready on %s\n", socket);
	kit_prepare_behind(NULL);
}

static int pool_main(const struct command *self, int argc, char **argv)
{
	struct atoll_pool_options options = { .size = sizeof(options), .on_ready = on_ready };
	struct arguments args = { .argc = argc, .argv = argv };
	_cleanup_free_ char *problem = NULL;
	struct error err = { 0 };
	int r = options_parse(self->options, &args, &options, &err);

	if (r < 0)
		return say_error(&err);
	if (r > 0)
		return help_command(self);
	r = atoll_pool(&options, &problem);
	if (r < 0)
		say("%s", problem ? problem : strerror(-r));
	return r < 0 ? EXIT_OURS : 0;
}

const struct command cmd_pool = {
	.name = "pool",
	.usage = "[OPTIONS]",
	.summary = "keep sandboxes and runtimes ready for later runs",
	.details =
		"The pool runs until SIGTERM. Runs of the same user find it by its socket, or by "
		"the path in\n"
		"ATOLL_POOL. ATOLL_POOL=off bypasses the pool.\n",
	.options = &pool_options,
	.main = pool_main,
	.hidden = true,
};
