/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll ps`: executions that the daemon runs now, those that wait, sessions, and the pool of this user. */
#include <string.h>

#include "cli/cmd-session.h"
#include "cli/own-pool.h"
#include "cli/remote.h"
#include "cli/say.h"
#include "remote/remote-text.h"

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

static int print_table(const json_t *list, const json_t *sessions)
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
	_cleanup_buf_ struct buf out = { 0 };
	const json_t *execution;
	size_t i;
	int r = 0;

	table_init(&t, columns, ARRAY_SIZE(columns));
	buf_init(&out, PS_BYTES_MAX);
	json_array_foreach(list, i, execution)
	{
		if (r == 0)
			r = add_process_row(&t, execution);
	}
	if (r == 0)
		r = table_print(&t, text_colour(), &out);
	if (r == 0 && json_array_size(sessions) > 0) {
		r = buf_puts(&out, "\n");
		if (r == 0)
			r = session_table(sessions, &out);
	}
	if (r < 0) {
		say("cannot print the list: %s", strerror(-r));
		return EXIT_OURS;
	}
	return remote_print(&out);
}

static int ps_main(const struct command *self, int argc, char **argv)
{
	const struct http_call call = { .method = HTTP_GET, .target = "/v1/sessions" };
	struct arguments args = { .argc = argc, .argv = argv };
	struct remote_options options = { 0 };
	json_t *list = json_array(), *sessions = NULL, *whole;
	struct error err = { 0 };
	struct remote remote;
	int r, code;

	if (remote_begin(self, &args, &options, &remote, &code) < 0) {
		own_pool_show();
		json_decref(list);
		return code;
	}
	r = gather(&remote, "/v1/executions?limit=1000&status=running", list, &err);
	if (r == 0)
		r = gather(&remote, "/v1/executions?limit=1000&status=queued", list, &err);
	if (r == 0)
		r = remote_json(&remote, &call, &sessions, &err);
	if (r < 0) {
		json_decref(list);
		return say_error(&err);
	}
	add_usage(&remote, list);
	whole = json_pack("{s:o, s:O*}", "executions", list, "sessions",
			  json_object_get(sessions, "sessions"));
	json_decref(sessions);
	code = options.json ? remote_print_json(whole)
			    : print_table(list, json_object_get(whole, "sessions"));
	json_decref(whole);
	if (!options.json)
		own_pool_show();
	return code;
}

const struct command cmd_ps = {
	.name = "ps",
	.usage = "[--json]",
	.summary = "list running and queued executions of the daemon, its sessions, and the pool",
	.options = &ps_options,
	.main = ps_main,
};
