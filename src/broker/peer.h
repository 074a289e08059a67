/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front as the broker sees it: a socket, and the records that did not fit into it yet.
 *
 * The one peer of a forked broker may make it wait, for a minute at most: nobody else is kept waiting, and a burst of
 * files costs no memory. With several peers nobody is waited for: what a socket does not take is kept, within bounds, and
 * goes when it can; tasks that have ended keep their files until the peer has caught up. A peer that reads nothing for a
 * minute, or lets more pile up than the bound, is hung up on.
 *
 * That a program has begun is news that can wait: it goes with the next record, so that a peer is woken once for a task
 * that is over in an instant.
 */
#pragma once

#include "broker/task.h"

/* Takes fd. `several`: there are other peers, so never wait for this one. */
int peer_new(struct broker *b, int fd, bool several, struct peer **ret) _must_check_;
/* Its records go to handler, with the peer as data of the caller's choosing. */
int peer_watch(struct peer *peer, struct handler handler) _must_check_;
/* Closes its socket, ends its tasks. Returns NULL. */
struct peer *peer_free(struct peer *peer);
