/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that nobody wants any more, until every process, group and mount of theirs is gone. Nobody waits for that. */
#pragma once

#include "loop/loop.h"
#include "sandbox/sandbox.h"

struct graves;

int graves_new(struct loop *loop, struct graves **ret) _must_check_;
/* Waits for what is left, a bounded time each. NULL is fine. */
struct graves *graves_free(struct graves *g);
/* Kills it and takes it over. NULL is fine. */
void graves_bury(struct graves *g, struct sandbox *sb);
