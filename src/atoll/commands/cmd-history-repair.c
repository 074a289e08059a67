/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll history repair`: takes over what can be read of damaged databases that a daemon put aside. Through the daemon, if one answers;
 * otherwise by itself, in the daemon's state directory.
 */
#include "atoll/commands/cmd-history.h"

#include <stdlib.h>
#include <string.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/remote.h"
#include "atoll/commands/say.h"
#include "atoll/daemon/offline-repair.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"

enum { REPORT_BYTES_MAX = 1 << 20 };

struct repair_options {
	struct remote_options remote; /* first */
	const char *state_dir;
};

static const struct option repair_rows[] = {
	{ .flag = "--state-dir",
	  .argument = "DIR",
	  .help = "the state directory of a daemon that does not run [that of the settings]",
	  .apply = option_set_text,
	  .offset = offsetof(struct repair_options, state_dir) },
	REMOTE_JSON,
	REMOTE_URL,
};
static const struct option_list repair_list = { .rows = repair_rows, .n = ARRAY_SIZE(repair_rows) };

/* 1: no daemon answers, and none was named. */
static int ask_daemon(const char *url, json_t **ret, struct error *err)
{
	static const struct http_call call = { .method = HTTP_POST,
					       .target = "/v1/history/repair" };
	const char *named = url ? url : getenv("ATOLL_URL");
	_cleanup_http_client_ struct http_client *c = NULL;
	struct remote remote;
	int r = remote_find(url, &remote, err);

	if (r < 0 && err->code == ERROR_NONE)
		return 1;
	if (r == 0)
		r = remote_call_until(&remote, &call, -EBADF, &c, err);
	if (r == 0)
		r = remote_tree(&remote, c, ret, err);
	if ((r == -ENOENT || r == -ECONNREFUSED) && !(named && *named))
		return 1;
	return r;
}

static int repair_here(const char *state_dir, json_t **ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { .max = REPORT_BYTES_MAX };
	int r = offline_repair(state_dir, &text, err);

	if (r < 0)
		return r;
	*ret = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
	return *ret ? 0
		    : error_set(err, ERROR_INTERNAL, EBADMSG,
				"the history was repaired, but its report cannot be read");
}

static long long number_at(const json_t *file, const char *key)
{
	return (long long)json_integer_value(json_object_get(file, key));
}

static int print_repair(const json_t *report)
{
	_cleanup_buf_ struct buf out = { .max = REPORT_BYTES_MAX };
	const json_t *files = json_object_get(report, "files");
	json_t *file;
	size_t i;
	int r = json_array_size(files) == 0 ? buf_puts(&out, "there is nothing to repair\n") : 0;

	json_array_foreach((json_t *)(uintptr_t)files, i, file)
	{
		const bool readable = json_is_true(json_object_get(file, "readable"));

		if (r == 0)
			r = buf_printf(&out, "%s: %lld executions taken over, %lld were known",
				       text_of(file, "file"), number_at(file, "taken"),
				       number_at(file, "known"));
		if (r == 0 && number_at(file, "incomplete") > 0)
			r = buf_printf(&out, ", %lld without their request or result",
				       number_at(file, "incomplete"));
		if (r == 0 && !json_is_true(json_object_get(file, "whole")))
			r = buf_puts(&out, readable ? "; the rest cannot be read"
						    : "; nothing of it can be read");
		if (r == 0)
			r = buf_puts(&out, "\n");
	}
	return r < 0 ? EXIT_OURS : print_out(&out);
}

static int repair_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct repair_options o = { 0 };
	struct error err = { 0 };
	json_t *report = NULL;
	int code, r = 1;

	if (remote_parse(self, &args, &o, &code) < 0)
		return code;
	if (o.state_dir && o.remote.url) {
		say("--url repairs through a daemon, --state-dir without one: give one of them");
		return EXIT_OURS;
	}
	if (!o.state_dir)
		r = ask_daemon(o.remote.url, &report, &err);
	if (r == 1) {
		err = (struct error){ 0 };
		r = repair_here(o.state_dir, &report, &err);
	}
	if (r < 0)
		return say_error(&err);
	code = o.remote.json ? remote_print_json(report) : print_repair(report);
	json_decref(report);
	return code;
}

const struct command history_repair = {
	.name = "history repair",
	.usage = "[--state-dir DIR]",
	.summary = "take over what can be read of a damaged history",
	.details =
		"A daemon that finds its history damaged puts it aside and begins an empty one. "
		"This takes over "
		"what\ncan still be read of it, through the daemon, or without one when none runs. "
		"Nothing is taken twice,\nand the damaged files stay where they are.\n",
	.options = &repair_list,
	.main = repair_main,
};
