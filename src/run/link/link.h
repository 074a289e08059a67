/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front's end of the socket to a broker. Records go out with link_send() and come in through the
 * loop, where each is handed to the port that has its job number; one link serves many jobs. If no port
 * has the number, the record is dropped and its descriptors closed.
 *
 *   link_spawn, link_connect ──▶ open ──link_watch──▶ watched ──peer gone or breaks the protocol──▶ broken
 *                                  └───────────────────┴──────────── link_close ───────────────────────┴──▶ gone
 *
 * A link breaks once and for all: every port is told (message NULL) and later sends fail.
 */
#pragma once

#include "base/error.h"
#include "base/loop/loop.h"
#include "base/span.h"
#include "broker/broker-proto.h"

#include <sys/types.h>

struct link;

struct link_message {
	struct record record;
	int fds[RECORD_FDS_MAX]; /* -EBADF: none; the handler takes what it wants with TAKE_FD */
	size_t n_fds;
	bool lost_fds; /* its descriptors exceeded the limit of open files and were lost */
};

/* Takes its only descriptor, if *fd has none yet. */
static inline void link_take_fd(struct link_message *m, int *fd)
{
	if (m->n_fds != 1 || *fd >= 0)
		return;
	*fd = TAKE_FD(m->fds[0]);
	m->n_fds = 0;
}

/* The receiver of the records of one job. Embedded by its owner, which calls link_detach() before it is freed. */
struct link_port {
	uint32_t job;
	/* message NULL: the broker is gone. A negative return value ends the loop. */
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
 * Connects to a broker that listens at path and runs as the caller's user or root. -ENOENT, -ECONNREFUSED: no broker
 * listens there. After any failure, here or in link_hello() (another version, no answer), the caller must get a broker in another way.
 */
int link_connect(const char *path, struct link **ret) _must_check_;
/* Takes over fd (one end of a SOCK_SEQPACKET pair), and pid (to be waited for) when it is not 0. */
int link_new(int fd, pid_t pid, struct link **ret) _must_check_;
/* Closes the socket and waits until the broker has cleaned up and ended. NULL is fine. */
struct link *link_close(struct link *l);

/* The abilities of the broker; waits for its HELLO. */
int link_hello(struct link *l, struct host_facts *ret) _must_check_;
int link_watch(struct link *l, struct loop *loop) _must_check_;
void link_unwatch(struct link *l);
/* Gives the port a job number of its own. */
void link_attach(struct link *l, struct link_port *port);
void link_detach(struct link *l, struct link_port *port);
/* Attaches a port that gets HELLO (if it comes through the loop) and the end of the link. */
void link_attach_keeper(struct link *l, struct link_port *port);
bool link_is_idle(const struct link *l); /* no port is attached */

/*
 * Sends one record (RUN, KILL, USAGE, SIGNAL). The descriptors stay the caller's. If the socket is full, the record is queued, and
 * the loop sends it. -ENOBUFS: the queue is full. -EPIPE: the broker is gone. -ETOOMANYREFS: the kernel passes on no further
 * descriptor of this user now.
 */
int link_send(struct link *l, const struct record *record, const int *fds,
	      size_t n_fds) _must_check_;
/* The same with at most RECORD_PLAN_MAX bytes behind the record. */
int link_send_plan(struct link *l, const struct record *record, struct span plan, const int *fds,
		   size_t n_fds) _must_check_;
/*
 * Why a RUN could not be sent: ERROR_LOST; ERROR_BUSY for -ETOOMANYREFS, which a queued RUN gets as RECORD_FAILED; ERROR_INTERNAL.
 * Returns the negative errno of err.
 */
int link_explain_unsent(int r, struct error *err);
/* Hands out every record that has arrived, without waiting. Also done from the loop. */
int link_dispatch(struct link *l) _must_check_;
/* For a broker that no longer answers: breaks the link, and kills a forked broker, whose sandboxes die with it. */
void link_give_up(struct link *l);
bool link_is_broken(const struct link *l);
/* The broker is not the front's own child: it may serve other fronts, and may end at any time. */
bool link_is_shared(const struct link *l);
/* The broker's HELLO says that it keeps runtimes ready. */
bool link_is_warm(const struct link *l);
