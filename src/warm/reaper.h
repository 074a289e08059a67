/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that nobody wants any more, until every process, group and mount of theirs is gone. Nobody waits for that. */
#pragma once

#include "loop/loop.h"
#include "sandbox/sandbox.h"

struct reaper;

int reaper_new(struct loop *loop, struct reaper **ret) _must_check_;
/* Waits for what is left, a bounded time each. NULL is fine. */
struct reaper *reaper_free(struct reaper *g);
/* Kills it and takes it over. NULL is fine. */
void reaper_take(struct reaper *g, struct sandbox *sb);
