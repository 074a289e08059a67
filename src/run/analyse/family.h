/* SPDX-License-Identifier: Apache-2.0 */
/* A family of languages: the forms of its errors, and the advice for them. */
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
	const char *message;   /* NULL: any; see match-text.h */
	const char *category;
	const char *text;
	const char *near; /* used instead if a similar word was found; NULL: no search */
};

#define ADVICE_NO_NETWORK                                                                          \
	"The sandbox reaches only machines that the request names and the policy permits: name "   \
	"this one with `--network allow:HOST:PORT` (`network`), or send what the program needs "   \
	"along with `--file NAME=PATH` (`files`)."
#define ADVICE_NO_LISTENER                                                                         \
	"Nothing listens at that address inside the sandbox: start the server first. Servers of "  \
	"the host are out of reach, and a port of another machine must be named with "             \
	"`--network allow:HOST:PORT`."

struct import_hint {
	const char *name;      /* "np" */
	const char *statement; /* "import numpy as np" */
};

struct package_hint {
	const char *module;   /* "cv2"; "openssl" stands for everything below it too */
	const char *debian;   /* NULL: none */
	const char *registry; /* NULL: none */
};

struct family {
	const char *languages[4];	/* NULL-terminated */
	const struct find_row *compile; /* NULL: no compiler */
	const struct find_row *run;
	const struct advice *advice;	    /* ended by a row without category */
	const struct import_hint *imports;  /* may be NULL; ended by NULL, as are these: */
	const struct package_hint *package; /* may be NULL */
	const char *words;		    /* well-known names, blank-separated; may be NULL */
	const char *registry;		    /* "pip"; how a module is called there: {1} */
	const char *debian;		    /* Debian's rule for a module's name; NULL: none */
	bool inner_last;		    /* the last frame printed is the innermost one */
	bool dedents;			    /* shows lines without their indentation */
	int tabs;			    /* columns count tabs by this width; 0: as one byte */
	/* Adds what only the program's text can tell, such as a line number. May be NULL. */
	void (*refine)(struct finding *f, struct program_source *src);
};

extern const struct family family_python, family_node, family_shell, family_ruby, family_php,
	family_perl, family_lua, family_r, family_c, family_rust, family_go, family_java;

/* By name of the language; NULL: none. */
const struct family *family_find(const char *language);
/* Rows for errors of system calls in any language. */
extern const struct advice advice_common[];
