/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `atoll history`, and what they share with `atoll cancel`. */
#pragma once

#include "atoll/commands/cmd.h"

extern const struct command history_show, history_diff;

/* DELETE with "?only=cancel" or "?only=delete". */
int execution_delete(const struct remote *remote, const char *id, const char *only, json_t **ret,
		     struct error *err) _must_check_;
/* The words about an execution that is not to be removed yet. Always negative. */
int execution_not_ended(const char *id, struct error *err);
