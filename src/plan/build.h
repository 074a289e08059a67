/* SPDX-License-Identifier: Apache-2.0 */
/* decision → plan. Pure: OP_SHOW finds out later whether a host path is a link, a file or a directory. */
#pragma once

#include "plan/plan.h"
#include "plan/policy/policy.h"

#define SANDBOX_WORK  "/sandbox"
#define SANDBOX_BUILD "/build"
#define SANDBOX_KIT   "/kit"
#define SANDBOX_SPACE "/workspace"
/* What programs are told about the machine. The name of a prelude stays the same, so that words can hold it. */
#define SANDBOX_SYS	"/sys"
#define SANDBOX_PRELUDE SANDBOX_SYS "/atoll/prelude"

enum {
	WALL_EXTENDED = 2
}; /* the longest wall time of a judged stage, as a multiple of its timeout */

struct stage_spec { /* one program to run */
	const char *name;
	const char *const *argv; /* NULL-terminated, already expanded, argv[0] absolute */
	const char *const *env;	 /* "K=V", NULL-terminated, on top of the base environment */
	struct span stdin_data; /* data NULL: the caller's stream for the first stage, else empty */
	const struct limits *limits;
	bool judged; /* its time is a verdict: waiting that others cause extends its wall time */
};

struct build_file {	  /* goes below SANDBOX_WORK or SANDBOX_BUILD */
	const char *base; /* one of the two */
	const char *path; /* relative */
	struct span data;
	uint32_t mode;
};

/* How the one stage of a plan can be ready before the request; the stage itself describes the cold way. */
struct plan_warm {
	enum warm_kind kind;
	const char *name;	    /* of the runtime */
	const char *const *modules; /* WARM_FORK: loaded modules; NULL-terminated lists, or NULL */
	const char *const *argv;    /* WARM_START: the command */
	const char *const *env;	    /* and its variables, on top of the base environment */
	const char *file; /* WARM_START: the runner that it finds as WARM_FILE_FD; NULL: none */
};

struct plan_input {
	const struct decision *decision;
	const struct stage_spec *stages;
	size_t n_stages;
	const struct build_file *files;
	size_t n_files;
	bool collect; /* the files of the work directory are collected afterwards */
	/* SANDBOX_BUILD is a scratch directory: it can be filled in a finished sandbox */
	bool build_scratch;
	const struct plan_warm *warm; /* or NULL */
	const char *kit;     /* host directory shown as SANDBOX_KIT if it exists, or NULL */
	const char *prelude; /* text of SANDBOX_PRELUDE, or NULL */
	uint32_t place;	     /* number of the place, for a plan without namespaces */
};

/* Replaced in a variable by the processors that the stage may use. */
#define PLAN_CPUS "{cpus}"
/* The variables of every program; NULL-terminated. */
extern const char *const plan_base_env[];

/* Whole processors, at least one: programs size pools of threads by them. */
int64_t plan_cpus(const struct limits *limits);

int plan_build(const struct plan_input *in, struct plan *ret, struct error *err) _must_check_;

/* A path of sandboxes, and where that is in this plan. */
struct place_path {
	const char *from; /* NULL: the end of a list */
	const char *to;
};
/* The word with every path of a sandbox replaced. */
int build_place_word(const struct place_path *places, const char *word,
		     struct buf *ret) _must_check_;
