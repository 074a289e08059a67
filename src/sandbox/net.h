/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces of a privileged broker, for sandboxes without a network. Making and unmaking one is half of what a
 * sandbox costs, so an empty one is used again: by one sandbox at a time, only after every process of the one before is
 * gone, and only while its counters (all that a program can leave behind in it: the loopback is down, and nobody inside
 * has a right over a namespace of ours) read as on the first day.
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
