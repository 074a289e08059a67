/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. A row's birth. Everything that may refuse it (its name, its Idempotency-Key) is asked before the
 * first change, so that inside a group a refusal leaves nothing behind.
 */
#include "engine/history/store.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum { AT_TRIES = 1000 }; /* neighbours of a taken microsecond, when the clock was set back */

bool id_is_valid(const char *id)
{
	return strlen(id) == HISTORY_ID - 1 && strncmp(id, "ex_", 3) == 0 &&
	       strspn(id + 3, "0123456789abcdefghijklmnopqrstuvwxyz") == HISTORY_ID - 4;
}

static bool name_fits(const char *name)
{
	return !name || strnlen(name, HISTORY_NAME_MAX + 1) <= HISTORY_NAME_MAX;
}

int accept_check(const struct history_new *in)
{
	if (!id_is_valid(in->id) || (in->key && !in->key_sha256))
		return -EINVAL;
	if (!name_fits(in->caller) || !name_fits(in->language) || !name_fits(in->policy) ||
	    !name_fits(in->key) || in->request.len > HISTORY_BODY_MAX)
		return -E2BIG;
	return 0;
}

static bool is_forgotten(const struct history *h, int64_t at)
{
	int64_t keep_s = h->options.keep_keys_s;

	return keep_s > 0 && at < (clock_realtime_ns() - keep_s * NS_PER_SEC) / 1000;
}

/* 1: the caller used it for this body; 0: never, or too long ago; 2: for another one. */
static int find_key(struct history *h, const struct history_new *in, char ret_id[HISTORY_ID])
{
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, STMT_KEY_FIND, &r);

	if (!s)
		return r;
	bind_text(s, 1, in->caller);
	bind_text(s, 2, in->key);
	bind_hash(s, 3, in->key_sha256);
	r = store_step(h, s);
	if (r <= 0)
		return r;
	(void)snprintf(ret_id, HISTORY_ID, "%s", (const char *)sqlite3_column_text(s, 0));
	r = is_forgotten(h, sqlite3_column_int64(s, 2)) ? 0 : sqlite3_column_int(s, 1) ? 1 : 2;
	(void)sqlite3_reset(s);
	return r;
}

int history_find_key(struct history *h, const char *caller, const char *key, const char *key_sha256,
		     char ret_id[HISTORY_ID])
{
	const struct history_new in = { .caller = caller, .key = key, .key_sha256 = key_sha256 };
	char id[HISTORY_ID];
	int r = find_key(h, &in, id);

	if (r == 1)
		(void)snprintf(ret_id, HISTORY_ID, "%s", id);
	return r == 2 ? -EEXIST : r;
}

static void bind_birth(sqlite3_stmt *s, const struct history_new *in, const char *labels)
{
	bind_text(s, 2, in->id);
	(void)sqlite3_bind_int(s, 3, in->running);
	bind_text(s, 4, in->running ? "running" : "queued");
	bind_text(s, 5, in->caller);
	bind_text(s, 6, in->language);
	bind_text(s, 7, in->policy);
	bind_text(s, 8, labels);
	bind_hash(s, 9, in->code_sha256);
	if (in->code_sha256)
		(void)sqlite3_bind_int64(s, 10, hash_key(in->code_sha256));
	bind_text(s, 11, in->key);
	if (in->started_ns)
		(void)sqlite3_bind_int64(s, 12, in->started_ns / 1000);
	(void)sqlite3_bind_int64(s, 13, (int64_t)in->request.len + in->kept_bytes);
}

/* As STMT_FINISH would: at once, every index is written once. */
static void bind_end(sqlite3_stmt *s, const struct history_new *in, const struct history_end *end,
		     int64_t n)
{
	int64_t kept_bytes = MAX(end->kept_bytes, 0);

	(void)sqlite3_bind_int(s, 3, 2);
	bind_text(s, 4, status_name(end->status));
	if (end->language)
		bind_text(s, 6, end->language);
	if (end->policy)
		bind_text(s, 7, end->policy);
	(void)sqlite3_bind_int64(
		s, 13, (int64_t)(in->request.len + end->result.len) + in->kept_bytes + kept_bytes);
	(void)sqlite3_bind_int(s, 14, end->exit_code);
	(void)sqlite3_bind_int64(s, 15, end->ended_ns / 1000);
	bind_measure(s, 16, end->duration_us);
	bind_measure(s, 17, end->cpu_us);
	bind_measure(s, 18, end->memory_peak_bytes);
	(void)sqlite3_bind_int64(s, 19, kept_bytes);
	(void)sqlite3_bind_int64(s, 20, n);
}

