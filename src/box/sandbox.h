/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live sandbox, made from a plan. The broker owns one `struct sandbox_host` (shared by all its sandboxes) and
 * one `struct sandbox` for each run.
 *
 *   sandbox_create  reserves a uid and cgroup, clones, maps ids; the clone makes its namespaces and waits
 *   sandbox_prepare sets the limits (unless they are set already, for one made ahead), hands over the plan and sends GO
 *   child.c         runs in the clone: executes prepare[], locks itself down, becomes init
 *   sandbox_start   hands a stage its descriptors
 *   sandbox_kill    ends pid 1 and with it everything inside
 *   sandbox_vacate  after pid 1 was reaped: counters are final, the cgroup goes
 *   sandbox_free    the file systems go
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/sys/host-facts.h"
#include "box/cgroup.h"
#include "box/group-reuse.h"
#include "box/init/init.h"
#include "plan/filter.h"
#include "plan/plan.h"
#include "plan/wire.h"
#include "plan/workspace-place.h"

#include <sys/types.h>

struct net;
struct nets;

enum { SANDBOX_DEVS_MAX = 32 };

struct sandbox;
/* What differs between a sandbox of namespaces (spawn.c, end.c) and one without (place.c). */
struct sandbox_kind {
	bool has_userns, has_tmpfs;
	void (*kill)(struct sandbox *sb); /* pid 1, and with it everything inside */
	void (*bury)(struct sandbox *sb); /* pid 1 has been reaped */
	int (*clear)(struct sandbox *
			     sb); /* before its users may have another sandbox; -EBUSY: try again */
	void (*release)(struct sandbox *sb);		      /* with the descriptors */
	int64_t (*files_in_memory)(const struct sandbox *sb); /* bytes */
	void (*disk_left)(const struct sandbox *sb, struct usage *usage);
	/*
	 * Milliseconds until its files must be looked at again, if no file system bounds them; 0: they exceed their bounds;
	 * INT32_MAX: never.
	 */
	int64_t (*look)(struct sandbox *sb);
};
extern const struct sandbox_kind sandbox_of_namespaces;

struct sandbox_host {
	struct host_facts facts;
	struct cgroup_site site; /* where groups are made */
	const struct cgroup_ops *cgroups;
	struct cgroup_root *cgroup_root;
	struct filter filters[_FILTER_MAX];
	int init_fd;	 /* sealed memfd that holds init */
	int files_ahead; /* nothing is made ahead with descriptors from this number on; 0: no bound */
	const struct workspace_place *workspaces; /* NULL: none */
	int mounts_fd;				  /* the table of mounts, once read; or -EBADF */
	struct buf mounts;			  /* its mount points, each with a NUL (layers.c) */
	struct group_reuse groups;		  /* unused ones */
	/*
	 * Unused trees of /dev. They are read-only, so the next sandbox finds nothing of the previous one
	 * there.
	 */
	int devs[SANDBOX_DEVS_MAX];
	size_t n_devs;
};

/* Its directories and mounts. */
struct sandbox_files {
	int work_fd, tmp_fd; /* the writable directories, for collection; -EBADF until PREPARED */
	int upper_fd;	     /* the upper directory of its workspace, or -EBADF */
	bool trusted_upper;  /* marked there by trusted xattrs, not user xattrs */
	pid_t mounter;	     /* process that mounts its workspace; 0: none */
	int mounts_fd;	     /* its mount namespace */
	int dev_fd;	     /* its tree of /dev, for reuse; or -EBADF */
	bool own_dev; /* its /dev nodes are shared neither with another sandbox nor with the host */
};

/* A program that runs already when the sandbox adopts it. */
struct sandbox_program {
	int fd;	   /* the broker's end of the program's socket, or -EBADF */
	pid_t pid; /* of its main process, in the broker's pid namespace; 0: unknown yet */
	int pidfd; /* the same, held; of a nested sandbox the process to move, which then ends */
};

