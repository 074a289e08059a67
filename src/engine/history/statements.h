/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every statement against the database, by name. This file is read twice and has no guard: store.h takes the names, db-schema.c the texts.
 * The macros in them are in db-schema.c.
 */
/* clang-format off */
/* `state < 2` beside `state = 0` says nothing new, but SQLite uses an index with a condition only where it reads it. */
STATEMENT(BEGIN, "BEGIN IMMEDIATE")
STATEMENT(COMMIT, "COMMIT")
STATEMENT(ROLLBACK, "ROLLBACK")
STATEMENT(ACCEPT, "INSERT INTO execution(at, id, state, status, caller, language, policy, labels,"
	" code, code_key, idempotency, started_us, bytes, exit_code, ended_us, duration_us,"
	" cpu_us, memory_peak, kept_bytes, n)"
	" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ifnull(?14, -1),"
	" ?15, ?16, ?17, ?18, ifnull(?19, 0), ?20)")
STATEMENT(REQUEST, "INSERT INTO request(at, text) VALUES(?1, ?2)")
STATEMENT(KEY_ADD, "REPLACE INTO idempotency(caller, key, body, at) VALUES(?1, ?2, ?3, ?4)")
STATEMENT(KEY_FIND, "SELECT id, body = ?3, at FROM idempotency JOIN execution USING(at)"
	" WHERE idempotency.caller = ?1 AND key = ?2")
STATEMENT(KEY_DELETE, "DELETE FROM idempotency WHERE caller = ?1 AND key = ?2 AND at = ?3")
STATEMENT(LABEL_ADD, "INSERT OR IGNORE INTO label(name, value, at) VALUES(?1, ?2, ?3)")
STATEMENT(LABEL_DELETE, "DELETE FROM label WHERE name = ?1 AND value = ?2 AND at = ?3")
STATEMENT(START, "UPDATE execution SET state = 1, status = 'running', started_us = ?2"
	" WHERE at = ?1 AND state = 0")
STATEMENT(FINISH, "UPDATE execution SET state = 2, status = ?2, exit_code = ?3, ended_us = ?4,"
	" duration_us = ?5, cpu_us = ?6, memory_peak = ?7, kept_bytes = ?8,"
	" bytes = bytes + ?8 + ?9, n = ?10, language = ifnull(?11, language),"
	" policy = ifnull(?12, policy) WHERE at = ?1 AND state < 2")
STATEMENT(RESULT, "INSERT INTO result(n, at, words, text) VALUES(?1, ?2, ?3, ?4)")
STATEMENT(IS_THERE, "SELECT 1 FROM execution WHERE at = ?1")
STATEMENT(GET, "SELECT " ROW_COLUMNS ", request.text, result.text FROM execution"
	" JOIN request USING(at) LEFT JOIN result ON result.n = execution.n WHERE id = ?1")
STATEMENT(RUNNING, "SELECT " ROW_COLUMNS ", request.text FROM execution JOIN request USING(at)"
	" WHERE state = 1 AND state < 2 AND execution.at > ?1 ORDER BY " "execution.at LIMIT 1")
STATEMENT(QUEUED, SELECT_ROWS "WHERE state = 0 AND state < 2 AND at > ?1 ORDER BY at LIMIT ?2")
STATEMENT(LIVE_COUNT, "SELECT count(*) FROM execution WHERE state < 2")
STATEMENT(LIST, SELECT_ROWS "WHERE " IN_RANGE NEWEST)
STATEMENT(LIST_LIVE, SELECT_ROWS "WHERE state = ?3 AND state < 2 AND " IN_RANGE NEWEST)
STATEMENT(LIST_ID, SELECT_ROWS
	"INDEXED BY execution_id WHERE id >= ?3 AND id < ?3 || '~' AND " IN_RANGE NEWEST)
