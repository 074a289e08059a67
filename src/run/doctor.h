/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of `atoll doctor`: what this host can enforce, what is missing, and the commands that change that.
 * doctor_report() works on the given facts; doctor_examine() probes the host.
 *
 *   {"ok", "summary", "fix", "missing": [layers], "cgroup": "v2", "landlock": 7, "rootless": false,
 *    "sections": [{"name", "checks": [{"name", "value", "verdict": "ok|warn|missing|untested", "weakens", "why", "fix"}]}]}
 */
#pragma once

#include "base/error.h"
#include "base/sys/host-facts.h"
#include "plan/policy/policy.h"
#include "run/toolchain/registry.h"

#include <jansson.h>

struct doctor_input {
	const struct host_facts *facts; /* of host_probe_deep() */
	const struct policy *policy;	/* the default one */
	json_t *languages;		/* the list of registry_to_json(); borrowed */
	/* The content of a file of /proc/sys, a single number; negative errno: no such file. */
	int (*read_setting)(const char *path, int64_t *ret);
};

/* NULL: out of memory. */
json_t *doctor_report(const struct doctor_input *in);
/* Adds a section about so many damaged histories; of none, nothing. -ENOMEM. */
int doctor_add_history(json_t *report, int64_t damaged) _must_check_;

/*
 * Reads policies/default.yaml of p->data_dir and asks reg for the runtimes. facts NULL: probes the host, which
 * forks children.
 */
int doctor_examine(struct registry *reg, const struct prober *p, const struct host_facts *facts,
		   json_t **ret, struct error *err) _must_check_;
