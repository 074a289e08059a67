/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history: every execution that was accepted, what became of it, and whole outputs as files. One SQLite
 * database in WAL mode in a directory of its own; one process has it open, one thread calls it, and no call
 * waits for anything but the disk.
 *
 *   history_accept ─▶ queued ── history_start ─▶ running ── history_finish ─▶ ended
 *   history_accept (running) ──────────────────▶ running                 history_open: running ─▶ interrupted
 *   history_record ───────────────────────────────────────────────────────▶ ended
 *
 * A call that returned 0 survives kill -9 of every process (`full`: power loss too); between history_begin()
 * and history_commit() that is true of all calls at once after the commit. A row gets exactly one result:
 * finishing it again is -EALREADY.
 *
 * Callers are kept apart here: a query that names a caller sees that caller's rows only and answers -ENOENT
 * for others'; NULL is the operator, who sees all rows.
 *
 * Storage trouble: any call may return -ENOSPC or -EIO (error code ERROR_STORAGE). The store is `degraded` from
 * then on: history_accept and history_record refuse at once, the rest keeps trying, with space that was set
 * aside for it. history_tick() finds out when the trouble is over; nothing has to be reopened.
 */
#pragma once

#include "base/error.h"
#include "engine/history/aside-name.h"
#include "spec/request.h"
#include "spec/result.h"

#include <jansson.h>
#include <stdbool.h>

enum {
	HISTORY_ID = 30,	  /* "ex_", 26 characters, NUL */
	HISTORY_ID_BEGINNING = 7, /* so many of them say which one it is */
	HISTORY_PAGE_MAX = 1000,
	HISTORY_PAST_MAX = 50, /* durations an adaptive timeout looks at */
	HISTORY_CURSOR = 24,
	HISTORY_BODY_MAX = 64 << 20, /* bytes of one request or result */
	HISTORY_NAME_MAX = 260, /* bytes of a caller, a language, a policy, an idempotency key */
};

struct history;

struct history_options {
	const char *dir;  /* made with mode 0700 when absent */
	const char *node; /* for the results of interrupted executions; NULL: none */
	bool full;	  /* durability: a commit waits for the disk */
	int64_t retain_s; /* 0 in these three: no bound */
	int64_t retain_rows;
	int64_t retain_bytes; /* of requests, results, outputs and files together */
	int64_t keep_keys_s;  /* how long an Idempotency-Key is known; 0: as long as its row */
};

/* -EBUSY: another process has this directory. What a dead process left running is `interrupted` afterwards. */
int history_open(const struct history_options *options, struct history **ret,
		 struct error *err) _must_check_;
struct history *history_close(struct history *h);
static inline void history_cleanup(struct history **h)
{
	(void)history_close(*h);
}

struct history_health {
	int degraded;	     /* 0, or the negative errno of the trouble */
	bool clean;	     /* the last process closed it */
	int64_t interrupted; /* rows that open found running */
	int64_t rows, bytes; /* of ended executions */
	int64_t backlog;     /* ended executions that search does not know yet */
	bool replaced; /* open found a damaged database and began a new one; the old lies beside it … */
	char aside_name[ASIDE_NAME]; /* … under this name */
	int64_t aside; /* damaged databases that lie there, of this open or earlier ones, and were not repaired yet */
	bool unsound; /* the database in use is damaged: the next open puts it aside */
};
struct history_health history_health(const struct history *h);

/*
 * 0, or the trouble (ERROR_STORAGE, field history): which disk is full, and how many bytes must be free there. Without name_dir the words
 * are for callers that must not learn paths of this host.
 */
int history_trouble(const struct history *h, bool name_dir, struct error *err);

/*
 * Work that can wait, a few milliseconds at most: search index, statistics, retention, checkpoints, orphaned
 * files, the end of trouble. To be called about once a second, under load every 50 ms or so: then its steps stay
 * short, and no commit has to make a checkpoint. true: there is more to do, call again soon.
 */
