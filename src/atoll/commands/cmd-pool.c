/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll pool`: a broker that stays, with runtimes kept ready, for every later `atoll run` and library caller
 * of this user. It prints one line when it listens, and runs until a signal ends it. With --detach the command forks: its child
 * becomes the pool, and the command itself ends when the child listens or has failed.
 *
 * The same file has what else is made ready before a run: `atoll prepare`, and the pool that a first run starts (own-pool.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atoll/atoll.h"
#include "atoll/commands/cmd.h"
#include "atoll/daemon/config.h"
#include "base/fd.h"
#include "base/parse.h"
#include "run/kit-prepare.h"
#include "run/pool-place.h"

enum { SPARES_MAX = 4096, NUMBER_MAX = 1000000, STOP_WAIT_MS = 20 * 1000 };
#define LEAVE_SECONDS "300"

struct pool_command {
	struct atoll_pool_options pool; /* first: options are set in it */
	bool detach, stop;
	int ready_fd; /* of a detached pool: closed when it listens; 0: it is not detached */
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

#define NUMBER(flag, member, help)                                                                 \
	{                                                                                          \
		flag, 0, "N", help, set_number, offsetof(struct atoll_pool_options, member)        \
	}

static const struct option rows[] = {
	OPTION_TEXT("--socket", 0, "PATH", struct atoll_pool_options, socket,
		    "listen here [/run/atoll/pool.sock; users: $XDG_RUNTIME_DIR/atoll/pool.sock]"),
	{ "--memory", 0, "SIZE",
	  "memory of all spares and interpreters [a 16th of the host's, at most 1g]", set_memory,
	  0 },
	{ "--spares", 0, "N", "keep at most this many spares of one kind [16]", set_spares, 0 },
	NUMBER("--rotate-forks", rotate_forks,
	       "replace an interpreter after so many programs [2000]"),
	NUMBER("--rotate-seconds", rotate_seconds,
	       "replace an interpreter after this many seconds [900]"),
	NUMBER("--idle-seconds", idle_seconds,
	       "halve the spares of a kind that was not used for this many seconds [20]"),
	NUMBER("--leave-seconds", leave_seconds,
	       "end when no command was connected for this many seconds [never]"),
	OPTION_SWITCH("--detach", 0, struct pool_command, detach,
		      "go on in the background; return when the pool listens"),
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

static const struct option_list pool_options = { OPTION_ROWS(rows), .word = take_pool_word };

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

	if (c->ready_fd > 0) {
		let_go(c);
		return;
	}
	(void)snprintf(line, sizeof(line), "atoll pool: ready on %s\n", socket);
	(void)!print_text(STDERR_FILENO, span_of(line));
	kit_prepare_behind(NULL);
}

/* 1: in the child, which becomes the pool; else *ret_code is the command's. */
static int pool_detach(struct pool_command *c, int *ret_code)
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

static int pool_main(struct invocation *in)
{
	struct pool_command *c = in->data;
	_cleanup_free_ char *problem = NULL;
	int r, code;

	if (c->stop)
		return own_pool_stop(c->pool.socket);
	c->pool.size = sizeof(c->pool);
	c->pool.on_ready = on_ready;
	c->pool.data = c;
	if (c->detach && pool_detach(c, &code) == 0)
		return code;
	r = atoll_pool(&c->pool, &problem);
	if (r < 0)
		say("%s", problem ?: strerror(-r));
	return r < 0 ? EXIT_OURS : 0;
}

const struct command cmd_pool = {
	.name = "pool",
	.usage = "[stop] [OPTIONS]",
	.summary = "keep sandboxes and runtimes ready for later runs",
	.details = "The pool runs until SIGTERM or `atoll pool stop`. Runs of the same user find "
		   "it by its socket,\n"
		   "or by the path in ATOLL_POOL. ATOLL_POOL=off bypasses the pool. "
		   "ATOLL_POOL=auto lets a run\n"
		   "start one that ends after five minutes without a run.\n",
	.options = &pool_options,
	.size = sizeof(struct pool_command),
	.main = pool_main,
};

/* --- the pool of this user's runs --- */

/* Its words are kept back: two first runs may start one each, and the second one fails. */
static void spawn_pool(void)
{
	static char program[] = "/proc/self/exe", name[] = "atoll", pool[] = "pool",
		    detach[] = "--detach", leave[] = "--leave-seconds", seconds[] = LEAVE_SECONDS;
	char *const argv[] = { name, pool, detach, leave, seconds, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return;
	if (posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) ==
		    0 &&
	    posix_spawn(&pid, program, &actions, NULL, argv, environ) == 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	(void)posix_spawn_file_actions_destroy(&actions);
}

/* Without ATOLL_POOL the settings decide. Most hosts have none, and then this costs two system calls. */
static bool is_wanted(void)
{
	const char *word = getenv("ATOLL_POOL");
	/* A file that this user cannot read is not meant for this user: /etc's, or another user's in a HOME that sudo kept. */
	const bool readable = access(CONFIG_SYSTEM_FILE, R_OK) == 0;
	const struct config_source source = { .system_file = readable ? CONFIG_SYSTEM_FILE : "",
					      .env = (const char *const *)environ };
	struct error err = { 0 };
	bool wanted = false;

	if (word && *word)
		return pool_place_is_auto();
	if (config_read_pool(&source, &wanted, &err) < 0 && err.errnum != EACCES)
		(void)say_error(&err);
	return wanted;
}

void own_pool_start(void)
{
	_cleanup_free_ char *path = NULL;
	pid_t pid;

	if (!is_wanted() || pool_place_usual(&path) < 0)
		return;
	if (!path)
		say("ATOLL_POOL=auto needs XDG_RUNTIME_DIR, the directory of the pool's socket; "
		    "this run has no pool");
	else if (pool_place_process(path, &pid) < 0)
		spawn_pool();
}

json_t *own_pool_describe(void)
{
	_cleanup_free_ char *path = NULL;
	pid_t pid;

	if (pool_place_find(NULL, &path) < 0 || !path || pool_place_process(path, &pid) < 0)
		return NULL;
	return json_pack("{s:i, s:s}", "pid", (int)pid, "socket", path);
}

/* A pidfd names the process itself, also when it ends meanwhile and its number is given to another one. */
static int end_process(pid_t pid)
{
	_cleanup_close_ int fd = pidfd_open(pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd < 0 || pidfd_send_signal(fd, SIGTERM, NULL, 0) < 0)
		return errno == ESRCH ? 0 : -errno;
	return poll(&p, 1, STOP_WAIT_MS) > 0 ? 0 : -ETIMEDOUT;
}

int own_pool_stop(const char *socket)
{
	_cleanup_free_ char *path = NULL;
	pid_t pid = 0;
	int r = pool_place_find(socket, &path);

	if (r == 0 && !path) {
		say("no pool is wanted here: ATOLL_POOL is off, or XDG_RUNTIME_DIR is not set");
		return EXIT_OURS;
	}
	if (r == 0 && pool_place_process(path, &pid) < 0) {
		say("no pool listens on '%s'", path);
		return EXIT_OURS;
	}
	if (r == 0)
		r = end_process(pid);
	if (r < 0)
		say("the pool, process %d, does not end: %s", (int)pid, strerror(-r));
	return r < 0 ? EXIT_OURS : 0;
}

/* --- prepare: files that a compiler would otherwise make at its first compile (run/toolchain/kit.h); a pool does the same by itself --- */

/* A terminal shows what takes the time; the line is written over. */
static void say_kit(void *data, const char *title, const char *text)
{
	_cleanup_buf_ struct buf line = { .max = 400 };
	const bool *is_terminal = data;
	int r = 0;

	if (*is_terminal)
		r = buf_printf(&line,
			       text ? STYLE_CLEAR_LINE
				    : STYLE_CLEAR_LINE
				       "atoll: preparing %s, which takes up to half a minute",
			       title);
	if (r == 0)
		(void)!print_text(STDERR_FILENO, (struct span){ line.data, line.len });
	line.len = 0;
	if (text && buf_printf(&line, "%-12s %s\n", title, text) == 0)
		(void)!print_out(&line);
}

static const struct option_list prepare_options = { .words = "languages" };

static int prepare_main(struct invocation *in)
{
	const struct atoll_options options = { .size = sizeof(options), .pool = "" };
	bool is_terminal = isatty(STDERR_FILENO);
	/* The words are the last of argv, or others follow; the list ends with NULL. */
	const struct kit_watch watch = { .say = say_kit,
					 .data = &is_terminal,
					 .only = (const char *const *)in->args.words,
					 .cancel_fd = -EBADF };
	_cleanup_free_ char *problem = NULL;
	struct error err = { 0 };
	struct atoll *a;
	int r;

	in->args.words[in->args.n_words] = NULL;
	if (atoll_new(&options, &a, &problem) < 0) {
		say("%s", problem ?: "out of memory");
		return EXIT_OURS;
	}
	r = kit_prepare(a, &watch, &err);
	if (is_terminal)
		(void)!print_text(STDERR_FILENO, span_of(STYLE_CLEAR_LINE));
	(void)atoll_free(a);
	return r < 0 ? say_error(&err) : 0;
}

const struct command cmd_prepare = {
	.name = "prepare",
	.usage = "[LANGUAGE...]",
	.summary = "prepare files that speed up first compiles",
	.details = "The files (precompiled headers, a compiled standard library) are made for each "
		   "installed\n"
		   "compiler and kept in the cache directory (root: /var/cache/atoll; "
		   "$ATOLL_KIT_DIR names another).\n",
	.options = &prepare_options,
	.main = prepare_main,
};
