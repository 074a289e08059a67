/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store.h. What the database looks like, and every statement made against it.
 *
 * A version of the schema is one step of `steps`: an old database takes the steps it lacks, each in a
 * transaction of its own that also adds a row to `migration`; a database from the future is refused. Steps are
 * never edited once released, only added.
 *
 * No statement is put together from pieces at run time: what callers give are values, always.
 */
#include "engine/history/store.h"

#include <stdio.h>

/* Narrow rows are ~150 bytes; texts live in tables of their own so that scans do not read them. */
static const char version_1[] =
	"CREATE TABLE execution("
	"  at INTEGER PRIMARY KEY, id TEXT NOT NULL, state INTEGER NOT NULL, status TEXT NOT NULL,"
	"  caller TEXT NOT NULL, language TEXT, policy TEXT, labels TEXT, code BLOB, code_key "
	"INTEGER,"
	"  idempotency TEXT, exit_code INTEGER NOT NULL DEFAULT -1, started_us INTEGER, ended_us "
	"INTEGER,"
	"  duration_us INTEGER, cpu_us INTEGER, memory_peak INTEGER, kept_bytes INTEGER NOT NULL "
	"DEFAULT 0,"
	"  bytes INTEGER NOT NULL, n INTEGER);"
	"CREATE UNIQUE INDEX execution_id ON execution(id);"
	"CREATE INDEX execution_caller ON execution(caller);"
	"CREATE INDEX execution_language ON execution(language) WHERE language IS NOT NULL;"
	"CREATE INDEX execution_live ON execution(state) WHERE state < 2;"
	"CREATE INDEX execution_status ON execution(status) WHERE state = 2;"
	"CREATE INDEX execution_code ON execution(code_key) WHERE state = 2 AND code_key IS NOT "
	"NULL;"
	"CREATE TABLE request(at INTEGER PRIMARY KEY, text TEXT NOT NULL);"
	"CREATE TABLE result(n INTEGER PRIMARY KEY, at INTEGER NOT NULL, words TEXT, text TEXT NOT "
	"NULL);"
	"CREATE TABLE label(name TEXT NOT NULL, value TEXT NOT NULL, at INTEGER NOT NULL,"
	"  PRIMARY KEY(name, value, at)) WITHOUT ROWID;"
	"CREATE TABLE idempotency(caller TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL,"
	"  at INTEGER NOT NULL, PRIMARY KEY(caller, key)) WITHOUT ROWID;"
	"CREATE TABLE tally(span INTEGER NOT NULL, bucket INTEGER NOT NULL, caller TEXT NOT NULL,"
	"  kind INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,"
	"  PRIMARY KEY(span, bucket, caller, kind, name)) WITHOUT ROWID;"
	"CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
	/* Words only, no positions, no copy of the text; merging is history_tick()'s work. */
	"CREATE VIRTUAL TABLE search USING fts5(words, content='', columnsize=0, detail=none,"
	"  tokenize='ascii');"
	"INSERT INTO search(search, rank) VALUES('automerge', 0);"
	"INSERT INTO search(search, rank) VALUES('crisismerge', 64);";

/* Rows and bytes by caller; the executions whose standard input is still to come, for a process that runs them later. */
static const char version_2[] =
	"CREATE TABLE interactive(at INTEGER PRIMARY KEY);"
	"CREATE TABLE share(caller TEXT PRIMARY KEY, rows INTEGER NOT NULL, bytes INTEGER NOT NULL)"
	"  WITHOUT ROWID;"
	"CREATE INDEX share_rows ON share(rows);"
	"CREATE INDEX share_bytes ON share(bytes);"
	"INSERT INTO share(caller, rows, bytes) SELECT caller, count(*), sum(bytes) FROM execution"
	"  WHERE n <= (SELECT value FROM meta WHERE name = 'counted') GROUP BY caller;";

/*
 * Pages of rows that lie far apart, failures and those of one caller in one language, are read from the index alone:
 * fetching each row from a place of its own costs more the more there is. What search finds is numbered backwards,
 * because FTS5 reads forwards much faster, and kept in half as many pieces, each of which a search looks into;
 * history_tick() fills it again from `result`.
 */
#define ROW_REST                                                                                   \
	"policy, labels, code, exit_code, started_us, ended_us, duration_us, cpu_us, "             \
	"memory_peak, kept_bytes"
static const char version_3[] =
	"DROP INDEX execution_status;"
	"CREATE INDEX execution_success ON execution(status) WHERE status = 'success';"
	"CREATE INDEX execution_failure ON execution(status, at, state, id, caller, "
	"language, " ROW_REST ") WHERE state = 2 AND status <> 'success';"
	"CREATE INDEX execution_caller_language ON execution(caller, language, at, id, "
	"status, " ROW_REST ") WHERE language IS NOT NULL;"
	"DROP TABLE search;"
	"CREATE VIRTUAL TABLE search USING fts5(words, content='', columnsize=0, detail=none,"
	"  tokenize='ascii');"
	"INSERT INTO search(search, rank) VALUES('automerge', 0);"
	"INSERT INTO search(search, rank) VALUES('crisismerge', 64);"
	"INSERT INTO search(search, rank) VALUES('usermerge', 2);"
	"DELETE FROM meta WHERE name = 'indexed';";

/*
 * Words are indexed again, with their epochs, which version 7 removes. What every run asks before it begins, how long its
 * code took before, is read from the index alone.
 */
static const char version_4[] =
	"DROP INDEX execution_code;"
	"CREATE INDEX execution_code ON execution(code_key, at, code, state, duration_us, status, "
	"caller)"
	"  WHERE state = 2 AND code_key IS NOT NULL;"
	"CREATE TABLE epoch(start INTEGER PRIMARY KEY, id INTEGER NOT NULL);"
	"INSERT INTO search(search) VALUES('delete-all');"
	"DELETE FROM meta WHERE name = 'indexed';";

