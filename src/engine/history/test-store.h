/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the history share: a directory of their own, and executions with little typing. */
#pragma once

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "engine/history/store.h"

struct history_fixture {
	char dir[64];
	struct history_options options;
	struct history *h;
	unsigned ids;
};

static inline int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static inline void reopen(struct history_fixture *f)
{
	struct error err = { 0 };

	f->h = history_close(f->h);
	if (history_open(&f->options, &f->h, &err) < 0)
		fail_msg("%s", err.text);
}

static inline int fixture_setup(void **state)
{
	struct history_fixture *f = calloc(1, sizeof(*f));

	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/test-history-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	f->options = (struct history_options){ .dir = f->dir, .node = "here" };
	reopen(f);
	*state = f;
	return 0;
}

static inline int fixture_teardown(void **state)
{
	struct history_fixture *f = *state;

	(void)history_close(f->h);
	(void)nftw(f->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

static inline const char *make_id(char ret[HISTORY_ID], unsigned number)
{
	(void)snprintf(ret, HISTORY_ID, "ex_%026u", number);
	return ret;
}

#define SPAN(text) ((struct span){ (text), strlen(text) })
#define HASH_A	   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B	   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* The next execution of a caller; its id goes to id. */
static inline struct history_new new_of(struct history_fixture *f, const char *caller,
					char id[HISTORY_ID])
{
	return (struct history_new){
		.id = make_id(id, ++f->ids),
		.caller = caller,
		.language = "python",
		.request = SPAN("{\"code\":\"print(1)\"}"),
		.created_ns = clock_realtime_ns(),
	};
}

static inline struct history_end end_with(enum run_status status)
{
	return (struct history_end){
		.status = status,
		.ended_ns = clock_realtime_ns(),
		.duration_us = 2100,
		.cpu_us = 900,
		.memory_peak_bytes = 9 << 20,
		.result = SPAN("{\"status\":\"…\"}"),
	};
}

/* One that ended; returns its row. */
static inline int64_t put(struct history_fixture *f, const char *caller, enum run_status status)
{
	char id[HISTORY_ID];
	struct history_new in = new_of(f, caller, id);
	struct history_end end = end_with(status);
	int64_t row = 0;

	assert_int_equal(history_record(f->h, &in, &end, &row, NULL), 0);
	return row;
}

static inline void settle(struct history_fixture *f)
{
	while (history_tick(f->h))
		;
}

static inline size_t list(struct history_fixture *f, struct history_filter filter,
			  struct history_page *page)
{
	struct error err = { 0 };

	if (filter.limit == 0)
		filter.limit = HISTORY_PAGE_MAX;
	if (history_list(f->h, &filter, page, &err) < 0)
		fail_msg("%s", err.text);
	return page->n;
}

static inline size_t count(struct history_fixture *f, struct history_filter filter)
{
	_cleanup_history_page_ struct history_page page = { 0 };
	struct history_count c = { 0 };
	size_t n = list(f, filter, &page);

	assert_int_equal(history_count(f->h, &filter, &c, NULL), 0);
	assert_int_equal(c.n, n);
	assert_true(c.exact);
	return n;
}

/* One that ended, with these words in its parts. */
static inline void put_words(struct history_fixture *f, const char *code, const char *out,
			     const char *err_text)
{
	char id[HISTORY_ID];
	struct history_new in = new_of(f, "alice", id);
	struct history_end end = end_with(STATUS_SUCCESS);
	int64_t at = 0;

	end.code = SPAN(code);
	end.stdout_text = SPAN(out);
	end.stderr_text = SPAN(err_text);
	assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
}

#define OLD_CODE_INDEX                                                                             \
	"DROP INDEX execution_code; CREATE INDEX execution_code ON execution(code_key)"            \
	" WHERE state = 2 AND code_key IS NOT NULL;"

/*
 * Each makes of the open database, until it is opened again, one that an old Atoll wrote. Version 6 had words by epoch beside
 * FTS5's, and the results of deleted rows whose words were still indexed: here n = 9000.
 */
static inline void become_version_6(struct history_fixture *f)
{
	static const char undo[] =
		"CREATE TABLE epoch(start INTEGER PRIMARY KEY, id INTEGER NOT NULL);"
		"INSERT INTO epoch(start, id) VALUES(0, 1);"
		"CREATE TABLE posting(epoch INTEGER NOT NULL, word BLOB NOT NULL,"
		"  low INTEGER NOT NULL, ats BLOB NOT NULL,"
		"  PRIMARY KEY(epoch, word, low)) WITHOUT ROWID;"
		"INSERT INTO posting(epoch, word, low, ats) VALUES(1, CAST('odd' AS BLOB), 0, "
		"x'05');"
		"CREATE TABLE leftover(n INTEGER PRIMARY KEY, status TEXT NOT NULL);"
		"INSERT INTO leftover(n, status) VALUES(9000, 'success');"
		"INSERT INTO result(n, at, words, text) VALUES(9000, 5, 'odd one', '');"
		"INSERT INTO search(rowid, words) VALUES(-5, 'odd one');"
		"REPLACE INTO meta(name, value) VALUES('indexed', 9000), ('counted', 9000),"
		"  ('epoch', 1), ('epoch_start', 0), ('epoch_rows', 1), ('epoch_last', 5);"
		"DROP TABLE callback;"
		"DELETE FROM migration WHERE version > 6; PRAGMA user_version = 6";

	assert_int_equal(sqlite3_exec(f->h->db, undo, NULL, NULL, NULL), SQLITE_OK);
}

static inline void become_version_2(struct history_fixture *f)
{
	static const char undo[] = OLD_CODE_INDEX
		"DROP INDEX execution_success; DROP INDEX execution_failure;"
		"DROP INDEX execution_caller_language;"
		"CREATE INDEX execution_status ON execution(status) WHERE state = 2;"
		"INSERT INTO search(search) VALUES('delete-all');"
		"INSERT INTO search(rowid, words) SELECT at, words FROM result WHERE words IS NOT "
		"NULL;"
		"DROP TABLE callback;"
		"DELETE FROM migration WHERE version > 2; PRAGMA user_version = 2";

	assert_int_equal(sqlite3_exec(f->h->db, undo, NULL, NULL, NULL), SQLITE_OK);
}

static inline void become_version_1(struct history_fixture *f)
{
	static const char undo[] =
		"DROP TABLE interactive; DROP TABLE share;"
		"DELETE FROM migration WHERE version > 1; PRAGMA user_version = 1";

	become_version_2(f);
	assert_int_equal(sqlite3_exec(f->h->db, undo, NULL, NULL, NULL), SQLITE_OK);
}

static inline void become_version_3(struct history_fixture *f)
{
	static const char undo[] = OLD_CODE_INDEX
		"INSERT INTO search(search) VALUES('delete-all');"
		"INSERT INTO search(rowid, words) SELECT -at, words FROM result WHERE words IS NOT "
		"NULL;"
		"DROP TABLE callback;"
		"DELETE FROM migration WHERE version > 3; PRAGMA user_version = 3";

	assert_int_equal(sqlite3_exec(f->h->db, undo, NULL, NULL, NULL), SQLITE_OK);
}

static inline void become_version_4(struct history_fixture *f)
{
	static const char undo[] =
		"CREATE TABLE epoch(start INTEGER PRIMARY KEY, id INTEGER NOT NULL);"
		"DROP TABLE callback;"
		"DELETE FROM migration WHERE version > 4; PRAGMA user_version = 4";

	assert_int_equal(sqlite3_exec(f->h->db, undo, NULL, NULL, NULL), SQLITE_OK);
}

static inline void become_version_5(struct history_fixture *f)
{
	static const char undo[] =
		"CREATE TABLE epoch(start INTEGER PRIMARY KEY, id INTEGER NOT NULL);"
		"CREATE TABLE posting(epoch INTEGER NOT NULL, word BLOB NOT NULL,"
		"  ats BLOB NOT NULL, PRIMARY KEY(epoch, word)) WITHOUT ROWID;"
		"INSERT INTO posting(epoch, word, ats) VALUES(1, CAST('odd' AS BLOB), x'05');"
		"DROP TABLE callback;"
		"DELETE FROM migration WHERE version > 5; PRAGMA user_version = 5";

	assert_int_equal(sqlite3_exec(f->h->db, undo, NULL, NULL, NULL), SQLITE_OK);
}

/* A file as far as `cut`; flip: all of it, with the byte before that another one. */
static inline void copy_file(const char *from, const char *to, size_t cut, int flip)
{
	_cleanup_buf_ struct buf data = { .max = 64 << 20 };
	_cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(in >= 0 && out >= 0);
	assert_int_equal(buf_read_fd(&data, in), 0);
	cut = MIN(cut, data.len);
	if (flip && cut > 0)
		data.data[cut - 1] = (char)~data.data[cut - 1];
	assert_int_equal(fd_write_all(out, data.data, flip ? data.len : cut), 0);
}

/* What SQLite itself says of the file, which must not be open. */
static inline void assert_sound(const char *dir)
{
	char path[96];
	sqlite3 *db = NULL;
	sqlite3_stmt *s = NULL;

	(void)snprintf(path, sizeof(path), "%s/history.db", dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	(void)sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(s, 0), "ok");
	(void)sqlite3_finalize(s);
	(void)sqlite3_close(db);
}

static inline int64_t get_number(struct history_fixture *f, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int64_t n;

	assert_int_equal(sqlite3_prepare_v2(f->h->db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	n = sqlite3_column_int64(s, 0);
	(void)sqlite3_finalize(s);
	return n;
}

/* How many entries the index has: one for each word of each execution. */
static inline int64_t count_entries(struct history_fixture *f)
{
	assert_int_equal(sqlite3_exec(f->h->db,
				      "CREATE VIRTUAL TABLE IF NOT EXISTS temp.entries"
				      " USING fts5vocab(main, search, row)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	return get_number(f, "SELECT ifnull(sum(doc), 0) FROM temp.entries");
}

static inline bool is_indexed(struct history_fixture *f, int64_t at, struct span word)
{
	char match[64];
	sqlite3_stmt *s = NULL;
	bool found;

	(void)snprintf(match, sizeof(match), "\"%.*s\"", (int)word.len, word.data);
	assert_int_equal(
		sqlite3_prepare_v2(f->h->db,
				   "SELECT 1 FROM search WHERE search MATCH ?1 AND rowid = -?2", -1,
				   &s, NULL),
		SQLITE_OK);
	store_bind(s, VALUES(V_TEXT(match), V_NUMBER(at)));
	found = sqlite3_step(s) == SQLITE_ROW;
	(void)sqlite3_finalize(s);
	return found;
}

static inline int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	int r = strncasecmp(x->data, y->data, MIN(x->len, y->len));

	return r != 0 ? r : x->len < y->len ? -1 : x->len > y->len;
}

/* Whether each word of a text is there; how many different ones it has. */
static inline int64_t check_words(struct history_fixture *f, int64_t at, const char *words)
{
	static struct span list[40000];
	size_t n = 0;
	int64_t different = 0;

	for (const char *c = words; *c;) {
		size_t len = 0;

		while (isalnum((unsigned char)c[len]) || (unsigned char)c[len] >= 0x80)
			len++;
		if (len > 0)
			list[n++] = (struct span){ c, len };
		c += len + (c[len] != '\0');
	}
	if (n > 0)
		qsort(list, n, sizeof(*list), compare_spans);
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && compare_spans(&list[i - 1], &list[i]) == 0)
			continue;
		/* Some of many: each is a query. */
		if ((n < 100 || i % 61 == 0) && !is_indexed(f, at, list[i]))
			fail_msg("%.*s is not there", (int)list[i].len, list[i].data);
		different++;
	}
	return different;
}

/* FTS5 has the words that `result` has as far as it is indexed, and no others. */
static inline void assert_indexed(struct history_fixture *f)
{
	sqlite3_stmt *s = NULL;
	int64_t wanted = 0;

	assert_int_equal(sqlite3_prepare_v2(f->h->db,
					    "SELECT at, words FROM result WHERE n <= ?1"
					    " AND words IS NOT NULL",
					    -1, &s, NULL),
			 SQLITE_OK);
	(void)sqlite3_bind_int64(s, 1, f->h->marks.indexed);
	while (sqlite3_step(s) == SQLITE_ROW)
		wanted += check_words(f, sqlite3_column_int64(s, 0),
				      (const char *)sqlite3_column_text(s, 1));
	(void)sqlite3_finalize(s);
	assert_int_equal(count_entries(f), wanted);
}
