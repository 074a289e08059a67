/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll cancel ID…`: ends executions; one that has ended stays. */
#include "atoll/commands/remote-ids.h"

static const struct option rows[] = { REMOTE_JSON, REMOTE_URL };
static const struct option_list cancel_options = { .rows = rows,
						   .n = ARRAY_SIZE(rows),
						   .word = remote_add_id };

static int cancel_one(const struct remote *remote, const char *id, json_t **ret, struct error *err)
{
	return remote_delete(remote, id, "?only=cancel", ret, err);
}

static int cancel_main(const struct command *self, int argc, char **argv)
{
	return remote_each(self, &(struct arguments){ .argc = argc, .argv = argv }, cancel_one);
}

const struct command cmd_cancel = {
	.name = "cancel",
	.usage = "ID…",
	.summary = "end running and queued executions",
	.details = "Their output so far stays in the history, with the status `cancelled`.\n",
	.options = &cancel_options,
	.main = cancel_main,
};
