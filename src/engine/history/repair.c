/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. A damaged database is read by SQLite, but never as a whole: each row is a question of its own. Rows are read
 * upwards until SQLite fails, then downwards from the end of what is left until it fails again. What lies between is halved, and
 * each half is read in the same way, the largest pieces first and a bounded number of them. So a damaged page costs its own rows and
 * not those behind it. Texts are asked for row by row too: a row without its request or result is better than none.
 *
 * The file is opened without the right to write to it, together with its log. If SQLite does not even find the tables, because the
 * file's first page is damaged, a copy is read that has the first page of a new database: tables that the first version of the
 * schema made have had their place ever since. That copy has no name.
 *
 * A row that waited or ran, and has no end here, is interrupted: this is another day, and no caller expects it to begin.
 */
#include "engine/history/store.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum {
	STEP_ROWS = 32,
	STEP_NS = 10 * NS_PER_MS,
	PIECES_MAX = 1 << 14, /* of what lies between damaged places */
	PAGE_BYTES = 4096,
};

/* Between two times of acceptance, both excluded. */
struct piece {
	int64_t low, high;
	bool downwards;
};

enum question { ASK_UP, ASK_DOWN, ASK_REQUEST, ASK_RESULT, ASK_KEY, ASK_CALLBACK, _ASK_MAX };

#define COLUMNS ROW_COLUMNS ", state, n, idempotency"
enum { COLUMN_STATE = ROW_N_COLUMNS, COLUMN_N, COLUMN_KEY };

static const char *const questions[_ASK_MAX] = {
	[ASK_UP] = "SELECT " COLUMNS " FROM execution NOT INDEXED"
		   " WHERE at > ?1 AND at < ?2 ORDER BY at LIMIT 1",
	[ASK_DOWN] = "SELECT " COLUMNS " FROM execution NOT INDEXED"
		     " WHERE at > ?1 AND at < ?2 ORDER BY at DESC LIMIT 1",
	[ASK_REQUEST] = "SELECT text FROM request WHERE at = ?1",
	[ASK_RESULT] = "SELECT text, words FROM result WHERE n = ?1 AND at = ?2",
	[ASK_KEY] = "SELECT lower(hex(body)) FROM idempotency WHERE caller=?2 AND key=?3 AND at=?1",
	[ASK_CALLBACK] = "SELECT 1 FROM callback WHERE at = ?1",
};

struct history_repair {
	struct history *h;
	sqlite3 *db; /* NULL: the next file is to be opened */
	sqlite3_stmt
		*asks[_ASK_MAX]; /* NULL: this database has no such table, or it cannot be found */
	char name[ASIDE_NAME];
	struct piece *pieces; /* those that are left are [first, last) */
	size_t first, last;
	int64_t taken, known, incomplete;
	bool torn;     /* something of the file could not be read */
	json_t *files; /* reports of those that were read */
	int64_t all_taken;
};

static void repair_close_file(struct history_repair *r)
{
	for (int i = 0; i < _ASK_MAX; i++) {
		(void)sqlite3_finalize(r->asks[i]);
		r->asks[i] = NULL;
	}
	(void)sqlite3_close_v2(r->db);
	r->db = NULL;
}

/* The log of a file that is only read is neither written into it nor removed, and its index lies in memory. */
static int repair_open_file(struct history_repair *r, const char *path)
{
	int rc = sqlite3_open_v2(path, &r->db,
				 SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
				 "unix-none");

	if (rc == SQLITE_OK)
		rc = sqlite3_db_config(r->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(r->db,
				  "PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF;"
				  "PRAGMA cell_size_check = ON; PRAGMA cache_size = -4096",
				  NULL, NULL, NULL);
	for (int i = 0; rc == SQLITE_OK && i < _ASK_MAX; i++)
		/* The table of callbacks is younger than the others, and rows are worth having without the rest. */
		if (sqlite3_prepare_v3(r->db, questions[i], -1, SQLITE_PREPARE_PERSISTENT,
				       &r->asks[i], NULL) != SQLITE_OK &&
		    i <= ASK_DOWN)
			rc = SQLITE_CORRUPT;
	if (rc == SQLITE_OK)
		return 0;
	repair_close_file(r);
	return -EIO;
}

/* The first page of a database without rows. */
static int repair_first_page(unsigned char ret[PAGE_BYTES])
{
	struct history fresh = { .dir_fd = -EBADF };
	sqlite3_int64 size = 0;
	unsigned char *bytes = NULL;
	int r = sqlite3_open(":memory:", &fresh.db) == SQLITE_OK ? schema_migrate(&fresh, NULL)
								 : -ENOMEM;

	if (r == 0)
		bytes = sqlite3_serialize(fresh.db, "main", &size, 0);
	if (bytes && size >= PAGE_BYTES)
		(void)memcpy(ret, bytes, PAGE_BYTES);
	else if (r == 0)
		r = -ENOMEM;
	sqlite3_free(bytes);
	store_disconnect(&fresh);
	return r;
}

static void put_be32(unsigned char *at, uint32_t number)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(number >> (24 - 8 * i));
}

