/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll session new`, and the flags that a session is made with: those of `atoll run` that are about the sandbox. */
#include "atoll/commands/cmd-session.h"

#include <string.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"
#include "base/parse.h"

enum { IDENTIFIER_MAX = 256 };

#define MEMBER(name) .offset = offsetof(struct session_options, name)

const struct option session_rows[SESSION_ROWS] = {
	{ "--language", 'l', "LANG", "python (the default), javascript, ruby or bash",
	  option_set_text, MEMBER(language) },
	{ "--name", 0, "NAME", "a name to call the session by", option_set_text, MEMBER(name) },
	{ "--expire", 0, "TIME", "end the session after this time without use [10m]",
	  option_set_text, MEMBER(idle) },
	{ "--no-fork", 0, NULL, "narrower Landlock rules; `session fork` cannot copy it",
	  option_set_true, MEMBER(no_fork) },
	{ "--url", 0, "URL", "the daemon's socket or http://ADDRESS:PORT [$ATOLL_URL]",
	  option_set_text, MEMBER(url) },
	{ "--json", 0, NULL, "print JSON", option_set_true, MEMBER(run.json) },
};

const struct option *session_run_row(size_t i)
{
	static const char *const flags[] = { "--env",	  "--file",  "--network",  "--policy",
					     "--preload", "--label", "--read-only" };

	return i < ARRAY_SIZE(flags) ? run_option(flags[i]) : NULL;
}

int session_begin(const struct command *self, struct arguments *args, struct session_options *o,
		  struct remote *ret, int *ret_code)
{
	int r = remote_parse(self, args, o, ret_code);

	return r == 0 ? remote_reach(o->url, args, ret, ret_code) : r;
}

static int set_idle_time(json_t *body, const char *text, struct error *err)
{
	int64_t ms;

	if (!text)
		return 0;
	if (parse_time(text, &ms) < 0)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "--expire wants a time like 30s or 10m, not '%.40s'", text);
	return json_object_set_new(body, "idle_timeout", json_real((double)ms / 1000)) < 0
		       ? error_oom(err)
		       : 0;
}

int session_make(const struct remote *remote, const struct session_options *o, json_t **ret,
		 struct error *err)
{
	json_t *body = json_copy(o->run.overrides);
	_cleanup_free_ char *text = NULL;
	struct http_call call = { .method = HTTP_POST, .target = "/v1/sessions" };
	int r = set_idle_time(body, o->idle, err);

	if (r == 0 && (json_object_set_new(body, "language",
					   json_string(o->language ? o->language : "python")) < 0 ||
		       (o->name && json_object_set_new(body, "name", json_string(o->name)) < 0)))
		r = error_set(err, ERROR_INPUT, EILSEQ, "--language and --name want UTF-8 text");
	if (r == 0 && o->no_fork && json_object_set_new(body, "forkable", json_false()) < 0)
		r = error_oom(err);
	if (r == 0) {
		text = json_dumps(body, JSON_COMPACT);
		call.body = span_of(text ? text : "");
		r = text ? remote_json(remote, &call, ret, err) : error_oom(err);
	}
	json_decref(body);
	return r;
}

static int print_new(const json_t *session, bool json)
{
	_cleanup_buf_ struct buf out = { 0 };

	if (json)
		return remote_print_json(session);
	buf_init(&out, IDENTIFIER_MAX);
	return buf_printf(&out, "%s\n", text_of(session, "id")) < 0 ? EXIT_OURS : print_out(&out);
}

static int new_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct session_options o = { .run.overrides = json_object() };
	struct error err = { 0 };
	struct remote remote;
	json_t *session = NULL;
	int code;

	if (session_begin(self, &args, &o, &remote, &code) == 0) {
		code = session_make(&remote, &o, &session, &err) < 0
			       ? say_error(&err)
			       : print_new(session, o.run.json);
		json_decref(session);
	}
	json_decref(o.run.overrides);
	return code;
}

static const struct option_list new_list = {
	.rows = session_rows,
	.n = ARRAY_SIZE(session_rows),
	.more = session_run_row,
	.limit = run_limit,
};

const struct command cmd_session_new = {
	.name = "session new",
	.usage = "[-l LANG] [--name NAME] [OPTIONS]",
	.summary = "start a session and print its id",
	.details = "Times and CPU time are limits of each execution in the session; memory, "
		   "processes and disk are\nlimits of the whole session.\n",
	.options = &new_list,
	.main = new_main,
};
