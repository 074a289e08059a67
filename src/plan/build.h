/* SPDX-License-Identifier: Apache-2.0 */
/* decision → plan. Pure: what of the host is a link, a file or a directory is found out by OP_SHOW. */
#pragma once

#include "plan/plan.h"
#include "policy/policy.h"

#define SANDBOX_WORK  "/sandbox"
#define SANDBOX_BUILD "/build"

struct stage_spec { /* one program to run */
	const char *name;
	const char *const *argv; /* NULL-terminated, already expanded, argv[0] absolute */
	const char *const *env;	 /* "K=V", NULL-terminated, on top of the base environment */
	struct span stdin_data; /* data NULL: the caller's stream for the first stage, else empty */
	const struct limits *limits;
};

struct build_file {	  /* goes below SANDBOX_WORK or SANDBOX_BUILD */
	const char *base; /* one of the two */
	const char *path; /* relative */
	struct span data;
	uint32_t mode;
};

struct plan_input {
	const struct decision *decision;
	const struct stage_spec *stages;
	size_t n_stages;
	const struct build_file *files;
	size_t n_files;
	bool collect; /* the work directory's files are wanted afterwards */
};

int plan_build(const struct plan_input *in, struct plan *ret, struct error *err) _must_check_;