STATEMENT(LIST_SUCCESS, SELECT_ROWS "WHERE status = 'success' AND " IN_RANGE NEWEST)
STATEMENT(LIST_FAILURE, SELECT_ROWS
	"WHERE status = ?3 AND state = 2 AND status <> 'success' AND " IN_RANGE NEWEST)
STATEMENT(LIST_LANGUAGE, SELECT_ROWS "WHERE language = ?3 AND " IN_RANGE NEWEST)
STATEMENT(LIST_CALLER, SELECT_ROWS "WHERE caller = ?3 AND " IN_RANGE NEWEST)
STATEMENT(LIST_CALLER_LANGUAGE, SELECT_ROWS
	"WHERE caller = ?3 AND language = ?4 AND " IN_RANGE NEWEST)
STATEMENT(LIST_LABEL, "SELECT " ROW_COLUMNS " FROM label CROSS JOIN execution"
	" ON execution.at = label.at WHERE label.name = ?3 AND label.value = ?4"
	" AND label.at >= ?1 AND label.at < ?2 ORDER BY label.at DESC")
STATEMENT(LIST_TEXT, "SELECT " ROW_COLUMNS " FROM search CROSS JOIN execution"
	" ON execution.at = -search.rowid WHERE search MATCH ?3"
	" AND search.rowid <= -?1 AND search.rowid > -?2 ORDER BY search.rowid")
STATEMENT(NTH_FAILURE, SELECT_NTH "status = ?3 AND state = 2 AND status <> 'success' AND " NTH)
STATEMENT(NTH_LANGUAGE, SELECT_NTH "language = ?3 AND " NTH)
STATEMENT(NTH_CALLER, SELECT_NTH "caller = ?3 AND " NTH)
STATEMENT(NTH_CALLER_LANGUAGE, SELECT_NTH "caller = ?3 AND language = ?4 AND " NTH)
STATEMENT(NTH_LABEL, "SELECT at FROM label WHERE name = ?3 AND value = ?4 AND at >= ?1"
	" AND at < ?2 ORDER BY at DESC LIMIT 1 OFFSET ?5")
STATEMENT(NTH_TEXT, "SELECT -rowid FROM search WHERE search MATCH ?3 AND rowid <= -?1"
	" AND rowid > -?2 ORDER BY rowid LIMIT 1 OFFSET ?5")
STATEMENT(WORDS, "SELECT words FROM execution CROSS JOIN result ON result.n = execution.n"
	" WHERE execution.at = ?1")
STATEMENT(PAST_CODE, "SELECT duration_us, status, caller FROM execution WHERE code_key = ?1"
	" AND state = 2 AND code = ?2 ORDER BY at DESC LIMIT ?3")
STATEMENT(PAST_LABEL, "SELECT duration_us, status, caller FROM label CROSS JOIN execution"
	" ON execution.at = label.at WHERE label.name = ?1 AND label.value = ?2"
	" AND state = 2 ORDER BY label.at DESC LIMIT ?3")
STATEMENT(OLDEST, "SELECT at, id, caller, labels, idempotency, n, bytes FROM execution"
	" WHERE at > ?1 AND state = 2 ORDER BY at LIMIT ?2")
STATEMENT(OLDEST_OF, "SELECT at, id, caller, labels, idempotency, n, bytes FROM execution"
	" WHERE caller = ?3 AND at > ?1 AND state = 2 ORDER BY at LIMIT ?2")
STATEMENT(BY_ID, "SELECT at, id, caller, labels, idempotency, n, bytes, state FROM execution"
	" WHERE id = ?1")
STATEMENT(DELETE, "DELETE FROM execution WHERE at = ?1")
STATEMENT(DELETE_REQUEST, "DELETE FROM request WHERE at = ?1")
STATEMENT(DELETE_RESULT, "DELETE FROM result WHERE n = ?1")
STATEMENT(SEARCH_TEXT, "SELECT words FROM result WHERE n = ?1")
STATEMENT(UNCOUNTED, "SELECT result.n, ended_us, status, duration_us, caller, language, labels,"
	" bytes FROM result CROSS JOIN execution USING(at) WHERE result.n > ?1"
	" ORDER BY result.n LIMIT ?2")