/* Sandboxes inside one another, for the copies of live processes (mover.h). */
struct sandbox_nesting {
	/* It is inside the sandbox that its program was copied from, with that one's uid: host_id only names the cgroup. */
	bool inside;
	uint32_t parent_id; /* that uid */
	bool has_copies;    /* such sandboxes were made inside this one */
	int64_t cpu_of_copies_us; /* without a cgroup: of ended copies, whose pid 1 this one's has reaped */
	int order_fd; /* the broker's end of its mover's socket, until the copy is there; or -EBADF */
};

struct sandbox {
	struct sandbox_host *host;
	const struct sandbox_kind *kind;
	struct place *place; /* place.h; NULL: it has namespaces */
	pid_t pid;	     /* in the broker's pid namespace; 0 once reaped */
	int pidfd;
	int control_fd;	      /* the broker's end of init's socket */
	int terminal_fd;      /* master of its terminal, or -EBADF */
	int relay_fd;	      /* the socket of its relay, until it is handed over; or -EBADF */
	struct net *net;      /* the network namespace it was given, or NULL: it made one */
	uint32_t host_id;     /* uid and gid outside */
	uint32_t stdio_owner; /* its pipes are given to that user; 0: they stay as they are */
	bool owned;	      /* its user namespace belongs to that uid, not to the broker's */
	bool id_reserved;     /* no other sandbox on this host has that uid */
	int64_t cpu_seen_us;  /* without a cgroup: CPU time at the last reading */
	/* cloned by an unprivileged zygote: the broker puts it into the group; owned by another uid */
	bool cloned_apart;
	struct cgroup *cgroup;
	bool lone; /* its program was always alone, so the group can be used again */
	struct sandbox_files files;
	struct sandbox_program program;
	struct sandbox_nesting nesting;
};

/*
 * Probes the host, and clones a first sandbox meanwhile; facts are filled also on failure. Overwrites all
 * members but workspaces.
 */
int sandbox_host_init(struct sandbox_host *host, struct sandbox **ret_spare,
		      struct error *err) _must_check_;
/* Opens the place where cgroups are made. */
int sandbox_host_open(struct sandbox_host *host, struct error *err) _must_check_;
void sandbox_host_done(struct sandbox_host *host);
/* Removes what killed brokers left, a piece at a time. True: there is more. */
bool sandbox_host_sweep(const struct sandbox_host *host);
/* Gives dying sandboxes of killed brokers their share of the processors back. */
void sandbox_host_lift(const struct sandbox_host *host);

/*
 * Everything that needs no plan: uid, cgroup, namespaces. May be done ahead of a request. The sandbox takes
 * over net (NULL: it makes its own), also on failure.
 */
int sandbox_create(struct sandbox_host *host, struct net *net, struct sandbox **ret,
		   struct error *err) _must_check_;
/* The rest of a spare that sandbox_host_init() began. */
int sandbox_complete(struct sandbox *sb, struct error *err) _must_check_;
/*
 * The same for a sandbox that a zygote clones: the clone needs *ret_far_end to reach the broker. Call
 * sandbox_arrive() when the control socket is readable.
 */
int sandbox_expect(struct sandbox_host *host, struct net *net, struct sandbox **ret,
		   int *ret_far_end, struct error *err) _must_check_;
int sandbox_arrive(struct sandbox *sb, struct error *err) _must_check_;
/*
 * A sandbox for the copy of a live process of another one (mover.h), which may still have to be forked. fds: its new 0, 1, 2,
 * the caller's to close. Call sandbox_arrive() and sandbox_prepare() when the control socket is readable, and then sandbox_move() when
 * there is a copy: after PREPARED it runs. -EOPNOTSUPP: not on this host.
 */
int sandbox_nest(struct sandbox *parent, const int fds[3], struct sandbox **ret,
		 struct error *err) _must_check_;
/* copy: its pid in the broker's namespace. Once. -ESRCH: no such process in the parent's sandbox. */
int sandbox_move(struct sandbox *sb, const struct sandbox *parent, pid_t copy,
		 struct error *err) _must_check_;
/* Kills a process of the parent's that was to be moved. One that has been moved is not the parent's any more. */
void sandbox_drop_copy(const struct sandbox *parent, pid_t copy);
/* A uid and a cgroup without a process; sandbox_vacate() frees them. */
int sandbox_reserve(struct sandbox_host *host, struct sandbox **ret,
		    struct error *err) _must_check_;
