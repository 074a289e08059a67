/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. A row's end: the narrow row is updated, or made whole at once, and the result's text is added at the end of its own table.
 * What is deduced from it, search and statistics, is left to history_tick().
 */
#include "engine/history/store.h"

#include <string.h>

#include "base/buf.h"

static int add_index_words(struct buf *b, struct span text, size_t max)
{
	if (!text.data || text.len == 0)
		return 0;
	int r = buf_append(b, text.data, MIN(text.len, max));

	return r < 0 ? r : buf_append(b, "\n", 1);
}

static int collect_words(struct buf *b, const struct history_end *end)
{
	int r = add_index_words(b, end->code, WORDS_CODE);

	if (r >= 0)
		r = add_index_words(b, end->stdout_text, WORDS_STREAM);
	if (r >= 0)
		r = add_index_words(b, end->stderr_text, WORDS_STREAM);
	if (r >= 0)
		r = add_index_words(b, end->error_message, WORDS_MESSAGE);
	return r;
}

/* Why nothing was updated. */
static int explain_missing_row(struct history *h, int64_t row)
{
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, STMT_IS_THERE, &r);

	if (!s)
		return r;
	(void)sqlite3_bind_int64(s, 1, row);
	r = store_step(h, s);
	if (r > 0)
		(void)sqlite3_reset(s);
	return r < 0 ? r : r > 0 ? -EALREADY : -ENOENT;
}

static int update_execution(struct history *h, int64_t row, const struct history_end *end,
			    int64_t n)
{
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, STMT_FINISH, &r);

	if (!s)
		return r;
	(void)sqlite3_bind_int64(s, 1, row);
	bind_text(s, 2, status_name(end->status));
	(void)sqlite3_bind_int(s, 3, end->exit_code);
	(void)sqlite3_bind_int64(s, 4, end->ended_ns / 1000);
	bind_measure(s, 5, end->duration_us);
	bind_measure(s, 6, end->cpu_us);
	bind_measure(s, 7, end->memory_peak_bytes);
	(void)sqlite3_bind_int64(s, 8, MAX(end->kept_bytes, 0));
	(void)sqlite3_bind_int64(s, 9, (int64_t)end->result.len);
	(void)sqlite3_bind_int64(s, 10, n);
	bind_text(s, 11, end->language);
	bind_text(s, 12, end->policy);
	r = store_run(h, s);
	return r >= 0 && sqlite3_changes(h->db) == 0 ? explain_missing_row(h, row) : r;
}

/* The row says already that it is the next. */
static int insert_text(struct history *h, int64_t row, struct span result, struct span words)
{
	int64_t n = h->last_n + 1;
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, STMT_RESULT, &r);

	if (!s)
		return r;
	(void)sqlite3_bind_int64(s, 1, n);
	(void)sqlite3_bind_int64(s, 2, row);
	if (words.len > 0)
		bind_span(s, 3, words);
	bind_span(s, 4, result);
	r = store_run(h, s);
	if (r >= 0)
		h->last_n = n;
	return r;
}

static int insert_result(struct history *h, int64_t row, const struct history_end *end)
{
	_cleanup_buf_ struct buf words = { .max = 64 << 10 };
	int r = collect_words(&words, end);

	return r < 0 ? r : insert_text(h, row, end->result, (struct span){ words.data, words.len });
}

int finish_update(struct history *h, int64_t row, const struct history_end *end)
{
	int r = end->result.len > HISTORY_BODY_MAX ? -E2BIG
						   : update_execution(h, row, end, h->last_n + 1);

	return r < 0 ? r : insert_result(h, row, end);
}

static int try_finish(struct history *h, int64_t row, const struct history_end *end)
{
	int r = store_begin(h);

	return r < 0 ? r : store_end(h, finish_update(h, row, end));
}

int history_finish(struct history *h, int64_t row, const struct history_end *end, struct error *err)
{
	int r = try_finish(h, row, end);

	/* Those that were recorded whole may be on their way yet. */
	if (r == -ENOENT && arrivals_waiting(h) > 0) {
		r = arrivals_settle(h);
		if (r >= 0)
			r = try_finish(h, row, end);
	}
	/* What was accepted must be able to end: that is what the reserve is for. */
	if (r == -ENOSPC && !h->group && disk_reserve_spend(h))
		r = try_finish(h, row, end);
	return store_say(err, r);
}

int record_insert(struct history *h, const struct history_new *in, const struct history_end *end,
		  int64_t *row)
{
	int r = end->result.len > HISTORY_BODY_MAX ? -E2BIG : accept_insert(h, in, end, row);

	return r < 0 ? r : insert_result(h, *row, end);
}

int record_insert_again(struct history *h, const struct history_new *in,
			const struct history_end *end, struct span words, int64_t *row)
{
	int r = end->result.len > HISTORY_BODY_MAX ? -E2BIG : accept_insert(h, in, end, row);

	return r < 0 ? r : insert_text(h, *row, end->result, words);
}

int history_record(struct history *h, const struct history_new *in, const struct history_end *end,
		   int64_t *ret_row, struct error *err)
{
	int64_t row = accept_time(h, in);
	int r = h->health.degraded;

	if (r == 0 && arrivals_take(h, in, end, ret_row))
		return 0;
	if (r == 0)
		r = store_begin(h);
	if (r >= 0)
		r = store_end(h, record_insert(h, in, end, &row));
	if (r >= 0)
		*ret_row = row;
	return store_say(err, r);
}
