/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A family of languages: the forms of its errors, and the advice for them. The tables are made from languages/errors/ by
 * tools/embed-errors.py, so that an analysis needs no file and a start reads none.
 */
#pragma once

#include "run/analyse/finding.h"
#include "run/analyse/source.h"

/*
 * One piece of advice. The first row whose type and message fit decides category and suggestion. In texts: {1}
 * {2} {3} the pieces that the message's holes took, {near} the word of the program most like {1}, {line} the
 * line, {package} how to get module {1}, {send} how to get file {1} there, {limit} the memory limit and, if the
 * message says so, the requested size. Only errors of programs that got no more memory have {limit} in their text.
 */
struct advice {
	const char *exception; /* NULL: any; "A*": begins with A */
	struct pattern match;
	const char *category;
	const char *text;
	const char *near; /* used instead if a similar word was found; NULL: no search */
};

struct import_hint {
	const char *name;      /* "np" */
	const char *statement; /* "import numpy as np" */
};

struct package_hint {
	const char *module;   /* "cv2"; "openssl" stands for everything below it too */
	const char *debian;   /* NULL: none */
	const char *registry; /* NULL: none */
};

/* Whether a runtime reads all of a program before the first line runs, and which frames tell that lines ran. */
enum refusal {
	REFUSED_NEVER,
	REFUSED_ANY, /* each frame in the caller's files */
	REFUSED_NAMED, /* those with a function: the line that cannot be read is shown as a frame without one */
};

enum { FAMILY_LANGUAGES_MAX = 4 };

struct family {
	const char *languages[FAMILY_LANGUAGES_MAX];
	const char *sources[FAMILY_LANGUAGES_MAX]; /* the program's file, by language */
	const struct find_row *compile;		   /* NULL: no compiler */
	const struct find_row *run;
	const struct refine_row *refine;     /* may be NULL */
	const struct advice *advice;	     /* ended by a row without category */
	const struct import_hint *imports;   /* may be NULL; ended by NULL, as are these: */
	const struct package_hint *packages; /* may be NULL */
	const char *words;		     /* well-known names, blank-separated; may be NULL */
	const char *error_type;		     /* of a program's error; NULL: by the way it ended */
	const char *registry;		     /* "pip"; how a module is called there: {1} */
	const char *debian;		     /* Debian's rule for a module's name; NULL: none */
	enum refusal refused;
	bool inner_last; /* the last frame printed is the innermost one */
	bool dedents;	 /* shows lines without their indentation */
	int tabs;	 /* columns count tabs by this width; 0: as one byte */
};

struct advice_input {
	const struct family *family; /* NULL: only the common rows */
	const struct finding *finding;
	struct program_source *source;
};

struct advice_output {
	const char *category; /* NULL: no row fits */
	struct buf text;
};

/* The error is that there was no more memory: its advice names the limit. */
bool advice_is_of_memory(const struct advice_input *in);
/* From an error to its category and one sentence of advice. The caller frees ret->text with buf_done(). */
int advice_find(const struct advice_input *in, struct advice_output *ret) _must_check_;

/* By name of the language, with the program's file unless ret_source is NULL; NULL: none. */
const struct family *family_find(const char *language, const char **ret_source);
/* All of them, ended by one without languages. */
extern const struct family families[];
/* Rows for errors of system calls in any language. */
extern const struct advice advice_common[];