STATEMENT(UNINDEXED_BYTES, "SELECT n, words FROM result WHERE n > ?1 ORDER BY n LIMIT ?2")
/* In the order of `search`, which is the order in which it takes them cheaply. */
STATEMENT(UNINDEXED, "SELECT at, words FROM result WHERE n > ?1 AND n <= ?2 AND words IS"
	" NOT NULL ORDER BY at DESC")
STATEMENT(SEARCH_ADD, "INSERT INTO search(rowid, words) VALUES(-?1, ?2)")
STATEMENT(SEARCH_DELETE, "INSERT INTO search(search, rowid, words) VALUES('delete', -?1, ?2)")
STATEMENT(SEARCH_EMPTY, "INSERT INTO search(search) VALUES('delete-all')")
STATEMENT(SEARCH_MERGE, "INSERT INTO search(search, rank) VALUES('merge', ?1)")
STATEMENT(TALLY_GET, "SELECT data FROM tally WHERE span = ?1 AND bucket = ?2 AND caller = ?3"
	" AND kind = ?4 AND name = ?5")
STATEMENT(TALLY_SET, "REPLACE INTO tally(span, bucket, caller, kind, name, data)"
	" VALUES(?1, ?2, ?3, ?4, ?5, ?6)")
STATEMENT(TALLY_NAMES, "SELECT count(*) FROM tally WHERE span = ?1 AND bucket = ?2"
	" AND caller = ?3 AND kind = ?4")
STATEMENT(TALLY_SUM, "SELECT kind, name, data, bucket FROM tally WHERE span = ?1"
	" AND bucket >= ?2 AND bucket < ?3 ORDER BY bucket DESC")
STATEMENT(TALLY_SUM_OF, "SELECT kind, name, data, bucket FROM tally WHERE span = ?1"
	" AND bucket >= ?2 AND bucket < ?3 AND caller = ?4 ORDER BY bucket DESC")
STATEMENT(TALLY_PRUNE, "DELETE FROM tally WHERE span = ?1 AND bucket < ?2")
STATEMENT(INTERACTIVE_ADD, "INSERT INTO interactive(at) VALUES(?1)")
STATEMENT(INTERACTIVE_FIND, "SELECT 1 FROM interactive WHERE at = ?1")
STATEMENT(INTERACTIVE_DELETE, "DELETE FROM interactive WHERE at = ?1")
STATEMENT(CALLBACK_ADD, "INSERT INTO callback(at) VALUES(?1)")
STATEMENT(CALLBACK_DUE, "SELECT " ROW_COLUMNS " FROM callback CROSS JOIN execution"
	" ON execution.at = callback.at WHERE callback.at > ?1 AND state = 2"
	" ORDER BY callback.at LIMIT ?2")
STATEMENT(CALLBACK_DELETE, "DELETE FROM callback WHERE at = ?1")
STATEMENT(SHARE_ADD, "INSERT INTO share(caller, rows, bytes) VALUES(?1, ?2, ?3)"
	" ON CONFLICT(caller) DO UPDATE SET rows = rows + ?2, bytes = bytes + ?3")
STATEMENT(SHARE_DROP, "DELETE FROM share WHERE caller = ?1 AND rows <= 0")
STATEMENT(SHARE_ROWS, "SELECT caller, rows FROM share WHERE rows > 0 ORDER BY rows DESC LIMIT 2")
STATEMENT(SHARE_BYTES, "SELECT caller, bytes FROM share WHERE bytes > 0 ORDER BY bytes DESC LIMIT 2")
STATEMENT(DATABASE_BYTES, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
STATEMENT(META_SET, "REPLACE INTO meta(name, value) VALUES(?1, ?2)")
