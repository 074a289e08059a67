/* SPDX-License-Identifier: Apache-2.0 */
/* The program's text as sent: its files by the path in a message, and lines of them. */
#pragma once

#include "run/analyse/finding.h"

struct program_source {
	const json_t *request; /* doc/http.md; may be NULL */
	struct buf decoded;    /* a base64 file, the last one asked for */
	size_t stage;	       /* the stage whose code ended the run, counted from 1; 0: none */
};

void source_done(struct program_source *src);

/* The stage that a result names, or whose compiler it names. */
void source_enter_stage(struct program_source *src, const char *name);
/* data NULL: the request has no such file. Valid until the next call. */
struct span source_text(struct program_source *src, const char *path);
/* The program itself, or the stage's if one was entered. */
struct span source_code(struct program_source *src);
/* A line, counted from 1; data NULL: there is none. */
struct span source_line(struct span text, int64_t number);

enum source_search { SEARCH_ONLY, SEARCH_LAST };
/*
 * The line of the program that contains these words in order, ignoring blanks. SEARCH_ONLY: 0 if several do.
 * The place found is put into f, with the path of the program.
 */
void source_locate(struct program_source *src, struct finding *f, struct span words,
		   enum source_search how);

/* What a row of `refine` looks at. */
enum refine_of {
	REFINE_FIRST = 1, /* the message's first line */
	REFINE_WEAK,	  /* the same, if the finding is weak */
	REFINE_LINE,	  /* the line of the error */
	REFINE_MESSAGE,
	REFINE_TYPE,
	REFINE_CODE,   /* the program */
	REFINE_FRAMES, /* the function of each frame */
};

/* More about an error than its message has: its place by the program's text, or another suggestion. */
struct refine_row {
	enum refine_of of;
	struct pattern match;
	const char *has;      /* instead of a pattern */
	struct pattern frame; /* and the file of a frame matches */
	const char *
		find; /* for an error without a line: text whose line it is; "end": the last line */
	bool last;    /* of several such lines the last; otherwise there must be but one */
	const char *category, *said;
};

/* Rows are ended by one that looks at nothing. */
void source_refine(struct program_source *src, struct finding *f, const struct refine_row *rows);

/* The line with two lines before and after it, numbered, marked and with a ^ below the column; or NULL. */
json_t *source_excerpt(struct program_source *src, const char *path, int64_t line, int64_t column);
