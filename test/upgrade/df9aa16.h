/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libatoll: runs untrusted code in a sandbox on Linux and reports exactly what happened.
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
 * The request is the JSON body of `POST /v1/execute`; the answer is the JSON result object. When a program
 * fails, that is a result. When libatoll fails, it returns a negative errno, with one sentence in *problem.
 * The caller frees every returned string with free(). A handle may be used by one thread at a time.
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
	const char *data_dir;  /* languages/, policies/, runners/; NULL: found automatically */
	const char *cache_dir; /* build cache; NULL: $XDG_CACHE_HOME/atoll or ~/.cache/atoll */
	/* Not 0: start the broker at once, so that it gets ready while the caller makes its request. */
	int start_broker;
	/*
	 * Socket of an `atoll pool`. When a pool listens there, its warm runtimes are used; otherwise, and when
	 * the pool ends, the handle forks its own broker. NULL: $ATOLL_POOL ("off": never), or the default
	 * (/run/atoll/pool.sock for root, $XDG_RUNTIME_DIR/atoll/pool.sock). "": never.
	 */
	const char *pool;
	/* Not 0: the handle's own broker keeps runtimes ready, too. Runs are faster; the broker takes memory. */
	int warm;
};

enum atoll_stream { ATOLL_STDOUT = 1, ATOLL_STDERR = 2 };

/*
 * Options of a run besides the request. Zero-initialise, set size, fill the members you need. A
 * descriptor counts only when the use_… member before it is not 0; the caller keeps it.
 */
struct atoll_run_options {
	size_t size;
	/*
	 * Called as output arrives, from inside atoll_run(); a negative return cancels the run. The callback
	 * may block: then only the program waits, and its time runs. When a compiler fails, its messages
	 * come here, because the program then prints nothing.
	 */
	int (*on_output)(void *data, enum atoll_stream stream, const void *bytes, size_t n);
	void *data;
	/* Fed as standard input while the program runs, after the request's own "stdin". */
	int use_stdin_fd;
	int stdin_fd;
	/* Becomes readable when the run is to be cancelled (an eventfd, a signalfd); never read. */
	int use_cancel_fd;
	int cancel_fd;
	/* With "tty": the caller's terminal, whose size the program's terminal takes on. */
	int use_terminal_fd;
	int terminal_fd;
	/* With "tty": becomes readable when that size changed (a signalfd for SIGWINCH); read. */
	int use_resize_fd;
	int resize_fd;
	/* Directory for the files that the program wrote; must exist. NULL: files are only listed. */
	const char *output_dir;
	/*
	 * Not 0: the result may leave out values that take extra time (the runtime's version, files
	 * that are not copied). For callers that show a program's output and its exit code only.
	 */
	int brief;
	/* Set to the exit code for a command line: the program's code, 124, 125, 126, 127, 128+n. */
	int *exit_code;
	/*
	 * Set when a program did not end by itself, to one sentence with the reason and the remedy; the
	 * caller frees it. Unchanged otherwise.
	 */
	char **notice;
	/* Called with data when compiling takes more than a second, once a stage: a caller at a terminal may say so. */
	void (*on_compiling)(void *data);
	/*
	 * Set when the sandbox lacked layers of isolation, to one sentence that names them; the caller frees it.
	 * Unchanged otherwise.
	 */
	char **reduced;
};

ATOLL_API int atoll_new(const struct atoll_options *options, struct atoll **ret, char **problem);
ATOLL_API struct atoll *atoll_free(struct atoll *a);

/*
 * Runs a request to its end. *result_json is set on success and whenever there is a result (also for a
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
/* The start of a file, to detect its language: the extension of path (may be NULL), or a `#!` line. */
struct atoll_sample {
	size_t size; /* sizeof(struct atoll_sample) */
	const char *path;
	const char *head;
	size_t n;
};
/* *language is the name of the sample's language; the caller frees it. */
ATOLL_API int atoll_detect(struct atoll *a, const struct atoll_sample *sample, char **language,
			   char **problem);
/* JSON: every language with version and availability; the isolation that this host can enforce. */
ATOLL_API int atoll_languages(struct atoll *a, char **json, char **problem);
ATOLL_API int atoll_doctor(struct atoll *a, char **json, char **problem);

/* Zero-initialise, set size, fill the members you need. */
struct atoll_pool_options {
	size_t size;
	const char *data_dir; /* as in struct atoll_options */
	const char *socket;   /* NULL: the default path; a missing directory is made */
	long long
		memory_bytes; /* memory of all spares and interpreters; 0: a 16th of the host's, at most 1 GiB */
	int spares; /* of one kind, at most; 0: 16; negative: none */
	/* Called when the pool listens. */
	void (*on_ready)(void *data, const char *socket);
	void *data;
	/* An interpreter that programs are forked from is replaced after this many forks and at this age. */
	int rotate_forks;   /* 0: 2000 */
	int rotate_seconds; /* 0: 900 */
	int idle_seconds;   /* spares of a kind not used for this long are halved; 0: 20 */
	int leave_seconds; /* the pool ends when no process was connected for this long; 0: never */
};
/*
 * Serves warm runtimes to this user's other processes until SIGTERM, SIGINT or SIGHUP. The calling
 * process must have no other threads and do nothing else.
 */
ATOLL_API int atoll_pool(const struct atoll_pool_options *options, char **problem);

#ifdef __cplusplus
}
#endif
#endif
