/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the history: the open store, its statements and transactions. Only this folder sees SQLite.
 *
 * Tables (db-schema.c):
 *
 *   execution   one narrow row an execution. Its key `at` is the time of acceptance in µs, made unique: pages,
 *               windows of time and retention are ranges of it and need no index of their own
 *   request     at ─▶ the request's text
 *   result      n ─▶ the result's text and what search reads; n counts in order of ending
 *   label, idempotency   ways to an `at`
 *   tally       sums for statistics     } both made from `result` later, by history_tick(): `counted` and
 *   search      full text index (FTS5)  } `indexed` say up to which n
 *   meta        those marks, and the totals that retention needs
 *   share       the same totals by caller
 *   interactive the `at` of those whose input comes while they run
 *   callback    the `at` of those whose result a callback_url has yet to get
 */
#pragma once

#include "base/buf.h"
#include "engine/history/history.h"

#include <sqlite3.h>

enum stmt {
#define STATEMENT(name, text) STMT_##name,
#include "engine/history/statements.h"
#undef STATEMENT
	_STMT_MAX
};

/* How far the later work has come, and the sums over the ended executions it covers. */
struct marks {
	int64_t counted, indexed; /* result.n */
	int64_t rows, bytes;
};

/* What lies in the file `arrivals`, oldest first; the first `listed` are in the database too. */
#define ARRIVALS "arrivals"
enum { ARRIVALS_MAX = 512 };
struct arrivals {
	int fd;
	struct buf file;  /* the same bytes */
	size_t n, listed; /* records */
	size_t listed_bytes;
	bool torn; /* behind these bytes lies something that is no record */
};

/* disk-reserve.c */
struct history_reserve {
	int fd;
	bool spent;    /* given up for those that must still write */
	int64_t bytes; /* the room that is set aside */
	int log_pages; /* from so many on, the log is written into the database */
};

/* output-files.c */
struct history_files {
	int outputs_fd, fd; /* of the directories outputs/ and files/ */
	unsigned sweep;	    /* next directory to look for orphans in; SWEEP_END: done */
	bool has_gone;	    /* there may be files of what was deleted */
	int64_t gone_at_ns; /* monotonic: when these are next removed */
	int64_t opened_ns; /* by the clock that files are dated with: what is not older is no orphan */
};

struct history {
	sqlite3 *db;
	sqlite3_stmt *stmts[_STMT_MAX];
	int dir_fd, lock_fd;
	struct history_reserve reserve;
	struct history_files files;
	char *database; /* path */
	struct history_options options;
	char node[65];
	bool group;	 /* between history_begin() and history_commit() */
	int group_error; /* why nothing in it will happen; 0: it may */
	/*
	 * The newest time of acceptance, and the first of the microseconds in front of it that are all taken: a row whose
	 * clock reads one of these gets the next one behind last_at (accept_time).
	 */
	int64_t last_at, burst_at;
	int64_t last_n;
	struct marks marks;
	struct arrivals arrivals;
	struct history_health health;
	bool recovery_waits; /* rows of a dead process still say `running`: there was no room for results */
	bool damaged;	     /* SQLite said that the file is not what it wrote: unsound_set() */
	bool repairing;	     /* there is a struct history_repair */
	bool words_damaged;  /* FTS5 said so of its index, which is then made again */
	int64_t prune_at_ns; /* monotonic: when old sums are next removed */
	bool unsettled;	     /* something was written since everything was last on the disk */
	int64_t written_ns;  /* monotonic: the last commit */
	int wal_pages;
};

/* The columns of a narrow row, in the order row_read() takes them. */
#define ROW_COLUMNS                                                                                \
	"execution.at, id, status, caller, language, policy, labels, code, exit_code, "            \
	"started_us, "                                                                             \
	"ended_us, duration_us, cpu_us, memory_peak, kept_bytes"
enum { ROW_N_COLUMNS = 15 };

/* store.c */
/* Opens the database file itself; store_disconnect() ends every statement. */
int store_connect(struct history *h, struct error *err) _must_check_;
void store_disconnect(struct history *h);
/*
 * A value of a statement. Empty and NULL are told apart by the pointer of a text. Texts must live until the step. A macro makes each kind;
 * VALUES() lists those of a statement, ?1 first.
 */
