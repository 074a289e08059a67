/* SPDX-License-Identifier: Apache-2.0 */
/* decision → plan. Pure: what must be known of the host (its /bin is a link, …) comes in `layout`. */
#pragma once

#include "plan/plan.h"
#include "policy/policy.h"

#define SANDBOX_WORK  "/sandbox"
#define SANDBOX_BUILD "/build"

/* How the host's root looks, as far as plans mirror it. */
struct root_layout {
	const char *image; /* NULL: the host's own root */
	struct {
		const char *path;   /* "/bin" */
		char link[64];	    /* "usr/bin" when it is a symbolic link, "" when a directory */
		bool exists;
	} top[8]; /* bin, sbin, lib, lib32, lib64, libx32, and two spare */
};

struct stage_spec { /* one program to run */
	const char *name;
	const char *const *argv; /* NULL-terminated, already expanded, argv[0] absolute */
	const char *const *env;	 /* "K=V", NULL-terminated, on top of the base environment */
	struct span stdin_data;	 /* data NULL: the caller's stream for the first stage, else empty */
	const struct limits *limits;
};

struct build_file { /* goes below SANDBOX_WORK or SANDBOX_BUILD */
	const char *base; /* one of the two */
	const char *path; /* relative */
	struct span data;
	uint32_t mode;
};

struct plan_input {
	const struct decision *decision;
	const struct root_layout *layout;
	const struct stage_spec *stages;
	size_t n_stages;
	const struct build_file *files;
	size_t n_files;
	bool collect; /* the work directory's files are wanted afterwards */
};

int plan_build(const struct plan_input *in, struct plan *ret, struct error *err) _must_check_;
