/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of a run tells by itself: limits, signals, exit codes, refusals (doc/result.md's cause). */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

#define ANALYSE_COMPILE "compile" /* the stage of a compiler; with ":NAME" that of a stage's code */

struct ending_view {
	const json_t *result, *cause;
	const char *last; /* name of the stage it ended in, or "" */
	const char *status, *kind, *detail;
	int64_t exit_code, signal; /* signal 0: none */
	int64_t stack_bytes;	   /* the limit, if it held as much memory as that; otherwise 0 */
	bool success;
	bool compiling;	   /* the compiler failed */
	const char *words; /* stderr of the failed stage */
	size_t words_len;
};

struct ending_advice {
	const char *error_type, *category;
	bool decides;	 /* no printed error can change error_type and category */
	char name[16];	 /* "SIGSEGV", or "" */
	struct buf text; /* the suggestion; the caller frees it with buf_done() */
};

void ending_read(const json_t *request, const json_t *result, struct ending_view *ret);
/* "SIGSEGV" */
void ending_signal_name(int64_t number, char *ret, size_t size);
/* Whether a stage of this name is a compiler's. */
bool ending_is_compiler(const char *stage);
/* Never called for success. -ENOMEM is the only failure. */
int ending_judge(const struct ending_view *v, struct ending_advice *ret) _must_check_;
