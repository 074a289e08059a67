/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. What a dead process left behind. Queued rows stay queued: the engine runs them. Rows that were
 * running get the one result they lack, `interrupted`, with as much of their output as reached its file.
 */
#include "engine/history/store.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"

enum { KEPT_BYTES = 64 << 10, MARKER_BYTES = 64 };

static void recover_stream(struct history *h, const char *id, enum history_stream which,
			   struct result_stream *ret)
{
	_cleanup_buf_ struct buf text = { .max = KEPT_BYTES + MARKER_BYTES };
	int64_t bytes = files_ends(h, id, which, KEPT_BYTES, &text);

	if (bytes <= 0)
		return;
	ret->len = text.len;
	ret->bytes = bytes;
	ret->truncated = bytes > KEPT_BYTES;
	ret->text = buf_take(&text);
}

struct result *recover_result(struct history *h, const struct history_row *row,
			      enum run_status status, const char *detail)
{
	struct error cause = { .code = ERROR_INTERNAL };
	struct result *res;

	(void)snprintf(cause.text, sizeof(cause.text), "%s", detail);
	res = result_from_error(&cause);
	if (!res)
		return NULL;
	res->verdict.status = status;
	if (status == STATUS_INTERRUPTED) {
		res->verdict.cause.kind = CAUSE_INTERRUPTED;
		res->verdict.cause.retryable = true;
	}
	(void)snprintf(res->id, sizeof(res->id), "%s", row->id);
	res->via = "daemon";
	(void)snprintf(res->node, sizeof(res->node), "%s", h->node);
	res->language = row->language ? strdup(row->language) : NULL;
	res->policy = row->policy ? strdup(row->policy) : NULL;
	res->labels = row->labels ? json_loads(row->labels, 0, NULL) : NULL;
	res->created_realtime_ns = row->created_ns;
	res->duration_us = -1;
	res->start_us = -1;
	recover_stream(h, row->id, HISTORY_STDOUT, &res->out);
	recover_stream(h, row->id, HISTORY_STDERR, &res->err);
	return res;
}

static void recover_json_done(json_t **tree)
{
	json_decref(*tree);
}

int recover_interrupt(struct history *h, const struct history_row *row, const char *detail)
{
	_cleanup_(result_cleanup) struct result *res = recover_result(h, row, STATUS_INTERRUPTED,
								      detail);
	_cleanup_(recover_json_done) json_t *tree = res ? result_to_json(res) : NULL;
	_cleanup_(recover_json_done) json_t *request =
		row->request ? json_loads(row->request, JSON_ALLOW_NUL, NULL) : NULL;
	_cleanup_free_ char *text = tree ? json_dumps(tree, result_json_flags(tree) | JSON_COMPACT)
					 : NULL;
	const json_t *code = json_object_get(request, "code");
	struct history_end end = {
		.status = STATUS_INTERRUPTED,
		.exit_code = -1,
		.ended_ns = clock_realtime_ns(),
		.duration_us = -1,
		.cpu_us = -1,
		.memory_peak_bytes = -1,
	};

	if (!text)
		return -ENOMEM;
	end.kept_bytes = res->out.bytes + res->err.bytes;
	end.result = (struct span){ text, strlen(text) };
	end.code = (struct span){ json_string_value(code), json_string_length(code) };
	end.stdout_text = (struct span){ res->out.text, res->out.len };
	end.stderr_text = (struct span){ res->err.text, res->err.len };
	return finish_update(h, row->row, &end);
}

/* 1: there was one after *at, and it is interrupted now. */
static int recover_next(struct history *h, int64_t *at)
{
	_cleanup_history_row_ struct history_row row = { 0 };
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	int r = store_get(h, &s, STMT_RUNNING, VALUES(V_NUMBER(*at)));

	if (r <= 0)
		return r;
	r = row_read(s, &row);
	if (r >= 0) {
		row.request = strdup((const char *)sqlite3_column_text(s, ROW_N_COLUMNS));
		*at = row.row;
	}
	if (r >= 0)
		r = recover_interrupt(h, &row,
				      "the daemon ended while this was running: run it again");
	return r < 0 ? r : 1;
}

int recover_running(struct history *h)
{
	int64_t at = INT64_MIN, found = 0;
	int r = store_begin(h);

	if (r < 0)
		return r;
	while ((r = recover_next(h, &at)) > 0)
		found++;
	r = store_end(h, r);
	if (r >= 0)
		h->health.interrupted = found;
	return r;
}
