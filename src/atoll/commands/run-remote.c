/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll run` through a running daemon, which is a runner (run/runner.h, atoll/remote/runner-socket.h): the request is opened and started
 * there, and its events come from the loop. The daemon is looked for first (one connect() to a path): without a
 * daemon that costs nothing, and with one no broker is started.
 *
 * These runs stay in this process although a daemon listens:
 *
 *   --tty                         the library handles the terminal's size and modes
 *   --output-dir                  the library stores files there as they are collected
 *   --image, --mount, --policy FILE    the caller's own files, which the daemon must not open
 *   --no-history                  its help promises so
 *   --explain                     the answer is about this host and this user
 *   a daemon that declined        it has no room, is too old, or does not serve here; nothing ran yet
 *
 * The last holds for a daemon that was found at its default place, and a note says so. A daemon that the user named (--url, ATOLL_URL,
 * ATOLL_SOCKET) has no substitute: what it does not answer or declines is an error.
 *
 * Standard input that ends within STDIN_MS is sent with the request, as its "stdin". Longer input, and a
 * terminal's, follows while the program runs.
 */
#include "atoll/commands/cmd-run.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/remote.h"
#include "atoll/remote/runner-socket.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/loop.h"
#include "run/executor.h"

enum {
	STDIN_MS = 5,
	STDIN_MAX = 1 << 20,
	HELD_MAX = 4 << 20, /* more than a pipe holds */
	NAMES_MAX = 400,
	OPEN_MS = 1000,	  /* the daemon may have closed an older idle connection */
	CANCEL_MS = 5000, /* that a cancelled run is waited for */
};

int run_remote_open(struct run_remote *d, const char *url, struct error *err)
{
	int r = remote_find(url, &d->remote, err);

	if (r < 0)
		return err->code == ERROR_NONE ? 0 : r;
	d->opened_ns = clock_now_ns();
	d->absent = -http_client_open(&d->remote.address, &d->client);
	d->is_there = d->absent == 0;
	return 0;
}

void run_remote_close(struct run_remote *d)
{
	d->client = http_client_free(d->client);
	d->is_there = false;
}

static bool suits(const struct run_options *o, const json_t *request)
{
	const char *policy = json_string_value(json_object_get(request, "policy"));

	if (o->output_dir || json_object_get(request, "image") ||
	    json_object_get(request, "mounts") ||
	    json_is_false(json_object_get(request, "history")) ||
	    json_is_true(json_object_get(request, "tty")))
		return false;
	return !policy || (!strchr(policy, '/') && !strstr(policy, ".yaml"));
}

/* Reads until the end, the bound or the deadline. 1: it has ended. */
static int read_input(struct buf *ret)
{
	int64_t until_ns = clock_now_ns() + STDIN_MS * NS_PER_MS;
	char piece[16 << 10];

	while (ret->len < STDIN_MAX) {
		struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
		int64_t left_ms = (until_ns - clock_now_ns()) / NS_PER_MS;
		ssize_t n;
		int r = poll(&fd, 1, (int)MAX(left_ms, (int64_t)0));

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : 0;
		n = read(STDIN_FILENO, piece, MIN(sizeof(piece), STDIN_MAX - ret->len));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 1;
		r = buf_append(ret, piece, (size_t)n);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Standard input as part of the request. true: there is more of it. */
static bool take_input(struct run_options *o, json_t *request)
{
	_cleanup_buf_ struct buf text = { 0 };
	json_t *value;

	if (!run_feeds_stdin(o, request))
		return false;
	if (isatty(STDIN_FILENO))
		return true;
	buf_init(&text, STDIN_MAX);
	/* An input that cannot be read counts as ended. */
	o->stdin_over = read_input(&text) != 0;
	if (text.len > 0) {
		value = bytes_to_json(text.data, text.len);
		/* If memory is out here, the run fails later for the same reason. */
		o->stdin_begun = json_object_set_new(request, "stdin", value) == 0;
	}
	return !o->stdin_over;
}

/* A run in progress. */
struct passage {
	struct run_remote *d;
	struct run_options *o;
	struct run_outcome *out;
	struct progress *progress;
	struct run_stream stream;
	struct loop *loop;
	struct run *run; /* NULL: it has ended */
	struct source *cancel, *slow, *input;
	struct buf held;    /* input that the daemon did not take yet */
	bool input_is_file; /* which cannot be waited for, and need not be */
	bool input_ends;    /* behind what is held */
	bool input_over;    /* the daemon has all of it */
	bool wants_result;  /* more of it is printed than the output */
	bool leaving;	    /* the run was cancelled, and the end should come soon */
	struct runner_socket socket;
	struct error err;
};

/* --- input --- */

/* Gives the daemon what is held, and its end. The descriptor is asked again when all of it was taken. */
static void passage_push(struct passage *p)
{
	ssize_t taken = p->run->vtable->input(p->run, (struct span){ p->held.data, p->held.len },
					      p->input_ends);

	if (taken < 0 || (p->input_ends && (size_t)taken == p->held.len)) {
		p->input_over = true;
		p->input = source_free(p->input);
		return;
	}
	memmove(p->held.data, p->held.data + taken, p->held.len - (size_t)taken);
	p->held.len -= (size_t)taken;
	if (p->input)
		(void)!loop_set_events(p->input, p->held.len > 0 ? 0 : EPOLLIN);
}

/*
 * One read of a descriptor that is ready, or of a file: another one would wait. A pipe whose writer left is always ready, so its rest is
 * held. An input that cannot be read counts as ended.
 */
static void passage_read(struct passage *p)
{
	char piece[16 << 10];
	ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0 || buf_append(&p->held, piece, (size_t)n) < 0) {
		p->input_ends = true;
		p->input = source_free(p->input);
	}
	passage_push(p);
}

/* The daemon has room. */
static void passage_feed(struct passage *p)
{
	if (!p->input_over && p->held.len > 0)
		passage_push(p);
	while (p->input_is_file && p->run && !p->input_over && p->held.len == 0)
		passage_read(p);
}

static int on_passage_input(void *data, uint32_t events _unused_)
{
	passage_read(data);
	return 0;
}

/* --- time, and a person's patience --- */

static int on_passage_cancel(void *data, uint32_t events _unused_)
{
	struct passage *p = data;

	p->cancel = source_free(p->cancel);
	(void)p->run->vtable->kill(p->run, CAUSE_CANCELLED, RUN_KILL_NOW);
	/* The rest of the daemon's answer does not matter, and is not waited for without end. */
	p->leaving = true;
	source_set_time(p->slow, clock_now_ns() + CANCEL_MS * NS_PER_MS);
	return 0;
}

static int on_passage_slow(void *data, uint32_t events _unused_)
{
	struct passage *p = data;

	if (!p->leaving) { /* a second in which only the compiler can have worked */
		say("compiling…");
		return 0;
	}
	(void)error_set(&p->err, ERROR_INTERNAL, ETIMEDOUT,
			"the daemon does not end the program; see its log");
	p->run->vtable->discard(TAKE_PTR(p->run));
	loop_stop(p->loop);
	return 0;
}

/* Whether the run begins with a compile stage, and a person waits for it. */
static bool is_watched(const struct run_remote *d, const struct run_options *o,
		       const json_t *request)
{
	const char *language = json_string_value(json_object_get(request, "language"));

	return o->progress.wanted && !o->json && language && !json_object_get(request, "stages") &&
	       flow_language_is_compiled(d->atoll, language);
}

/* --- events --- */

static void passage_conclude(struct passage *p, struct run_end *end)
{
	struct remote_ending ending;
	json_t *result;
	char *text;

	if (end->error.code != ERROR_NONE) {
		p->err = end->error;
		return;
	}
	result = json_loadb(end->text.data, end->text.len, JSON_ALLOW_NUL, NULL);
	if (!result) {
		(void)error_set(&p->err, ERROR_INTERNAL, EBADMSG, "the daemon's result is no JSON");
		return;
	}
	remote_end(result, &ending);
	p->out->exit_code = ending.exit_code;
	p->out->reduced = ending.reduced[0] ? strdup(ending.reduced) : NULL;
	text = ending.text[0] ? strdup(ending.text) : NULL;
	if (ending.is_problem)
		p->out->problem = text;
	else
		p->out->notice = text;
	if (p->o->json)
		p->out->json = (char *)(uintptr_t)TAKE_PTR(end->text.data);
	else if (p->wants_result)
		p->out->result = json_incref(result);
	json_decref(result);
}

static int on_passage_event(void *data, const struct run_event *event)
{
	struct passage *p = data;

	switch (event->kind) {
	case RUN_OUTPUT:
		return p->o->json
			       ? 0
			       : run_output(&p->stream,
					    event->output.stream == OUTPUT_STDERR ? STDERR_FILENO
										  : STDOUT_FILENO,
					    event->output.bytes.data, event->output.bytes.len);
	case RUN_STAGE:
		if (!p->leaving)
			source_set_time(p->slow, INT64_MAX);
		return 0;
	case RUN_STDIN_ROOM:
		passage_feed(p);
		return 0;
	case RUN_END:
		p->run = NULL;
		passage_conclude(p, event->end);
		loop_stop(p->loop);
		return 0;
	default:
		return 0;
	}
}

/*
 * The daemon's message names an HTTP route; on the command line the names of the policies are listed instead.
 */
static void name_policies(const struct remote *remote, const json_t *request, struct error *err)
{
	const struct http_call call = { .method = HTTP_GET, .target = "/v1/policies" };
	const char *asked = json_string_value(json_object_get(request, "policy"));
	_cleanup_buf_ struct buf names = { .max = NAMES_MAX };
	struct error ignored = { 0 };
	json_t *list = NULL, *one;
	size_t i;

	if (!asked || !strstr(err->text, call.target) ||
	    remote_json(remote, &call, &list, &ignored) < 0)
		return;
	/* Names that do not fit the sentence are left out. */
	json_array_foreach(json_object_get(list, "policies"), i, one)
	{
		(void)!buf_printf(&names, "%s%s", i > 0 ? ", " : "",
				  json_string_value(json_object_get(one, "name")));
	}
	if (names.len > 0)
		(void)error_field(err, "policy",
				  "policy: there is none named '%.64s'; the daemon has: %s "
				  "(a file of your own: --policy FILE)",
				  asked, names.data);
	json_decref(list);
}

static void tell_sent(void *data, size_t sent, size_t of)
{
	if (of >= MiB)
		progress_say(data, "sending %zu of %zu MiB", sent >> 20, of >> 20);
}

/* 1: it runs; 0: run it here, and *err says why; negative: refused. */
static int passage_open(struct passage *p, json_t *request, struct error *err)
{
	struct remote *remote = &p->d->remote;
	struct runner_socket *s = &p->socket;
	int r;

	if (clock_now_ns() - p->d->opened_ns > OPEN_MS * NS_PER_MS)
		p->d->client = http_client_free(p->d->client);
	*s = (struct runner_socket){ .loop = p->loop,
				     .address = &remote->address,
				     .token = remote->token[0] ? remote->token : NULL,
				     .client = TAKE_PTR(p->d->client),
				     .cancel_fd = p->stream.cancel_fd,
				     .on_sent = tell_sent,
				     .data = p->progress };
	runner_socket_init(s);
	r = s->runner.vtable->open(&s->runner, request, &p->run, err);
	s->client = http_client_free(s->client);
	progress_clear(p->progress);
	return r == 0 ? 1 : s->declined && !remote->named ? 0 : r;
}

static int passage_start(struct passage *p, bool interactive, struct error *err)
{
	const struct run_start how = {
		.observer = { p, RUN_EVENTS_ALL, on_passage_event },
		.interactive = interactive,
	};
	int r = loop_add_fd(p->loop, p->stream.cancel_fd, EPOLLIN,
			    (struct handler){ on_passage_cancel, p }, &p->cancel);

	if (r == 0)
		r = loop_add_timer(p->loop, INT64_MAX, (struct handler){ on_passage_slow, p },
				   &p->slow);
	if (r == 0 && interactive) {
		r = loop_add_fd(p->loop, STDIN_FILENO, EPOLLIN,
				(struct handler){ on_passage_input, p }, &p->input);
		p->input_is_file = r == -EPERM;
		r = p->input_is_file ? 0 : r;
	}
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot wait for the daemon: %s",
				 strerror(-r));
	return p->run->vtable->start(p->run, &how, err);
}

static void passage_done(struct passage *p)
{
	if (p->run)
		p->run->vtable->discard(p->run);
	p->input = source_free(p->input);
	p->cancel = source_free(p->cancel);
	p->slow = source_free(p->slow);
	p->loop = loop_free(p->loop);
	buf_done(&p->held);
	(void)fd_close(p->stream.cancel_fd);
}

/* As passage_open(). A signal ends the program, then this process. */
static int passage_run(struct passage *p, json_t *request, struct error *err)
{
	const bool compiles = is_watched(p->d, p->o, request);
	const bool interactive = take_input(p->o, request);
	int r = passage_open(p, request, err);

	p->wants_result = run_wants_result(p->o, request);
	if (r > 0)
		r = passage_start(p, interactive, err) < 0 ? -err->errnum : 1;
	if (r > 0) {
		if (compiles)
			source_set_time(p->slow, clock_now_ns() + NS_PER_SEC);
		if (p->input_is_file)
			passage_feed(p);
		r = loop_run(p->loop);
		*err = p->err;
		r = r < 0 ? r : err->code != ERROR_NONE ? -EIO : 1;
	}
	p->out->signal = run_signal_taken(p->stream.cancel_fd);
	p->out->broken = p->stream.broken;
	return p->out->signal || p->out->broken ? 1 : r;
}

static void say_without(const struct run_options *o, struct error *err)
{
	if (!o->quiet)
		say("the program runs without the daemon: %s", err->text);
	*err = (struct error){ 0 };
}

/* No connection was made. At a default place where no daemon ever was, there is nothing to say. */
static int be_without(const struct run_remote *d, const struct run_options *o, struct error *err)
{
	struct error why = { 0 };

	if (d->absent == 0 || (!d->remote.named && (d->absent == ENOENT || d->absent == ENOTDIR)))
		return 0;
	(void)!remote_absent(&d->remote, d->absent, &why);
	if (d->remote.named)
		return error_set(err, ERROR_INTERNAL, d->absent,
				 "%s, or run the program without it: --no-daemon", why.text);
	say_without(o, &why);
	return 0;
}

int run_remote(struct run_remote *d, struct run_options *o, json_t *request,
	       struct run_outcome *out, struct error *err)
{
	struct passage p = { .d = d, .o = o, .out = out, .progress = &o->progress };
	int r;

	if (!suits(o, request))
		return 0;
	if (!d->is_there)
		return be_without(d, o, err);
	p.stream.cancel_fd = run_signal_fd(err);
	if (p.stream.cancel_fd < 0)
		return p.stream.cancel_fd;
	buf_init(&p.held, HELD_MAX);
	p.loop = loop_new();
	r = p.loop ? passage_run(&p, request, err) : error_oom(err);
	passage_done(&p);
	if (r == 0)
		say_without(o, err);
	if (r < 0)
		name_policies(&d->remote, request, err);
	return r;
}