/* Words with their epochs have a table of their own: FTS5 would look into each of its pieces for each of them. */
static const char version_5[] =
	"CREATE TABLE posting(epoch INTEGER NOT NULL, word BLOB NOT NULL, ats BLOB NOT NULL,"
	"  PRIMARY KEY(epoch, word)) WITHOUT ROWID;"
	"DELETE FROM epoch;"
	"INSERT INTO search(search) VALUES('delete-all');"
	"DELETE FROM meta WHERE name = 'indexed' OR name LIKE 'epoch%';";

/* Not one row for each word of an epoch, but pieces; the results of deleted rows whose words are still indexed. */
static const char version_6[] =
	"DROP TABLE posting;"
	"CREATE TABLE posting(epoch INTEGER NOT NULL, word BLOB NOT NULL, low INTEGER NOT NULL,"
	"  ats BLOB NOT NULL, PRIMARY KEY(epoch, word, low)) WITHOUT ROWID;"
	"CREATE TABLE leftover(n INTEGER PRIMARY KEY, status TEXT NOT NULL);"
	"DELETE FROM epoch;"
	"INSERT INTO search(search) VALUES('delete-all');"
	"DELETE FROM meta WHERE name = 'indexed' OR name LIKE 'epoch%';";

/* FTS5 alone knows the words: its index stays, less the words of rows that are gone. */
static const char version_7[] =
	"INSERT INTO search(search, rowid, words) SELECT 'delete', -at, words"
	"  FROM leftover CROSS JOIN result USING(n) WHERE words IS NOT NULL"
	"  AND n <= (SELECT value FROM meta WHERE name = 'indexed') ORDER BY at DESC;"
	"DELETE FROM result WHERE n IN (SELECT n FROM leftover);"
	"DROP TABLE leftover;"
	"DROP TABLE posting;"
	"DROP TABLE epoch;"
	"DELETE FROM meta WHERE name LIKE 'epoch%';";

/* The executions whose result a callback_url has yet to get, for a process that sends them later. */
static const char version_8[] = "CREATE TABLE callback(at INTEGER PRIMARY KEY);";

static const char *const steps[] = {
	version_1, version_2, version_3, version_4, version_5, version_6, version_7, version_8,
};

#define SELECT_ROWS "SELECT " ROW_COLUMNS " FROM execution "
#define IN_RANGE    "execution.at >= ?1 AND execution.at < ?2 "
#define NEWEST	    "ORDER BY execution.at DESC"
/* How far one has to go back for so many: from indexes alone. */
#define SELECT_NTH "SELECT at FROM execution WHERE "
#define NTH	   IN_RANGE NEWEST " LIMIT 1 OFFSET ?5"

const char *const statements[_STMT_MAX] = {
#define STATEMENT(name, text) [STMT_##name] = text,
#include "engine/history/statements.h"
#undef STATEMENT
};

static int schema_number(struct history *h, const char *sql, int64_t *ret)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(h->db, sql, -1, &s, NULL);

	if (rc != SQLITE_OK)
		return store_error(h, rc);
	rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(s, 0);
	(void)sqlite3_finalize(s);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : store_error(h, rc);
}

static int schema_take_step(struct history *h, int version)
{
	char note[160];
	int rc;

	(void)snprintf(note, sizeof(note),
		       "INSERT INTO migration(version, at) VALUES(%d, datetime('now'));"
		       "PRAGMA user_version = %d; COMMIT",
		       version, version);
	rc = sqlite3_exec(h->db,
			  "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS"
			  " migration(version INTEGER PRIMARY KEY, at TEXT NOT NULL)",
			  NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(h->db, steps[version - 1], NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(h->db, note, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		return 0;
	int r = store_error(h, rc);

	if (!sqlite3_get_autocommit(h->db))
		(void)sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

int schema_migrate(struct history *h, struct error *err)
{
	const int newest = (int)ARRAY_SIZE(steps);
	int64_t version = 0;
	int r = schema_number(h, "PRAGMA user_version", &version);

	if (r < 0)
		return store_say(err, r);
	if (version > newest)
		return error_set(err, ERROR_STORAGE, EPROTO,
				 "%s was written by a newer version of Atoll: use that, or another "
				 "state directory",
				 h->database);
	for (int v = (int)version + 1; v <= newest && r >= 0; v++)
		r = schema_take_step(h, v);
	return store_say(err, r);
}

int schema_load(struct history *h)
{
	const struct {
		const char *sql;
		int64_t *ret;
	} numbers[] = {
		{ "SELECT value FROM meta WHERE name = 'counted'", &h->marks.counted },
		{ "SELECT value FROM meta WHERE name = 'indexed'", &h->marks.indexed },
		{ "SELECT value FROM meta WHERE name = 'rows'", &h->marks.rows },
		{ "SELECT value FROM meta WHERE name = 'bytes'", &h->marks.bytes },
		{ "SELECT max(n) FROM result", &h->last_n },
		{ "SELECT max(at) FROM execution", &h->last_at },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(numbers) && r >= 0; i++)
		r = schema_number(h, numbers[i].sql, numbers[i].ret);
	/* Which of the last second's microseconds the process before us gave away is not kept: all count as taken. */
	h->burst_at = h->last_at - NS_PER_SEC / 1000;
	/* A number is never given twice, also when the newest result was deleted. */
	h->last_n = MAX(h->last_n, MAX(h->marks.counted, h->marks.indexed));
	return r;
}