/* Byte offsets are those of SQLite's file format: the header is the first 100 bytes of the first page. */
static int repair_copy_pages(int from, int to, uint32_t pages)
{
	unsigned char page[PAGE_BYTES];
	off_t at = PAGE_BYTES, end = (off_t)pages * PAGE_BYTES;
	int r = repair_first_page(page);

	if (r < 0)
		return r;
	page[18] = page[19] = 1;    /* no write-ahead log */
	put_be32(page + 28, pages); /* the size, which counts if 24 and 92 have the same number */
	put_be32(page + 32, 0);	    /* no free pages */
	put_be32(page + 36, 0);
	(void)memcpy(page + 92, page + 24, 4);
	if (pwrite(to, page, sizeof(page), 0) != (ssize_t)sizeof(page))
		return -EIO;
	while (at < end) {
		ssize_t n = copy_file_range(from, &at, to, &(off_t){ at }, (size_t)(end - at), 0);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	return 0;
}

/* "DIR/NAME", beside the database in use. */
static void repair_path(const struct history *h, const char *name, char ret[PATH_MAX])
{
	size_t n = strlen(h->database) - strlen(HISTORY_DATABASE);

	(void)snprintf(ret, PATH_MAX, "%.*s%s", (int)n, h->database, name);
}

static int repair_open_copy(struct history_repair *r, int from)
{
	static const char name[] = "repair-copy";
	_cleanup_close_ int to = -EBADF;
	char path[PATH_MAX];
	struct stat st;
	int ret;

	(void)unlinkat(r->h->dir_fd, name, 0); /* of a process that died here */
	to = openat(r->h->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (to < 0 || fstat(from, &st) < 0)
		return -errno;
	ret = repair_copy_pages(from, to, (uint32_t)(st.st_size / PAGE_BYTES));
	repair_path(r->h, name, path);
	if (ret == 0)
		ret = repair_open_file(r, path);
	(void)unlinkat(r->h->dir_fd, name, 0);
	return ret;
}

static int repair_open_next(struct history_repair *r, struct error *err)
{
	_cleanup_close_ int fd = openat(r->h->dir_fd, r->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char path[PATH_MAX];
	int ret;

	if (fd < 0)
		return error_set(err, ERROR_STORAGE, errno, "%s cannot be opened: %s", r->name,
				 strerror(errno));
	repair_path(r->h, r->name, path);
	ret = repair_open_file(r, path);
	if (ret == -EIO)
		ret = repair_open_copy(r, fd);
	if (ret == -EIO) /* there is nothing that SQLite can read */
		return 0;
	if (ret < 0)
		return error_set(err, ERROR_STORAGE, -ret,
				 "%s can only be read from a copy, which cannot be made: %s",
				 r->name, strerror(-ret));
	r->pieces[0] = (struct piece){ -1, INT64_C(1) << 56, false };
	r->first = 0;
	r->last = 1;
	return 0;
}

/* A question with its values, before its first step; NULL: this database cannot answer it. */
static sqlite3_stmt *repair_ask(struct history_repair *r, enum question which,
				const struct value *values)
{
	sqlite3_stmt *s = r->asks[which];

	(void)sqlite3_reset(s);
	if (s)
		store_bind(s, values);
	return s;
}

/* True: it is answered, and *ret stands on the row. */
static bool repair_get(struct history_repair *r, sqlite3_stmt **ret, enum question which,
		       const struct value *values)
{
	*ret = repair_ask(r, which, values);
	return *ret && sqlite3_step(*ret) == SQLITE_ROW;
}

/* What is kept of a row beside its columns; texts until the next question. */
struct rest {
	struct span request, result, words;
	bool has_request, has_result;
	char key_sha256[80];
	bool callback;
};

static bool repair_has_file(struct history *h, const char *id, enum history_stream which)
{
	_cleanup_close_ int fd = history_output_open(h, id, which);

	return fd >= 0;
}

static void repair_read_rest(struct history_repair *r, const struct history_row *row, int64_t n,
			     const char *key, struct rest *ret)
{
	const struct value at = V_NUMBER(row->row);
	sqlite3_stmt *s;

	if (repair_get(r, &s, ASK_REQUEST, VALUES(at))) {
		ret->request = column_span(s, 0);
		ret->has_request = ret->request.len > 0 ||
				   repair_has_file(r->h, row->id, HISTORY_REQUEST);
	}
	if (repair_get(r, &s, ASK_RESULT, VALUES(V_NUMBER(n), at))) {
		ret->result = column_span(s, 0);
		ret->words = column_span(s, 1);
	}
	ret->has_result = ret->result.len > 0 || repair_has_file(r->h, row->id, HISTORY_RESULT);
	if (key && repair_get(r, &s, ASK_KEY, VALUES(at, V_TEXT(row->caller), V_TEXT(key))))
		(void)snprintf(ret->key_sha256, sizeof(ret->key_sha256), "%s",
			       (const char *)sqlite3_column_text(s, 0));
	ret->callback = repair_get(r, &s, ASK_CALLBACK, VALUES(at));
	(void)sqlite3_reset(r->asks[ASK_KEY]);
	(void)sqlite3_reset(r->asks[ASK_CALLBACK]);
}

/* An ended row whose result is lost says so in its place. */
static char *repair_make_result(struct history *h, const struct history_row *row)
{
	_cleanup_(result_cleanup) struct result *res = recover_result(
		h, row, status_of(row->status),
		"its result was lost with a damaged part of the history");

	if (!res)
		return NULL;
	res->refusal = ERROR_NONE;
	res->verdict.exit_code = row->exit_code;
	res->duration_us = row->duration_us;
	return result_to_text(res);
}

static int repair_take_ended(struct history *h, const struct history_row *row,
			     struct history_new *in, const struct rest *rest)
{
	_cleanup_free_ char *made = rest->has_result ? NULL : repair_make_result(h, row);
	const struct history_end end = {
		.status = status_of(row->status),
		.exit_code = row->exit_code,
		.ended_ns = row->ended_ns,
		.duration_us = row->duration_us,
		.cpu_us = row->cpu_us,
		.memory_peak_bytes = row->memory_peak_bytes,
		.kept_bytes = row->kept_bytes,
		.result = made ? span_of(made) : rest->result,
	};
	int64_t at = row->row;

	return rest->has_result || made ? record_insert(h, in, &end, &rest->words, &at) : -ENOMEM;
}

static int repair_take_unended(struct history *h, struct history_row *row, struct history_new *in)
{
	int64_t at = row->row;
	int r;

	in->running = true;
	r = accept_insert(h, in, NULL, &at);
	row->row = at;
	return r < 0 ? r
		     : recover_interrupt(
			       h, row,
			       "the history was damaged before this had ended: run it again");
}

/* s: at the row, in the damaged database. */
static int repair_take_row(struct history_repair *r, sqlite3_stmt *s, struct history_row *row)
{
	const char *key = (const char *)sqlite3_column_text(s, COLUMN_KEY);
	const bool ended = sqlite3_column_int(s, COLUMN_STATE) == 2;
	struct history *h = r->h;
	struct rest rest = { 0 };
	struct history_new in;
	char other[HISTORY_ID];
	json_t *labels = NULL;
	int ret;

	repair_read_rest(r, row, sqlite3_column_int64(s, COLUMN_N), key, &rest);
	labels = row->labels ? json_loads(row->labels, 0, NULL) : NULL;
	in = (struct history_new){
		.id = row->id,
		.caller = row->caller,
		.language = row->language,
		.policy = row->policy,
		.labels = labels,
		/* An empty one lies in its file. If there is none, a request for it is answered that it is gone. */
		.request = rest.has_request ? rest.request : (struct span){ "", 0 },
		.code_sha256 = *row->code_sha256 ? row->code_sha256 : NULL,
		.created_ns = row->created_ns,
		.started_ns = row->started_ns,
		.callback = rest.callback && rest.has_request,
	};
	/* The key may have been used again since, for another execution. */
	if (strlen(rest.key_sha256) == 64 &&
	    history_find_key(h, row->caller, key, rest.key_sha256, other) == 0) {
		in.key = key;
		in.key_sha256 = rest.key_sha256;
	}
	ret = ended ? repair_take_ended(h, row, &in, &rest) : repair_take_unended(h, row, &in);
	json_decref(labels);
	if (ret == -E2BIG ||
	    ret == -EEXIST) { /* no row can be made of it: what is there is no row of ours */
		r->torn = true;
		return 0;
	}
	if (ret < 0)
		return ret;
	r->taken++;
	r->incomplete += !rest.has_request || (ended && !rest.has_result);
	return 0;
}

static bool repair_is_plausible(const struct history_row *row, sqlite3_stmt *s,
				const struct piece *p)
{
	const int state = sqlite3_column_int(s, COLUMN_STATE);

	return row->row > p->low && row->row < p->high && id_is_valid(row->id) && row->caller &&
	       strlen(row->caller) <= HISTORY_NAME_MAX && state >= 0 && state <= 2;
}

/* The next row of the first piece. 1: there may be more; 0: this piece is done. */
static int repair_read_one(struct history_repair *r)
{
	struct piece *p = &r->pieces[r->first];
	_cleanup_history_row_ struct history_row row = { 0 };
	_cleanup_stmt_ sqlite3_stmt *known = NULL;
	sqlite3_stmt *s = repair_ask(r, p->downwards ? ASK_DOWN : ASK_UP,
				     VALUES(V_NUMBER(p->low), V_NUMBER(p->high)));
	int rc = sqlite3_step(s), ret = 0;

	if (rc == SQLITE_NOMEM)
		return -ENOMEM;
	if (rc == SQLITE_DONE)
		return 0;
	if (rc == SQLITE_ROW && sqlite3_column_text(s, 1) && sqlite3_column_text(s, 2) &&
	    row_read(s, &row) == 0 && repair_is_plausible(&row, s, p)) {
		*(p->downwards ? &p->high : &p->low) = row.row;
		ret = store_get(r->h, &known, STMT_BY_ID, VALUES(V_TEXT(row.id)));
		if (ret > 0)
			r->known++;
		else if (ret == 0)
			ret = repair_take_row(r, s, &row);
		(void)sqlite3_reset(s);
		return ret < 0 ? ret : 1;
	}
	(void)sqlite3_reset(s);
	if (!p->downwards) {
		p->downwards = true;
		return 1;
	}
	/* What SQLite cannot read from either end: both halves come up again, behind the larger pieces. */
	r->torn = true;
	if (p->high - p->low > 2 && r->last + 2 <= PIECES_MAX) {
		const int64_t middle = p->low + (p->high - p->low) / 2;

		r->pieces[r->last++] = (struct piece){ p->low, middle, false };
		r->pieces[r->last++] = (struct piece){ middle - 1, p->high, false };
	}
	return 0;
}

/* In one transaction, which takes the rows of one step. */
static int repair_read_some(struct history_repair *r)
{
	const int64_t until_ns = clock_now_ns() + STEP_NS;
	int ret = arrivals_list(r->h, ARRIVALS_MAX);

	if (ret >= 0)
		ret = store_begin(r->h);
	if (ret < 0)
		return ret;
	for (int i = 0;
	     i < STEP_ROWS && r->first < r->last && ret >= 0 && clock_now_ns() < until_ns; i++) {
		ret = repair_read_one(r);
		r->first += ret == 0;
	}
	return store_end(r->h, MIN(ret, 0));
}

static int repair_finish_file(struct history_repair *r)
{
	/* Without a connection SQLite could not make anything of it. */
	json_t *report = json_pack("{s:s, s:I, s:I, s:I, s:b, s:b}", "file", r->name, "taken",
				   (json_int_t)r->taken, "known", (json_int_t)r->known,
				   "incomplete", (json_int_t)r->incomplete, "readable", r->db,
				   "whole", r->db && !r->torn);
	int ret = json_array_append_new(r->files, report) < 0 ? -ENOMEM : 0;

	repair_close_file(r);
	r->all_taken += r->taken;
	r->taken = r->known = r->incomplete = 0;
	r->torn = false;
	return ret < 0 ? ret : aside_repaired(r->h, r->name);
}

int history_repair_new(struct history *h, struct history_repair **ret, struct error *err)
{
	struct history_repair *r;

	if (h->repairing)
		return error_set(
			err, ERROR_CONFLICT, EBUSY,
			"the history is being repaired already; ask again when it is done");
	if (h->health.degraded)
		return store_say(err, h->health.degraded);
	r = calloc(1, sizeof(*r));
	if (r) {
		*r = (struct history_repair){ .h = h, .files = json_array() };
		r->pieces = calloc(PIECES_MAX, sizeof(*r->pieces));
	}
	if (!r || !r->files || !r->pieces) {
		if (r)
			json_decref(r->files);
		free(r);
		return error_oom(err);
	}
	h->repairing = true;
	*ret = r;
	return 0;
}

int history_repair_step(struct history_repair *r, struct error *err)
{
	int ret;

	if (!r->db) {
		if (!aside_oldest(r->h, r->name))
			return 0;
		ret = repair_open_next(r, err);
		if (ret < 0)
			return ret;
	}
	ret = r->db && r->first < r->last ? repair_read_some(r) : repair_finish_file(r);
	return ret < 0 ? store_say(err, ret) : 1;
}

json_t *history_repair_report(const struct history_repair *r)
{
	return json_pack("{s:O, s:I}", "files", r->files, "taken",
			 (json_int_t)(r->all_taken + r->taken));
}

struct history_repair *history_repair_free(struct history_repair *r)
{
	if (!r)
		return NULL;
	repair_close_file(r);
	json_decref(r->files);
	free(r->pieces);
	r->h->repairing = false;
	free(r);
	return NULL;
}