static int insert_execution(struct history *h, const struct history_new *in,
			    const struct history_end *end, const char *labels, int64_t *at)
{
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, STMT_ACCEPT, &r);

	if (!s)
		return r;
	bind_birth(s, in, labels);
	if (end)
		bind_end(s, in, end, h->last_n + 1);
	for (int i = 0; i < AT_TRIES; i++, (*at)++) {
		(void)sqlite3_bind_int64(s, 1, *at);
		r = store_run(h, s);
		if (r != -EEXIST || sqlite3_extended_errcode(h->db) == SQLITE_CONSTRAINT_UNIQUE)
			break;
	}
	return r;
}

static int insert_labels(struct history *h, const json_t *labels, int64_t at)
{
	const char *name;
	json_t *value;
	int r = 0;

	/* jansson's iteration wants a mutable object but changes nothing. */
	json_object_foreach((json_t *)(uintptr_t)labels, name, value)
	{
		sqlite3_stmt *s = store_stmt(h, STMT_LABEL_ADD, &r);

		if (!s)
			return r;
		bind_text(s, 1, name);
		bind_text(s, 2, json_string_value(value) ? json_string_value(value) : "");
		(void)sqlite3_bind_int64(s, 3, at);
		r = store_run(h, s);
		if (r < 0)
			return r;
	}
	return 0;
}

static int insert_rest(struct history *h, const struct history_new *in, int64_t at)
{
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, STMT_REQUEST, &r);

	if (!s)
		return r;
	(void)sqlite3_bind_int64(s, 1, at);
	bind_span(s, 2, in->request);
	r = store_run(h, s);
	if (r >= 0 && in->interactive)
		r = store_run_with(h, STMT_INTERACTIVE_ADD, at);
	if (r >= 0 && in->callback)
		r = store_run_with(h, STMT_CALLBACK_ADD, at);
	if (r < 0 || !in->key)
		return r;
	s = store_stmt(h, STMT_KEY_ADD, &r);
	if (!s)
		return r;
	bind_text(s, 1, in->caller);
	bind_text(s, 2, in->key);
	bind_hash(s, 3, in->key_sha256);
	(void)sqlite3_bind_int64(s, 4, at);
	return store_run(h, s);
}

int64_t accept_time(const struct history *h, const struct history_new *in)
{
	int64_t at = in->created_ns / 1000;

	return at >= h->burst_at && at <= h->last_at ? h->last_at + 1 : at;
}

void accept_took(struct history *h, int64_t at)
{
	if (at <= h->last_at)
		return;
	if (at != h->last_at + 1)
		h->burst_at = at;
	h->last_at = at;
}

int accept_insert(struct history *h, const struct history_new *in, const struct history_end *end,
		  int64_t *row)
{
	_cleanup_free_ char *labels = NULL;
	int64_t at = *row;
	char taken[HISTORY_ID];
	int r = accept_check(in);

	if (r < 0)
		return r;
	if (in->key) {
		r = find_key(h, in, taken);
		if (r != 0)
			return r > 0 ? -EEXIST : r;
	}
	if (json_object_size(in->labels) > 0) {
		labels = json_dumps(in->labels, JSON_COMPACT);
		if (!labels)
			return -ENOMEM;
	}
	r = insert_execution(h, in, end, labels, &at);
	if (r >= 0)
		r = insert_rest(h, in, at);
	if (r >= 0 && labels)
		r = insert_labels(h, in->labels, at);
	if (r < 0)
		return r;
	accept_took(h, at);
	*row = at;
	return 0;
}

int history_accept(struct history *h, const struct history_new *in, int64_t *ret_row,
		   struct error *err)
{
	int64_t row = accept_time(h, in);
	int r = h->health.degraded ? h->health.degraded : store_begin(h);

	if (r >= 0)
		r = store_end(h, accept_insert(h, in, NULL, &row));
	if (r >= 0)
		*ret_row = row;
	return store_say(err, r);
}

int history_start(struct history *h, int64_t row, int64_t started_ns, struct error *err)
{
	/* While recovery waits for space, a new running row would be taken for a dead process's. */
	int r = h->recovery_waits ? h->health.degraded : h->group ? h->group_error : 0;
	sqlite3_stmt *s = r < 0 ? NULL : store_stmt(h, STMT_START, &r);

	if (!s)
		return store_say(err, r);
	(void)sqlite3_bind_int64(s, 1, row);
	(void)sqlite3_bind_int64(s, 2, started_ns / 1000);
	r = store_run(h, s);
	if (r >= 0 && sqlite3_changes(h->db) == 0)
		r = -EALREADY;
	/* One statement is a transaction of its own. */
	return store_say(err, h->group ? store_end(h, r) : r);
}
