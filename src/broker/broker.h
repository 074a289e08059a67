/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker: the only process that creates sandboxes. One thread, one loop, no JSON, YAML, HTTP or SQL. It takes
 * plans over a SOCK_SEQPACKET socket (proto.h), checks them against its own ceilings, and reports what happened.
 * When the other end closes, it kills every sandbox, cleans up and returns.
 */
#pragma once

/* Serves the socket until it closes. Returns an exit code. */
int broker_run(int front_fd);
