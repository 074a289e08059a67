/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy: defaults and ceilings of limits, the visible part of the file system, the required layers. Parsed
 * from YAML text; pure. decide() joins request, policy, language and host into a decision, or a refusal that
 * names the rule and says what to do. A request can only tighten a policy.
 */
#pragma once

#include "base/address.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/sys/host-facts.h"
#include "spec/change.h"
#include "spec/language.h"
#include "spec/layer.h"
#include "spec/limits.h"
#include "spec/request.h"
#include "spec/yaml.h"

#include <jansson.h>

const char *layer_name(enum layer layer); /* "cgroup-memory" */
/* One sentence: the missing part, and the command that fixes it on this host. */
void layer_fix(enum layer layer, const struct host_facts *facts, char *ret, size_t size);
uint32_t layers_missing(const struct host_facts *facts); /* bits of enum layer */
/* The same of a sandbox without namespaces. */
uint32_t layers_missing_minimal(const struct host_facts *facts);

/* Modules that a request's `preload` may name. Their code runs in a process outside of any sandbox. */
enum preload_rule {
	PRELOAD_TIERS, /* those in the language's own tiers */
	PRELOAD_NAMED, /* those in the policy's list */
	PRELOAD_ANY,
};

/* As many as a relay has (plan/relay-book.h). */
enum { NETWORK_PORTS_MAX = 32, NETWORK_RULES_MAX = 1024 };

struct policy {
	json_t *root;	     /* owns every string below */
	struct arena memory; /* owns the lists */
	const char *name;
	struct limits defaults, ceilings;
	uint32_t
		/* bits of enum layer for this host: require, and require_privileged if it applies */
		required;
	bool read_only;	     /* every request is read-only */
	bool writable_root;  /* a request may ask for a writable root */
	bool libraries_only; /* programs read their runtime and libraries, and no other file */
	const char **usr;    /* host directories shown read-only: "/usr", … */
	const char **etc;    /* entries of /etc shown to every program */
	const char **mounts; /* directories that requests may have shown, with all below */
	const char **writable_mounts; /* those of them that programs may change */
	enum network_mode network;    /* the most a request may ask for: off, none or allow */
	bool network_barred; /* NETWORK_ALLOW: the administrator permits no network at all */
	/* NETWORK_ALLOW: the destinations, as base/address.h reads them, and the ports of those that name none */
	const char **network_allow;
	uint16_t network_ports[NETWORK_PORTS_MAX];
	size_t n_network_ports;
	int64_t network_bytes; /* that one run may send and receive; 0: no bound */
	enum isolation_tier
		isolation;     /* of every run; with ISOLATION_MINIMAL network is NETWORK_OFF */
	const json_t *imports; /* {"allow" | "deny": [modules]} of Python code, of root; or NULL */
	enum preload_rule preload;
	const char **preload_names; /* of PRELOAD_NAMED; NULL otherwise */
};

/* The same from a tree that was parsed before the host was known; takes its own reference. */
int policy_build(json_t *root, const char *name, const struct host_facts *facts,
		 struct policy **ret, struct error *err) _must_check_;
int policy_parse(const struct document *doc, const struct host_facts *facts, struct policy **ret,
		 struct error *err) _must_check_;
struct policy *policy_free(struct policy *policy);
static inline void policy_cleanup(struct policy **policy)
{
	(void)policy_free(*policy);
}

struct decision {
	struct limits limits; /* complete */
	enum network_mode network;
	bool read_only;
	bool writable_root; /* the program may write anywhere, into a layer that ends with the run */
	bool libraries_only; /* as the policy says */
	bool tty;
	bool forkable; /* a session whose live process can be copied into another sandbox */
	const char *
		workspace; /* name of the mounted workspace, or path of the writable mount; or NULL */
	const char *workspace_target; /* of such a mount; NULL: the usual place */
	bool workdir;		      /* programs start in the workspace */
	enum commit_when commit;
	uint32_t missing; /* layers that this host lacks; none of them is required */
	const struct request *request;
	const struct policy *policy;
	const struct language *language; /* NULL for stages without a language */
	const struct host_facts *facts;
	const struct limits *presets; /* the administrator's for this language, or NULL … */
	/* … of which these are set; they override the policy's, the request overrides them */
	uint32_t presets_set;
};

/*
 * While the request is read, only the widest bounds are known. This rewrites a refusal of a limit with the
 * bounds of this policy and host. Needs policy and facts of *d. An err about something else stays as it is.
 */
void decide_restate(const struct decision *d, const json_t *root, struct error *err);
/*
 * Calls fn for each destination and port that the run may reach, in order, while it returns 0. Its host may be a pattern; an address
 * that is not public is given only if the policy lists that address itself.
 */
int decision_each_destination(const struct decision *d,
			      int (*fn)(void *data, const struct destination *destination),
			      void *data) _must_check_;
/* The caller fills request, policy, language, facts and presets of *d; decide() fills the rest or refuses. */
int decide(struct decision *d, struct error *err) _must_check_;
/*
 * The limits of one stage: the decision's, overridden by the language's (compile) or by the request's stage,
 * and never above what policy and host allow.
 */
struct knob;

/* The largest value that a request may ask for. */
int64_t decision_ceiling(const struct decision *d, const struct knob *k);
void decision_stage_limits(const struct decision *d, const struct limits *over, uint32_t set,
			   struct limits *ret);
/* For --explain: the rule behind each field. */
struct decision_row {
	const char *field, *value, *rule;
	const struct knob *knob; /* number belongs to this knob; NULL: value is complete */
	int64_t number;
	const bool *truth; /* NULL: value is no yes or no */
};
/* Calls fn for each row, in order, while it returns 0. */
int decision_each(const struct decision *d, int (*fn)(void *data, const struct decision_row *row),
		  void *data) _must_check_;
/* The rows as a table. */
int decision_print(const struct decision *d, struct buf *out) _must_check_;
