/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runner that is a daemon: the contract of run/runner.h over a connection of its own for each run (doc/runner-protocol.md).
 *
 * open() connects and waits for the answer; everything after it comes from the loop. A daemon that went away before the end is an end
 * of the run, with an error. Room for input is told as RUN_STDIN_ROOM.
 */
#pragma once

#include "atoll/remote/http-client.h"
#include "base/loop/loop.h"
#include "run/runner.h"

struct runner_socket {
	struct runner runner; /* the contract */
	struct loop *loop;
	const struct http_address *address;
	const char *token; /* NULL: none */
	int cancel_fd;	   /* when readable, open() gives up: -ECANCELED; -EBADF: none */
	struct http_client
		*client; /* a connection for the next open(), which takes it; NULL: it makes one */
	/* Tells how much of a large request is sent; NULL: not wanted. */
	void (*on_sent)(void *data, size_t sent, size_t of);
	void *data;
	/* Of the last open() that failed: another runner may take the request, because this daemon is not there, too old or has no room. */
	bool declined;
};

/* The members but runner are set by its owner, and valid as long as its runs. */
void runner_socket_init(struct runner_socket *s);
