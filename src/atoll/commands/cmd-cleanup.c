/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll cleanup`: ends and removes everything that the caller has at the daemon. */

#include "atoll/commands/confirm.h"
#include "atoll/commands/printer.h"
#include "atoll/commands/remote.h"
#include "atoll/commands/say.h"
#include "base/buf.h"

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

/* "end 1 execution and 2 sessions, and remove 4 executions with their outputs": what there is of it. */
static int put_plan(struct buf *out, const struct cleanup_counts *n)
{
	const char *before = "end ";
	int r = 0;

	if (n->cancelled > 0) {
		r = buf_printf(out, "end %lld execution%s", n->cancelled,
			       n->cancelled == 1 ? "" : "s");
		before = " and ";
	}
	if (r == 0 && n->sessions > 0)
		r = buf_printf(out, "%s%lld session%s", before, n->sessions,
			       n->sessions == 1 ? "" : "s");
	if (r == 0 && n->deleted > 0)
		r = buf_printf(out, "%sremove %lld execution%s with %s",
			       out->len > 0 ? ", and " : "", n->deleted, n->deleted == 1 ? "" : "s",
			       n->deleted == 1 ? "its outputs" : "their outputs");
	return r < 0 || out->len > 0 ? r : buf_puts(out, "do nothing");
}

static int print_sentence(const json_t *answer, bool dry_run)
{
	_cleanup_buf_ struct buf out = { .max = LINE_MAX_BYTES };
	const struct cleanup_counts n = read_counts(answer);
	int r = dry_run ? buf_puts(&out, "would ") : 0;

	if (r == 0 && dry_run) {
		_cleanup_buf_ struct buf plan = { .max = LINE_MAX_BYTES };

		r = put_plan(&plan, &n);
		if (r == 0)
			r = buf_printf(&out, "%s\n", plan.data);
	} else if (r == 0) {
		r = buf_printf(&out, "%lld ended, %lld removed, %lld session%s ended\n",
			       n.cancelled, n.deleted, n.sessions, n.sessions == 1 ? "" : "s");
	}
	return r < 0 ? EXIT_OURS : print_out(&out);
}

/* 1: go on; 0: no. */
static int ask_about_all(const struct remote *remote, struct error *err)
{
	const struct http_call call = { .method = HTTP_GET, .target = "/v1/cleanup" };
	_cleanup_buf_ struct buf question = { .max = LINE_MAX_BYTES };
	struct cleanup_counts n;
	json_t *answer = NULL;
	int r = remote_json(remote, &call, &answer, err);

	if (r < 0)
		return r;
	n = read_counts(answer);
	json_decref(answer);
	if (n.deleted + n.sessions == 0)
		return 1;
	r = put_plan(&question, &n);
	if (r == 0)
		r = buf_puts(&question, "?");
	if (r < 0)
		return error_oom(err);
	return confirm_ask(question.data);
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
			     : print_sentence(answer, o.confirm.dry_run);
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
