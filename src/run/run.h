/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request on its way to a result, inside the library.
 *
 *   flow_open       request, language, policy, decision            nothing has happened yet
 *   flow_perform    flow_build     compiled languages: a sandbox of its own, or the cache ─▶ run.product
 *                   flow_program   one sandbox for the program, or for the caller's stages ─▶ run.result
 *                   flow_tests     … or one sandbox a test
 *   flow_close
 *
 * struct local_run holds everything a run needs. flow_execute() is the only place where a plan is sent to a broker.
 */
#pragma once

#include "atoll/atoll.h"
#include "base/arena.h"
#include "base/sys/host-facts.h"
#include "plan/build.h"
#include "plan/policy/policy.h"
#include "run/broker-choice.h"
#include "run/evaluation.h"
#include "run/executor.h"
#include "run/link/channel.h"
#include "run/link/job.h"
#include "run/memo.h"
#include "run/single-flight.h"
#include "run/toolchain/buildcache.h"
#include "run/toolchain/registry.h"
#include "spec/request.h"
#include "spec/result.h"
#include "spec/run-event.h"

/* Reserved names in the work directory: callers may not use them, results do not list them. */
#define FLOW_PRIVATE	   ".atoll-"
#define FLOW_BUILD_DIR	   ".atoll-build" /* the product of a compile stage */
#define FLOW_RUNNER	   ".atoll-session" /* with the language's extension: the program of sessions */
#define FLOW_INVOKE_ANSWER ".atoll-invoke.json" /* the answer of an invoke runner */

struct atoll {
	char *data_dir;
	char *cache_option;
	int cache_fd; /* -EBADF: not opened yet; other negative: there is none */
	struct registry *registry;
	struct host_facts facts;
	bool probed;
	struct loop *loop;
	struct memo memo;
	struct broker_choice broker;
	struct link *link;	/* NULL: no broker yet */
	struct run_fds run_fds; /* of the next run */
	enum front_kind front;	/* how this process is confined */
	bool warm;		/* the broker keeps runtimes ready: plans say which they can use */
	struct link_keeper *keeper;    /* of an executor: owns link; runs are on fibers */
	struct single_flight *flights; /* work that several runs would repeat */
	struct policy_rules {	       /* of an executor, for all policies */
		bool named;	       /* only names, no paths */
		char *dir;	       /* searched before data_dir, or NULL */
		bool no_network;       /* no policy permits other machines */
		struct limits defaults, ceilings;
		uint32_t defaults_set, ceilings_set;
		struct presets *presets; /* by language, under its name here; or NULL */
	} rules;
};

/* data_dir, languages and cache, from the options. */
int atoll_open_data(struct atoll *a, const struct atoll_options *o, struct error *err) _must_check_;
/* The host's facts and the caller's cache, found once per handle. */
const struct host_facts *atoll_facts(struct atoll *a);
int atoll_cache(struct atoll *a);
/* A broker that answers, started if there is none. */
int atoll_link(struct atoll *a, struct error *err) _must_check_;
/* Versions are asked for by runs of this handle. Opens the cache. */
struct prober atoll_prober(struct atoll *a, const char *image);

/* An executor's control of a running run. */
struct run_control {
	struct fiber *fiber;
	bool killed; /* ends the current job and later ones */
	enum cause_kind kill_cause;
	struct job *job; /* the current job, or NULL */
	bool live;	 /* the job is the program's: the members below apply to it */
	bool quiet;	 /* output may come a little late */
	uint16_t rows, columns;
};

/* Ends the current job and later ones. */
void run_kill(struct run_control *c, enum cause_kind cause);

