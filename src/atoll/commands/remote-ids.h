/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that take ids of executions or sessions. */
#pragma once

#include "atoll/commands/confirm.h"
#include "atoll/commands/remote.h"

enum { REMOTE_IDS_MAX = 1000 };

struct remote_ids {
	struct remote_options remote; /* first: the shared option rows use its offset */
	const char *ids[REMOTE_IDS_MAX];
	size_t n;
	struct confirm confirm; /* of commands that remove */
};

/* For option_list.word. */
int remote_add_id(void *data, const char *word, struct error *err);
/* Refuses any number of ids other than n; n 0: at least one. */
int remote_need_ids(const struct command *self, const struct remote_ids *ids,
		    size_t n) _must_check_;

/* DELETE with "?only=cancel" or "?only=delete": the daemon checks the state, so there is no race. */
int remote_delete(const struct remote *remote, const char *id, const char *only, json_t **ret,
		  struct error *err) _must_check_;
/* The words about an execution that is not to be removed yet. Always negative. */
int remote_not_ended(const char *id, struct error *err);
/* What a command does with one id; *ret: the daemon's answer. */
typedef int (*remote_one_fn)(const struct remote *remote, const char *id, json_t **ret,
			     struct error *err);
/*
 * A command on one or more ids: does it for each, reports failures and goes on; with --json prints the answers
 * as they come. Returns an exit code.
 */
int remote_each(const struct command *self, struct arguments *args, remote_one_fn one);
/*
 * The same for a command with CONFIRM_ROWS. All words become whole ids before anything is removed: then "-2" is another one. With
 * --dry-run, look instead of remove; it prints a line, or with --json its answer.
 */
enum { REMOTE_ID_BYTES = 64 };
struct remote_removal {
	const char *things; /* "executions with their outputs" */
	int (*name)(const struct remote *remote, const char *word, char ret[REMOTE_ID_BYTES],
		    struct error *err);
	remote_one_fn look, remove;
};
int remote_remove_each(const struct command *self, struct arguments *args,
		       const struct remote_removal *how);