bool history_tick(struct history *h);

/*
 * Accept, start, finish and record in between are one transaction. Storage trouble in one of them undoes all, and
 * commit says so (finish them one by one then: only that may use the space set aside); -EALREADY, -ENOENT and
 * -EEXIST concern that one call only. Reading is allowed, and misses what history_record() was given shortly before the
 * group; the rest is not.
 */
int history_begin(struct history *h, struct error *err) _must_check_;
int history_commit(struct history *h, struct error *err) _must_check_;

/* --- Writing: rows.c -------------------------------------------------------------------------------------------- */

struct history_new {
	const char *id;		       /* HISTORY_ID - 1 characters: [0-9a-z] after "ex_" */
	const char *caller;	       /* never NULL; "" is a caller too */
	const char *language, *policy; /* or NULL */
	const json_t *labels;	       /* object of strings, or NULL */
	struct span request;	       /* JSON text; "": it lies in its file, HISTORY_REQUEST */
	int64_t kept_bytes;	       /* of that file */
	const char *code_sha256;       /* hex, or NULL */
	const char *key;	       /* Idempotency-Key, or NULL … */
	const char *key_sha256;	       /* … and the hex hash of the body it came with */
	int64_t created_ns;	       /* realtime */
	bool running;		       /* begins at once: no history_start() */
	int64_t started_ns;	       /* realtime; 0: it has not begun (yet) */
	bool interactive;	       /* its input comes while it runs */
	bool callback; /* its result goes to a callback_url: history_callbacks() has it until that is done */
};

struct history_end {
	enum run_status status;
	int exit_code;
	int64_t ended_ns;				/* realtime */
	int64_t duration_us, cpu_us, memory_peak_bytes; /* -1: not measured */
	int64_t kept_bytes;				/* in output files and collected files */
	const char *language, *policy;			/* as decided, or NULL: as accepted */
	struct span result; /* doc/result.md's JSON text; "": it lies in its file, HISTORY_RESULT */
	/* What search reads: some KiB from the beginning of each; data NULL: none. */
	struct span code, stdout_text, stderr_text, error_message;
};

/* *ret_row names the row in the calls below. -EEXIST: the id, or the caller's key, is taken. */
int history_accept(struct history *h, const struct history_new *in, int64_t *ret_row,
		   struct error *err) _must_check_;
/* 1: this caller used the key for this body, *ret_id is its execution; 0: not of late; -EEXIST: for another body. */
int history_find_key(struct history *h, const char *caller, const char *key, const char *key_sha256,
		     char ret_id[HISTORY_ID]) _must_check_;
/* -EALREADY: it is not queued (any more). */
int history_start(struct history *h, int64_t row, int64_t started_ns,
		  struct error *err) _must_check_;
/* From queued or running. -EALREADY: it has ended; -ENOENT: it is gone. */
int history_finish(struct history *h, int64_t row, const struct history_end *end,
		   struct error *err) _must_check_;
/*
 * Accept and finish in one step, for what ended while its caller waited, or before it was worth a row of its own. Ids are
 * not looked up: of two with the same, one stays.
 */
int history_record(struct history *h, const struct history_new *in, const struct history_end *end,
		   int64_t *ret_row, struct error *err) _must_check_;

/* Ended rows only: -EBUSY for others. Its files go too. */
int history_delete(struct history *h, const char *caller, const char *id,
		   struct error *err) _must_check_;
/* Deletes some of the caller's ended rows (NULL: every caller's); returns how many, 0 when none is left. */
int history_delete_some(struct history *h, const char *caller, struct error *err) _must_check_;

/* --- Reading: rows.c, list.c ------------------------------------------------------------------------------------ */

