/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front for tests of run/runner.h over run/executor.h: commands come as lines of JSON on stdin, what happens leaves as lines of JSON on
 * stdout. test_service.py has both ends of it.
 *
 *   service-drive [SOCKET]         over a pool's socket, or a broker of its own
 *
 *   {"op": "start", "key": K, "request": {…}, "quiet", "brief", "interactive", "watch", …}
 *   {"op": "kill" | "close", "key": K}                             {"op": "stdin", "key": K, "text": …}
 *   {"op": "signal", "key": K, "signo": N}                         {"op": "resize", "key": K, "rows": N, "columns": N}
 *   {"op": "ask", "key": K, "what": "languages" | "doctor"}        {"op": "policies", "key": K}
 *   the end of stdin: it ends when every run has.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/loop/fiber.h"
#include "run/executor.h"
#include "spec/knob.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 64 << 20 };

struct item {
	struct item *next;
	char key[64];
	struct run *run; /* NULL: it has ended */
	bool in_start;
};

static struct loop *loop;
static struct executor *service;
static struct source *commands;
static struct item *items;
static struct buf input;
static json_t *waiting; /* commands that came before there was a broker */
static bool over;

static void say(const char *key, const char *event, json_t *more)
{
	json_t *tree = json_pack("{s:s, s:s}", "key", key, "event", event);
	char *text;

	if (more)
		(void)json_object_update(tree, more);
	json_decref(more);
	text = json_dumps(tree, JSON_COMPACT);
	if (text && (fd_write_all(STDOUT_FILENO, text, strlen(text)) < 0 ||
		     fd_write_all(STDOUT_FILENO, "\n", 1) < 0))
		_exit(3);
	free(text);
	json_decref(tree);
}

static void maybe_over(void)
{
	if (over && !waiting && executor_count(service) == 0)
		loop_stop(loop);
}

static void say_output(const char *key, enum output_stream stream, struct span bytes)
{
	json_t *text = json_stringn(bytes.data, bytes.len);

	say(key, stream == OUTPUT_STDOUT ? "stdout" : "stderr",
	    json_pack("{s:I, s:o*}", "bytes", (json_int_t)bytes.len, "text", text));
}

static void say_file(const char *key, const struct run_file *file)
{
	char first[16] = "";
	ssize_t n = pread(file->fd, first, sizeof(first) - 1, 0);

	say(key, "file",
	    json_pack("{s:s, s:I, s:s, s:s#, s:b}", "path", file->path, "size",
		      (json_int_t)file->size, "sha256", file->sha256, "first", first,
		      n > 0 ? (int)n : 0, "fiber", fiber_current() != NULL));
}

static void on_end(struct item *it, const struct run_end *end)
{
	json_t *tree = end->text.data ? json_loadb(end->text.data, end->text.len, 0, NULL) : NULL;

	say(it->key, it->in_start ? "too early" : "end",
	    json_pack("{s:o?, s:i, s:s}", "result", tree, "code", end->error.code, "problem",
		      end->error.text));
	it->run = NULL;
	maybe_over();
}

static int on_event(void *data, const struct run_event *event)
{
	struct item *it = data;

	switch (event->kind) {
	case RUN_STARTED:
		say(it->key, "started", json_pack("{s:b}", "warm", event->started.warm));
		break;
	case RUN_OUTPUT:
		say_output(it->key, event->output.stream, event->output.bytes);
		break;
	case RUN_STAGE:
		say(it->key, "stage",
		    json_pack("{s:s, s:s}", "name", event->stage.name, "status",
			      status_name(event->stage.status)));
		break;
	case RUN_USAGE:
		say(it->key, "usage",
		    json_pack("{s:I}", "cpu_us",
			      (json_int_t)(event->usage->user_us + event->usage->system_us)));
		break;
	case RUN_FILE:
		say_file(it->key, event->file);
		break;
	case RUN_STDIN_ROOM:
		say(it->key, "room", NULL);
		break;
	case RUN_END:
		on_end(it, event->end);
		break;
	case RUN_RICH:
	case RUN_HOST_CALL:
	case RUN_VALUE:
	case RUN_SIGNALLED:
	case RUN_INHERITED:
		break; /* of sessions */
	}
	return 0;
}

