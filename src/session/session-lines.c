/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a runner. The code in the sandbox can write any line: a line is parsed as untrusted JSON of bounded size, can only concern
 * its own session, and is ignored where it does not belong. Time, usage and the end of a process come from the kernel.
 */
#include "session/session-private.h"

#include <string.h>

static void on_ready_line(struct session *s, json_t *message, size_t bytes)
{
	(void)message;
	(void)bytes;
	if (s->life->is_ready)
		return;
	s->life->is_ready = true;
	/* The first turn does not pay for the start; and the record of the start, which the broker may hold, comes with the answer. */
	(void)!executor_ask_usage(s->life->run);
	session_advance(s);
}

/* The turn that runs, if the line is about it. */
static struct turn *turn_of(const struct session *s, const json_t *message)
{
	struct turn *t = s->life->turn;

	return t && json_integer_value(json_object_get(message, "n")) == t->number ? t : NULL;
}

static void on_rich_line(struct session *s, json_t *message, size_t bytes)
{
	struct turn *t = turn_of(s, message);

	if (t && !t->file.fn && !t->answer.done)
		turn_rich(t, message, bytes);
}

static void on_value_line(struct session *s, json_t *message, size_t bytes)
{
	struct turn *t = turn_of(s, message);

	(void)bytes;
	if (t && !t->file.fn)
		turn_value(t, message);
}

static void on_done_line(struct session *s, json_t *message, size_t bytes)
{
	if (turn_of(s, message))
		session_turn_done(s, message, bytes);
}

static void on_call_line(struct session *s, json_t *message, size_t bytes)
{
	host_call_take(s, message, bytes);
}

static const struct runner_word {
	const char *op;
	void (*fn)(struct session *s, json_t *message, size_t bytes);
} runner_words[] = {
	{ "ready", on_ready_line }, { "output", on_rich_line }, { "value", on_value_line },
	{ "done", on_done_line },   { "file", on_done_line },	{ "call", on_call_line },
};

void session_on_message(struct session *s, json_t *message, size_t bytes)
{
	const char *op = json_string_value(json_object_get(message, "op"));

	for (size_t i = 0; op && i < ARRAY_SIZE(runner_words); i++)
		if (strcmp(runner_words[i].op, op) == 0) {
			runner_words[i].fn(s, message, bytes);
			break;
		}
}
