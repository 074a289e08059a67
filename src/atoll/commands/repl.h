/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of `atoll session repl` and `attach`. */
#pragma once

#include "atoll/commands/cmd-session.h"

/* Until its end; the exit code. is_new: the session ends with it, which the greeting says. */
int repl_run(const struct remote *remote, const json_t *session, bool is_new);