/*
 * Gives it the plan, once, checked before; plan_fd is its sealed memfd. The sandbox answers with reports. After
 * a plan that ends with the pivot, the sandbox waits for the whole plan.
 */
int sandbox_prepare(struct sandbox *sb, const struct plan_view *plan, int plan_fd,
		    struct error *err) _must_check_;
int sandbox_finish(struct sandbox *sb, const struct plan_view *plan, int plan_fd,
		   struct error *err) _must_check_;
/* Takes the directories that came with PREPARED, which come first, out of fds. Returns how many they were. */
size_t sandbox_take_dirs(struct sandbox *sb, const struct report *rep, int fds[], size_t n_fds);
/* For the stage that starts next. */
int sandbox_set_limits(struct sandbox *sb, const int64_t limits[_STAGE_LIMIT_MAX],
		       struct error *err) _must_check_;
/*
 * fds: 0 (negative: the sandbox's own null device), 1 and 2 of the stage, command->n_extra more, and a ticket
 * if there is one. The caller keeps them.
 */
int sandbox_start(struct sandbox *sb, const struct init_command *command,
		  const int fds[]) _must_check_;
/*
 * Sends the signal through init to the main process of the running stage. -EAGAIN: init has not read the last
 * ones yet.
 */
int sandbox_signal(struct sandbox *sb, int signo) _must_check_;
/*
 * Kills every process but pid 1: nothing in it runs any more, its memory is given back, and the sandboxes inside it live on. To be called
 * again, a little later, until it returns 0; 1: there were processes, and their children may be there still. -EAGAIN: init has not read the
 * last commands yet.
 */
int sandbox_park(struct sandbox *sb) _must_check_;
/* The first part of sandbox_start, for an adopted program: its pipes are given to the sandbox's user. */
void sandbox_give_stdio(struct sandbox *sb, const int fds[3]);
/* Holds the sender of the first message on program_fd; only the adopted program has the other end. */
int sandbox_meet_program(struct sandbox *sb, pid_t pid) _must_check_;
void sandbox_kill(struct sandbox *sb);
/*
 * For a sandbox whose adopted program is done: kills the program and pid 1, but lets other work of the host run
 * first, until sandbox_kill(). -ESRCH: the program has ended by itself, and pid 1 will report it.
 */
int sandbox_die_behind(struct sandbox *sb) _must_check_;
void sandbox_die_at_once(struct sandbox *sb);
/* As sandbox_kind.look. */
int64_t sandbox_look(struct sandbox *sb);
/* Kernel counters so far. Members that cannot be measured are -1. */
void sandbox_usage(struct sandbox *sb, struct usage *ret);
/* Microseconds of CPU used so far: the cheap call for polling. */
int64_t sandbox_cpu_us(struct sandbox *sb);
/*
 * Microseconds so far for which the program's main thread has waited for a processor that others used: its run-queue delay (tree.h)
 * without the time for which the sandbox's own quota held it back. May be negative; only differences say anything.
 */
int64_t sandbox_waited_us(struct sandbox *sb);
/* Memory and scratch files held now, for hosts without a cgroup; an estimate. */
int64_t sandbox_memory_bytes(struct sandbox *sb);
/* The same with shared pages divided among their users; slower. */
int64_t sandbox_memory_exact(struct sandbox *sb);
/* Memory that sockets hold and that counts for no cgroup; an estimate. */
int64_t sandbox_sockets_bytes(const struct sandbox *sb);
/* Reaps pid 1, only when its pidfd is readable; its wait status. Of a copy's, which another process reaps: as if killed. */
int sandbox_reap(struct sandbox *sb);
/*
 * Removes the cgroup, or keeps it for another sandbox, and so releases the uid. -EBUSY: not empty yet, try
 * again.
 */
int sandbox_vacate(struct sandbox *sb) _must_check_;
/* The rest, after pid 1 was reaped: closes descriptors, and with them the file systems. NULL is fine. */
void sandbox_free(struct sandbox *sb);

/* Kills, waits and frees, for a sandbox that no loop watches. NULL is fine. */
void sandbox_destroy(struct sandbox *sb);
