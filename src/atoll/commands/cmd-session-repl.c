/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll session repl` and `attach`: finds or makes the session, and ends one that was made. repl.c is the conversation. */
#include "atoll/commands/cmd-session.h"

#include <string.h>

#include "atoll/commands/repl.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"

/* The session that was named, or a new one. */
static int find_session(const struct remote *remote, const struct session_options *o, json_t **ret,
			struct error *err)
{
	if (!o->word)
		return session_make(remote, o, ret, err);
	if (o->language || o->name || o->idle || o->no_fork ||
	    json_object_size(o->run.overrides) > 0)
		return error_set(
			err, ERROR_INPUT, EINVAL,
			"a session that lives has its language and limits already; leave out "
			"ID, or the other options");
	return session_json(remote, &(struct session_call){ o->word, HTTP_GET, "", { 0 } }, ret,
			    err);
}

static void end_session(const struct remote *remote, const char *id)
{
	_cleanup_buf_ struct buf nothing = { 0 };
	struct session_target target;
	struct error ignored = { 0 };
	const struct http_call call = { .method = HTTP_DELETE, .target = target.text };

	if (session_target(remote, id, "", &target, &ignored) == 0)
		(void)!remote_text(remote, &call, &nothing, &ignored);
}

static int talk(const struct remote *remote, const struct session_options *o)
{
	struct error err = { 0 };
	json_t *session = NULL;
	int code, r = find_session(remote, o, &session, &err);

	if (r < 0)
		return say_error(&err);
	code = repl_run(remote, session, !o->word);
	if (!o->word)
		end_session(remote, text_of(session, "id"));
	json_decref(session);
	return code;
}

static int repl_word(void *data, const char *word, struct error *err)
{
	struct session_options *o = data;

	if (o->word)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "unexpected '%.100s'; one session at a time", word);
	o->word = word;
	return 0;
}

static int repl_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct session_options o = { .run.overrides = json_object() };
	struct remote remote;
	int code;

	if (session_begin(self, &args, &o, &remote, &code) == 0) {
		if (o.word || self == &cmd_session_repl) {
			code = talk(&remote, &o);
		} else {
			say("`atoll %s` takes an ID; `atoll session list` shows ids", self->name);
			code = EXIT_OURS;
		}
	}
	json_decref(o.run.overrides);
	return code;
}

static const struct option_list repl_list = { .rows = session_rows,
					      .n = SESSION_ROWS -
						   1, /* it prints no data, so no --json */
					      .more = session_run_row,
					      .limit = run_limit,
					      .word = repl_word };

const struct command cmd_session_repl = {
	.name = "session repl",
	.usage = "[ID | OPTIONS]",
	.summary = "type code into a session",
	.details = "Without ID, a session is made, and ended on exit. ^C stops the running code, "
		   "^D or "
		   "exit leaves. A\nblock of Python ends with an empty line. Arrow keys edit the "
		   "line and "
		   "show earlier ones.\n",
	.options = &repl_list,
	.main = repl_main,
};

static const struct option attach_rows[] = {
	{ "--url", 0, "URL", "the daemon's socket or http://ADDRESS:PORT [$ATOLL_URL]",
	  option_set_text, .offset = offsetof(struct session_options, url) },
};
static const struct option_list attach_list = { .rows = attach_rows,
						.n = ARRAY_SIZE(attach_rows),
						.word = repl_word };

const struct command cmd_session_attach = {
	.name = "session attach",
	.usage = "ID",
	.summary = "type code into a session that lives, and leave it running",
	.options = &attach_list,
	.main = repl_main,
};
