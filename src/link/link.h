/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front's end of the socket to a broker. Records go out with link_send() and come in through the
 * loop, where each is handed to the port that has its job number; one link serves many jobs. A record
 * nobody waits for is dropped and its descriptors closed.
 *
 *   link_spawn, link_connect ──▶ open ──link_watch──▶ watched ──peer gone or breaks the protocol──▶ broken
 *                                  └───────────────────┴──────────── link_close ───────────────────────┴──▶ gone
 *
 * A link breaks once and for all: every port is told (message NULL) and later sends fail.
 */
#pragma once

#include "base/error.h"
#include "base/span.h"
#include "link/broker-proto.h"
#include "loop/loop.h"

#include <sys/types.h>

struct link;

struct link_message {
	struct record record;
	int fds[RECORD_FDS_MAX]; /* -EBADF: none; the handler takes what it wants with TAKE_FD */
	size_t n_fds;
	bool lost_fds; /* it came without its descriptors, which there was no room for */
};

/* Who receives the records of one job. Embedded by its owner; link_detach before it goes. */
struct link_port {
	uint32_t job;
	/* message NULL: the broker is gone. Negative: the loop ends with it. */
	int (*on_message)(void *data, struct link_message *message);
	void *data;
	struct link_port *next;
};

/*
 * Starts a broker: a forked child that holds nothing but its end of the socket and stderr, calls
 * serve(data, fd) and exits with what that returns.
 */
struct link_server {
	int (*serve)(void *data, int fd);
	void *data;
};
int link_spawn(struct link_server server, struct link **ret, struct error *err) _must_check_;
/*
 * To a broker that listens at path and is run by us or by root. Nobody there: -ENOENT or -ECONNREFUSED. Any failure,
 * here or of link_hello() (another version, no answer), means that a broker is to be had another way.
 */
int link_connect(const char *path, struct link **ret) _must_check_;
/* Takes over fd (one end of a SOCK_SEQPACKET pair), and pid (to be waited for) when it is not 0. */
int link_new(int fd, pid_t pid, struct link **ret) _must_check_;
/* Closes the socket and waits until the broker has cleaned up and ended. NULL is fine. */
struct link *link_close(struct link *l);

/* What the broker can do; waits for its HELLO. */
int link_hello(struct link *l, struct host_facts *ret) _must_check_;
int link_watch(struct link *l, struct loop *loop) _must_check_;
void link_unwatch(struct link *l);
/* Gives the port a job number of its own. */
void link_attach(struct link *l, struct link_port *port);
void link_detach(struct link *l, struct link_port *port);
/* One that hears of HELLO (when it comes through the loop) and of the end. */
void link_attach_keeper(struct link *l, struct link_port *port);
bool link_is_idle(const struct link *l); /* no port is attached */

/*
 * Sends one record (RUN, KILL, USAGE, SIGNAL). The descriptors stay the caller's. A full socket makes it wait for its turn in
 * the loop; -ENOBUFS: too many do. -EPIPE: the broker is gone.
 */
int link_send(struct link *l, const struct record *record, const int *fds,
	      size_t n_fds) _must_check_;
/* The same with at most RECORD_PLAN_MAX bytes behind the record. */
int link_send_plan(struct link *l, const struct record *record, struct span plan, const int *fds,
		   size_t n_fds) _must_check_;
/* Hands out every record that has arrived, without waiting. Also done from the loop. */
int link_dispatch(struct link *l) _must_check_;
/* The broker no longer answers: it is killed (its sandboxes die with it) and the link is broken. */
void link_give_up(struct link *l);
bool link_is_broken(const struct link *l);
/* The broker serves others too, and may go without us. */
bool link_is_shared(const struct link *l);
/* It has said that it keeps runtimes ready. */
bool link_is_warm(const struct link *l);
