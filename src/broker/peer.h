/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front as the broker sees it: a socket, and the records that did not fit into it yet.
 *
 * A forked broker has one peer and blocks on its full socket, for a minute at most: no other peer waits, and a burst of
 * files costs no memory. A broker with several peers never blocks: records that do not fit into a socket are queued,
 * within bounds. Ended tasks keep their files until their peer has caught up. If a peer reads nothing for a minute, or its
 * queue reaches the bound, the broker hangs up on it.
 *
 * STARTED and STAGE without a descriptor are held for a few milliseconds and go with the next record, so that a short task
 * wakes its peer once.
 */
#pragma once

#include "broker/task.h"

/* Takes fd. `several`: there may be other peers, so sending never blocks. */
int peer_new(struct broker *b, int fd, bool several, struct peer **ret) _must_check_;
/* Calls the handler when the peer has sent a record or has gone. */
int peer_watch(struct peer *peer, struct handler handler) _must_check_;
/* Closes its socket, ends its tasks. Returns NULL. */
struct peer *peer_free(struct peer *peer);
