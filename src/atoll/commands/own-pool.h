/* SPDX-License-Identifier: Apache-2.0 */
/* The pool that serves the commands of this user: starting it behind a first run (ATOLL_POOL=auto), and ending it. */
#pragma once

#include <jansson.h>

/* With ATOLL_POOL=auto: returns when a pool listens. If none can be started, the run has a broker of its own. */
void own_pool_start(void);
/* {"pid", "socket"} of the pool that runs would find; NULL: none listens. */
json_t *own_pool_describe(void);
/* Ends the pool that listens at socket (NULL: where runs would look for it). Returns the exit code. */
int own_pool_stop(const char *socket);
