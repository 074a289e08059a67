/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of the tools' arguments and answers, and what all tools share. inputSchema, outputSchema and the checks come from them. */
#pragma once

#include "mcp/tool.h"
#include "mcp/work.h"
#include "spec/schema.h"

extern const struct schema_book tool_book;

/* NULL: no such shape, or no memory. */
json_t *tool_schema(const char *shape);
/* The shape of an answer, of whose keys only the types are told. */
json_t *tool_answer_types(const char *shape);
/* The work of each row of tool-table.c. */
mcp_run run_execute_code, run_execute_recall; /* tool-execute.c */
mcp_run run_create_session, run_in_session, run_fork_session, run_reset_session,
	run_close_session;							/* tool-session.c */
mcp_run run_write_file, run_read_file, run_list_files;				/* tool-file.c */
mcp_run run_get_execution, run_run_recall, run_read_output, run_search_history; /* tool-history.c */
mcp_run run_list_languages, run_explain_policy;					/* tool-host.c */
json_t *tool_execute_input(const struct mcp_options *app);

/* Refuses what names something that is not there: "There is no such …", and how to get one. */
int tool_no_session(const char *id, struct error *err);
int tool_no_execution(const char *id, struct error *err);
/* The caller's session of the argument session_id; borrowed, until the work waits. */
struct session;
int tool_session(const struct mcp_work *w, struct session **ret, struct error *err) _must_check_;

/* --- tool-file.c --- */

struct page_source {
	struct text_source text;
	bool complete; /* it grows no more, and nothing of it was left out */
};

/* An answer of read_output and read_file: a page of a text, as the arguments ask for it; the shape TextPage. NULL: err says why; or the call was let go, and err is empty. */
json_t *text_page_of(struct mcp_work *w, const struct page_source *source, struct error *err);

/* Files of the live session that the argument session_id names. Each waits. */
int session_file_write(struct mcp_work *w, const char *path, struct span bytes,
		       struct error *err) _must_check_;
/* *ret is malloc'd. */
int session_file_read(struct mcp_work *w, const char *path, char **ret, size_t *ret_len,
		      struct error *err) _must_check_;
/* [{"path", "size", "type", …}], a new reference. */
int session_file_list(struct mcp_work *w, json_t **ret, struct error *err) _must_check_;

/*
 * --- images.c ---
 *
 * Images of an execution as content for a model: charts that the code gave as rich output, and image files that it wrote. All are
 * data of the tenant's: their bytes are checked, counted and encoded anew.
 */
enum { IMAGES_MAX = 4, IMAGE_BYTES_MAX = 2 << 20 };

/* "image/png", "image/jpeg", "image/gif", "image/webp", by the first bytes; NULL: none of these. */
const char *image_type(struct span bytes);
/* A content block; NULL: no image, too large, or no memory. */
json_t *image_of_bytes(struct span bytes);
json_t *image_of_source(const struct text_source *source);
json_t *image_of_base64(const json_t *text);
/* A list of content blocks, at most IMAGES_MAX; NULL: no memory. The files are of an execution without a session. */
json_t *images_of_result(struct mcp_work *w, const json_t *result);