struct local_run {
	struct atoll *atoll;
	struct atoll_run_options options; /* complete, for every size of the caller's struct */
	struct run_control *control;	  /* NULL: the run cannot be controlled */
	struct run_observer observer;	  /* of the program, and of a build's outcome */
	struct run_keeper keeper; /* of what the program prints; read NULL: the job keeps it */
	struct run_places places; /* for sandboxes beside its first one */
	char id[sizeof(((struct result *)NULL)->id)]; /* of the result; "": made when needed */
	bool full;				      /* the result must be complete */
	int64_t accepted_ns;
	struct arena memory; /* words, variables, lists of files */
	struct request *request;
	const struct language *language; /* NULL: stages only */
	struct memo_policy *held;	 /* holds policy, or NULL */
	const struct policy *policy;
	struct decision decision;
	char source[REQUEST_PATH_MAX + 1]; /* of the program, below the work directory; "": none */
	struct span code;		   /* its content */
	char class_name[512];		   /* Java: with its package */
	struct build_file *files; /* the program and the caller's files, below SANDBOX_WORK */
	size_t n_files;
	struct build_product product;
	int64_t built_bytes; /* bytes that compile stages have left in memory so far */
	bool asked_version;  /* by flow_known_version() */
	size_t stage;	     /* the stage that is being built, counted from 1; 0: the program */
	int output_fd;	     /* the caller's output directory, or -EBADF */
	int channel_fd; /* the program's descriptor 0 instead of input (run/link/channel.h); 0: none */
	struct record_copy copy;   /* of a live process: broker/broker-proto.h */
	bool keep;		   /* another run may inherit its work directory */
	struct estate_ref estate;  /* that directory, once the run has ended */
	struct error output_error; /* why a file could not be stored there */
	struct checker *checkers;  /* flow-checker.c */
	struct result *result;
};

/* {FIELD: {"value", "rule"}}; NULL: no memory. */
json_t *explain_rows(const struct decision *d);
int flow_open(struct local_run *run, json_t *root, struct error *err) _must_check_;
int flow_open_request(struct local_run *run,
		      struct error *err) _must_check_; /* run.request is read */
/* Fills the result also if this fails after a program began. */
int flow_perform(struct local_run *run, struct error *err) _must_check_;
void flow_close(struct local_run *run);
/* The whole flow for a request tree; *ret is set whenever there is a result. */
int flow_run(struct local_run *run, json_t *root, struct result **ret, struct error *err);
/* The same for an open run. */
int flow_run_open(struct local_run *run, struct result **ret, struct error *err);
/* The result of a body that could not be read as a request. */
struct result *flow_refusal(struct local_run *run, const struct error *err);

/* flow-execute.c: from a language's words to a program's. NULL: no memory. */
struct word_context {
	const char *source; /* the value of {source} */
	const char *build;  /* the value of {build} */
	const struct limits *limits;
	const char *class_name;
	/* Only in `warm`; otherwise NULL: */
	const char *runner, *runner_text, *runner_fd;
	const char *usual; /* variables; for zygotes only */
};
const char *flow_expand(struct arena *memory, const char *word, const struct word_context *c);
struct word_context flow_words(struct local_run *run, const char *build,
			       const struct limits *limits);
const char **flow_expand_all(struct local_run *run, const char *const *words,
			     const struct word_context *c, size_t spare);
/* The words of the language's `run`, with room for `spare` more. */
const char **flow_run_words(struct local_run *run, const struct word_context *c, size_t spare);
/* Variables of the language, of the request, and those of one stage (or NULL). */
const char **flow_env(struct local_run *run, const struct request_stage *stage,
		      const struct word_context *c);

/* flow-execute.c. How the language's own run can be warm. NULL: it starts cold. */
const struct plan_warm *flow_warm(struct local_run *run, const struct word_context *c);
/* Whether a file of the request would be imported instead: "numpy.py", "numpy/__init__.py". */
bool flow_is_shadowed(const struct local_run *run, const char *module);
/* flow-version.c. Adds a warning to the result for each module of `preload` that does not exist. */
void flow_warn_modules(struct local_run *run, struct result *res);

/* flow-version.c: "Python 3.11.2", asked once */
int flow_version(struct local_run *run, char **ret) _must_check_;
/* The same in an executor, without waiting: NULL while the answer is awaited. */
char *flow_known_version(struct local_run *run);
/*
 * Resolves the version in `asked`: *lang is the registry's result, and becomes the version of the language that
 * matches. Does nothing without an @.
 */
int atoll_resolve_version(struct atoll *a, const char *asked, const char *image,
			  const struct language **lang, struct error *err) _must_check_;

