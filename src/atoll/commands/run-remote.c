/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll run` through a running daemon: the same request as POST /v1/execute, with its events as they happen,
 * or with --json the result as it comes. The daemon is looked for first (one connect() to a path): without a
 * daemon that costs nothing, and with one no broker is started.
 *
 * These runs stay in this process although a daemon listens:
 *
 *   --tty                         the library handles the terminal's size and modes
 *   --output-dir                  the library stores files there as they are collected
 *   --image, --mount, --policy FILE    the caller's own files, which the daemon must not open
 *   --no-history                  of bytes that are no text, and of what has ended, the daemon tells what it has on record
 *   --explain                     the answer is about this host and this user
 *   HTTP_ANSWER_DECLINED          the daemon has no room, or does not serve here; nothing ran yet
 *
 * The last holds for a daemon that was found at its default place, and a note says so. A daemon that the user named (--url, ATOLL_URL,
 * ATOLL_SOCKET) has no substitute: what it does not answer or declines is an error.
 *
 * Standard input that ends within STDIN_MS is sent with the request, as its "stdin". Longer input, and a
 * terminal's, follows over a WebSocket (remote_attach).
 */
#include "atoll/commands/cmd-run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/remote.h"
#include "base/clock.h"
#include "base/fd.h"
#include "run/executor.h"

enum {
	STDIN_MS = 5,
	STDIN_MAX = 1 << 20,
	RESULT_MAX = 256 << 20,
	NAMES_MAX = 400,
	OPEN_MS = 1000, /* the daemon may have closed an older idle connection */
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
	const struct run_options *o;
	struct run_outcome *out;
	struct progress *progress;
	struct run_stream stream;
	bool wants_result; /* more of it is printed than the output */
	bool interactive;  /* input follows */
	bool compiles;	   /* first, and a person waits */
};

static int pass_output(void *data, int fd, const char *bytes, size_t n)
{
	struct passage *p = data;

	return run_output(&p->stream, fd, bytes, n);
}

static int read_whole(struct passage *p, json_t **ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	struct span piece;
	int r;

	buf_init(&text, RESULT_MAX);
	while ((r = http_client_read(p->d->client, &piece, err)) > 0) {
		r = buf_append(&text, piece.data, piece.len);
		if (r < 0)
			return error_set(err, ERROR_INTERNAL, -r, "the result is too large: %s",
					 strerror(-r));
	}
	if (r < 0)
		return r;
	*ret = json_loadb(text.data ? text.data : "", text.len, JSON_ALLOW_NUL, NULL);
	if (p->o->json)
		p->out->json = buf_take(&text);
	else
		p->out->result = json_incref(*ret);
	return *ret ? 0 : error_set(err, ERROR_INTERNAL, EBADMSG, "the daemon's result is no JSON");
}

/* "/v1/executions/ID", the address of the run. */
static int read_id(const struct http_client *c, char *ret, size_t size, struct error *err)
{
	struct span location = http_head_field(&c->response.head, "content-location");
	const char *slash = location.data ? memrchr(location.data, '/', location.len) : NULL;
	size_t n = slash ? location.len - (size_t)(slash + 1 - location.data) : 0;

	if (n == 0 || n >= size)
		return error_set(err, ERROR_INTERNAL, EPROTO,
				 "what answers at %s is no atoll daemon: it names no execution",
				 c->address->text);
	memcpy(ret, slash + 1, n);
	ret[n] = '\0';
	return 0;
}

/* A second has passed in which only the compiler can have worked. A signal, because two kinds of loops wait for the daemon. */
static void tell_compiling(int number _unused_)
{
	static const char text[] = "atoll: compiling…\n";

	(void)!print_raw(STDERR_FILENO, text, sizeof(text) - 1);
}

static void watch_compiling(void)
{
	const struct sigaction action = { .sa_handler = tell_compiling,
					  .sa_flags = SA_RESTART | SA_RESETHAND };

	if (sigaction(SIGALRM, &action, NULL) == 0)
		(void)alarm(1);
}

/* Whether the run begins with a compile stage, and a person waits for it. */
static bool is_watched(const struct run_remote *d, const struct run_options *o,
		       const json_t *request)
{
	const char *language = json_string_value(json_object_get(request, "language"));

	return o->progress.wanted && language && !json_object_get(request, "stages") &&
	       flow_language_is_compiled(d->atoll, language);
}

static void end_watch(void *data _unused_)
{
	(void)alarm(0);
}

static int read_events(struct passage *p, json_t **ret, struct error *err)
{
	struct remote_attach a = { .follow = { .remote = &p->d->remote,
					       .client = p->d->client,
					       .output = p->o->json ? NULL : pass_output,
					       .stage = end_watch,
					       .data = p },
				   .input_fd = STDIN_FILENO,
				   .cancel_fd = p->stream.cancel_fd };
	char id[64];
	int r = p->interactive ? read_id(p->d->client, id, sizeof(id), err) : 0;

	if (r == 0)
		r = p->interactive ? remote_attach(&a, id, err) : remote_follow(&a.follow, err);
	if (r < 0) {
		json_decref(a.follow.result);
		return r;
	}
	if (p->o->json)
		p->out->json = remote_dump(a.follow.result);
	else if (p->wants_result)
		p->out->result = json_incref(a.follow.result);
	*ret = a.follow.result;
	return 0;
}

static void conclude(struct passage *p, const json_t *result)
{
	struct remote_ending ending;
	char *text;

	remote_end(result, &ending);
	p->out->exit_code = ending.exit_code;
	p->out->reduced = ending.reduced[0] ? strdup(ending.reduced) : NULL;
	text = ending.text[0] ? strdup(ending.text) : NULL;
	if (ending.is_problem)
		p->out->problem = text;
	else
		p->out->notice = text;
}

/* With --json nothing is printed before the result. */
static bool is_whole(const struct passage *p)
{
	return p->o->json && !p->interactive;
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
static int begin_passage(struct passage *p, const char *body, struct error *err)
{
	struct run_remote *d = p->d;
	const struct http_call call = {
		.method = HTTP_POST,
		.target = p->interactive ? "/v1/execute?disconnect=cancel&interactive=true"
					 : "/v1/execute?disconnect=cancel",
		.accept = is_whole(p) ? "application/json" : "application/x-ndjson",
		.token = d->remote.token[0] ? d->remote.token : NULL,
		.body = span_of(body),
	};
	bool declined;
	int r;

	if (clock_now_ns() - d->opened_ns > OPEN_MS * NS_PER_MS) {
		d->client = http_client_free(d->client);
		r = http_client_open(&d->remote.address, &d->client);
		if (r < 0) {
			r = remote_absent(&d->remote, -r, err);
			return d->remote.named ? r : 0;
		}
	}
	d->client->cancel_fd = p->stream.cancel_fd;
	d->client->on_sent = tell_sent;
	d->client->data = p->progress;
	r = http_client_send(d->client, &call, err);
	progress_clear(p->progress);
	if (r == 0)
		r = http_client_head(d->client, err);
	if (r < 0)
		return d->client->sent || d->remote.named ? r : 0;
	if (http_client_answer(d->client) == HTTP_ANSWER_GOOD)
		return 1;
	declined = http_client_answer(d->client) == HTTP_ANSWER_DECLINED;
	r = remote_refusal(d->client, err);
	return declined && !d->remote.named ? 0 : r;
}

/* A signal ends the program, then this process: the rest of the daemon's answer does not matter. */
static int pass_through(struct passage *p, const char *body, struct error *err)
{
	json_t *result = NULL;
	int r = begin_passage(p, body, err);

	if (r > 0) {
		if (p->compiles && !is_whole(p))
			watch_compiling();
		r = is_whole(p) ? read_whole(p, &result, err) : read_events(p, &result, err);
		end_watch(NULL);
		if (r == 0)
			conclude(p, result);
		json_decref(result);
		r = r < 0 ? r : 1;
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
	_cleanup_free_ char *body = NULL;
	struct passage p = { .d = d,
			     .o = o,
			     .out = out,
			     .progress = &o->progress,
			     .stream = { .cancel_fd = -EBADF } };
	int r;

	if (!suits(o, request))
		return 0;
	if (!d->is_there)
		return be_without(d, o, err);
	p.wants_result = run_wants_result(o, request);
	p.compiles = is_watched(d, o, request);
	p.interactive = take_input(o, request);
	body = json_dumps(request, JSON_COMPACT);
	if (!body)
		return error_oom(err);
	p.stream.cancel_fd = run_signal_fd(err);
	if (p.stream.cancel_fd < 0)
		return p.stream.cancel_fd;
	r = pass_through(&p, body, err);
	if (r == 0)
		say_without(o, err);
	if (r < 0)
		name_policies(&d->remote, request, err);
	(void)fd_close(p.stream.cancel_fd);
	return r;
}
