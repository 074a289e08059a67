/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request of a caller: doc/http.md's request body as a struct. It borrows every string from the JSON tree it
 * was parsed from and holds a reference on that tree, so it is cheap and has one owner. Parsing checks shape,
 * types, names and bounds; plan/policy/ decides whether the caller may have it.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"
#include "spec/change.h"
#include "spec/limits.h"
#include "spec/schema.h"

/* Destinations of one list, and bytes of its text. */
enum { NETWORK_DESTINATIONS_MAX = 64, NETWORK_TEXT_MAX = 8192 };
enum network_mode {
	NETWORK_NONE,  /* a loopback interface and nothing else */
	NETWORK_OFF,   /* no sockets but AF_UNIX */
	NETWORK_ALLOW, /* listed destinations, through a relay */
	NETWORK_HOST,
};

enum {
	REQUEST_FILES_MAX = 4096,
	REQUEST_ARGS_MAX = 4096,
	REQUEST_ENV_MAX = 512,
	REQUEST_STAGES_MAX = 32,
	REQUEST_TESTS_MAX = 256,
	REQUEST_GROUPS_MAX = 64,
	REQUEST_TEST_NAME_MAX = 100, /* bytes of the name of a test or a group */
	REQUEST_POINTS_MAX = 1000000,
	REQUEST_GLOBS_MAX = 64,
	REQUEST_LABELS_MAX = 64,
	REQUEST_MOUNTS_MAX = 16,
	REQUEST_PRELOAD_MAX = 32,
	REQUEST_COMPILER_ARGS_MAX = 64,
	REQUEST_COMPILER_ARG_MAX = 4096, /* bytes of one */
	REQUEST_CODE_MAX = 16 << 20,
	REQUEST_PATH_MAX = 1000,    /* bytes of a file name below /sandbox */
	REQUEST_DEPTH_MAX = 32,	    /* its components */
	REQUEST_WORKSPACE_MAX = 63, /* bytes of a workspace's name */
	REQUEST_WORD_MAX =
		131071, /* one argument or variable: the kernel's MAX_ARG_STRLEN less the NUL */
	REQUEST_WORDS_MAX = 1 << 20, /* all of them together */
};

struct request_file {
	const char *path; /* relative, normal form, below /sandbox */
	struct span data;
	uint32_t mode; /* 0644 or 0755 */
};

struct request_mount {	    /* absolute paths in normal form */
	const char *target; /* in the sandbox */
	const char *source; /* a directory of the host */
	bool writable;	    /* the program's changes are applied when it has ended */
};

struct request_var {
	const char *name;
	const char *value;
};

struct request_stage {
	const char *name;
	const char *
		code; /* of the request's language, else for /bin/sh; or NULL: exactly one of code and argv */
	const char **argv;	/* NULL-terminated, or NULL */
	struct span stdin_data; /* data NULL: none */
	struct request_var *env;
	size_t n_env;
	struct limits limits;
	uint32_t limits_set;
};

enum checker_kind {
	CHECKER_EXACT, /* but for white space at the ends of lines and of the output */
	CHECKER_IGNORE_WHITESPACE,
	CHECKER_UNORDERED_LINES,
	CHECKER_TOLERANCE, /* numbers may differ a little */
	CHECKER_PROGRAM,
};

/* How the output of a test is judged. */
struct request_checker {
	enum checker_kind kind;
	double tolerance;
	struct request *program; /* of CHECKER_PROGRAM; one after another, equal ones are one */
};

struct request_test {
	const char *name;	/* or NULL */
	struct span stdin_data; /* data NULL: empty */
	struct span expected;	/* always given, but where a program judges */
	const char **args;	/* in place of the request's, NULL-terminated; NULL: those */
	struct request_var *env;
	size_t n_env;		    /* all of the test: the request's and its own */
	struct request_file *files; /* beside the request's, or in the place of one */
	size_t n_files;
	struct limits limits; /* over those of the request */
	uint32_t limits_set;
	struct request_checker checker;
	struct request *previous; /* program of the checker before, or NULL */
	int64_t points;		  /* -1: not given */
	const char *group_name;	  /* or NULL */
	size_t group;		  /* its index; n_groups: none */
};

