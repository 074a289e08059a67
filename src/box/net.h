/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces of a privileged broker, with lo up and nothing else, for sandboxes with `network: none`.
 * Making and removing one takes more than a millisecond of CPU, so an empty one is used again: by one sandbox
 * at a time, only after every process of the previous one is gone, and only if lo was never used: every counter
 * reads as in a new one, no socket is left, and no route is cached. A program has no rights over a namespace of
 * the broker, so it can change nothing else there.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>

struct net;
struct nets; /* the empty ones, and how to make another */

struct nets *nets_new(void); /* NULL: no memory, or not possible here */
struct nets *nets_free(struct nets *n);
/* An empty one, or NULL: then a sandbox makes its own. */
struct net *nets_take(struct nets *n);
/* A descriptor for other processes that enter it. */
int net_fd(const struct net *net);
/* Moves the calling thread into it, for a clone. */
int net_enter(const struct net *net) _must_check_;
void net_leave(const struct net *net);
/* empty: every process in it is gone. NULL is fine. */
void net_give_back(struct net *net, bool empty);
