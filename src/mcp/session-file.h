/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a live session, waited for: its runner reads and writes them inside its sandbox, between executions. */
#pragma once

#include "mcp/work.h"

/* The work's argument session_id names the session. Each waits. */
int session_file_write(struct mcp_work *w, const char *path, struct span bytes,
		       struct error *err) _must_check_;
/* *ret is malloc'd. */
int session_file_read(struct mcp_work *w, const char *path, char **ret, size_t *ret_len,
		      struct error *err) _must_check_;
/* [{"path", "size", "type", …}], a new reference. */
int session_file_list(struct mcp_work *w, json_t **ret, struct error *err) _must_check_;
