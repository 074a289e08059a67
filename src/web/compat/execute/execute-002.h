/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `POST /execute` as the NeMo Agent Toolkit and PC-Agent-Claw have it (doc/http.md), as pure functions:
 *
 *   content type, body ──execute_read──▶ a fixed answer, or a native request
 *   native result      ──execute_answer──▶ {"process_status", "stdout", "stderr"}
 *
 * The body tells which document the client follows: `generated_code` is 002's, `code` without it 001's. For the
 * caller of these functions nothing else differs.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/macro.h"
#include "base/span.h"

#include <jansson.h>
#include <stdbool.h>

struct execute_options {
	/* Names and aliases, NULL-terminated; a request's name is compared with case. */
	const char *const *languages;
	bool all_languages; /* the NeMo Agent Toolkit's body may name all of them, not only python */
	double timeout_max;    /* seconds; larger values are clamped */
	int64_t memory_bytes;  /* execute_memory() */
	double cpus;	       /* the host's cores */
	int64_t pids;	       /* EXECUTE_PIDS, or the ceiling if that is less */
	int64_t output_bytes;  /* EXECUTE_OUTPUT_BYTES, or the ceiling if that is less */
	int64_t disk_bytes;    /* of scratch, and of the workspace: EXECUTE_DISK_BYTES */
	int64_t files;	       /* the same in files: EXECUTE_FILES */
	const char *workspace; /* the workspace that all requests share */
	const char *
		policy; /* EXECUTE_POLICY, whose ceilings allow all this; NULL: the default policy */
};

#define EXECUTE_POLICY	   "execute"
#define EXECUTE_SOURCE	   "/sandbox/main.py" /* the file of Python code, as tracebacks show it */
#define EXECUTE_DISK_BYTES (4 * GiB)
enum { EXECUTE_PIDS = 1024, EXECUTE_OUTPUT_BYTES = 4 << 20, EXECUTE_FILES = 1 << 20 };
/* The memory of a program: 10 GiB, bounded by the host and by the policy. */
int64_t execute_memory(int64_t host_bytes, int64_t ceiling_bytes);

enum execute_form { EXECUTE_DOCUMENT_002, EXECUTE_DOCUMENT_001 };

struct execute_call {
	enum execute_form form;
	int64_t characters_max; /* of each stream; -1: all */
	json_t *request;	/* for the engine; NULL: already answered */
	json_t *answer;		/* the body, with this status */
	int status;
};

struct execute_input {
	const char *content_type; /* or NULL */
	struct span body;
};

int execute_read(const struct execute_input *in, const struct execute_options *options,
		 struct execute_call *ret) _must_check_;
void execute_done(struct execute_call *call);

/* The body for a result (doc/result.md); the status is 200. NULL: no memory. */
json_t *execute_answer(const struct execute_call *call, const json_t *result);
/* The body for the NeMo Agent Toolkit when the program did not end in time; needs no result. */
json_t *execute_timed_out(void);
/* The body for a refusal or a failure of the server. Clients read the body with every status. */
json_t *execute_failure(const struct execute_call *call, const char *text);
/* The body for a request that was refused, and its status. */
json_t *execute_refusal(const struct execute_call *call, const struct error *err, int *ret_status);
/* As bytes: ASCII, without spaces, fields in order, one line. */
int execute_write(const json_t *body, struct buf *out) _must_check_;
