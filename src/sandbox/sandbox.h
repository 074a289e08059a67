/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox: the live thing a plan becomes. The broker owns one `struct sandbox_host` (what all sandboxes on this
 * host share) and one `struct sandbox` for each run.
 *
 *   sandbox_create  reserves a uid and cgroup, clones, maps ids; the clone makes its namespaces and waits
 *   sandbox_prepare sets the limits (of one that is made ahead they are set by then), hands over the plan and says GO
 *   child.c         runs in the clone: executes prepare[], locks itself down, becomes init
 *   sandbox_start   hands a stage its descriptors
 *   sandbox_kill    ends pid 1 and with it everything inside
 *   sandbox_vacate  after pid 1 was reaped: counters are final, the cgroup goes
 *   sandbox_free    the file systems go
 */
#pragma once

#include "base/error.h"
#include "init/init.h"
#include "plan/filter.h"
#include "plan/plan.h"
#include "plan/wire.h"
#include "plan/workspace-place.h"
#include "sandbox/cgroup.h"
#include "spec/host-facts.h"

#include <sys/types.h>

struct net;
struct nets;

enum { SANDBOX_GROUPS_MAX = 32, SANDBOX_DEVS_MAX = 32 };

struct sandbox_host {
	struct host_facts facts;
	struct cgroup_site site; /* where groups are made */
	const struct cgroup_ops *cgroups;
	struct cgroup_root *cgroup_root;
	struct filter filters[_FILTER_MAX];
	int init_fd; /* sealed memfd that holds init */
	int files_ahead; /* nothing is made ahead that needs descriptors from this number on; 0: no bound */
	const struct workspace_place *workspaces; /* where they lie; NULL: nowhere */
	/* Groups, and with them uids, that nobody uses: making one and removing it is work for the whole kernel. */
	bool keep_groups;
	struct {
		struct cgroup *cgroup;
		uint32_t host_id;
		int64_t since_ns;
	} groups[SANDBOX_GROUPS_MAX]; /* the longest unused first */
	size_t n_groups;
	/* Trees of /dev that nobody uses. They are read-only, so what comes after a sandbox finds nothing of it there. */
	int devs[SANDBOX_DEVS_MAX];
	size_t n_devs;
};

struct sandbox {
	struct sandbox_host *host;
	pid_t pid; /* as seen from here; 0 once reaped */
	int pidfd;
	int control_fd;	     /* our end of init's socket */
	int work_fd, tmp_fd; /* its writable directories, for collection; -EBADF until PREPARED */
	int upper_fd;	     /* what was written to its workspace, or -EBADF */
	bool trusted_upper;  /* its marks there are trusted xattrs, not user's */
	pid_t mounter;	     /* that mounts its workspace for it; 0: none */
	int terminal_fd;     /* master of its terminal, or -EBADF */
	int mounts_fd;	     /* its mount namespace */
	int dev_fd;	     /* its tree of /dev, to be used again; or -EBADF */
	bool own_dev;	     /* the nodes of its /dev are no other sandbox's, nor the host's */
	int program_fd;	   /* our end of the socket of a program that is there already, or -EBADF */
	pid_t program_pid; /* that program's main process, as seen from here; 0: not known yet */
	int program_pidfd; /* the same, held */
	struct net *net;   /* the network namespace it was given, or NULL: it has made one */
	uint32_t host_id;  /* uid and gid outside */
	bool owned;	   /* its user namespace belongs to that uid, not to ours */
	bool id_reserved;  /* nobody else on this host has that uid now */
	bool cloned_apart; /* by a zygote without rights: ours to put into the group, owned by another uid */
	struct cgroup *cgroup;
	bool lone; /* its program never had company: its group's counters tell the next one's as well */
};

/*
 * Finds out about the host, and clones a first sandbox beside that; facts are filled also on failure. Of what is there only
 * workspaces stays.
 */
int sandbox_host_init(struct sandbox_host *host, struct sandbox **ret_spare,
		      struct error *err) _must_check_;
/* Opens the place where cgroups are made. */
int sandbox_host_open(struct sandbox_host *host, struct error *err) _must_check_;
void sandbox_host_done(struct sandbox_host *host);
/* Lets go of groups that nobody has used since then. */
void sandbox_host_tidy(struct sandbox_host *host, int64_t since_ns);
/* Removes what brokers that were killed left behind, a piece at a time. True: there is more. */
bool sandbox_host_sweep(const struct sandbox_host *host);
/* What they left to die gets its share of the processors back. */
void sandbox_host_lift(const struct sandbox_host *host);