struct history_row {
	int64_t row;
	char id[HISTORY_ID];
	char status[16];			  /* "queued", "running", or the result's status */
	char *caller;				  /* never NULL */
	char *language, *policy;		  /* or NULL */
	char *labels;				  /* JSON text of an object, or NULL */
	char code_sha256[65];			  /* "": none */
	int exit_code;				  /* -1 until it ended */
	int64_t created_ns, started_ns, ended_ns; /* 0: not yet */
	int64_t duration_us, cpu_us, memory_peak_bytes; /* -1: not measured */
	int64_t kept_bytes;
	/* By history_get() only; result NULL until it ended. "": in HISTORY_REQUEST, HISTORY_RESULT. */
	char *request, *result;
};
void history_row_done(struct history_row *row);
#define _cleanup_history_row_ _cleanup_(history_row_done)

/* One row whole; request gives the replay. */
int history_get(struct history *h, const char *caller, const char *id,
		struct history_row *ret) _must_check_;

struct history_label {
	const char *name, *value; /* both or none */
};

struct history_filter {
	const char *caller; /* NULL: every caller's */
	const char *
		id; /* the beginning of an id, of HISTORY_ID_BEGINNING characters or more; NULL: any */
	const char *status;   /* "queued", "running", or a result's status; NULL: any */
	const char *language; /* as decided; NULL: any */
	const char *label_name, *label_value; /* both or none */
	/* Beside those: any of these statuses will do as well; all of these labels are needed. End with NULL; or NULL. */
	const char *const *more_statuses;
	const struct history_label *more_labels;
	/*
	 * Words, all of which occur in code, stdout, stderr or error message, in any order. Whole words; ASCII case
	 * does not matter, and what is no letter or digit separates. NULL: no matter. Under load it may take
	 * history_tick() a while to reach the newest (health.backlog says how many).
	 */
	const char *text;
	int64_t since_ns, until_ns; /* created in [since, until); 0: open */
	const char *cursor;	    /* `next` of the page before; NULL: the newest */
	size_t limit;		    /* 1 … HISTORY_PAGE_MAX */
};

struct history_page {
	struct history_row *rows; /* newest first */
	size_t n;
	char next
		[HISTORY_CURSOR]; /* "": nothing follows. A page may be short, even empty, and go on: */
				  /* how much is looked at in one call is bounded. */
};
void history_page_done(struct history_page *page);
#define _cleanup_history_page_ _cleanup_(history_page_done)

/* -EINVAL (ERROR_INPUT, with the field): cursor, status, limit or text make no sense. */
int history_list(struct history *h, const struct history_filter *filter, struct history_page *ret,
		 struct error *err) _must_check_;
/* How many the filter finds (cursor and limit do not count), looking at a bounded number of rows. */
struct history_count {
	int64_t n;
	bool exact; /* false: at least n */
};
int history_count(struct history *h, const struct history_filter *filter, struct history_count *ret,
		  struct error *err) _must_check_;
/* Rows still queued with row > after, oldest first; for the engine after a restart. */
int history_queued(struct history *h, int64_t after, size_t limit,
		   struct history_page *ret) _must_check_;

/* Ended rows with row > after whose callback is due, oldest first; for the engine, too. */
int history_callbacks(struct history *h, int64_t after, size_t limit,
		      struct history_page *ret) _must_check_;
/* It was taken, or is given up. */
int history_callback_done(struct history *h, int64_t row) _must_check_;

/* Whether one was accepted as interactive; for the engine, too. */
bool history_is_interactive(struct history *h, int64_t row);

/* Durations of past runs that went to their end (success, error) of one code or one label, newest first. */
struct history_past {
	const char *caller;	 /* NULL: every caller's */
	const char *code_sha256; /* or … */
	const char *label_name, *label_value;
};
/* How many, or a negative errno. */
int history_durations(struct history *h, const struct history_past *past,
		      int64_t ret_us[HISTORY_PAST_MAX]) _must_check_;

/* --- Statistics: stats.c ------------------------------------------------------------------------------------ */

