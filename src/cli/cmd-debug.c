/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll debug ID`: the daemon's report on an execution, as Markdown or, with --json, as it is. */
#include <string.h>

#include "base/buf.h"
#include "cli/remote-ids.h"
#include "cli/say.h"
#include "remote/remote-text.h"

enum { REPORT_BYTES_MAX = 64 << 20 };

static const struct option rows[] = { REMOTE_JSON, REMOTE_URL };
static const struct option_list debug_options = { .rows = rows,
						  .n = ARRAY_SIZE(rows),
						  .word = remote_add_id };

static int debug_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	_cleanup_buf_ struct buf text = { 0 }, out = { 0 };
	struct remote_ids options = { 0 };
	struct remote_target target;
	struct error err = { 0 };
	struct remote remote;
	struct http_call call = { .method = HTTP_GET, .target = target.text };
	int code, r;

	if (remote_begin(self, &args, &options, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &options, 1) < 0)
		return EXIT_OURS;
	call.accept = options.remote.json ? "application/json" : "text/markdown";
	r = remote_target(&remote, options.ids[0], "/debug-report", &target, &err);
	if (r == 0)
		r = remote_text(&remote, &call, &text, &err);
	if (r < 0)
		return say_error(&err);
	buf_init(&out, REPORT_BYTES_MAX);
	/* The report quotes the program, so it is escaped. */
	if (options.remote.json)
		r = buf_append(&out, text.data, text.len);
	else
		r = text_escape(&out, text.data, text.len, TEXT_LINES);
	if (r == 0 && out.len > 0 && out.data[out.len - 1] != '\n')
		r = buf_puts(&out, "\n");
	if (r < 0) {
		say("cannot print the report: %s", strerror(-r));
		return EXIT_OURS;
	}
	return remote_print(&out);
}

const struct command cmd_debug = {
	.name = "debug",
	.usage = "ID",
	.summary = "explain the failure of an execution and how to fix it",
	.details = "ID is an id of `atoll history list`, or -1 for the last execution, -2 for the "
		   "one before.\n",
	.options = &debug_options,
	.main = debug_main,
};