struct value {
	enum { VALUE_END, VALUE_NULL, VALUE_NUMBER, VALUE_TEXT, VALUE_BLOB } kind;
	int64_t number;
	struct span text;
};
#define V_NUMBER(n)	((struct value){ .kind = VALUE_NUMBER, .number = (n) })
#define V_MEASURE(n)	value_of_measure(n)				       /* negative: NULL */
#define V_TEXT(text)	value_of_text(text)				       /* NULL: NULL */
#define V_SPAN(span)	((struct value){ .kind = VALUE_TEXT, .text = (span) }) /* no data: "" */
#define V_BLOB(data, n) ((struct value){ .kind = VALUE_BLOB, .text = { (data), (n) } })
#define VALUES(...)	((const struct value[]){ __VA_ARGS__ __VA_OPT__(, ){ .kind = VALUE_END } })
static inline struct value value_of_measure(int64_t n)
{
	return n < 0 ? (struct value){ .kind = VALUE_NULL } : V_NUMBER(n);
}
static inline struct value value_of_text(const char *text)
{
	return text ? V_SPAN(span_of(text)) : (struct value){ .kind = VALUE_NULL };
}

void store_bind(sqlite3_stmt *s, const struct value *values);
/* A statement with its values, before its first step; NULL: it cannot be prepared, `*ret_r` says why. */
sqlite3_stmt *store_ask(struct history *h, int *ret_r, enum stmt which, const struct value *values);
/* 1: a row; 0: the end, and it is reset; else a negative errno, and it is reset. */
int store_step(struct history *h, sqlite3_stmt *s) _must_check_;
/* The first row of a statement: 1, and *ret stands on it; 0: there is none; or a negative errno. */
int store_get(struct history *h, sqlite3_stmt **ret, enum stmt which,
	      const struct value *values) _must_check_;
/* A statement from its values to its end. */
int store_do(struct history *h, enum stmt which, const struct value *values) _must_check_;
/* What stands on a row holds a lock on the database until then. */
static inline void store_release(sqlite3_stmt **s)
{
	(void)sqlite3_reset(*s);
}
#define _cleanup_stmt_ _cleanup_(store_release)
/* The errno for SQLite's answer; storage trouble is remembered. */
int store_error(struct history *h, int rc);
/* Words for a store's errno. */
int store_say(struct error *err, int r);
/* A change begins; ends in a commit, or undone when r is an error, which is returned. */
int store_begin(struct history *h) _must_check_;
int store_end(struct history *h, int r) _must_check_;
int store_save_marks(struct history *h, const struct marks *m) _must_check_;
int store_checkpoint(struct history *h);
/* A checkpoint that waits until everything is on the disk. */
int store_settle(struct history *h);
bool store_is_trouble(int r);

struct span column_span(sqlite3_stmt *s, int i); /* until the next step; NULL: data NULL */
/* 64 digits as 32 bytes; NULL: the value is NULL. */
enum { HASH_BYTES = 32 };
struct value value_of_hash(const char *hex, unsigned char bytes[HASH_BYTES]);
int64_t hash_key(const char *hex); /* the first half of a hash as a number to index by */

/* db-schema.c: brings the database to this version. */
int schema_migrate(struct history *h, struct error *err) _must_check_;
/* Reads the marks and the last numbers given. */
int schema_load(struct history *h) _must_check_;
extern const char *const statements[_STMT_MAX];

/* aside.c: damaged databases */
#define HISTORY_DATABASE "history.db"
#define HISTORY_LOG	 "history.db-wal"
/* Moves the database and its log away. */
int aside_put(struct history *h) _must_check_;
/* Counts those that were not repaired (health.aside), and gives the oldest; false: there is none. */
bool aside_oldest(struct history *h, char ret[ASIDE_NAME]);
/* It is not read again. */
int aside_repaired(struct history *h, const char *name) _must_check_;
/* What SQLite says of the database in use lasts until the next open has checked it. */
void unsound_set(struct history *h);
bool unsound_is_set(const struct history *h);
void unsound_clear(struct history *h);

/* disk-reserve.c: trouble and its end */
void disk_reserve_measure(struct history *h);
void disk_reserve_open(struct history *h);
bool disk_reserve_spend(struct history *h); /* true: there is more room now than at the last try */
void disk_reserve_probe(struct history *h);

/* rows.c */
bool id_is_valid(const char *id);
/* May it be asked for at all? */
int accept_check(const struct history_new *in) _must_check_;
/*
 * The time of acceptance in µs. Rows that come while the clock stands still are each one later than the row before. A
 * row that was created long before it is recorded keeps its time, and so does one after a clock that was set back.
 */
