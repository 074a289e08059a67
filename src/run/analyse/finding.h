/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error that ended a program, found in its (or its compiler's) last output. A language describes its
 * messages in a table of rows; one small machine reads all of them (finding.c).
 */
#pragma once

#include "run/analyse/match-text.h"

#include <jansson.h>

#define ANALYSE_WORK "/sandbox" /* where programs are, and the path in messages */

enum {
	FINDING_FRAMES = 40,	  /* kept: the first and the last half */
	FINDING_MESSAGE = 4096,	  /* bytes of a message */
	FINDING_MORE = 16,	  /* lines of a message after its first */
	FINDING_PATH = 1024 + 16, /* "/sandbox/" and a file name */
};

enum find_kind {
	FIND_SKIP = 1, /* ignored */
	FIND_BEGIN,    /* forgets everything before; may hold a place */
	FIND_ERROR,    /* type, message, place, if it has them */
	FIND_MORE,     /* more of the message; may hold the place */
	FIND_WHERE,    /* the place of an error that has none yet */
	FIND_NAME,     /* function of the next frame */
	FIND_FRAME,
	FIND_CALLS,	  /* a -> b -> c in %m */
	FIND_CARET,	  /* marks the column in the line above; it has no pattern */
	FIND_CAUSE,	  /* the cause of the error */
	FIND_CAUSE_WHERE, /* the place of the cause: the first one in the caller's files */
	FIND_CHAIN,	  /* the error so far caused the one that follows */
};

/* States of the machine. Each table gives them their meaning; FIND_IN_END ends the reading. */
enum {
	FIND_IN_START = 1,
	FIND_IN_A = 2,
	FIND_IN_B = 4,
	FIND_IN_C = 8,
	FIND_IN_D = 16,
	FIND_IN_END = 32,
};

enum find_flag {
	FIND_FIRST = 1,	 /* later errors do not replace it */
	FIND_WEAK = 2,	 /* counts only if nothing better is found */
	FIND_OPEN = 4,	 /* lines that match no row belong to its message */
	FIND_KEEP = 8,	 /* place and frames before it belong to it */
	FIND_RESET = 16, /* as FIND_BEGIN, then as its kind says */
	FIND_ZERO = 32,	 /* columns count from 0 */
	FIND_WHOLE = 64, /* the message is the whole line */
};

struct find_row {
	enum find_kind kind;
	struct pattern match;
	unsigned in; /* states in which the row is tried; 0: all */
	unsigned to; /* state after it; 0: the same */
	unsigned flags;
	const char *exception; /* if the text names no type */
};

struct frame {
	struct span function, file;
	int64_t line, column; /* 0: not known */
};

struct finding {
	struct buf text;    /* the read text; every span points into it */
	struct buf message; /* without the final newline */
	struct span exception, cause_exception, cause_message;
	struct span line_text, first; /* the line of the error, and the message in it */
	struct span file;
	int64_t line, column;
	struct frame frames[FINDING_FRAMES]; /* as printed */
	size_t n_frames;
	bool found;
	int64_t cause_line;
	/* Set by a row of `refine` that knows more than the message: the category and the suggestion. */
	const char *category, *said;

	/* State of the machine. */
	struct span name, before;
	unsigned state;
	bool strong, weak, open, chained;
	size_t more;
};

struct family;

/* Reads text by the rows (ended by a row without kind). -ENOMEM is the only failure. */
int finding_read(struct finding *f, const struct find_row *rows, struct span text) _must_check_;
void finding_done(struct finding *f);
#define _cleanup_finding_ _cleanup_(finding_done)

/*
 * Locates the error: its own place if that is in the caller's files, otherwise the innermost frame that is.
 * Sets file, line and column.
 */
void finding_locate(struct finding *f, bool inner_last);
/* The path as a program sees it; false: it is none of the caller's files. */
bool path_normal(struct span path, char ret[FINDING_PATH]);
