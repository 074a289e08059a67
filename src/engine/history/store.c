/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h, store.h. The connection and everything every other file does with it.
 *
 * One process owns the database (a lock file says so, and SQLite's exclusive mode, in which the index of the
 * write-ahead log lives in memory and no locks are taken for a transaction).
 *
 * Durability. `normal`: a commit is some pwrite()s, because the page cache is enough to survive kill -9. No call
 * waits for the disk while there is work. After two idle seconds history_tick() brings everything to the disk in the
 * right order. So a power cut costs nothing on an idle host. Under load it costs the newest rows and may cost the
 * database; the next open notices that, sets the database aside and begins a new one. `full`: every commit and
 * checkpoint waits for the disk, and a power cut costs nothing that was acknowledged.
 *
 * Checkpoints are history_tick()'s work too; a commit makes one only when the log has grown out of proportion.
 */
#include "engine/history/store.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

enum {
	LATE_CHECKPOINT =
		4, /* times the usual size (16 MiB, some 7 ms to copy): a commit makes the checkpoint itself */
};

/* Which answers of SQLite mean what. Storage trouble is what another try can cure. */
static const struct {
	int rc, r;
} meanings[] = {
	{ SQLITE_FULL, -ENOSPC },	{ SQLITE_IOERR, -EIO },	   { SQLITE_CANTOPEN, -EIO },
	{ SQLITE_READONLY, -EIO },	{ SQLITE_CORRUPT, -EIO },  { SQLITE_NOTADB, -EIO },
	{ SQLITE_NOMEM, -ENOMEM },	{ SQLITE_BUSY, -EBUSY },   { SQLITE_LOCKED, -EBUSY },
	{ SQLITE_CONSTRAINT, -EEXIST }, { SQLITE_TOOBIG, -E2BIG },
};

bool store_is_trouble(int r)
{
	return r == -ENOSPC || r == -EIO;
}

int store_error(struct history *h, int rc)
{
	int system = h->db ? sqlite3_system_errno(h->db) : 0, r = -EINVAL;

	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if ((rc & 0xff) == meanings[i].rc)
			r = meanings[i].r;
	if (rc == SQLITE_CORRUPT_VTAB)
		h->words_damaged = true;
	else if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB)
		unsound_set(h);
	if (r == -EIO && (system == ENOSPC || system == EDQUOT || system == EFBIG))
		r = -ENOSPC;
	if (store_is_trouble(r))
		h->health.degraded = r;
	return r;
}

int store_say(struct error *err, int r)
{
	static const struct {
		int r;
		enum error_code code;
		const char *text;
	} words[] = {
		{ -ENOSPC, ERROR_STORAGE,
		  "the disk that holds the history is full: free some space" },
		{ -EIO, ERROR_STORAGE, "the history cannot be read or written: look at its disk" },
		{ -EALREADY, ERROR_ENDED, "this execution has its result already" },
		{ -ENOENT, ERROR_NOT_FOUND, "There is no such execution." },
		{ -EEXIST, ERROR_INPUT, "this execution is there already" },
		{ -E2BIG, ERROR_INPUT, "this request or result is too large to be kept" },
		{ -EBUSY, ERROR_NOT_ENDED,
		  "The execution has not ended yet; ask again when it has." },
	};

	if (r >= 0)
		return r;
	if (r == -ENOMEM)
		return error_oom(err);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].r == r)
			return error_set(err, words[i].code, -r, "%s", words[i].text);
	return error_set(err, ERROR_INTERNAL, -r, "the history failed: %s", strerror(-r));
}

void store_bind(sqlite3_stmt *s, const struct value *v)
{
	for (int i = 1; v->kind != VALUE_END; i++, v++) {
		if (v->kind == VALUE_NUMBER)
			(void)sqlite3_bind_int64(s, i, v->number);
		else if (v->kind == VALUE_TEXT)
			(void)sqlite3_bind_text64(s, i, v->text.data ? v->text.data : "",
						  v->text.len, SQLITE_STATIC, SQLITE_UTF8);
		else if (v->kind == VALUE_BLOB)
			(void)sqlite3_bind_blob64(s, i, v->text.data, v->text.len, SQLITE_STATIC);
	}
}

