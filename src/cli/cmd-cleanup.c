/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll cleanup`: ends and removes everything that the caller has at the daemon. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/confirm.h"
#include "cli/remote.h"
#include "cli/say.h"

enum { LINE_MAX_BYTES = 256 };

struct cleanup_options {
	struct remote_options remote; /* first: the shared option rows use its offset */
	struct confirm confirm;
};

static const struct option rows[] = { CONFIRM_ROWS(struct cleanup_options, confirm), REMOTE_JSON,
				      REMOTE_URL };
static const struct option_list cleanup_options = { .rows = rows, .n = ARRAY_SIZE(rows) };

struct cleanup_counts {
	long long cancelled, deleted, sessions;
};

static struct cleanup_counts read_counts(const json_t *answer)
{
	return (struct cleanup_counts){
		.cancelled = json_integer_value(json_object_get(answer, "cancelled")),
		.deleted = json_integer_value(json_object_get(answer, "deleted")),
		.sessions = json_integer_value(json_object_get(answer, "sessions")),
	};
}

static int print_sentence(const json_t *answer, const char *would)
{
	_cleanup_buf_ struct buf out = { .max = LINE_MAX_BYTES };
	const struct cleanup_counts n = read_counts(answer);

	if (buf_printf(&out, "%s%lld ended, %lld removed, %lld session%s ended\n", would,
		       n.cancelled, n.deleted, n.sessions, n.sessions == 1 ? "" : "s") < 0)
		return EXIT_OURS;
	return remote_print(&out);
}

/* 1: go on; 0: no. */
static int ask_about_all(const struct remote *remote, struct error *err)
{
	const struct http_call call = { .method = HTTP_GET, .target = "/v1/cleanup" };
	char question[LINE_MAX_BYTES];
	struct cleanup_counts n;
	json_t *answer = NULL;
	int r = remote_json(remote, &call, &answer, err);

	if (r < 0)
		return r;
	n = read_counts(answer);
	json_decref(answer);
	if (n.deleted + n.sessions == 0)
		return 1;
	(void)snprintf(question, sizeof(question),
		       "end %lld execution%s and %lld session%s, and remove %lld execution%s with "
		       "outputs?",
		       n.cancelled, n.cancelled == 1 ? "" : "s", n.sessions,
		       n.sessions == 1 ? "" : "s", n.deleted, n.deleted == 1 ? "" : "s");
	return confirm_ask(question);
}

static int cleanup_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct cleanup_options o = { 0 };
	struct http_call call = { .method = HTTP_POST, .target = "/v1/cleanup" };
	struct error err = { 0 };
	struct remote remote;
	json_t *answer = NULL;
	int code, r = 1;

	if (remote_begin(self, &args, &o, &remote, &code) < 0)
		return code;
	if (o.confirm.dry_run)
		call.method = HTTP_GET;
	else if (confirm_is_needed(&o.confirm))
		r = ask_about_all(&remote, &err);
	if (r == 0)
		return EXIT_OURS;
	if (r > 0)
		r = remote_json(&remote, &call, &answer, &err);
	if (r < 0)
		return say_error(&err);
	code = o.remote.json ? remote_print_json(answer)
			     : print_sentence(answer, o.confirm.dry_run ? "would be: " : "");
	json_decref(answer);
	return code;
}

const struct command cmd_cleanup = {
	.name = "cleanup",
	.usage = "[OPTIONS]",
	.summary = "end your own sessions, end and remove your own executions in the daemon",
	.details =
		"Results and outputs are removed too. On a terminal it asks first. `atoll history "
		"rm ID` removes\nsingle executions.\n",
	.options = &cleanup_options,
	.main = cleanup_main,
};
