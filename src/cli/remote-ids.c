/* SPDX-License-Identifier: Apache-2.0 */
/* See remote-ids.h. */
#include "cli/remote-ids.h"

#include <string.h>

#include "cli/say.h"
#include "remote/remote-text.h"

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
	if (r < 0 && err->code == ERROR_NOT_ENDED)
		return error_set(err, ERROR_NOT_ENDED, EBUSY,
				 "%s has not ended; end it with `atoll cancel %s` first", target.id,
				 target.id);
	return r;
}

static int do_each(const struct remote *remote, const struct remote_ids *ids,
		   int (*one)(const struct remote *remote, const char *id, json_t **ret,
			      struct error *err))
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
		json_decref(answer);
	}
	return code;
}

int remote_each(const struct command *self, struct arguments *args,
		int (*one)(const struct remote *remote, const char *id, json_t **ret,
			   struct error *err))
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
