/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll debug ID`: the daemon's report on an execution, as text for people, as Markdown, or as it is. */
#include <stddef.h>
#include <string.h>

#include "atoll/commands/debug-text.h"
#include "atoll/commands/printer.h"
#include "atoll/commands/remote-ids.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"

enum { REPORT_BYTES_MAX = 64 << 20 };

struct debug_options {
	struct remote_ids ids; /* first: the shared option rows use its offset */
	bool markdown;
};

static const struct option rows[] = {
	{ .flag = "--markdown",
	  .help = "print Markdown",
	  .apply = option_set_true,
	  .offset = offsetof(struct debug_options, markdown) },
	REMOTE_JSON,
	REMOTE_URL,
};
static const struct option_list debug_options = { .rows = rows,
						  .n = ARRAY_SIZE(rows),
						  .word = remote_add_id };

static int print_report(const struct debug_options *options, const struct buf *text)
{
	_cleanup_buf_ struct buf out = { 0 };
	json_t *report = NULL;
	int r;

	if (options->ids.remote.json)
		return print_json(text->data ? text->data : "");
	buf_init(&out, REPORT_BYTES_MAX);
	if (options->markdown) {
		r = buf_append(&out, text->data, text->len);
	} else {
		report = json_loadb(text->data ? text->data : "", text->len, JSON_ALLOW_NUL, NULL);
		r = report ? debug_text(report, &out) : -EBADMSG;
		json_decref(report);
	}
	if (r == 0 && out.len > 0 && out.data[out.len - 1] != '\n')
		r = buf_puts(&out, "\n");
	if (r < 0) {
		say("cannot print the report: %s", strerror(-r));
		return EXIT_OURS;
	}
	return print_out(&out);
}

static int debug_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	_cleanup_buf_ struct buf text = { 0 };
	struct debug_options options = { 0 };
	struct remote_target target;
	struct error err = { 0 };
	struct remote remote;
	struct http_call call = { .method = HTTP_GET, .target = target.text };
	int code, r;

	if (remote_begin(self, &args, &options, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &options.ids, 1) < 0)
		return EXIT_OURS;
	call.accept = options.markdown && !options.ids.remote.json ? "text/markdown"
								   : "application/json";
	r = remote_target(&remote, options.ids.ids[0], "/debug-report", &target, &err);
	if (r == 0)
		r = remote_text(&remote, &call, &text, &err);
	return r < 0 ? say_error(&err) : print_report(&options, &text);
}

const struct command cmd_debug = {
	.name = "debug",
	.usage = "ID",
	.summary = "explain the failure of an execution and how to fix it",
	.details =
		"ID is an id of `atoll history list` or the beginning of one, or -1 for the last "
		"execution, -2 for\nthe one before.\n",
	.options = &debug_options,
	.main = debug_main,
};