/* flow-execute.c: one sandbox */
struct sandbox_spec {
	const struct decision *decision;
	const struct stage_spec *stages;
	size_t n_stages;
	const struct build_file *files;
	size_t n_files;
	struct span stdin_data;
	bool caller_input; /* the caller's stdin_fd follows */
	bool live;	   /* the run's observer gets its events */
	bool collect;
	bool merge_stderr;	       /* one pipe for both streams */
	int given_stdin, given_stdout; /* pipes of the program's own (run/link/job.h); 0: none */
	bool build_scratch;	       /* SANDBOX_BUILD can be filled in a finished sandbox */
	const struct plan_warm *warm;  /* how its one stage can be warm, or NULL */
	const char *kit;	       /* host directory shown as SANDBOX_KIT, or NULL */
	const char *prelude;	       /* text of SANDBOX_PRELUDE, or NULL */
	int (*take_file)(struct local_run *run,
			 const struct run_file *file); /* NULL: files are not wanted */
};
int flow_plan(const struct sandbox_spec *in, struct plan *ret, struct error *err) _must_check_;
/* On success the sandbox ran to its end; the caller frees *ret with job_free(). */
int flow_execute(struct local_run *run, const struct sandbox_spec *in, struct job **ret,
		 struct error *err) _must_check_;
/* The error of a job that did not run its program to an end; 0: it did. */
int flow_job_error(struct job *job, struct error *err) _must_check_;
/* The outcome of one stage, as an entry of result.stages without texts. */
void flow_stage(const struct job_outcome *o, size_t index, const struct stage_spec *spec,
		struct result_stage *ret);

/* RUN_STAGE. */
int flow_tell_stage(const struct run_observer *o, const struct result_stage *stage);

/* flow-build.c */
bool flow_is_compiled(const struct local_run *run);
/* 1: there is a product; 0: the compiler failed and the result says so. */
int flow_build(struct local_run *run, struct error *err) _must_check_;
/* The compile stage as a sandbox_spec, for --explain too. */
int flow_describe_build(struct local_run *run, struct sandbox_spec *ret,
			struct error *err) _must_check_;

/* flow-build.c: the caller's stages */
/* A list in place of run.files, with room for so many more. */
int flow_grow_files(struct local_run *run, size_t more, struct error *err) _must_check_;
/* Adds their sources to run.files, once; does nothing without stages. */
int flow_add_stage_files(struct local_run *run, struct error *err) _must_check_;
int flow_describe_stages(struct local_run *run, struct sandbox_spec *in,
			 struct error *err) _must_check_;
/* flow_build() for each stage that is compiled. */
int flow_build_stages(struct local_run *run, struct error *err) _must_check_;
/* Calls fn for each such stage, with its code in place of the program, while fn returns 1. */
int flow_for_builds(struct local_run *run,
		    int (*fn)(struct local_run *run, void *data, struct error *err), void *data,
		    struct error *err) _must_check_;

/* flow-program.c, flow-tests.c */
/* The program, or the caller's stages, as a sandbox_spec; all of it lives in run.memory. */
int flow_describe(struct local_run *run, struct sandbox_spec *ret, struct error *err) _must_check_;
int flow_program(struct local_run *run, struct error *err) _must_check_;
int flow_tests(struct local_run *run, struct error *err) _must_check_;
/* Verdicts for tests without one: the given one, or one that follows from how the run ended (TEST_UNDECIDED). */
int flow_tests_skip(const struct local_run *run, struct result *res, const struct verdict *why,
		    enum test_verdict verdict) _must_check_;
/* The groups of the result, when each test has its verdict. */
void flow_score_groups(const struct local_run *run, struct result *res);

/* flow-checker.c: programs of the caller's that judge tests: checkers, and the interactor */
/* Refuses what cannot run. */
int flow_open_checkers(struct local_run *run, struct error *err) _must_check_;
/* Those that do not compile judge nothing: their judgements say why. */
int flow_build_checkers(struct local_run *run, struct error *err) _must_check_;
void flow_close_checkers(struct local_run *run);
/* What such a program says of a test. */
struct judgement {
	enum test_verdict verdict;
	bool has_points;
	double points;
	bool missed_input;  /* it failed because its input had ended */
	struct verdict end; /* its own */
	char *message;	    /* its first words, to be freed; or NULL */
};
/* output: of the tested program. The test's own run, whose control ends the checker, too. */
int flow_check(const struct local_run *test_run, const struct request_test *test,
	       struct span output, struct judgement *ret, struct error *err) _must_check_;
