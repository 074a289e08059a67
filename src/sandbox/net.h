/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces of a privileged broker, with lo up and nothing else, for sandboxes with `network: none`. Making and unmaking
 * one takes more than a millisecond of CPU, so an empty one is used again: by one sandbox at a time, only after every process of
 * the one before is gone, and only if lo was never touched: every counter reads as on the first day, no socket is left, and no
 * route is cached. A program has no right over a namespace of the broker's: it can change nothing else there.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>

struct net;
struct nets; /* those nobody lives in, and how to make another */

struct nets *nets_new(void); /* NULL: out of memory, or not to be had here */
struct nets *nets_free(struct nets *n);
/* One that nobody lives in, or NULL: then a sandbox makes its own. */
struct net *nets_take(struct nets *n);
/* What it is called for others that are to enter it. */
int net_fd(const struct net *net);
/* The calling thread, for the time of a clone. */
int net_enter(const struct net *net) _must_check_;
void net_leave(const struct net *net);
/* empty: every process that was in it is gone. NULL is fine. */
void net_give_back(struct net *net, bool empty);
