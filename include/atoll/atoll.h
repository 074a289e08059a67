/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libatoll: run code that nobody trusts in a sandbox on Linux, and learn exactly what happened.
 *
 *	struct atoll *a;
 *	char *json, *problem;
 *
 *	if (atoll_new(NULL, &a, &problem) < 0 ||
 *	    atoll_run(a, "{\"language\":\"python\",\"code\":\"print(6*7)\"}", NULL, &json, &problem) < 0) {
 *		fprintf(stderr, "%s\n", problem);
 *		free(problem);
 *	}
 *
 * The request is the JSON body of `POST /v1/execute`, the answer the JSON result object. A program's
 * own failure is a result; a negative return (negative errno) is ours, with one sentence in *problem.
 * Every string handed out is the caller's to free(). A handle may be used by one thread at a time.
 */
#ifndef ATOLL_H
#define ATOLL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATOLL_API __attribute__((visibility("default")))

struct atoll; /* opaque */

struct atoll_options {
	size_t size;	       /* sizeof(struct atoll_options): lets the struct grow */
	const char *data_dir;  /* languages/, policies/, runners/; NULL: found by itself */
	const char *cache_dir; /* build cache; NULL: $XDG_CACHE_HOME/atoll or ~/.cache/atoll */
	/* Not 0: start the broker at once, so that it gets ready while the caller makes its request. */
	int start_broker;
	/*
	 * Socket of an `atoll pool`, whose warm runtimes are used when it is there; otherwise, and when it
	 * goes, the handle has a broker of its own. NULL: $ATOLL_POOL ("off": never), or the usual place
	 * (/run/atoll/pool.sock for root, $XDG_RUNTIME_DIR/atoll/pool.sock). "": never.
	 */
	const char *pool;
	/* Not 0: a broker of the handle's own keeps runtimes ready too. Runs are faster, it takes memory. */
	int warm;
};

enum atoll_stream { ATOLL_STDOUT = 1, ATOLL_STDERR = 2 };

/*
 * What a run may be given besides the request. Zero-initialise, set size, fill what you need. A
 * descriptor counts only when the use_… member before it is not 0; it stays the caller's.
 */
struct atoll_run_options {
	size_t size;
	/*
	 * Called as output arrives, from inside atoll_run(); a negative return cancels the run. It may
	 * block: then only the program waits, and its time runs. What a compiler says comes here only
	 * when it fails, because the program's own output never comes then.
	 */
	int (*on_output)(void *data, enum atoll_stream stream, const void *bytes, size_t n);
	void *data;
	/* Fed as standard input while the program runs, after the request's own "stdin". */
	int use_stdin_fd;
	int stdin_fd;
	/* Becomes readable when the run is to be cancelled (an eventfd, a signalfd). It is not read. */
	int use_cancel_fd;
	int cancel_fd;
	/* With "tty": the caller's terminal, whose size the program's terminal takes on. */
	int use_terminal_fd;
	int terminal_fd;
	/* With "tty": becomes readable when that size changed (a signalfd for SIGWINCH). It is read. */
	int use_resize_fd;
	int resize_fd;
	/* Files the program wrote are put here; NULL: only listed. Must exist. */
	const char *output_dir;
	/*
	 * Not 0: the result may leave out what takes extra time to find (the runtime's version, files
	 * that are not put anywhere). For callers that show a program's output and its exit code.
	 */
	int brief;
	/* Set to what a command line should exit with: the program's code, 124, 125, 126, 127, 128+n. */
	int *exit_code;
	/*
	 * Set when a program was ended by something other than itself, to one sentence that says what
	 * and what to do about it; the caller frees it. Left alone otherwise.
	 */
	char **notice;
};

ATOLL_API int atoll_new(const struct atoll_options *options, struct atoll **ret, char **problem);
ATOLL_API struct atoll *atoll_free(struct atoll *a);

/*
 * Runs to the end. *result_json is set on success and whenever there is a result to show (so also for a
 * refusal, together with a negative return and *problem). result_json may be NULL, which implies brief.
 */
ATOLL_API int atoll_run(struct atoll *a, const char *request_json,
			const struct atoll_run_options *options, char **result_json,
			char **problem);
/* Decision and plan as text; runs nothing. */
ATOLL_API int atoll_explain(struct atoll *a, const char *request_json, char **text, char **problem);
/* The same as JSON: {"decision": {FIELD: {"value", "rule"}}, "plans": [{"name", "operations": [{"phase", "name", "text"}]}]}. */
ATOLL_API int atoll_explain_json(struct atoll *a, const char *request_json, char **json,
				 char **problem);
/* The start of a file, to tell its language by: the extension of path (may be NULL), or a `#!` line. */
struct atoll_sample {
	size_t size; /* sizeof(struct atoll_sample) */
	const char *path;
	const char *head;
	size_t n;
};
/* *language is the name of the sample's language, the caller's to free(). */
ATOLL_API int atoll_detect(struct atoll *a, const struct atoll_sample *sample, char **language,
			   char **problem);
/* JSON: every language with version and availability; what this host can enforce. */
ATOLL_API int atoll_languages(struct atoll *a, char **json, char **problem);
ATOLL_API int atoll_doctor(struct atoll *a, char **json, char **problem);

/* Zero-initialise, set size, fill what you need. */
struct atoll_pool_options {
	size_t size;
	const char *data_dir; /* as in struct atoll_options */
	const char *socket;   /* NULL: the usual place; its directory is made when it is missing */
	long long
		memory_bytes; /* all that is kept ready may take; 0: a 16th of the host's, 1 GiB at most */
	int spares;	      /* of one kind, at most; 0: 16; negative: none */
	/* Called once it listens. */
	void (*on_ready)(void *data, const char *socket);
	void *data;
	/* An interpreter that programs are forked from is replaced after so many, and when it is that old. */
	int rotate_forks;   /* 0: 2000 */
	int rotate_seconds; /* 0: 900 */
	int idle_seconds;   /* what nobody has asked for that long is let go, by halves; 0: 20 */
};
/*
 * Serves warm runtimes to this user's other processes until SIGTERM, SIGINT or SIGHUP, in the calling
 * process: one that has no other threads and does nothing else.
 */
ATOLL_API int atoll_pool(const struct atoll_pool_options *options, char **problem);

#ifdef __cplusplus
}
#endif
#endif
