/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run without namespaces takes of its host, and what it cannot have. The rest of the decision is that of other runs.
 */
#include "plan/policy/policy.h"

#include <stdio.h>

static bool can_become_others(const struct host_facts *f)
{
	return f->placing;
}

static bool has_files_rules(const struct host_facts *f)
{
	return f->landlock_abi > 0;
}

static bool is_own_process(const struct host_facts *f)
{
	return f->front == FRONT_CALLER;
}

static const struct {
	bool (*holds)(const struct host_facts *f);
	const char *otherwise;
} needs[] = {
	{ is_own_process, "a daemon makes no sandboxes without namespaces, because its callers "
			  "share it; use atoll run "
			  "--no-daemon" },
	{ can_become_others,
	  "it gives each sandbox a user of its own, which takes root with CAP_SETUID, CAP_SETGID, "
	  "CAP_CHOWN, CAP_KILL, CAP_SETPCAP and CAP_DAC_OVERRIDE (Docker's root has them): run "
	  "atoll as "
	  "root" },
	{ has_files_rules,
	  "without namespaces only Landlock keeps programs from the host's files, and it is off "
	  "here: "
	  "boot with lsm=landlock,… on the kernel's command line (in a container: on its host)" },
};

static bool wants_image(const struct request *req)
{
	return req->image;
}

static bool wants_workspace(const struct request *req)
{
	return req->workspace;
}

static bool wants_terminal(const struct request *req)
{
	return req->tty;
}

static bool wants_value(const struct request *req)
{
	return req->eval;
}

static bool wants_method(const struct request *req)
{
	return req->invoke_method;
}

static bool wants_root(const struct request *req)
{
	return req->writable_root;
}

static bool wants_mounts(const struct request *req)
{
	return req->n_mounts > 0;
}

static const struct {
	bool (*asked)(const struct request *req);
	const char *field;
} refused[] = {
	{ wants_image, "image" },   { wants_workspace, "workspace" },
	{ wants_terminal, "tty" },  { wants_value, "eval" },
	{ wants_method, "invoke" }, { wants_root, "writable_root" },
	{ wants_mounts, "mounts" },
};

int decide_minimal(const struct decision *d, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if (!needs[i].holds(d->facts))
			return error_set(err, ERROR_POLICY, EPERM,
					 "policy '%s' asks for the minimal tier: %s",
					 d->policy->name, needs[i].otherwise);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (refused[i].asked(d->request))
			return error_refuse(err, refused[i].field,
					    "%s: there is none in the minimal tier (policy '%s'); "
					    "leave it out, or run where namespaces can be made",
					    refused[i].field, d->policy->name);
	return 0;
}