/* Such a program on its way: a run for one test, which owns its memory, and its sandbox. */
struct judge_run {
	struct local_run run;
	struct sandbox_spec in;
};
/* 1: the judge can run; 0: it cannot, and *ret says why. */
int flow_describe_judge(const struct local_run *test_run, const struct request *program,
			const struct request_test *test, struct span output,
			struct judge_run *judge, struct judgement *ret,
			struct error *err) _must_check_;
/* Its judgement, from how it ended. */
int flow_read_judgement(const struct judge_run *judge, struct job *job, struct judgement *ret,
			struct error *err) _must_check_;

/* flow-interact.c: a program that talks to the tested one. *job is the tested program's. */
struct interaction {
	struct judgement judgement;
	char *transcript;   /* to be freed, or NULL */
	bool program_first; /* it ended before the interactor */
};
int flow_interact(struct local_run *test_run, struct sandbox_spec *in,
		  const struct request_test *test, struct interaction *ret, struct job **job,
		  struct error *err) _must_check_;

/* Moves the stage's texts into the result. */
int flow_add_stage(struct result *res, const struct result_stage *stage) _must_check_;
/* The layers that held the run, from the broker's report. */
void flow_isolation(struct local_run *run, const struct record_started *start);

/* flow-program.c: connections, and what was refused */
int flow_take_network(struct local_run *run, const struct job_outcome *o) _must_check_;
/* What a run without a network tried, by its own error messages. */
int flow_take_attempts(struct local_run *run) _must_check_;
/* flow-program.c: changes to the workspace */
int flow_take_changes(struct result *res, const struct job_outcome *o) _must_check_;

/* flow-files.c: files that a program wrote */
int flow_open_output(struct local_run *run, struct error *err) _must_check_;
bool flow_wants_files(const struct local_run *run);
int flow_take_file(struct local_run *run, const struct run_file *file);
int flow_read_file(int fd, int64_t size, char **ret) _must_check_; /* whole, NUL-terminated */

/* run.c: the policy of a run */
int flow_load_policy(struct local_run *run, const char *name,
		     struct error *err) _must_check_; /* NULL: default */
struct executor_options;
/* What the administrator of an executor sets. -ENOMEM. */
int policy_rules_take(struct policy_rules *rules, const struct executor_options *o) _must_check_;
/* [{"name", "policy"}, …] of all named policies. */
int policies_to_json(struct atoll *a, json_t **ret, struct error *err) _must_check_;

/* flow-program.c: code that is evaluated by the language's session runner */
struct flow_eval {
	struct local_run *run; /* NULL: none */
	struct channel channel;
	bool sent;			 /* the code, to the runner */
	char file[REQUEST_PATH_MAX + 1]; /* the name of the code in tracebacks */
	struct evaluation answer;
};
/* The text of the runner; ret is to be freed by buf_done(), also on failure. */
int session_runner(struct atoll *a, const struct language *lang, struct buf *ret,
		   struct error *err) _must_check_;
/* The runner, under its own name, takes the place of the program's file; the code stays in run.code. */
int flow_put_runner(struct local_run *run, struct error *err) _must_check_;
int flow_eval_begin(struct flow_eval *e, struct local_run *run, struct error *err) _must_check_;
void flow_eval_end(struct flow_eval *e); /* {0} is fine */

/* flow-program.c: calling a method of the program through runners/<language> */
int flow_describe_invoke(struct local_run *run, struct sandbox_spec *ret,
			 struct error *err) _must_check_;
void flow_invoke_answer(struct local_run *run, const char *text, size_t len);

/*
 * flow-program.c: finds result.error in the output of a failed program, or of the compiler of this stage (NULL:
 * the program itself).
 */
void flow_find_error(struct local_run *run, const char *stage);
/* The error that these words tell, if the verdict says that a program failed by itself; NULL: none is recognised.
 * suggestion: as of analysis_error(). */
json_t *flow_error_in(const struct local_run *run, const char *stage, const struct verdict *v,
		      struct span words, char **suggestion);
/*
 * What the last words of a program add to the verdict of a test that it failed: Python and Node refused its text, or its runtime got no
 * more memory. Both end as any other error does.
 */
void flow_hear(struct local_run *run, struct span words, struct result_test *test);
/* The value worth retrying with, from what the stage printed and used. */
void flow_refine_suggestion(const struct local_run *run, struct span out, struct span err,
			    struct result_stage *stage);
