/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outcome of a run: doc/result.md's result as a struct, and its JSON form. Filled from the broker's reports
 * (kernel counters and wait status only) and from the captured output.
 */
#pragma once

#include "base/error.h"
#include "spec/limits.h"
#include "spec/schema.h"
#include "spec/usage.h"

enum run_status {
	STATUS_SUCCESS,
	STATUS_ERROR,
	STATUS_TIMEOUT,
	STATUS_LIMIT,
	STATUS_CANCELLED,
	STATUS_DENIED,
	STATUS_SETUP_ERROR,
	STATUS_INTERRUPTED,
	STATUS_INTERNAL_ERROR,
	_STATUS_MAX,
};

struct cause {
	enum cause_kind kind;
	char detail[448];      /* one sentence; as long as an error's text */
	const char *limit_key; /* "memory": names the knob of limit and suggest; NULL: none */
	int64_t limit, peak;   /* base units; -1: null */
	int64_t suggest;       /* value worth retrying with; -1: null */
	bool retryable;
};

struct verdict { /* status, exit code and cause of one stage or of the whole run */
	enum run_status status;
	int exit_code; /* -1: nothing ran; null in the result */
	int signal;    /* 0: none */
	struct cause cause;
	int64_t extended_us; /* of a test: its wall time was extended by what others made it wait */
	uint32_t
		limit_hits; /* bits of cause_kind that were hit although the program ended with 0 */
};

struct result_stage {
	char name[64];
	struct verdict verdict;
	int64_t duration_us;
	struct usage usage;
	char *stdout_text; /* compile stages: the compiler's output; otherwise NULL */
	char *stderr_text;
};

struct result_file {
	char *path;
	int64_t size;
	char sha256[65];
};

enum test_verdict {
	TEST_UNDECIDED,
	TEST_PASSED,
	TEST_WRONG_ANSWER,
	TEST_PRESENTATION_ERROR,
	TEST_COMPILE_ERROR,
	TEST_TIMEOUT,
	TEST_LIMIT,
	TEST_CANCELLED,
	TEST_ERROR,
	TEST_CHECKER_ERROR,
	TEST_SKIPPED,
	_TEST_VERDICT_MAX,
};

/* The first place where an output is not what was expected. */
struct result_difference {
	int64_t line, column; /* in the output, from 1, in characters; line 0: there is none */
	char *expected, *got; /* what stands there; NULL: nothing */
};

struct result_test {
	char *name, *group; /* or NULL */
	enum test_verdict verdict;
	struct verdict run;
	char *stdout_text;
	char *stderr_text;
	char *message;	      /* of a program that judges, or NULL */
	char *transcript;     /* of the program and its interactor, or NULL */
	double worth, earned; /* points; worth -1: not given */
	bool scored;	      /* a program gave points */
	int64_t duration_us;
	struct usage usage;
	json_t *error; /* as of a result, or NULL */
	struct result_difference difference;
};

/* Tests that stand together. */
struct result_group {
	char *name;
	enum test_verdict verdict; /* passed, or that of its first test that is not */
	const char *code;
	double worth, earned;
	bool scored; /* it or one of its tests has points */
};

struct result_stream {
	char *text; /* the kept part, NUL-terminated; raw bytes, may hold NULs */
	size_t len;
	int64_t bytes; /* bytes that the program wrote */
	bool truncated;
};

/* What happened to the writes to a workspace. Without `present`, the result has none of it. */
struct result_commit {
	bool present;
	bool applied;
	char error[256]; /* why wanted changes were not applied, or "" */
	void *changes;	 /* records of spec/change.h, aligned as by malloc() */
	size_t changes_len;
	uint64_t omitted; /* changes that are not listed */
};

struct isolation {
	const char
		*tier; /* "full"; "reduced" if a layer is missing; "minimal": without namespaces */
	const char *user;	 /* "unique", "shared" */
	const char *cgroup;	 /* "v2", "v1", "none" */
	char seccomp[48];	 /* "default@3f2a91c0" */
	int landlock;		 /* ABI in force; 0: off */
	const char *proc;	 /* "pid", "none" */
	const char *net;	 /* "none", "off", "allow" */
	const char *broker;	 /* "confined", "open" */
	const char *front;	 /* the same, "partly", or "caller": a caller's own process */
	const char *missing[16]; /* names of layers, NULL-terminated */
};

