/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of an execution that is durable, or will be: what its row in the history says, its request, and its result. Until the
 * row is written, the record holds the only copy of the request; from then on the row does. Until the result is on record, the
 * record holds the only copy of the result.
 */
#pragma once

#include "base/error.h"
#include "base/sha256.h"
#include "base/span.h"
#include "engine/history/history.h"
#include "run/runner.h"

struct adaptive_timeout;

enum { NAME_BYTES = 128 };

struct execution_record {
	int64_t row;	      /* 0: none yet */
	int64_t row_before;   /* as it was before the group of this round: commit-round.c */
	int written;	      /* what became of writing it in this round */
	struct error trouble; /* why it was not written */
	int64_t created_ns, started_ns, ended_ns; /* realtime */
	bool no_history; /* nothing of it is stored: no row, and no file that has a name */
	bool unwanted;	 /* the row is deleted once the execution has ended */

	int64_t body_bytes; /* of the request's text, wherever that is; set before it is charged */
	json_t *body;	    /* the request as submitted; NULL: to be read from the history */
	/* The same as text, ours; until the row is there. text_filed: its length, and the text is in its file (text-file.h). */
	struct span text;
	bool text_filed;
	char *key, key_sha256[SHA256_HEX];
	char code_sha256[SHA256_HEX]; /* "": no code */
	char language[NAME_BYTES], policy[NAME_BYTES];
	struct adaptive_timeout *timeout_chosen; /* for the result; or NULL */

	int files_fd; /* the directory of files that the program left; negative: none yet */
	int64_t files_bytes;
	int value_fd;	     /* the file of a large value; negative: none */
	int64_t value_bytes; /* in it */
	int value_error;     /* why it is not kept */
	int files_error;     /* why no further file is kept, or 0 */

	bool has_end; /* it is known what it came to: */
	struct run_summary summary;
	struct span
		end_text; /* ours; becomes result_text when it is written down. data NULL: there was no memory */
	bool no_room; /* the broker had no room to begin it: there is no result for anyone */
	struct span result_text; /* ours; once it has ended */
	bool result_filed;	 /* it is in its file, too */
	json_t *result;		 /* made of the text when it is asked for: execution_result() */
};

void execution_record_init(struct execution_record *r);
/* The request's file goes if no row was made for it. */
void execution_record_done(struct execution_record *r, struct history *h, const char *id);
