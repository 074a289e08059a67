/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll run`. The public library does the work; this file is about the process: output is passed on as it
 * comes, signals cancel the run instead of killing the process (the library watches a signalfd), a reader that
 * closes the output ends the run without a message, and a terminal is always restored.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "atoll/commands/cmd-run.h"
#include "atoll/commands/cmd.h"
#include "base/clock.h"
#include "base/fd.h"
#include "run/executor.h"
#include "spec/result.h"

/* A writable pipe takes this much without blocking. */
enum { CHUNK = 4096 };

/* Waits until fd takes bytes; -ECANCELED when a signal comes first. */
static int wait_writable(const struct run_stream *s, int fd)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLOUT },
				{ .fd = s->cancel_fd, .events = POLLIN } };

	while (poll(fds, ARRAY_SIZE(fds), -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return fds[1].revents & POLLIN ? -ECANCELED : 0;
}

int run_output(struct run_stream *s, int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t written;
		int r = wait_writable(s, fd);

		if (r < 0)
			return r;
		written = write(fd, bytes, MIN(n, (size_t)CHUNK));
		if (written < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (written < 0) {
			s->broken = errno;
			return -s->broken;
		}
		bytes += written;
		n -= (size_t)written;
	}
	return 0;
}

static int on_command_output(void *data, enum atoll_stream stream, const void *bytes, size_t n)
{
	return run_output(data, stream == ATOLL_STDERR ? STDERR_FILENO : STDOUT_FILENO, bytes, n);
}

static void on_command_compiling(void *data _unused_)
{
	say("compiling…");
}

/* A person waits there, and a raw terminal shows no line of ours. */
static bool tells_progress(const struct run_options *o, bool tty)
{
	return !o->quiet && !tty && isatty(STDERR_FILENO);
}

static int signal_fd(const int *signals, size_t n, struct error *err)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		(void)sigaddset(&set, signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "cannot block signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? error_set(err, ERROR_INTERNAL, errno, "cannot watch signals: %s",
				  strerror(errno))
		      : fd;
}

int run_signal_fd(struct error *err)
{
	static const int cancel_signals[] = { SIGINT, SIGTERM, SIGHUP };

	return signal_fd(cancel_signals, ARRAY_SIZE(cancel_signals), err);
}

int run_signal_taken(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

/* Makes the directory if its parent exists; it must be writable. */
static int prepare_output_dir(const char *dir, struct error *err)
{
	struct stat st;

	if (!dir)
		return 0;
	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return error_set(err, ERROR_STORAGE, errno, "cannot make --output-dir '%.300s': %s",
				 dir, strerror(errno));
	if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return error_set(err, ERROR_STORAGE, ENOTDIR,
				 "--output-dir '%.300s' is no directory", dir);
	if (access(dir, W_OK | X_OK) < 0)
		return error_set(err, ERROR_STORAGE, errno,
				 "cannot write to --output-dir '%.300s': %s", dir, strerror(errno));
	return 0;
}

/* Fields of every result; request may be NULL. */
static void sign(struct result *res, const json_t *request)
{
	const char *language = json_string_value(json_object_get(request, "language"));

	run_make_id(res->id, sizeof(res->id));
	res->created_realtime_ns = clock_realtime_ns();
	res->language = language ? strdup(language) : NULL;
	if (gethostname(res->node, sizeof(res->node) - 1) < 0)
		res->node[0] = '\0';
}

/* If a result was asked for, a refusal by this process or by a daemon is printed as a result, too. */
static int fail_run(const struct run_options *o, const json_t *request, const struct error *err)
{
	struct result *res;
	_cleanup_free_ char *text = NULL;

	if (!o->json)
		return say_error(err);
	res = result_from_error(err);
	if (res)
		sign(res, request);
	text = res ? result_to_text(res) : NULL;
	(void)result_free(res);
	if (!text || print_json(text) != 0)
		return say_error(err);
	return error_exit_code((enum error_code)err->code);
}

bool run_wants_result(const struct run_options *o, const json_t *request)
{
	return o->json || json_object_get(request, "tests") || json_object_get(request, "invoke") ||
	       json_is_true(json_object_get(request, "eval"));
}

bool run_feeds_stdin(const struct run_options *o, const json_t *request)
{
	static const char *const keys[] = { "stdin", "tests", "invoke", "eval" };

	if (o->stdin_begun || o->stdin_over)
		return !o->stdin_over;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (json_object_get(request, keys[i]))
			return false;
	}
	return !o->stdin_is_code && fcntl(STDIN_FILENO, F_GETFD) >= 0;
}

static void outcome_done(struct run_outcome *out)
{
	free(out->json);
	json_decref(out->result);
	free(out->notice);
	free(out->problem);
	free(out->reduced);
}

static int launch_run(struct atoll *atoll, const struct run_options *o, json_t *request,
		      struct run_outcome *out, struct error *err)
{
	static const int resize_signal[] = { SIGWINCH };
	bool wants_result = run_wants_result(o, request);
	bool tty = json_is_true(json_object_get(request, "tty"));
	_cleanup_close_ int cancel_fd = run_signal_fd(err);
	_cleanup_close_ int resize_fd = tty ? signal_fd(resize_signal, 1, err) : -EBADF;
	struct run_stream stream = { .cancel_fd = cancel_fd };
	struct terminal terminal = { .fd = -EBADF };
	struct atoll_run_options options = {
		.size = sizeof(options),
		.on_output = o->json ? NULL : on_command_output,
		.data = &stream,
		.use_stdin_fd = run_feeds_stdin(o, request),
		.stdin_fd = STDIN_FILENO,
		.use_cancel_fd = 1,
		.cancel_fd = cancel_fd,
		.use_terminal_fd = tty && isatty(STDIN_FILENO),
		.terminal_fd = STDIN_FILENO,
		.use_resize_fd = tty && resize_fd >= 0,
		.resize_fd = resize_fd,
		.output_dir = o->output_dir,
		.brief = !o->json,
		.exit_code = &out->exit_code,
		.notice = &out->notice,
		.reduced = &out->reduced,
		.on_compiling = tells_progress(o, tty) ? on_command_compiling : NULL,
	};

	if (cancel_fd < 0)
		return cancel_fd;
	if (tty)
		terminal_raw(&terminal, STDIN_FILENO);
	(void)atoll_run_tree(
		atoll, request, &options,
		(struct atoll_run_result){ .json = wants_result && o->json ? &out->json : NULL,
					   .tree = wants_result && !o->json ? &out->result : NULL },
		&out->problem);
	terminal_restore(&terminal);
	out->signal = run_signal_taken(cancel_fd);
	out->broken = stream.broken;
	return 0;
}

static int finish_command(const struct run_options *o, const struct run_outcome *out)
{
	if (out->broken == EPIPE)
		return EXIT_SIGNAL + SIGPIPE;
	if (out->broken) {
		/* EBADF: this process was started with the stream closed. */
		say("cannot write what the program printed: %s",
		    out->broken == EBADF ? "standard output or standard error is closed"
					 : strerror(out->broken));
		return EXIT_OURS;
	}
	if (o->json && out->json) {
		int r = print_json(out->json);

		return r != 0 ? r : out->signal ? EXIT_SIGNAL + out->signal : out->exit_code;
	}
	if (out->reduced && !o->quiet)
		say("%s", out->reduced);
	if (out->problem)
		say("%s", out->problem);
	else if (out->notice && !o->quiet && !out->signal)
		say("%s", out->notice);
	if (out->signal)
		return EXIT_SIGNAL + out->signal;
	return out->result && !out->problem ? run_report(out->result, out->exit_code)
					    : out->exit_code;
}

static int explain_request(struct atoll *atoll, const struct run_options *o, const json_t *request)
{
	_cleanup_free_ char *body = json_dumps(request, JSON_COMPACT), *text = NULL,
			    *problem = NULL;
	struct error err = { 0 };
	enum error_code code;
	int r = -ENOMEM;

	if (body)
		r = (o->json ? atoll_explain_json : atoll_explain)(atoll, body, &text, &problem);
	if (r == 0 && o->json)
		return print_json(text);
	if (r == 0)
		return print_out(&(struct buf){ .data = text, .len = strlen(text) });
	code = r == -EPERM ? ERROR_POLICY : r == -ENOPKG ? ERROR_RUNTIME : ERROR_INPUT;
	(void)error_set(&err, code, -r, "%s", problem ? problem : strerror(-r));
	return fail_run(o, request, &err);
}

/* Runs it through the daemon, or here. */
static int perform(struct atoll *atoll, struct run_remote *daemon, struct run_options *o,
		   json_t *request)
{
	_cleanup_(outcome_done) struct run_outcome out = { .exit_code = EXIT_OURS };
	struct error err = { 0 };
	int r;

	daemon->atoll = atoll;
	r = run_remote(daemon, o, request, &out, &err);

	run_remote_close(daemon);
	if (r == 0)
		r = launch_run(atoll, o, request, &out, &err);
	return r < 0 ? fail_run(o, request, &err) : finish_command(o, &out);
}

static int run_with(struct atoll *atoll, struct run_remote *daemon, struct run_options *o,
		    char *const *words)
{
	struct error err = { 0 };
	json_t *request = NULL;
	int r = run_body(o, atoll, words, &request, &err), code;

	if (r == 0 && !o->explain)
		r = prepare_output_dir(o->output_dir, &err);
	if (r < 0)
		code = fail_run(o, request, &err);
	else if (o->explain)
		code = explain_request(atoll, o, request);
	else
		code = perform(atoll, daemon, o, request);
	json_decref(request);
	return code;
}

/* Whether one of the words is among the options, before options are parsed. */
static bool has_word(int argc, char **argv, const char *const *words, size_t n)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		for (size_t k = 0; k < n; k++)
			if (strcmp(argv[i], words[k]) == 0)
				return true;
	return false;
}

/* Whether the words ask for a run, so that a broker or a daemon is needed; --help and the like do not. */
static bool is_to_run(int argc, char **argv)
{
	static const char *const words_only[] = { "--help", "-h", "--explain" };

	return argc > 1 && !has_word(argc, argv, words_only, ARRAY_SIZE(words_only));
}

/* The value of --url, before options are parsed. */
static const char *word_of_url(int argc, char **argv)
{
	static const char flag[] = "--url";
	const char *url = NULL;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], flag) == 0 && i + 1 < argc)
			url = argv[++i];
		else if (strncmp(argv[i], "--url=", sizeof(flag)) == 0)
			url = argv[i] + sizeof(flag);
	}
	return url;
}

static int find_daemon(int argc, char **argv, struct run_remote *ret, struct error *err)
{
	static const char *const never[] = { "--no-daemon" };

	if (!is_to_run(argc, argv) || has_word(argc, argv, never, ARRAY_SIZE(never)))
		return 0;
	return run_remote_open(ret, word_of_url(argc, argv), err);
}

static int run_main(struct invocation *in)
{
	static const char *const as_json[] = { "--json" };
	struct atoll_options how = { .size = sizeof(how) };
	const int argc = in->args.argc;
	char **argv = in->args.argv;
	struct run_options options = { 0 };
	_cleanup_free_ char *problem = NULL;
	struct run_remote daemon = { 0 };
	struct error err = { 0 }, misled = { 0 };
	/*
	 * Never freed: after a run all its processes are dead, and the broker cleans up by itself when this
	 * process closes its socket. Waiting for that would add a tenth to the time of a short run.
	 */
	static struct atoll *atoll;
	int code, r, found = find_daemon(argc, argv, &daemon, &misled), started;

	how.start_broker = found == 0 && !daemon.is_there && is_to_run(argc, argv);
	if (how.start_broker)
		own_pool_start();
	started = atoll_new(&how, &atoll, &problem);
	/* A closed reader must be an error of write(), not a signal that kills this process during a run. */
	(void)signal(SIGPIPE, SIG_IGN);
	options.overrides = json_object();
	options.progress.wanted = isatty(STDERR_FILENO);
	r = options_parse(in->command->options, &in->args, &options, &err);
	options.progress.wanted &= !options.quiet;
	if (r > 0) {
		code = help_command(in->command);
	} else if (r < 0) {
		/* --json may come after the option that could not be parsed. */
		options.json = has_word(argc, argv, as_json, ARRAY_SIZE(as_json));
		code = fail_run(&options, NULL, &err);
	} else if (found < 0) {
		code = fail_run(&options, NULL, &misled);
	} else if (started < 0) {
		(void)error_set(&err, ERROR_INTERNAL, ENOENT, "%s",
				problem ? problem : "cannot start");
		code = fail_run(&options, NULL, &err);
	} else {
		code = run_with(atoll, &daemon, &options, argv + in->args.rest);
	}
	run_remote_close(&daemon);
	json_decref(options.overrides);
	return code;
}

const struct command cmd_run = {
	.name = "run",
	.usage = "[FILE | DIR | - | -c CODE] [-l LANG] [OPTIONS] [-- ARGS…]",
	.summary = "run a program in a sandbox",
	.details =
		"The program's output is printed as it is written, and standard input is passed "
		"in. "
		"The exit\n"
		"code is the program's own, or: 124 after a timeout, 125 when atoll failed, 126 "
		"when the policy\n"
		"refused, 127 for an unknown language or a missing runtime, 128+n after signal n.\n"
		"\n"
		"  atoll run script.py -- a b       run a file with arguments\n"
		"  atoll run app/                   run a directory: main.*, __main__.py, "
		"package.json,\n"
		"                                   a Go module, a Cargo package or a Makefile\n"
		"  atoll run -l bash -c 'echo hi'   run a piece of code\n"
		"  generate | atoll run -l js -     run code from standard input\n"
		"  atoll run sum.c --tests t.json   compile once, judge against each test\n",
	.options = &run_option_list,
	.main = run_main,
	.parses = true,
};