struct result {
	char id[32];
	char *language; /* or NULL */
	struct verdict verdict;
	enum error_code refusal; /* why nothing ran; ERROR_NONE: the program ran */
	struct result_stream out, err;
	json_t *value;	  /* or NULL */
	char *value_type; /* of an evaluated program: the type's name; NULL: nothing was evaluated */
	json_t *value_repr; /* the value as its language prints it; NULL: too long, or none */
	int64_t value_bytes; /* of the JSON text of a value that is too large for `value`, which is NULL then; 0: it is not */
	json_t *outputs;	/* rich outputs, or NULL */
	size_t evaluated_bytes; /* of value, outputs and error as text, about */
	json_t *host_calls;	/* or NULL */
	json_t *network;	/* connections of a run that may reach other machines, or NULL */
	json_t *denials;	/* what was refused to it, or NULL */
	uint64_t network_omitted,
		denials_omitted; /* connections and refusals that are not listed */
	json_t *session;	 /* {"id", "state"}; NULL: no turn of a session */
	struct result_file *files;
	size_t n_files;
	bool files_truncated; /* more files were written than may be collected */
	struct result_commit commit;
	int64_t duration_us;
	struct usage usage;
	int64_t start_us; /* from acceptance to exec */
	struct result_stage *stages;
	size_t n_stages;
	struct result_test *tests;
	size_t n_tests;
	struct result_group *groups;
	size_t n_groups;
	json_t *error;	  /* {"type","message","file","line"} or NULL */
	char *suggestion; /* what to do about the error, or NULL */
	json_t *warnings; /* texts: what the caller would not expect; NULL: none */
	struct isolation isolation;
	json_t *labels;		   /* or NULL */
	int64_t timeout_chosen_ms; /* for "adaptive", and why: */
	char *timeout_reason;	   /* or NULL */
	char *runtime;		   /* "Python 3.11.2" or NULL */
	char *policy;
	const char *via; /* "daemon", "pool" or "direct": the broker's kind of client */
	bool cached_build;
	bool no_history; /* the request asked for that: nothing of the run is stored */
	int64_t created_realtime_ns;
	char node[65];
};

/* The words of a status and of a cause, as JSON Schema's types have them. */
#define RESULT_STATUSES                                                                            \
	"success|error|timeout|limit|cancelled|denied|setup_error|interrupted|internal_error"
#define RESULT_CAUSES                                                                              \
	"exit|signal|timeout|cpu_time|idle|memory|output|pids|disk|policy|cancelled|setup|"        \
	"interrupted|internal"

/* Result, and the shapes of its parts. */
extern const struct schema result_shapes[];

const char *status_name(enum run_status status);
/* STATUS_INTERNAL_ERROR of a word that is none. */
enum run_status status_from_name(const char *name);
const char *cause_name(enum cause_kind kind);
const char *test_verdict_name(enum test_verdict verdict);
/* AC, WA, PE, CE, TLE, MLE, OLE, RE, IE or SK: the word of contest judges. */
const char *test_code(const struct result_test *test);
struct result *result_new(void);
struct result *result_free(struct result *res);
static inline void result_cleanup(struct result **res)
{
	(void)result_free(*res);
}
/* doc/result.md's object; keys that such a run cannot fill are absent. Invalid UTF-8 becomes U+FFFD and `stdout_binary` is set. */
json_t *result_to_json(const struct result *res);
/* Its member `isolation` alone. */
json_t *isolation_to_json(const struct isolation *is);
/*
 * The same as compact text, for the caller to free. Atoll's seconds print as 0.0021; a program's value keeps
 * every bit.
 */
char *result_to_text(const struct result *res);
enum { RESULT_TEXT_MAX = 1 << 30 };
/*
 * Flags for json_dumps() of a result, or of a tree with one as its "result": Atoll's seconds print as 0.0021,
 * not 0.0020999999999999999; a program's value keeps every bit.
 */
size_t result_json_flags(const json_t *tree);
/* The result of a request that never ran: denied, setup_error or internal_error, by the error's code. */
struct result *result_from_error(const struct error *err);
/* The exit code of the command line for a result (doc/cli.md). */
int result_exit_code(const struct result *res);

/* The input of classify(). It is pure, so every rule of doc/result.md has a unit test. */
struct ending {
	int wait_status; /* as from waitid/wait4, of the main process */
	int killed_for;	 /* the enum cause_kind that Atoll killed it for, or -1 */
	struct usage usage;
	int64_t largest_file_bytes; /* of the files found; for file_size */
	int64_t output_bytes;	    /* of the larger stream */
	int64_t duration_us;
	int64_t extended_us; /* its wall time was extended by what others made it wait */
};
/* The program failed, and its own words say that it got no more memory, which no counter shows. */
void verdict_no_memory(struct verdict *v, const struct usage *usage, const struct limits *limits);
void classify(const struct ending *end, const struct limits *limits, struct verdict *ret);
