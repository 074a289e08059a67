/* SPDX-License-Identifier: Apache-2.0 */
/* Where the pool of this user listens, and which process listens there. Both ends of that socket agree on the place here. */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <sys/types.h>

/* The usual place: /run/atoll/pool.sock for root, $XDG_RUNTIME_DIR/atoll/pool.sock for others. *ret NULL: none is known. */
int pool_place_usual(char **ret) _must_check_;
/* The option's place; NULL: that of $ATOLL_POOL, or the usual one. *ret NULL: no pool is wanted ("" and "off"). */
int pool_place_find(const char *option, char **ret) _must_check_;
/* Whether runs start a pool where none listens: $ATOLL_POOL is "auto". */
bool pool_place_is_auto(void);
/* The process that listens at path. Negative: none does. */
int pool_place_process(const char *path, pid_t *ret) _must_check_;