sqlite3_stmt *store_ask(struct history *h, int *ret_r, enum stmt which, const struct value *values)
{
	sqlite3_stmt **s = &h->stmts[which];
	int rc = SQLITE_OK;

	if (!h->db) {
		*ret_r = h->health.degraded ? h->health.degraded : -EIO;
		return NULL;
	}
	if (*s) {
		(void)sqlite3_reset(*s);
		(void)sqlite3_clear_bindings(*s);
	} else {
		rc = sqlite3_prepare_v3(h->db, statements[which], -1, SQLITE_PREPARE_PERSISTENT, s,
					NULL);
	}
	if (rc == SQLITE_OK) {
		store_bind(*s, values);
		return *s;
	}
	*ret_r = store_error(h, rc);
	return NULL;
}

int store_step(struct history *h, sqlite3_stmt *s)
{
	int rc = sqlite3_step(s);

	if (rc == SQLITE_ROW)
		return 1;
	(void)sqlite3_reset(s);
	return rc == SQLITE_DONE ? 0 : store_error(h, rc);
}

int store_get(struct history *h, sqlite3_stmt **ret, enum stmt which, const struct value *values)
{
	int r = 0;

	*ret = store_ask(h, &r, which, values);
	return *ret ? store_step(h, *ret) : r;
}

int store_do(struct history *h, enum stmt which, const struct value *values)
{
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	int r = store_get(h, &s, which, values);

	return MIN(r, 0);
}

int store_begin(struct history *h)
{
	return h->group ? h->group_error : store_do(h, STMT_BEGIN, VALUES());
}

int store_end(struct history *h, int r)
{
	/* Some errors concern one execution only, and were found out before anything was changed. */
	const bool harmless = r == -EALREADY || r == -ENOENT || r == -EEXIST || r == -EBUSY;

	if (h->group) {
		if (r < 0 && !harmless)
			h->group_error = r; /* commit undoes it all */
		return r;
	}
	if (r >= 0) {
		int committed = store_do(h, STMT_COMMIT, VALUES());

		r = committed < 0 ? committed : r;
	}
	/* SQLite may have undone it by itself. */
	if (r < 0 && h->db && !sqlite3_get_autocommit(h->db))
		(void)!store_do(h, STMT_ROLLBACK, VALUES());
	return r;
}

int history_begin(struct history *h, struct error *err)
{
	int r = h->group ? -EINVAL : store_begin(h);

	if (r < 0)
		return store_say(err, r);
	assert(!h->group);
	h->group = true;
	h->group_error = 0;
	return 0;
}

int history_commit(struct history *h, struct error *err)
{
	int r = h->group ? h->group_error : -EINVAL;

	h->group = false;
	return store_say(err, store_end(h, r));
}

struct span column_span(sqlite3_stmt *s, int i)
{
	const char *text = (const char *)sqlite3_column_text(s, i);

	return (struct span){ text, text ? (size_t)sqlite3_column_bytes(s, i) : 0 };
}

static int nibble(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct value value_of_hash(const char *hex, unsigned char bytes[HASH_BYTES])
{
	if (!hex || strlen(hex) != 2 * HASH_BYTES ||
	    strspn(hex, "0123456789abcdef") != 2 * HASH_BYTES)
		return (struct value){ .kind = VALUE_NULL };
	for (size_t k = 0; k < HASH_BYTES; k++)
		bytes[k] = (unsigned char)(nibble(hex[2 * k]) << 4 | nibble(hex[2 * k + 1]));
	return V_BLOB((const char *)bytes, HASH_BYTES);
}

int64_t hash_key(const char *hex)
{
	uint64_t key = 0;

	for (size_t k = 0; k < 16 && hex[k]; k++)
		key = key << 4 | ((unsigned)nibble(hex[k]) & 15);
	return (int64_t)key;
}

int store_save_marks(struct history *h, const struct marks *m)
{
	const struct {
		const char *name;
		int64_t value;
	} rows[] = {
		{ "counted", m->counted },
		{ "indexed", m->indexed },
		{ "rows", m->rows },
		{ "bytes", m->bytes },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows) && r >= 0; i++)
		r = store_do(h, STMT_META_SET,
			     VALUES(V_TEXT(rows[i].name), V_NUMBER(rows[i].value)));
	return r;
}

