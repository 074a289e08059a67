/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll cleanup`: ends and removes everything that the caller has at the daemon. */
#include <string.h>

#include "base/buf.h"
#include "cli/remote.h"
#include "cli/say.h"

enum { LINE_MAX_BYTES = 256 };

static const struct option rows[] = { REMOTE_JSON, REMOTE_URL };
static const struct option_list cleanup_options = { .rows = rows, .n = ARRAY_SIZE(rows) };

static int print_sentence(const json_t *answer)
{
	_cleanup_buf_ struct buf out = { 0 };
	long long cancelled = json_integer_value(json_object_get(answer, "cancelled"));
	long long deleted = json_integer_value(json_object_get(answer, "deleted"));
	long long sessions = json_integer_value(json_object_get(answer, "sessions"));

	buf_init(&out, LINE_MAX_BYTES);
	if (buf_printf(&out, "%lld ended, %lld removed, %lld session%s ended\n", cancelled, deleted,
		       sessions, sessions == 1 ? "" : "s") < 0)
		return EXIT_OURS;
	return remote_print(&out);
}

static int cleanup_main(const struct command *self, int argc, char **argv)
{
	const struct http_call call = { .method = HTTP_POST, .target = "/v1/cleanup" };
	struct arguments args = { .argc = argc, .argv = argv };
	struct remote_options options = { 0 };
	struct error err = { 0 };
	struct remote remote;
	json_t *answer = NULL;
	int code;

	if (remote_begin(self, &args, &options, &remote, &code) < 0)
		return code;
	if (remote_json(&remote, &call, &answer, &err) < 0)
		return say_error(&err);
	code = options.json ? remote_print_json(answer) : print_sentence(answer);
	json_decref(answer);
	return code;
}

const struct command cmd_cleanup = {
	.name = "cleanup",
	.usage = "[--json]",
	.summary = "end your own sessions, end and remove your own executions in the daemon",
	.details = "Results and outputs are removed too. `atoll history rm ID` removes single "
		   "executions.\n",
	.options = &cleanup_options,
	.main = cleanup_main,
};
