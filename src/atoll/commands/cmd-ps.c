/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll ps`: executions that the daemon runs now, those that wait, sessions, and the pool of this user. Where a pool runs and no
 * daemon, the pool is the answer.
 */
#include <string.h>

#include "atoll/commands/cmd-session.h"
#include "atoll/commands/own-pool.h"
#include "atoll/commands/printer.h"
#include "atoll/commands/remote.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"

enum { PS_BYTES_MAX = 32 << 20 };

static const struct option rows[] = { REMOTE_JSON, REMOTE_URL };
static const struct option_list ps_options = { .rows = rows, .n = ARRAY_SIZE(rows) };

/* Adds the executions in one state to the list. */
static int gather(const struct remote *remote, const char *target, json_t *list, struct error *err)
{
	const struct http_call call = { .method = HTTP_GET, .target = target };
	json_t *page = NULL;
	int r = remote_json(remote, &call, &page, err);

	if (r == 0 && json_array_extend(list, json_object_get(page, "executions")) < 0)
		r = error_set(err, ERROR_INTERNAL, EPROTO, "the daemon's list has no executions");
	json_decref(page);
	return r;
}

/*
 * Asks for the current usage, which a list does not have. An execution that has ended meanwhile stays as
 * listed.
 */
static void add_usage(const struct remote *remote, json_t *list)
{
	json_t *execution, *now;
	struct remote_target target;
	struct error ignored = { 0 };
	size_t i;

	json_array_foreach(list, i, execution)
	{
		struct http_call call = { .method = HTTP_GET, .target = target.text };

		if (remote_target(remote, text_of(execution, "id"), "", &target, &ignored) < 0 ||
		    remote_json(remote, &call, &now, &ignored) < 0)
			continue;
		if (json_is_object(json_object_get(now, "usage")))
			(void)json_object_set(execution, "usage", json_object_get(now, "usage"));
		json_decref(now);
	}
}

static int add_process_row(struct table *t, const json_t *x)
{
	const json_t *usage = json_object_get(x, "usage");
	_cleanup_buf_ struct buf labels = { 0 };
	char age[32], cpu[32], memory[32];
	const char *cells[] = { text_of(x, "id"),
				text_of(x, "status"),
				text_of(x, "language"),
				age,
				cpu,
				memory,
				text_of(x, "caller"),
				NULL };
	int r;

	buf_init(&labels, PS_BYTES_MAX);
	text_age(text_of(x, "created_at"), age, sizeof(age));
	text_seconds(json_object_get(usage, "cpu_time"), cpu, sizeof(cpu));
	text_bytes(json_object_get(usage, "memory_peak"), memory, sizeof(memory));
	r = text_pairs(&labels, json_object_get(x, "labels"));
	cells[ARRAY_SIZE(cells) - 1] = labels.data;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(cells); i++)
		r = table_add(t, cells[i]);
	return r;
}

static int put_lists(const json_t *list, const json_t *sessions, struct buf *out)
{
	static const struct column columns[] = {
		{ .title = "ID" },
		{ .title = "STATUS", .status = true },
		{ .title = "LANGUAGE" },
		{ .title = "AGE", .right = true },
		{ .title = "CPU", .right = true },
		{ .title = "MEMORY", .right = true },
		{ .title = "CALLER" },
		{ .title = "LABELS" },
	};
	_cleanup_table_ struct table t = { 0 };
	const json_t *execution;
	size_t i;
	int r = 0;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach(list, i, execution)
	{
		if (r == 0)
			r = add_process_row(&t, execution);
	}
	if (r == 0)
		r = table_print(&t, out);
	if (r == 0 && json_array_size(sessions) > 0) {
		r = buf_puts(out, "\n");
		if (r == 0)
			r = session_table(sessions, out);
	}
	return r;
}

/* whole: what --json prints. */
static int print_all(const json_t *whole)
{
	const json_t *pool = json_object_get(whole, "pool");
	const json_t *list = json_object_get(whole, "executions");
	_cleanup_buf_ struct buf out = { .max = PS_BYTES_MAX };
	int r = 0;

	if (list)
		r = put_lists(list, json_object_get(whole, "sessions"), &out);
	if (r == 0 && pool)
		r = buf_printf(&out,
			       "A pool (process %lld) listens on %s; to end it: atoll pool stop\n",
			       (long long)json_integer_value(json_object_get(pool, "pid")),
			       text_of(pool, "socket"));
	if (r < 0) {
		say("cannot print the list: %s", strerror(-r));
		return EXIT_OURS;
	}
	return print_out(&out);
}

/* Adds the daemon's executions and sessions. */
static int ask_daemon(const struct remote *remote, json_t *whole, struct error *err)
{
	const struct http_call call = { .method = HTTP_GET, .target = "/v1/sessions" };
	json_t *list = json_array(), *sessions = NULL;
	int r = gather(remote, "/v1/executions?limit=1000&status=running", list, err);

	if (r == 0)
		r = gather(remote, "/v1/executions?limit=1000&status=queued", list, err);
	if (r == 0)
		r = remote_json(remote, &call, &sessions, err);
	if (r == 0) {
		add_usage(remote, list);
		if (json_object_set(whole, "executions", list) < 0 ||
		    (json_object_get(sessions, "sessions") &&
		     json_object_set(whole, "sessions", json_object_get(sessions, "sessions")) < 0))
			r = error_oom(err);
	}
	json_decref(list);
	json_decref(sessions);
	return r;
}

static int ps_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct remote_options o = { 0 };
	struct error err = { 0 };
	struct remote remote = { 0 };
	json_t *whole, *pool;
	int r, code;

	if (remote_parse(self, &args, &o, &code) < 0)
		return code;
	whole = json_object();
	pool = own_pool_describe();
	r = remote_locate(o.url, &args, &remote, &err);
	if (r == 0)
		r = ask_daemon(&remote, whole, &err);
	if (pool && !remote.named && (r == -ENOENT || r == -ECONNREFUSED)) {
		/* Without a daemon nothing runs or waits in one. */
		r = o.json ? json_object_set_new(whole, "executions", json_array()) |
				     json_object_set_new(whole, "sessions", json_array())
			   : 0;
	}
	if (pool)
		(void)json_object_set_new(whole, "pool", pool);
	if (r < 0)
		code = say_error(&err);
	else
		code = o.json ? remote_print_json(whole) : print_all(whole);
	json_decref(whole);
	return code;
}

const struct command cmd_ps = {
	.name = "ps",
	.usage = "[--json]",
	.summary = "list running and queued executions of the daemon, its sessions, and the pool",
	.options = &ps_options,
	.main = ps_main,
};