static const char *text_of(const json_t *command, const char *name)
{
	return json_string_value(json_object_get(command, name));
}

static bool has(const json_t *command, const char *name)
{
	return json_is_true(json_object_get(command, name));
}

static int number_of(const json_t *command, const char *name)
{
	return (int)json_integer_value(json_object_get(command, name));
}

static void refuse(const char *key, const struct error *err)
{
	say(key, "refused",
	    json_pack("{s:i, s:s, s:s}", "code", err->code, "field", err->field, "problem",
		      err->text));
}

static void start(const char *key, const json_t *command)
{
	struct run_start how = {
		.observer = { .wants = run_event_bit(RUN_STARTED) | run_event_bit(RUN_STAGE),
			      .on_event = on_event },
		.quiet = has(command, "quiet"),
		.brief = has(command, "brief"),
		.interactive = has(command, "interactive"),
		.label.id = text_of(command, "id"),
		.rows = (uint16_t)number_of(command, "rows"),
		.columns = (uint16_t)number_of(command, "columns"),
	};
	struct runner *runner = executor_runner(service);
	struct item *it = calloc(1, sizeof(*it));
	struct error err = { 0 };

	it->next = items;
	(void)snprintf(it->key, sizeof(it->key), "%s", key);
	items = it;
	if (runner->vtable->open(runner, json_object_get(command, "request"), &it->run, &err) < 0) {
		refuse(key, &err);
		return;
	}
	if (has(command, "discard")) {
		run_discard(TAKE_PTR(it->run));
		say(key, "discarded", NULL);
		return;
	}
	how.observer.data = it;
	if (has(command, "watch"))
		how.observer.wants = RUN_EVENTS_ALL;
	it->in_start = true;
	if (it->run->vtable->start(it->run, &how, &err) < 0) {
		refuse(key, &err);
		run_discard(TAKE_PTR(it->run));
	}
	it->in_start = false;
}

static void on_answer(void *data, json_t *tree, const struct error *err)
{
	char *key = data;

	say(key, "answer", json_pack("{s:o?, s:s}", "tree", tree, "problem", err->text));
	free(key);
	maybe_over();
}

static void ask(const char *key, const json_t *command)
{
	enum executor_question question = strcmp(text_of(command, "what"), "doctor") == 0
						  ? EXECUTOR_DOCTOR
						  : EXECUTOR_LANGUAGES;
	struct error err = { 0 };

	if (executor_ask(service, question, (struct executor_asker){ strdup(key), on_answer },
			 &err) < 0)
		refuse(key, &err);
}

static void tell(struct item *it, const char *op, const json_t *command)
{
	const char *text = text_of(command, "text");
	struct run *run = it->run;

	if (strcmp(op, "kill") == 0)
		(void)run->vtable->kill(run, CAUSE_CANCELLED, RUN_KILL_NOW);
	else if (strcmp(op, "close") == 0)
		(void)run->vtable->input(run, (struct span){ 0 }, true);
	else if (strcmp(op, "stdin") == 0)
		say(it->key, "took",
		    json_pack("{s:I}", "bytes",
			      (json_int_t)run->vtable->input(
				      run, (struct span){ text, strlen(text) }, false)));
	else if (strcmp(op, "signal") == 0)
		say(it->key, "signalled",
		    json_pack("{s:i}", "r", run->vtable->signal(run, number_of(command, "signo"))));
	else if (strcmp(op, "resize") == 0)
		run->vtable->resize(run, (uint16_t)number_of(command, "rows"),
				    (uint16_t)number_of(command, "columns"));
}

