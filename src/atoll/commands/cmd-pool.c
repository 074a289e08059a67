/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll pool`: a broker that stays, with runtimes kept ready, for every later `atoll run` and library caller
 * of this user. It prints one line when it listens, and runs until a signal ends it. With --detach the command forks: its child
 * becomes the pool, and the command itself ends when the child listens or has failed.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atoll/atoll.h"
#include "atoll/commands/cmd.h"
#include "atoll/commands/own-pool.h"
#include "atoll/commands/printer.h"
#include "atoll/commands/say.h"
#include "base/fd.h"
#include "base/parse.h"
#include "run/kit-prepare.h"

enum { SPARES_MAX = 4096, NUMBER_MAX = 1000000 };

struct pool_command {
	struct atoll_pool_options pool; /* first: options are set in it */
	bool detach, stop;
	int ready_fd; /* of a detached pool: closed when it listens */
};

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
	{ .flag = "--leave-seconds",
	  .argument = "N",
	  .help = "end when no command was connected for this many seconds [never]",
	  .apply = set_number,
	  .offset = offsetof(struct atoll_pool_options, leave_seconds) },
	{ .flag = "--detach",
	  .help = "go on in the background; return when the pool listens",
	  .apply = option_set_true,
	  .offset = offsetof(struct pool_command, detach) },
};

static int take_pool_word(void *data, const char *word, struct error *err)
{
	struct pool_command *c = data;

	if (strcmp(word, "stop") != 0)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "'atoll pool %.60s' is unknown; there is only: atoll pool stop",
				 word);
	c->stop = true;
	return 0;
}

static const struct option_list pool_options = { .rows = rows,
						 .n = ARRAY_SIZE(rows),
						 .word = take_pool_word };

/* Of the terminal and of the files of the command that started it, a detached pool keeps none. */
static void let_go(struct pool_command *c)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = STDIN_FILENO; fd >= 0 && i <= STDERR_FILENO; i++)
		(void)dup2(fd, i);
	(void)fd_close(fd);
	(void)!chdir("/");
	(void)!write(c->ready_fd, "", 1);
	c->ready_fd = fd_close(c->ready_fd);
}

static void on_ready(void *data, const char *socket)
{
	struct pool_command *c = data;
	char line[200];

	if (c->ready_fd >= 0) {
		let_go(c);
		return;
	}
	(void)snprintf(line, sizeof(line), "atoll pool: ready on %s\n", socket);
	(void)!print_text(STDERR_FILENO, span_of(line));
	kit_prepare_behind(NULL);
}

/* 1: in the child, which becomes the pool; else *ret_code is the command's. */
static int detach(struct pool_command *c, int *ret_code)
{
	int ends[2], status = 0;
	char ready;
	pid_t pid;

	/* Descriptors of the caller's, such as a lock of its shell, would stay open as long as the pool. */
	(void)close_range(STDERR_FILENO + 1, ~0U, 0);
	pid = pipe2(ends, O_CLOEXEC) < 0 ? -1 : fork();
	if (pid < 0) {
		say("the pool cannot be started: %s", strerror(errno));
		*ret_code = EXIT_OURS;
		return 0;
	}
	(void)fd_close(ends[pid == 0 ? 0 : 1]);
	if (pid == 0) {
		(void)setsid();
		c->ready_fd = ends[1];
		return 1;
	}
	*ret_code = 0;
	if (read(ends[0], &ready, 1) != 1)
		*ret_code = waitpid(pid, &status, 0) == pid && WIFEXITED(status)
				    ? WEXITSTATUS(status)
				    : EXIT_OURS;
	(void)fd_close(ends[0]);
	return 0;
}

static int serve_pool(struct pool_command *c)
{
	_cleanup_free_ char *problem = NULL;
	int r, code;

	if (c->detach && detach(c, &code) == 0)
		return code;
	r = atoll_pool(&c->pool, &problem);
	if (r < 0)
		say("%s", problem ? problem : strerror(-r));
	return r < 0 ? EXIT_OURS : 0;
}

static int pool_main(const struct command *self, int argc, char **argv)
{
	struct pool_command c = { .ready_fd = -EBADF };
	struct arguments args = { .argc = argc, .argv = argv };
	struct error err = { 0 };
	int r = options_parse(self->options, &args, &c, &err);

	if (r < 0)
		return say_error(&err);
	if (r > 0)
		return help_command(self);
	if (c.stop)
		return own_pool_stop(c.pool.socket);
	c.pool.size = sizeof(c.pool);
	c.pool.on_ready = on_ready;
	c.pool.data = &c;
	return serve_pool(&c);
}

const struct command cmd_pool = {
	.name = "pool",
	.usage = "[stop] [OPTIONS]",
	.summary = "keep sandboxes and runtimes ready for later runs",
	.details = "The pool runs until SIGTERM or `atoll pool stop`. Runs of the same user find "
		   "it by "
		   "its socket,\n"
		   "or by the path in ATOLL_POOL. ATOLL_POOL=off bypasses the pool. "
		   "ATOLL_POOL=auto lets "
		   "a run\n"
		   "start one that ends after five minutes without a run.\n",
	.options = &pool_options,
	.main = pool_main,
};
