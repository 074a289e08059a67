/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host can enforce, as plain data. base/sys/probe.c fills it once; policy and plan only read it, so
 * decisions can be tested with invented hosts.
 */
#pragma once

/* The command that sets a sysctl now and at each boot; sudo: "" or "sudo ". */
#define SYSCTL_FIX(sudo, setting)                                                                  \
	"echo " setting " | " sudo "tee -a /etc/sysctl.d/60-atoll.conf && " sudo "sysctl --system"

#include <stdbool.h>
#include <stdint.h>

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2, _CGROUP_KIND_MAX };

/* Controllers, as bits of host_facts.cgroup_controllers. */
enum {
	CGROUP_MEMORY = 1 << 0,
	CGROUP_PIDS = 1 << 1,
	CGROUP_CPU = 1 << 2,
	CGROUP_SWAP = 1 << 3, /* memory+swap accounting is available */
};

/* The process that sends requests: a caller's own process is not confined, the daemon's front is. */
enum front_kind { FRONT_CALLER, FRONT_CONFINED, FRONT_PARTLY, FRONT_OPEN, _FRONT_KIND_MAX };

/* Kinds of namespaces that can be made. */
struct host_namespaces {
	bool user, pid, net, mount, ipc, uts, cgroup;
};

/* System calls that the kernel has. */
struct host_calls {
	bool clone3, openat2, pidfd;
};

struct host_facts {
	char kernel[65]; /* uname -r */
	char node[65];	 /* host name, for the result's "node" */
	int32_t cores;
	int64_t memory_bytes;
	uint32_t uid, gid; /* of this process */
	bool privileged;   /* root with the capabilities for unique host uids (base/sys/probe.c) */
	bool placing;	   /* root with the capabilities that sandboxes without namespaces take */
	uint32_t
		uid_base; /* first of the ids reserved for sandboxes; 0: this process cannot become other users */
	uint32_t uid_count;
	struct host_namespaces namespaces;
	bool seccomp;
	bool filtered;	      /* a seccomp filter that is not Atoll's holds this process */
	int32_t landlock_abi; /* 0: none */
	bool overlay;	      /* overlay can be mounted inside a user namespace */
	bool proc_mount;      /* a fresh procfs with subset=pid can be mounted there */
	struct host_calls calls;
	bool broker_open; /* the broker has rights beyond those of its role in box/confine/ */
	enum front_kind front;
	enum cgroup_kind cgroup;
	uint32_t cgroup_controllers;
	char cgroup_reason
		[200]; /* why it is CGROUP_NONE, with the command that fixes it; else "" */
	char overlay_reason[400]; /* why overlay is false, if it is a mount below /usr; else "" */
	char userns_reason[200];  /* why userns is false, with the command that fixes it; else "" */
};

/* Whether a sandbox without namespaces can be made; and what a refusal of others then adds. */
static inline bool host_has_minimal(const struct host_facts *f)
{
	return f->placing && f->landlock_abi > 0 && f->seccomp && f->front == FRONT_CALLER;
}
#define MINIMAL_HINT "; or run with weaker isolation: --isolation minimal"
