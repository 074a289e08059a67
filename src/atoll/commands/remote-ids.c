/* SPDX-License-Identifier: Apache-2.0 */
/* See remote-ids.h. */
#include "atoll/commands/remote-ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"
#include "base/foreign.h"

enum { LINE_BYTES = 1024 };

int remote_add_id(void *data, const char *word, struct error *err)
{
	struct remote_ids *ids = data;

	if (ids->n == REMOTE_IDS_MAX)
		return error_set(err, ERROR_INPUT, E2BIG, "more than %d ids", REMOTE_IDS_MAX);
	ids->ids[ids->n++] = word;
	return 0;
}

int remote_need_ids(const struct command *self, const struct remote_ids *ids, size_t n)
{
	if (n == 0 ? ids->n > 0 : ids->n == n)
		return 0;
	say("`atoll %s %s` takes %s, not %zu; `atoll %s list` shows ids", self->name, self->usage,
	    n == 0   ? "at least one id"
	    : n == 1 ? "one id"
		     : "two ids",
	    ids->n, strncmp(self->name, "session", 7) == 0 ? "session" : "history");
	return -EINVAL;
}

int remote_not_ended(const char *id, struct error *err)
{
	return error_set(err, ERROR_NOT_ENDED, EBUSY,
			 "%s has not ended; end it with `atoll cancel %s` first", id, id);
}

int remote_delete(const struct remote *remote, const char *id, const char *only, json_t **ret,
		  struct error *err)
{
	struct remote_target target;
	const struct http_call call = { .method = HTTP_DELETE, .target = target.text };
	int r = remote_target(remote, id, only, &target, err);

	if (r == 0)
		r = remote_json(remote, &call, ret, err);
	if (r < 0 && err->code == ERROR_ENDED)
		return error_set(err, ERROR_ENDED, EALREADY, "%s has ended already", target.id);
	return r < 0 && err->code == ERROR_NOT_ENDED ? remote_not_ended(target.id, err) : r;
}

/* "would remove ID", and its state. */
static int print_would(const json_t *answer)
{
	_cleanup_buf_ struct buf out = { .max = LINE_BYTES };
	const char *state = text_of(answer, "state");
	char line[LINE_BYTES / 8];
	int r;

	(void)snprintf(line, sizeof(line), "would remove %s (%s)", text_of(answer, "id"),
		       *state ? state : text_of(answer, "status"));
	r = foreign_put(&out, line, strlen(line), FOREIGN_LINE);
	if (r == 0)
		r = buf_puts(&out, "\n");
	return r < 0 ? EXIT_OURS : print_out(&out);
}

static int do_each(const struct remote *remote, const struct remote_ids *ids, remote_one_fn one)
{
	int code = 0;

	for (size_t i = 0; i < ids->n; i++) {
		struct error err = { 0 };
		json_t *answer = NULL;
		int r = one(remote, ids->ids[i], &answer, &err);

		if (r < 0)
			code = say_error(&err);
		else if (ids->remote.json && remote_print_json(answer) != 0)
			code = EXIT_OURS;
		else if (ids->confirm.dry_run && !ids->remote.json && print_would(answer) != 0)
			code = EXIT_OURS;
		json_decref(answer);
	}
	return code;
}

/* Replaces words by the ids they stand for; those that stand for none are reported and left out. An exit code. */
static int name_all(const struct remote *remote, struct remote_ids *ids,
		    const struct remote_removal *how)
{
	size_t n = ids->n;
	int code = 0;

	ids->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct error err = { 0 };
		char id[REMOTE_ID_BYTES];
		char *copy = NULL;
		int r = how->name(remote, ids->ids[i], id, &err);

		if (r == 0 && !(copy = strdup(id)))
			r = error_oom(&err);
		if (r < 0)
			code = say_error(&err);
		else
			ids->ids[ids->n++] = copy;
	}
	return code;
}

static void free_names(struct remote_ids *ids)
{
	for (size_t i = 0; i < ids->n; i++)
		free((char *)(uintptr_t)ids->ids[i]);
}

int remote_remove_each(const struct command *self, struct arguments *args,
		       const struct remote_removal *how)
{
	struct remote_ids ids = { 0 };
	struct remote remote;
	char question[120];
	int code, done;

	if (remote_begin(self, args, &ids, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &ids, 0) < 0)
		return EXIT_OURS;
	code = name_all(&remote, &ids, how);
	(void)snprintf(question, sizeof(question), "remove %zu %s?", ids.n, how->things);
	if (ids.n > 1 && !ids.confirm.dry_run && confirm_is_needed(&ids.confirm) &&
	    !confirm_ask(question))
		done = EXIT_OURS;
	else
		done = do_each(&remote, &ids, ids.confirm.dry_run ? how->look : how->remove);
	free_names(&ids);
	return done != 0 ? done : code;
}

int remote_each(const struct command *self, struct arguments *args, remote_one_fn one)
{
	struct remote_ids ids = { 0 };
	struct remote remote;
	int code;

	if (remote_begin(self, args, &ids, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &ids, 0) < 0)
		return EXIT_OURS;
	return do_each(&remote, &ids, one);
}