static const char sync_off[] = "PRAGMA synchronous = OFF";
static const char sync_full[] = "PRAGMA synchronous = FULL";

int store_settle(struct history *h)
{
	int r, rc = sqlite3_exec(h->db, sync_full, NULL, NULL, NULL);

	if (rc != SQLITE_OK)
		return store_error(h, rc);
	r = store_checkpoint(h);
	if (!h->options.full)
		rc = sqlite3_exec(h->db, sync_off, NULL, NULL, NULL);
	if (r >= 0 && rc == SQLITE_OK) {
		h->unsettled = false;
		(void)arrivals_empty(h);
	}
	return r < 0 ? r : rc != SQLITE_OK ? store_error(h, rc) : 0;
}

int store_checkpoint(struct history *h)
{
	int log = 0, done = 0, rc;

	if (!h->db)
		return -EIO;
	rc = sqlite3_wal_checkpoint_v2(h->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &log, &done);
	if (rc != SQLITE_OK)
		return store_error(h, rc);
	/* All of it is in the database: the next commit begins at the log's start. */
	if (log == done)
		h->wal_pages = 0;
	return 0;
}

static int on_commit(void *data, sqlite3 *db, const char *name, int pages)
{
	struct history *h = data;

	(void)db;
	(void)name;
	h->wal_pages = pages;
	h->unsettled = true;
	h->written_ns = clock_now_ns();
	if (pages >= LATE_CHECKPOINT * h->reserve.log_pages)
		(void)store_checkpoint(h);
	return SQLITE_OK;
}

int store_connect(struct history *h, struct error *err)
{
	static const char *const pragmas[] = {
		"PRAGMA locking_mode = EXCLUSIVE",
		"PRAGMA busy_timeout = 1000",
		"PRAGMA journal_mode = WAL",
		"PRAGMA wal_autocheckpoint = 0",
		"PRAGMA journal_size_limit = 33554432",
		"PRAGMA cache_size = -16384",
		"PRAGMA secure_delete = FAST",
		"PRAGMA trusted_schema = OFF",
	};
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
		    SQLITE_OPEN_EXRESCODE;
	int rc = sqlite3_open_v2(h->database, &h->db, flags, NULL);

	for (size_t i = 0; rc == SQLITE_OK && i < ARRAY_SIZE(pragmas); i++)
		rc = sqlite3_exec(h->db, pragmas[i], NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(h->db, h->options.full ? sync_full : sync_off, NULL, NULL, NULL);
	if (rc != SQLITE_OK) {
		int r = store_error(h, rc);

		store_disconnect(h);
		return error_set(err, ERROR_STORAGE, -r, "the history in %s cannot be opened: %s",
				 h->database, sqlite3_errstr(rc));
	}
	/* Names and queries are never SQL here; bodies are bounded by us. */
	(void)sqlite3_limit(h->db, SQLITE_LIMIT_ATTACHED, 0);
	(void)sqlite3_wal_hook(h->db, on_commit, h);
	return 0;
}

void store_disconnect(struct history *h)
{
	for (size_t i = 0; i < ARRAY_SIZE(h->stmts); i++) {
		(void)sqlite3_finalize(h->stmts[i]);
		h->stmts[i] = NULL;
	}
	(void)sqlite3_close_v2(h->db);
	h->db = NULL;
}