/* How the points of a group follow from its tests. */
enum scoring {
	SCORING_SUM,  /* each test counts for itself */
	SCORING_ALL,  /* all tests passed, or nothing */
	SCORING_MIN,  /* as its worst test */
	_SCORING_MAX, /* while a group is read: not given */
};

/* Tests that stand together. Every group has a test, and those of the groups that it needs stand before it. */
struct request_group {
	const char *name;
	const char **needs; /* names of groups, NULL-terminated, or NULL */
	int64_t points;	    /* -1: those of its tests */
	enum scoring scoring;
};

/* Which tests are left out when one has failed. */
enum stop_at { STOP_FIRST, STOP_GROUP, STOP_NEVER };

struct request {
	json_t *root;	      /* owns every string below that is not in memory */
	struct arena memory;  /* lists, and what base64 decoded */
	const char *language; /* as given, or NULL */
	struct span code;     /* data NULL: none */
	const char **args;    /* NULL-terminated, never NULL */
	size_t n_args;
	struct span stdin_data; /* data NULL: not given */
	struct request_var *env;
	size_t n_env;
	struct request_file *files;
	size_t n_files;
	struct limits limits; /* only members whose bit is in limits_set mean anything */
	uint32_t limits_set;
	enum network_mode network;
	const char *network_text; /* as given, for messages */
	/* NETWORK_ALLOW: as address.h reads them, NULL-terminated; NULL: all that the policy permits */
	const char **network_destinations;
	const char *policy; /* name or path, or NULL */
	const char *image;  /* host directory, or NULL */
	struct request_mount *mounts;
	size_t n_mounts;
	const char *workspace;	 /* name, or NULL */
	bool workspace_cwd;	 /* programs start in it */
	enum commit_when commit; /* when the writes to it are applied */
	bool read_only;
	bool writable_root; /* programs may write anywhere, into a layer that ends with the run */
	bool tty;
	bool merge_stderr; /* standard error goes to the pipe of standard output */
	const char *
		entry; /* the file of `files` to run; with code: the name of the code's file; or NULL */
	struct request_stage *stages;
	size_t n_stages;
	struct request_test *tests;
	size_t n_tests;
	struct request_group *groups; /* given, or named by tests */
	size_t n_groups;
	enum stop_at stop_at;
	struct request *interactor; /* the program that talks to the tested one; or NULL */
	bool no_history;	    /* nothing of the run is to be stored */
	bool eval;		    /* the value of the last expression is wanted */
	const char *invoke_class, *invoke_method; /* method NULL: no invoke */
	const json_t *invoke_params;		  /* object, or NULL */
	const char **collect;			  /* globs, NULL-terminated; NULL: everything */
	const json_t *labels;			  /* object of strings, or NULL */
	const char **preload;	    /* modules to load ahead, NULL-terminated; NULL: not given */
	const char **compiler_args; /* words for the compile stage, NULL-terminated; NULL: none */
};

/* ExecuteRequest, and the shapes of its parts. */
extern const struct schema request_shapes[];

/* Takes its own reference on root. Unknown keys, and keys of later steps, are refused by name. */
int request_parse(json_t *root, struct request **ret, struct error *err) _must_check_;
struct request *request_free(struct request *req);
static inline void request_cleanup(struct request **req)
{
	(void)request_free(*req);
}

/* The files that a checker's program gets, and its arguments. */
enum { CHECKER_INPUT, CHECKER_OUTPUT, CHECKER_EXPECTED, _CHECKER_FILE_MAX };
extern const char *const checker_files[_CHECKER_FILE_MAX + 1]; /* NULL-terminated */
/* The arguments of an interactor. It makes the second file itself, in a directory that it can always write to. */
extern const char *const interactor_files[_CHECKER_FILE_MAX + 1];
/* The group that a group needs; both are indexes. */
bool request_group_needs(const struct request *req, size_t group, size_t needed);

/* One plain component: a letter or digit, then letters, digits, dots, underscores, dashes; of any length. */
bool request_is_workspace(const char *name);
/* Checks a relative file name: no "", ".", "..", absolute, NUL, over-long or over-deep path. */
int request_check_path(const char *path, size_t len, struct error *err) _must_check_;
