/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Analysis of a run (doc/http.md), the debug report and the adaptive timeout. Pure: results and requests as
 * JSON come in, JSON or text goes out.
 */
#pragma once

#include "base/macro.h"

#include <jansson.h>

/*
 * {is_error, error_type, exception, message, file, line, frames, excerpt, category, suggestion}, of a
 * result (doc/result.md) and its request (doc/http.md; may be NULL: then there is no excerpt). NULL: no memory.
 */
json_t *analysis_make(const json_t *request, const json_t *result);

struct error_input {
	const json_t *request; /* may be NULL */
	const char *language;
	const char *stage;  /* of the stage that failed; NULL: a program without stages */
	const char *detail; /* of the cause; NULL: none */
	int signal;	    /* that ended it, or 0 */
	const char *words;  /* its last output: stderr, or stdout of a compiler without stderr */
	size_t words_len;
};

/*
 * result.error: {"type", "message", "file", "line"} of the error that ended a program or its compiler, as in
 * analysis_make(). If the language names no type, the analysis's error_type. NULL: unknown, or no memory.
 * suggestion, unless NULL, gets what to do about the error where a row of the language knows it; the caller frees it.
 */
json_t *analysis_error(const struct error_input *in, char **suggestion);

/* What its last output says about a program that failed by itself, and its exit code does not. */
enum words_meaning {
	WORDS_PLAIN,
	WORDS_NO_PROGRAM, /* Python or Node refused its text: no line of it has run */
	WORDS_NO_MEMORY, /* its runtime got no more memory, perhaps by a limit of the runtime's own */
};
enum words_meaning analysis_meaning(const struct error_input *in);

struct report_input {
	const json_t *request; /* may be NULL */
	const json_t *result;
	const json_t
		*limits; /* in force, as limits_to_json(); NULL: the request's over the defaults */
	const json_t *analysis; /* NULL: made here */
};

/* PC-Agent-Claw's fields, and the analysis, limits against peaks, denials. NULL: no memory. */
json_t *debug_report_make(const struct report_input *in);
/* The report as Markdown; the caller frees it. NULL: no memory. */
char *debug_report_markdown(const json_t *report);

struct adaptive_timeout {
	int64_t timeout_ms;
	char reason[160]; /* "2.5 × the mean of 3 runs (2.4 s)" */
};

enum { ADAPTIVE_RUNS_MAX = 50, ADAPTIVE_FACTOR_MILLI = 2500, ADAPTIVE_MIN_MS = 5000 };

struct adaptive_rules {
	int64_t factor_milli,
		min_ms; /* Unified-AI-Project: ADAPTIVE_FACTOR_MILLI, ADAPTIVE_MIN_MS */
	int64_t preset_ms, ceiling_ms;
};

/*
 * From durations of past runs, newest first (the first 50 count): mean × factor, at least the minimum, at most the
 * ceiling. Without any, the preset within the same bounds.
 */
struct adaptive_timeout adaptive_choose(const int64_t *durations_ms, size_t n,
					const struct adaptive_rules *rules);