/*
 * {"since", "until", "total", "by_status": {}, "success_rate", "failure_rate", "timeout_rate",
 *  "latency": {"mean", "p50", "p90", "p99", "max"}, "by_language": {NAME: {the same}}, "by_label": {"name=value": …}}
 * over executions that ended in the window, which is widened to whole minutes (whole hours when it begins more
 * than six hours ago). Seconds; percentiles are within 5 %. Rates and latencies of nothing are null.
 */
struct history_window {
	const char *caller;	    /* NULL: every caller's */
	int64_t since_ns, until_ns; /* 0: open */
	/* Only of one language, or with one label ("name=value"): sums are kept of each, not of both together. */
	const char *language, *label;
	/*
	 * Called after each millisecond or two of work, or NULL. Meanwhile other functions of this header may be called. False:
	 * no reader is left, and what is there so far is the answer.
	 */
	bool (*pause)(void *data);
	void *pause_data;
};
int history_stats(struct history *h, const struct history_window *window, json_t **ret,
		  struct error *err) _must_check_;

/* --- Files: output-files.c ----------------------------------------------------------------------------------------- */

/*
 * A whole stream, outputs/<2>/<id>.stdout. Only needed where the result does not hold every byte (truncated or
 * binary): a file costs more than a row. Accept first: a file without a row is an orphan and swept.
 */
enum history_stream {
	HISTORY_STDOUT,
	HISTORY_STDERR,
	/* Texts too large for a row, which has "" then. Their owner writes them before the row that stands for them. */
	HISTORY_REQUEST,
	HISTORY_RESULT,
	HISTORY_EVENTS, /* which event has which number: engine/stream/event-log.h */
	HISTORY_VALUE,	/* the JSON text of a value that is too large for the result */
};
/* A new descriptor, O_RDWR, of an empty file. Several processes' worth of bytes: the caller bounds them. */
int history_output_create(struct history *h, const char *id,
			  enum history_stream stream) _must_check_;
/* The same without a name: nothing of it outlives this process, however that ends. */
int history_output_nameless(struct history *h, const char *id,
			    enum history_stream stream) _must_check_;
/* O_RDONLY; -ENOENT: none was kept. history_get() says first who may read. */
int history_output_open(struct history *h, const char *id, enum history_stream stream) _must_check_;
int history_output_delete(struct history *h, const char *id, enum history_stream stream);
/* The directory files/<2>/<id> for files that a program left. */
int history_files_create(struct history *h, const char *id) _must_check_;
int history_files_open(struct history *h, const char *id) _must_check_; /* -ENOENT: none */

/* --- Repairing: repair.c ------------------------------------------------------------------------------------- */

/*
 * Takes over what SQLite can still read of the damaged databases that were put aside, row by row, also in front of and behind
 * damaged places. A row whose id is known stays as it is, so nothing is taken twice. What waited or ran is interrupted. No file
 * is changed or deleted; beside each that was read to its end, a mark says so, and it is not read again.
 */
struct history_repair;
/* -EBUSY (ERROR_CONFLICT): there is one already. */
int history_repair_new(struct history *h, struct history_repair **ret,
		       struct error *err) _must_check_;
/* Some milliseconds of work. 1: there is more to do; 0: it is done. After an error it can only be freed; a new one goes on. */
int history_repair_step(struct history_repair *r, struct error *err) _must_check_;
/* {"files": [{"file", "taken", "known", "incomplete", "readable", "whole"}], "taken"}; NULL: no memory */
json_t *history_repair_report(const struct history_repair *r);
struct history_repair *
history_repair_free(struct history_repair *r); /* NULL is fine; returns NULL */

/* --- Comparing: diff.c, pure -------------------------------------------------------------------------------- */

struct history_side {
	const json_t *request; /* objects, or NULL */
	const json_t *result;  /* NULL: has not ended */
};
/*
 * {"same", "a": ID, "b": ID, "status": {"a", "b"} …}: what differs between two executions: status, exit code,
 * streams as line diffs, usage with its delta, and the keys of the requests. Bounded; NULL: no memory.
 */
json_t *history_diff(const struct history_side *a, const struct history_side *b);