static void obey(const json_t *command)
{
	const char *op = text_of(command, "op"), *key = text_of(command, "key");
	struct error err = { 0 };
	json_t *list = NULL;

	if (strcmp(op, "start") == 0) {
		start(key, command);
	} else if (strcmp(op, "ask") == 0) {
		ask(key, command);
	} else if (strcmp(op, "policies") == 0) {
		if (executor_policies(service, &list, &err) < 0)
			refuse(key, &err);
		else
			say(key, "answer", json_pack("{s:o}", "tree", list));
	} else if (strcmp(op, "state") == 0) {
		say(key, "state",
		    json_pack("{s:b, s:I, s:I}", "ready",
			      executor_runner(service)->vtable->is_ready(executor_runner(service)),
			      "runs", (json_int_t)executor_count(service), "fibers",
			      (json_int_t)fiber_count()));
	} else {
		for (struct item *it = items; it; it = it->next)
			if (it->run && strcmp(it->key, key) == 0)
				tell(it, op, command);
	}
}

static void take_line(const char *line, size_t n)
{
	json_error_t error;
	json_t *command = json_loadb(line, n, 0, &error);

	if (!command) {
		(void)fprintf(stderr, "service-drive: %s\n", error.text);
		_exit(2);
	}
	if (waiting)
		(void)json_array_append(waiting, command);
	else
		obey(command);
	json_decref(command);
}

static void take_lines(void)
{
	size_t at = 0;

	for (;;) {
		char *end = input.data ? memchr(input.data + at, '\n', input.len - at) : NULL;

		if (!end)
			break;
		take_line(input.data + at, (size_t)(end - (input.data + at)));
		at = (size_t)(end - input.data) + 1;
	}
	if (at > 0) {
		memmove(input.data, input.data + at, input.len - at);
		input.len -= at;
	}
}

static int on_commands(void *data, uint32_t events)
{
	static char chunk[65536];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	(void)data;
	(void)events;
	if (n < 0)
		return -errno;
	if (n > 0) {
		int r = buf_append(&input, chunk, (size_t)n);

		take_lines();
		return r;
	}
	commands = source_free(commands);
	over = true;
	maybe_over();
	return 0;
}

/* What came before is done now. */
static void on_broker(void *data, bool up)
{
	json_t *list = waiting, *command;
	size_t i;

	(void)data;
	say("", up ? "broker" : "lost", NULL);
	if (!up || !list)
		return;
	waiting = NULL;
	json_array_foreach(list, i, command) obey(command);
	json_decref(list);
}

static int drive(const char *pool)
{
	const char *home = getenv("SERVICE_POLICIES");
	const struct limits ceilings = { .timeout_ms = 20000 };
	const struct executor_options options = {
		.pool = pool,
		.warm = getenv("SERVICE_WARM") != NULL,
		.policies_dir = home,
		.ceilings = &ceilings,
		.ceilings_set = home ? knob_bit(knob_find("timeout")) : 0,
		.on_broker = on_broker,
	};
	struct error err = { 0 };
	int r = executor_new(loop, &options, &service, &err);

	if (r >= 0)
		r = loop_add_fd(loop, STDIN_FILENO, EPOLLIN, (struct handler){ on_commands, NULL },
				&commands);
	if (r >= 0)
		r = loop_run(loop);
	commands = source_free(commands);
	if (r < 0)
		(void)fprintf(stderr, "service-drive: %s (%d)\n", err.text, r);
	(void)executor_free(service);
	return r;
}

int main(int argc, char **argv)
{
	struct rlimit files;
	int r;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	buf_init(&input, LINE_MAX_BYTES);
	waiting = json_array();
	loop = loop_new();
	r = loop && waiting ? drive(argc > 1 ? argv[1] : NULL) : -ENOMEM;
	json_decref(waiting);
	buf_done(&input);
	while (items) {
		struct item *it = items;

		items = it->next;
		free(it);
	}
	(void)loop_free(loop);
	return r < 0 || fiber_count() > 0 ? 1 : 0;
}
