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
	size_t size;	      /* sizeof(struct atoll_options): lets the struct grow */
	const char *data_dir; /* languages/, policies/, runners/; NULL: found by itself */
	const char *cache_dir; /* build cache; NULL: $XDG_CACHE_HOME/atoll or ~/.cache/atoll */
};

enum atoll_stream { ATOLL_STDOUT = 1, ATOLL_STDERR = 2 };

/* What a run may be given besides the request. Zero-initialise, set size, fill what you need. */
struct atoll_run_options {
	size_t size;
	/* Called as output arrives, from inside atoll_run(); a negative return cancels the run. */
	int (*on_output)(void *data, enum atoll_stream stream, const void *bytes, size_t n);
	void *data;
	/* A descriptor to feed as standard input while the program runs; -1 or 0 with !use_stdin_fd: none. */
	int use_stdin_fd;
	int stdin_fd;
	/* Becomes readable when the run is to be cancelled (an eventfd, a signalfd); same rule. */
	int use_cancel_fd;
	int cancel_fd;
	/* Files the program wrote are put here; NULL: only listed. Must exist. */
	const char *output_dir;
};

ATOLL_API int atoll_new(const struct atoll_options *options, struct atoll **ret, char **problem);
ATOLL_API struct atoll *atoll_free(struct atoll *a);

/* Runs to the end. *result_json is set on success and whenever there is a result to show. */
ATOLL_API int atoll_run(struct atoll *a, const char *request_json,
			const struct atoll_run_options *options, char **result_json, char **problem);
/* Decision and plan as text; runs nothing. */
ATOLL_API int atoll_explain(struct atoll *a, const char *request_json, char **text, char **problem);
/* JSON: every language with version and availability; what this host can enforce. */
ATOLL_API int atoll_languages(struct atoll *a, char **json, char **problem);
ATOLL_API int atoll_doctor(struct atoll *a, char **json, char **problem);

#ifdef __cplusplus
}
#endif
#endif