int64_t accept_time(const struct history *h, const struct history_new *in);
/* A row has this time now. */
void accept_took(struct history *h, int64_t at);
/*
 * *row: the time it would like, and then what it got. end NULL: it has yet to run. Otherwise the row is whole, and only
 * its result's text is missing.
 */
int accept_insert(struct history *h, const struct history_new *in, const struct history_end *end,
		  int64_t *row) _must_check_;
/* The row and the text. words: for search, collected before; NULL: they are taken from the texts of `end`. */
int record_insert(struct history *h, const struct history_new *in, const struct history_end *end,
		  const struct span *words, int64_t *row) _must_check_;
int finish_update(struct history *h, int64_t row, const struct history_end *end) _must_check_;

/* How much of a text search reads. */
enum { WORDS_CODE = 16 << 10, WORDS_STREAM = 8 << 10, WORDS_MESSAGE = 1 << 10 };

/* arrivals.c: ended executions on their way to the database */
int arrivals_open(struct history *h, struct error *err) _must_check_;
void arrivals_close(struct history *h);
/* true: it is on record, and in the database before the next reader, a group excepted. false: insert it. */
bool arrivals_take(struct history *h, const struct history_new *in, const struct history_end *end,
		   int64_t *ret_row) _must_check_;
size_t arrivals_waiting(const struct history *h);
/* Puts the oldest so many into the database, some at a time, each time for good; 1: there are more. */
int arrivals_list(struct history *h, size_t max) _must_check_;
/* What the database has need not lie in the file any more: it is on the disk, or about to be deleted. 0: it is empty. */
int arrivals_empty(struct history *h);
/* All of them, before a read; storage trouble is no reason not to read the rest. */
int arrivals_settle(struct history *h) _must_check_;
/* As history_durations(), of those still on their way, by code. */
int arrivals_durations(const struct history *h, const struct history_past *past,
		       int64_t ret_us[HISTORY_PAST_MAX]);

/* rows.c */
/* Only what ended by itself says how long the next run may take. */
bool went_to_its_end(const char *status);
int row_read(sqlite3_stmt *s, struct history_row *ret) _must_check_;

/* list.c: FTS5's query for a caller's text. */
enum { SEARCH_TEXT_MAX = 1024 };
int search_match(const char *text, struct buf *ret, struct error *err) _must_check_;
/* Whether all words of a text are among these. */
bool search_has(const char *text, struct span words);

/* recover.c */
int recover_running(struct history *h) _must_check_;
/* What a row without a result gets as one: `interrupted`, or what the row says, because of `detail`. */
struct result *recover_result(struct history *h, const struct history_row *row,
			      enum run_status status, const char *detail);
/* Gives a queued or running row that result. */
int recover_interrupt(struct history *h, const struct history_row *row,
		      const char *detail) _must_check_;

/* indexer.c: at most so many ended executions; 1: there are more, 0: all done */
int indexer_count(struct history *h, int max) _must_check_;
/* Fewer when they have many words. */
int indexer_index(struct history *h, int max) _must_check_;
enum run_status status_of(const char *name);

/* retain.c */
int retain_some(struct history *h) _must_check_; /* 1: there is more */
/* The disk is full. If the history fills more than half of it, retention deletes rows; otherwise nothing is deleted. */
int retain_full(struct history *h) _must_check_; /* 1: there is more */
int retain_tallies(struct history *h) _must_check_;
/* Adds to the rows and bytes of a caller; less than none: takes away. */
int caller_rows_add(struct history *h, const char *caller, int64_t rows,
		    int64_t bytes) _must_check_;

/* output-files.c */
enum { SWEEP_END = 36 * 36 };
int files_open(struct history *h, struct error *err) _must_check_;
void files_delete(struct history *h, const char *id);
/* Some of what is left of that; true: there is more, and it goes. */
bool files_empty_gone(struct history *h);
/* There is some of it, and nothing is known to be in the way. */
bool files_are_going(const struct history *h);
/* Appends all of it, or both ends of more than max bytes with a marker between; its size, or -1: there is none. */
int64_t files_ends(struct history *h, const char *id, enum history_stream stream, size_t max,
		   struct buf *ret);
bool files_sweep(struct history *h); /* true: there is more */
