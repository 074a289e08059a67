/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll ps`, `cancel` and `cleanup`: what the daemon runs now, what waits, and ending it. */
#include <string.h>

#include "atoll/commands/cmd-history.h"
#include "atoll/commands/cmd-session.h"
#include "atoll/commands/remote.h"

/* --- ps: where a pool runs and no daemon, the pool is the answer --- */

/* Adds the executions in one state to the list. */
static int ps_gather(const struct remote *remote, const char *target, json_t *list,
		     struct error *err)
{
	const struct http_call call = { .method = HTTP_GET, .target = target };
	json_t *page = NULL;
	int r = remote_json(remote, &call, &page, err);

	if (r == 0 && json_array_extend(list, json_object_get(page, "executions")) < 0)
		r = error_set(err, ERROR_INTERNAL, EPROTO, "the daemon's list has no executions");
	json_decref(page);
	return r;
}

/* Asks for the current usage, which a list does not have. An execution that has ended meanwhile stays as listed. */
static void add_usage(const struct remote *remote, json_t *list)
{
	json_t *execution, *now;
	struct error ignored = { 0 };
	size_t i;

	json_array_foreach(list, i, execution)
	{
		const struct remote_question q = {
			OBJECT_EXECUTION, text_of(execution, "id"), "", { .method = HTTP_GET }
		};

		if (remote_ask(remote, &q, &now, &ignored) < 0)
			continue;
		if (json_is_object(json_object_get(now, "usage")))
			(void)json_object_set(execution, "usage", json_object_get(now, "usage"));
		json_decref(now);
	}
}

/* Adds the daemon's executions and sessions. */
static int ask_daemon(const struct remote *remote, json_t *whole, struct error *err)
{
	const struct http_call call = { .method = HTTP_GET, .target = "/v1/sessions" };
	json_t *list = json_array(), *sessions = NULL;
	int r = ps_gather(remote, "/v1/executions?limit=1000&status=running", list, err);

	if (r == 0)
		r = ps_gather(remote, "/v1/executions?limit=1000&status=queued", list, err);
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

/* whole: what --json prints. */
static void show_all(struct page *out, const json_t *whole)
{
	static const struct column columns[] = {
		{ "ID", "id", CELL_TEXT },
		{ "STATUS", "status", CELL_STATUS },
		{ "LANGUAGE", "language", CELL_TEXT },
		{ "AGE", "created_at", CELL_AGE },
		{ "CPU", "usage.cpu_time", CELL_SECONDS },
		{ "MEMORY", "usage.memory_peak", CELL_BYTES },
		{ "CALLER", "caller", CELL_TEXT },
		{ "LABELS", "labels", CELL_PAIRS },
	};
	const json_t *list = json_object_get(whole, "executions");
	const json_t *sessions = json_object_get(whole, "sessions");

	if (list)
		page_table(out, columns, ARRAY_SIZE(columns), list);
	if (list && json_array_size(sessions) > 0) {
		page_add(out, "\n");
		session_table(out, sessions);
	}
	if (json_object_get(whole, "pool"))
		page_add(out, "A pool (process %lld) listens on %s; to end it: atoll pool stop\n",
			 number_of(whole, "pool.pid"), text_of(whole, "pool.socket"));
}

static int ps_main(struct invocation *in)
{
	struct error err = { 0 };
	json_t *whole = json_object(), *pool = own_pool_describe();
	int r = remote_locate(in, &err);

	if (r == 0)
		r = ask_daemon(&in->ask->remote, whole, &err);
	if (pool && !in->ask->remote.named && (r == -ENOENT || r == -ECONNREFUSED)) {
		/* Without a daemon nothing runs or waits in one. */
		r = in->ask->json ? json_object_set_new(whole, "executions", json_array()) |
					    json_object_set_new(whole, "sessions", json_array())
				  : 0;
	}
	if (pool)
		(void)json_object_set_new(whole, "pool", pool);
	if (r == 0)
		return remote_show(in, whole);
	json_decref(whole);
	return say_error(&err);
}

const struct command cmd_ps = {
	.name = "ps",
	.usage = "[--json]",
	.summary = "list running and queued executions of the daemon, its sessions, and the pool",
	.options = &ask_options,
	.main = ps_main,
	.asks = true,
	.finds = true,
	.print = show_all,
};

/* --- cancel --- */

/* The daemon checks the state, so there is no race. */
int execution_delete(const struct remote *remote, const char *id, const char *only, json_t **ret,
		     struct error *err)
{
	struct remote_target target;
	const struct http_call call = { .method = HTTP_DELETE, .target = target.text };
	int r = remote_target(remote, id, only, &target, err);

	if (r == 0)
		r = remote_json(remote, &call, ret, err);
	if (r < 0 && err->code == ERROR_ENDED)
		return error_set(err, ERROR_ENDED, EALREADY, "%s has ended already", target.id);
	return r < 0 && err->code == ERROR_NOT_ENDED ? execution_not_ended(target.id, err) : r;
}

static int cancel_one(const struct remote *remote, const char *id, json_t **ret, struct error *err)
{
	return execution_delete(remote, id, "?only=cancel", ret, err);
}

static int cancel_main(struct invocation *in)
{
	return remote_each(in, cancel_one);
}

const struct command cmd_cancel = {
	.name = "cancel",
	.usage = "ID…",
	.summary = "end running and queued executions",
	.details = "Their output so far stays in the history, with the status `cancelled`.\n",
	.options = &ask_options_ids,
	.main = cancel_main,
	.asks = true,
	.ids = IDS_SOME,
};

/* --- cleanup: ends and removes everything that the caller has at the daemon --- */

static const char *plural_s(long long n)
{
	return n == 1 ? "" : "s";
}

/* "end 1 execution and 2 sessions, and remove 4 executions with their outputs": what there is of it. */
static void put_plan(struct page *out, const json_t *answer)
{
	const long long cancelled = number_of(answer, "cancelled"),
			deleted = number_of(answer, "deleted"),
			sessions = number_of(answer, "sessions");

	if (cancelled > 0)
		page_add(out, "end %lld execution%s", cancelled, plural_s(cancelled));
	if (sessions > 0)
		page_add(out, "%s%lld session%s", cancelled > 0 ? " and " : "end ", sessions,
			 plural_s(sessions));
	if (deleted > 0)
		page_add(out, "%sremove %lld execution%s with %s",
			 cancelled + sessions > 0 ? ", and " : "", deleted, plural_s(deleted),
			 deleted == 1 ? "its outputs" : "their outputs");
	if (cancelled + sessions + deleted == 0)
		page_add(out, "do nothing");
}

static void show_would(struct page *out, const json_t *answer)
{
	page_add(out, "would ");
	put_plan(out, answer);
	page_add(out, "\n");
}

static void show_done(struct page *out, const json_t *answer)
{
	const long long sessions = number_of(answer, "sessions");

	page_add(out, "%lld ended, %lld removed, %lld session%s ended\n",
		 number_of(answer, "cancelled"), number_of(answer, "deleted"), sessions,
		 plural_s(sessions));
}

static int cleanup_main(struct invocation *in)
{
	const struct remote_question plan = { .rest = "/v1/cleanup", .call.method = HTTP_GET },
				     act = { .rest = "/v1/cleanup", .call.method = HTTP_POST };
	const struct remote *remote = &in->ask->remote;
	_cleanup_page_ struct page text = PAGE_EMPTY;
	const bool dry_run = in->ask->dry_run;
	struct error err = { 0 };
	json_t *answer = NULL;
	bool wanted = true;
	int code;

	if (!dry_run && !in->ask->yes && confirm_can_ask()) {
		if (remote_ask(remote, &plan, &answer, &err) < 0)
			return say_error(&err);
		put_plan(&text, answer);
		page_add(&text, "?");
		if (number_of(answer, "deleted") + number_of(answer, "sessions") > 0)
			wanted = confirm_ask(text.text.data ?: "");
		json_decref(answer);
		text.text.len = 0;
	}
	if (!wanted)
		return EXIT_OURS;
	if (remote_ask(remote, dry_run ? &plan : &act, &answer, &err) < 0)
		return say_error(&err);
	(dry_run ? show_would : show_done)(&text, answer);
	code = in->ask->json ? remote_print_json(answer) : print_page(&text, "the answer");
	json_decref(answer);
	return code;
}

static const struct option cleanup_rows[] = { ASK_CONFIRM, ASK_ROWS };
static const struct option_list cleanup_options = { OPTION_ROWS(cleanup_rows) };

const struct command cmd_cleanup = {
	.name = "cleanup",
	.usage = "[OPTIONS]",
	.summary = "end your own sessions, end and remove your own executions in the daemon",
	.details = "Results and outputs are removed too. On a terminal it asks first. `atoll "
		   "history rm ID` removes\nsingle executions.\n",
	.options = &cleanup_options,
	.main = cleanup_main,
	.asks = true,
};