/*
 * Everything that needs no plan: uid, cgroup, namespaces. Made ahead of a request where that pays. net (NULL: it makes its own)
 * is the sandbox's from here on, whatever becomes of it.
 */
int sandbox_create(struct sandbox_host *host, struct net *net, struct sandbox **ret,
		   struct error *err) _must_check_;
/* The rest of a spare that sandbox_host_init() began. */
int sandbox_complete(struct sandbox *sb, struct error *err) _must_check_;
/*
 * The same for one that a zygote clones: *ret_far_end is what the clone needs to reach us. sandbox_arrive() when the control
 * socket is readable.
 */
int sandbox_expect(struct sandbox_host *host, struct net *net, struct sandbox **ret,
		   int *ret_far_end, struct error *err) _must_check_;
int sandbox_arrive(struct sandbox *sb, struct error *err) _must_check_;
/* A uid and a cgroup without a process; sandbox_vacate() gives them back. */
int sandbox_reserve(struct sandbox_host *host, struct sandbox **ret,
		    struct error *err) _must_check_;
/*
 * The plan, once, checked before; plan_fd is its sealed memfd. The sandbox answers with reports. One that ends with the pivot
 * leaves the sandbox waiting for the whole one.
 */
int sandbox_prepare(struct sandbox *sb, const struct plan_view *plan, int plan_fd,
		    struct error *err) _must_check_;
int sandbox_finish(struct sandbox *sb, const struct plan_view *plan, int plan_fd,
		   struct error *err) _must_check_;
/* What came with PREPARED: takes its directories, which come first, out of fds. How many they were. */
size_t sandbox_take_dirs(struct sandbox *sb, const struct report *rep, int fds[], size_t n_fds);
/* For the stage that starts next. */
int sandbox_set_limits(struct sandbox *sb, const int64_t limits[_STAGE_LIMIT_MAX],
		       struct error *err) _must_check_;
/*
 * fds: what becomes 0 (negative: the sandbox's own null device), 1, 2 of the stage, command->n_extra more, and a ticket if there is
 * one; they stay the caller's.
 */
int sandbox_start(struct sandbox *sb, const struct init_command *command,
		  const int fds[]) _must_check_;
/* To the main process of the stage that runs, by init. -EAGAIN: init has not read the last ones yet. */
int sandbox_signal(struct sandbox *sb, int signo) _must_check_;
/* The first part of that, for a program that is there already: pipes become the sandbox user's. */
void sandbox_give_stdio(struct sandbox *sb, const int fds[3]);
/* The sender of the first message on program_fd, which nothing but that program has: from now on it is held. */
int sandbox_meet_program(struct sandbox *sb, pid_t pid) _must_check_;
void sandbox_kill(struct sandbox *sb);
/*
 * For one whose program was there already and has nothing left to do: it is killed, and pid 1 with it, but other work of the
 * host runs first until it is told to die at once. -ESRCH: the program has ended by itself, and pid 1 will tell how.
 */
int sandbox_die_behind(struct sandbox *sb) _must_check_;
void sandbox_die_at_once(struct sandbox *sb);
/* Kernel counters so far. Members nobody can measure are -1. */
void sandbox_usage(struct sandbox *sb, struct usage *ret);
/* Microseconds of CPU used so far: the cheap call for watching. */
int64_t sandbox_cpu_us(struct sandbox *sb);
/* Memory and scratch files held now, for hosts without a cgroup; an estimate. */
int64_t sandbox_memory_bytes(struct sandbox *sb);
/* The same with shared pages shared out; takes its time. */
int64_t sandbox_memory_exact(struct sandbox *sb);
/* Reaps pid 1, only when its pidfd is readable; its wait status. */
int sandbox_reap(struct sandbox *sb);
/* Removes the cgroup, or keeps it for another one, and so gives the uid back. -EBUSY: it is not empty yet, try again. */
int sandbox_vacate(struct sandbox *sb) _must_check_;
/* The rest, after pid 1 was reaped: descriptors, and with them the file systems. NULL is fine. */
void sandbox_free(struct sandbox *sb);

/* Kills, waits and frees in one go, for a sandbox that no loop watches. NULL is fine. */
void sandbox_destroy(struct sandbox *sb);
