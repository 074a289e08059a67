/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records between monitor and front, over one SOCK_SEQPACKET pair; each has at most one descriptor. The
 * socket is also the lifeline: when the monitor's end closes, the front ends.
 *
 *   monitor ──CONFIG, LOG, AUDIT, LOCK, RUN, LISTEN …, GO──▶ front     at start
 *   monitor ──CONFIG, LOG, AUDIT, RELOAD──▶ front                      on SIGHUP
 *   monitor ──PING──▶ front ──PONG──▶ monitor                          now and then
 *   front ──READY, or FAILED with a sentence──▶ monitor
 */
#pragma once

#include "base/error.h"

enum { CONTROL_FD = 3 }; /* its number in the front */

enum control_kind {
	CONTROL_CONFIG = 1, /* fd: config_to_json() in a sealed memfd */
	CONTROL_LOG,	    /* fd */
	CONTROL_AUDIT,	    /* fd, or none */
	CONTROL_LOCK,	    /* fd: the lock of the state directory, which the front holds too */
	CONTROL_RUN,	    /* fd: the directory where the broker's socket is */
	CONTROL_LISTEN, /* fd: a listening socket; text: its address, or the path of a unix socket */
	CONTROL_GO,	/* the setup is complete */
	CONTROL_RELOAD,
	CONTROL_PING,
	CONTROL_PONG,
	CONTROL_READY,
	CONTROL_FAILED, /* text: why; a restart would not help */
	_CONTROL_MAX,
};

struct control_record {
	uint32_t kind;
	char text[508];
};

/* fd negative: none. The caller keeps fd. */
int control_send(int sock, enum control_kind kind, const char *text, int fd) _must_check_;
/* 1: a record; 0: the other side is gone; -EAGAIN: none yet. *ret_fd is -EBADF if no descriptor came. */
int control_receive(int sock, struct control_record *ret, int *ret_fd) _must_check_;

/* The broker's socket in the directory of CONTROL_RUN. */
#define CONTROL_BROKER "broker.sock"
