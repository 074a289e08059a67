/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: a shared object that the broker loads into interpreters ahead of their own libraries (LD_PRELOAD, from a
 * sealed memfd). It knows no language. It stands in for functions of libc:
 *
 *   fork()         in a zygote: serves the broker for ever and returns only in children, which by then are programs
 *                  inside complete sandboxes (agent.c); a program's own children come without its socket
 *   read(WARM_FD)  in a zygote: as fork(), then as in a program
 *                  in a program: 'w' or 'r' at first, then the request, for which it waits (agent-launch.c)
 *                  in a probe: 'p' at first, then the probe has run its sample (agent-pages.c)
 *   mmap()         in a zygote: gives arenas side by side (agent-arena.c)
 *   __libc_start_main(), open(), fopen()
 *                  in a zygote whose interpreter does not call fork(), or not in time (agent-entry.c)
 *
 * The agent is no boundary: the program in the same process can do everything that the agent can do.
 */
#pragma once

#include "agent/cloner.h"
#include "base/macro.h"

#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <sys/types.h>

enum agent_role { AGENT_IDLE, AGENT_IS_ZYGOTE, AGENT_IS_PROBE, AGENT_IS_PROGRAM };

enum { AGENT_FDS_MAX = 64 };

struct agent_area {
	char *start;
	size_t size;
};

struct agent {
	enum agent_role role;
	pid_t pid; /* the process that has the role: a child that the program forks has none */
	pid_t (*real_fork)(void);
	ssize_t (*real_read)(int fd, void *buf, size_t n);
	/* zygote */
	struct cloner cloner;
	jmp_buf in_fork;	    /* where a new program goes on */
	int own_fds[AGENT_FDS_MAX]; /* of the interpreter itself */
	size_t n_own_fds;
	bool probing; /* a probe finds out which pages programs touch (ATOLL_PAGES) */
	struct agent_area words,
		variables; /* where the kernel looks for /proc/self/cmdline and environ */
	/* program */
	char plan[LAUNCH_PLAN_MAX]
		__attribute__((aligned(8))); /* of the request, until it is put in place */
	bool noted;	       /* the runner wants a note in front of the request (ATOLL_NOTE) */
	const char *text_path; /* the file that holds most programs' text (ATOLL_TEXT), or NULL */
	int text_fd;	       /* that file, made ahead; 0: it was not made */
	char text_room[LAUNCH_PLAN_MAX + 64]; /* more than such a plan needs */
	char *env_room[128];
	bool asked, parked, launched;
	ino_t inode; /* of the socket, once launched: a program may put another descriptor in its place */
	const char *text; /* the request as the runner reads it */
	size_t text_len, text_at;
};

extern struct agent agent;

/* agent-launch.c. As read(): the next bytes for the runner, from the program's process only. */
ssize_t agent_read(void *buf, size_t n);
/* agent-pages.c. Forks the probe; true in the probe. */
bool agent_probe(void);
/* Ends the probe, after it has noted the pages that it touched. */
_noreturn_ void agent_probe_end(void);
/* In a program: asks for the pages that the probe touched. */
void agent_ask_pages(void);
/* agent-arena.c. The zygote has loaded everything: puts its memory into huge pages. */
void agent_join_pages(void);
/* agent-file.c. Makes the file for the program's text. True: it is there, with TEXT_BLOCK bytes of room. */
bool agent_make_text(void);
/* Removes that file unless the plan fills it. */
void agent_settle_text(const struct plan_view *v);
int agent_write_file(const struct plan_view *v, const struct op *op, int64_t time_ns);
/* In a child that the program has forked: closes the socket, which is the program's alone. */
void agent_forked(void);
/* The process leaves through exit(): sends its exit code. */
void agent_exit(int status, void *data);
