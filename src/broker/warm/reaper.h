/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes that are not needed any more, until all their processes, groups and mounts are gone. No request
 * waits for that.
 */
#pragma once

#include "base/loop/loop.h"
#include "box/sandbox.h"

struct reaper;

int reaper_new(struct loop *loop, struct reaper **ret) _must_check_;
/* Waits for the sandboxes that are left, some seconds at most, and frees them. NULL is fine. */
struct reaper *reaper_free(struct reaper *g);
/* Kills the sandbox and takes it over. NULL is fine. */
void reaper_take(struct reaper *g, struct sandbox *sb);
