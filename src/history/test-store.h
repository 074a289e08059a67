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
#include "history/search.h"

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

#define OLD_CODE_INDEX                                                                             \
	"DROP INDEX execution_code; CREATE INDEX execution_code ON execution(code_key)"            \
	" WHERE state = 2 AND code_key IS NOT NULL;"

/* Makes of the open database, until it is opened again, one that an old Atoll wrote. */
static inline void become_version_2(struct history_fixture *f)
{
	static const char undo[] = OLD_CODE_INDEX
		"DROP TABLE epoch; DROP TABLE posting; DROP TABLE leftover;"
		"DELETE FROM meta WHERE name LIKE 'epoch%';"
		"DROP INDEX execution_success; DROP INDEX execution_failure;"
		"DROP INDEX execution_caller_language;"
		"CREATE INDEX execution_status ON execution(status) WHERE state = 2;"
		"INSERT INTO search(search) VALUES('delete-all');"
		"INSERT INTO search(rowid, words) SELECT at, words FROM result WHERE words IS NOT "
		"NULL;"
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
		"DROP TABLE epoch; DROP TABLE posting; DROP TABLE leftover;"
		"DELETE FROM meta WHERE name LIKE 'epoch%';"
		"INSERT INTO search(search) VALUES('delete-all');"
		"INSERT INTO search(rowid, words) SELECT -at, words FROM result WHERE words IS NOT "
		"NULL;"
		"DELETE FROM migration WHERE version > 3; PRAGMA user_version = 3";

	assert_int_equal(sqlite3_exec(f->h->db, undo, NULL, NULL, NULL), SQLITE_OK);
}

/* Words had their epochs in them; that they are there is enough: what is wrong with them must not stay. */
static inline void become_version_4(struct history_fixture *f)
{
	static const char undo[] =
		"DROP TABLE posting; DROP TABLE leftover;"
		"DELETE FROM migration WHERE version > 4; PRAGMA user_version = 4";

	assert_int_equal(sqlite3_exec(f->h->db, undo, NULL, NULL, NULL), SQLITE_OK);
}

static inline void become_version_5(struct history_fixture *f)
{
	static const char undo[] =
		"DROP TABLE posting; DROP TABLE leftover;"
		"CREATE TABLE posting(epoch INTEGER NOT NULL, word BLOB NOT NULL,"
		"  ats BLOB NOT NULL, PRIMARY KEY(epoch, word)) WITHOUT ROWID;"
		"INSERT INTO posting(epoch, word, ats) VALUES(1, CAST('odd' AS BLOB), x'05');"
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

/* How many entries there are: each ends with a byte below 0x80. */
static inline size_t count_postings(struct history_fixture *f)
{
	sqlite3_stmt *s = NULL;
	size_t n = 0;

	assert_int_equal(sqlite3_prepare_v2(f->h->db, "SELECT ats FROM posting", -1, &s, NULL),
			 SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW) {
		const unsigned char *data = sqlite3_column_blob(s, 0);
		int len = sqlite3_column_bytes(s, 0);

		assert_in_range(len, 1, POSTING_PIECE * 10);
		for (int i = 0; i < len; i++)
			n += data[i] < 0x80;
	}
	(void)sqlite3_finalize(s);
	return n;
}

static inline bool is_posted(struct history_fixture *f, int64_t at, struct span word)
{
	_cleanup_ats_ struct ats ats = { 0 };
	struct epoch epoch = { 0 };
	size_t i;

	assert_int_equal(search_epoch(f->h, at, &epoch), 1);
	assert_int_equal(posting_read(f->h, &(struct stretch){ epoch.id, at, at + 1 }, word, &ats),
			 0);
	i = ats_until(&ats, at);
	return i > 0 && ats.list[i - 1] == at;
}

static inline int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	int r = strncasecmp(x->data, y->data, MIN(x->len, y->len));

	return r != 0 ? r : x->len < y->len ? -1 : x->len > y->len;
}

/* Whether each word of one is there; how many different ones it has. */
static inline size_t check_words(struct history_fixture *f, int64_t at, char *words,
				 const char *status)
{
	static struct span list[40000];
	char mark[64];
	size_t n = 0, different = 0;

	for (char *c = words; *c;) {
		size_t len = 0;

		while (isalnum((unsigned char)c[len]) || (unsigned char)c[len] >= 0x80)
			len++;
		if (len > 0 && len <= SEARCH_TEXT_MAX)
			list[n++] = (struct span){ c, len };
		c += len + (c[len] != '\0');
	}
	(void)snprintf(mark, sizeof(mark), "\xee\x80\x80%s", status);
	if (strcmp(status, "success") != 0)
		list[n++] = SPAN(mark);
	if (n > 0)
		qsort(list, n, sizeof(*list), compare_spans);
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && compare_spans(&list[i - 1], &list[i]) == 0)
			continue;
		if (!is_posted(f, at, list[i]))
			fail_msg("%.*s is not there", (int)list[i].len, list[i].data);
		different++;
	}
	return different;
}

/* `posting` says what `result` says as far as it is indexed, and nothing else. */
static inline void assert_postings(struct history_fixture *f)
{
	sqlite3_stmt *s = NULL;
	size_t wanted = 0;

	assert_int_equal(
		sqlite3_prepare_v2(f->h->db,
				   "SELECT result.at, words, status FROM result JOIN execution"
				   " USING(n) WHERE n <= ?1 AND words IS NOT NULL",
				   -1, &s, NULL),
		SQLITE_OK);
	(void)sqlite3_bind_int64(s, 1, f->h->marks.indexed);
	while (sqlite3_step(s) == SQLITE_ROW) {
		_cleanup_free_ char *words = strdup((const char *)sqlite3_column_text(s, 1));

		wanted += check_words(f, sqlite3_column_int64(s, 0), words,
				      (const char *)sqlite3_column_text(s, 2));
	}
	(void)sqlite3_finalize(s);
	assert_int_equal(get_number(f, "SELECT count(*) FROM leftover"), 0);
	assert_int_equal(count_postings(f), wanted);
}
