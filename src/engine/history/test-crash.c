/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/history/test-store.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

/* What a child that was killed had been promised: a byte a call that returned. */
struct promise {
	unsigned number;
	bool ended;
};

/* Writes executions for ever and says after each call that it is done. */
_noreturn_ static void write_for_ever(const char *dir, unsigned first, int tell)
{
	struct history_options options = { .dir = dir };
	struct history *h = NULL;

	if (history_open(&options, &h, NULL) < 0)
		_exit(1);
	for (unsigned n = first;; n++) {
		struct promise done = { n, false };
		char id[HISTORY_ID];
		struct history_new in = {
			.id = make_id(id, n),
			.caller = "alice",
			.request = SPAN("{\"code\":\"1\"}"),
			.created_ns = clock_realtime_ns(),
			.running = true,
		};
		struct history_end end = end_with(STATUS_SUCCESS);
		int64_t at = 0;

		end.code = SPAN("some words of code");
		if (n % 4 == 0) {
			done.ended = true;
			if (history_record(h, &in, &end, &at, NULL) < 0 ||
			    write(tell, &done, sizeof(done)) < 0)
				_exit(1);
			continue;
		}
		if (history_accept(h, &in, &at, NULL) < 0 || write(tell, &done, sizeof(done)) < 0)
			_exit(1);
		done.ended = true;
		if (n % 3 != 0 &&
		    (history_finish(h, at, &end, NULL) < 0 || write(tell, &done, sizeof(done)) < 0))
			_exit(1);
		if (n % 40 == 1)
			(void)history_tick(h);
	}
}

/* Lets a child write for a while, kills it, and gives what it promised in seen[1 … n). */
static unsigned kill_one(const char *dir, unsigned first, char *seen, unsigned max)
{
	int tell[2];
	struct promise done;
	unsigned last = first;
	pid_t pid;

	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		write_for_ever(dir, first, tell[1]);
	(void)close(tell[1]);
	/* At the earliest when it has begun to write; then at any moment. */
	assert_int_equal(read(tell[0], &done, sizeof(done)), sizeof(done));
	seen[done.number] = 1;
	(void)usleep((useconds_t)(clock_now_ns() % 20000));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	while (read(tell[0], &done, sizeof(done)) == sizeof(done)) {
		assert_true(done.number < max);
		seen[done.number] = done.ended ? 2 : 1;
		last = done.number;
	}
	(void)close(tell[0]);
	return last + 2; /* one more may be there without having been promised */
}

static void test_kill(void **state)
{
	enum { MAX = 100000 };
	struct history_fixture *f = *state;
	char *seen = calloc(MAX, 1), id[HISTORY_ID];
	unsigned next = 1;

	f->h = history_close(f->h);
	for (int round = 0; round < 12; round++) {
		unsigned first = next;

		next = kill_one(f->dir, first, seen, MAX);
		reopen(f);
		assert_false(history_health(f->h).clean);
		assert_false(history_health(f->h).replaced);
		for (unsigned n = 1; n < next; n++) {
			_cleanup_history_row_ struct history_row row = { 0 };
			int r = history_get(f->h, "alice", make_id(id, n), &row);

			if (seen[n] == 0)
				continue;
			assert_int_equal(r, 0);
			assert_non_null(row.result);
			if (seen[n] == 2)
				assert_string_equal(row.status, "success");
		}
		if (round % 4 == 0)
			assert_indexed(f);
		f->h = history_close(f->h);
		assert_sound(f->dir);
	}
	/* Sums and index were in step with the rows at every one of those moments. */
	reopen(f);
	settle(f);
	assert_indexed(f);
	struct history_count all = { 0 }, found = { 0 };
	json_t *stats = NULL;

	assert_int_equal(history_count(f->h, &(struct history_filter){ 0 }, &all, NULL), 0);
	assert_int_equal(
		history_count(f->h, &(struct history_filter){ .caller = "alice" }, &found, NULL),
		0);
	if (found.exact)
		assert_int_equal(all.n, found.n);
	assert_int_equal(history_stats(f->h, &(struct history_window){ 0 }, &stats, NULL), 0);
	assert_int_equal(json_integer_value(json_object_get(stats, "total")), all.n);
	json_decref(stats);
	free(seen);
}

/* A power cut: the log's end is missing, or is not what was written. */
static void test_torn_log(void **state)
{
	enum { ROWS = 60 };
	struct history_fixture *f = *state;
	char from[96], to[96], copy[80];
	struct stat st;

	for (int i = 0; i < ROWS; i++) {
		char id[HISTORY_ID];
		struct history_new in = new_of(f, "alice", id);
		struct history_end end = end_with(STATUS_SUCCESS);
		int64_t at = 0;

		assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
		assert_int_equal(history_finish(f->h, at, &end, NULL), 0);
	}
	(void)snprintf(from, sizeof(from), "%s/history.db-wal", f->dir);
	assert_int_equal(stat(from, &st), 0);
	(void)snprintf(copy, sizeof(copy), "%s/copy", f->dir);
	for (int round = 0; round < 40; round++) {
		struct history_fixture other = { .options = { .dir = copy } };
		size_t cut = (size_t)(clock_now_ns() / 7 % st.st_size);
		char id[HISTORY_ID];
		bool missing = false;

		(void)nftw(copy, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
		assert_int_equal(mkdir(copy, 0700), 0);
		(void)snprintf(from, sizeof(from), "%s/history.db", f->dir);
		(void)snprintf(to, sizeof(to), "%s/history.db", copy);
		copy_file(from, to, SIZE_MAX, 0);
		(void)snprintf(from, sizeof(from), "%s/history.db-wal", f->dir);
		(void)snprintf(to, sizeof(to), "%s/history.db-wal", copy);
		copy_file(from, to, cut, round % 2);
		reopen(&other);
		assert_false(history_health(other.h).replaced);
		/* Whole executions only, and none after the first that is missing. */
		for (unsigned n = 1; n <= ROWS; n++) {
			_cleanup_history_row_ struct history_row row = { 0 };
			int r = history_get(other.h, NULL, make_id(id, n), &row);

			missing |= r == -ENOENT;
			assert_int_equal(r, missing ? -ENOENT : 0);
		}
		(void)history_close(other.h);
		assert_sound(copy);
	}
}

static void test_damaged(void **state)
{
	struct history_fixture *f = *state;
	char path[96], garbage[8192];
	int fd;

	(void)put(f, "alice", STATUS_SUCCESS);
	f->h = history_close(f->h);
	(void)snprintf(path, sizeof(path), "%s/history.db", f->dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	(void)memset(garbage, 'x', sizeof(garbage));
	assert_int_equal(pwrite(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	(void)close(fd);
	reopen(f);
	assert_true(history_health(f->h).replaced);
	assert_int_equal(history_health(f->h).degraded, 0);
	(void)put(f, "alice", STATUS_SUCCESS);
	reopen(f);
	assert_false(history_health(f->h).replaced);
}

static void test_newer_schema(void **state)
{
	struct history_fixture *f = *state;
	struct error err = { 0 };

	assert_int_equal(sqlite3_exec(f->h->db, "PRAGMA user_version = 99", NULL, NULL, NULL),
			 SQLITE_OK);
	f->h = history_close(f->h);
	assert_int_equal(history_open(&f->options, &f->h, &err), -EPROTO);
	assert_non_null(strstr(err.text, "newer version"));
	assert_null(f->h);
}

static void test_two_openers(void **state)
{
	struct history_fixture *f = *state;
	struct history *second = NULL;
	struct error err = { 0 };
	int status = 0;
	pid_t pid;

	assert_int_equal(history_open(&f->options, &second, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another daemon"));
	pid = fork();
	if (pid == 0)
		_exit(history_open(&f->options, &second, NULL) == -EBUSY ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)put(f, "alice", STATUS_SUCCESS); /* the first is none the worse for it */
}

static void test_orphans(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID], other[HISTORY_ID], coming[HISTORY_ID];

	(void)put(f, "alice", STATUS_SUCCESS);
	make_id(id, f->ids);
	(void)snprintf(other, sizeof(other), "ex_zz%024d", 1);
	(void)snprintf(coming, sizeof(coming), "ex_zz%024d", 2);
	(void)close(history_output_create(f->h, id, HISTORY_STDOUT));
	(void)close(history_output_create(f->h, other, HISTORY_STDOUT));
	(void)close(history_files_create(f->h, id));
	(void)close(history_files_create(f->h, other));
	/* A stop that is not clean: the log stays. */
	store_disconnect(f->h);
	{
		char path[96];
		_cleanup_close_ int fd = -EBADF;

		(void)snprintf(path, sizeof(path), "%s/history.db-wal", f->dir);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_int_equal(fd_write_all(fd, "not a log", 9), 0);
	}
	/* Files are dated with a clock that stands still for some milliseconds. */
	(void)usleep(30000);
	reopen(f);
	/* A file that was made just now: its row follows. */
	(void)close(history_output_create(f->h, coming, HISTORY_REQUEST));
	settle(f);
	assert_int_equal(history_output_open(f->h, other, HISTORY_STDOUT), -ENOENT);
	assert_int_equal(history_files_open(f->h, other), -ENOENT);
	assert_int_equal(close(history_output_open(f->h, coming, HISTORY_REQUEST)), 0);
	_cleanup_close_ int kept = history_output_open(f->h, id, HISTORY_STDOUT);
	_cleanup_close_ int files = history_files_open(f->h, id);

	assert_true(kept >= 0 && files >= 0);
}

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "line %d: %s\n", __LINE__, #condition);              \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static char block[65536];

/* In a mount namespace of its own, on a small file system. */
static void open_small(struct history_fixture *f, const char *size)
{
	MUST(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	MUST(mount("tmpfs", f->dir, "tmpfs", 0, size) == 0);
	MUST(history_open(&f->options, &f->h, NULL) == 0);
}

static int fill_disk(const struct history_fixture *f)
{
	char path[96];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/filler", f->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, block, sizeof(block)) > 0)
		;
	return fd;
}

_noreturn_ static void live_on_full_disk(struct history_fixture *f)
{
	char id[HISTORY_ID];
	int64_t running = 0, at = 0;
	struct history_end end = end_with(STATUS_SUCCESS);
	struct error err = { 0 };
	int fd, r, n = 0;

	open_small(f, "size=16m");
	struct history_new in = new_of(f, "alice", id);

	in.running = true;
	MUST(history_accept(f->h, &in, &running, NULL) == 0);
	fd = fill_disk(f);
	/* New work until the log cannot grow; from then on a refusal at once. */
	do {
		in = new_of(f, "alice", id);
		r = history_accept(f->h, &in, &at, &err);
	} while (r == 0 && ++n < 10000);
	MUST(r == -ENOSPC && err.code == ERROR_STORAGE && n < 10000);
	MUST(history_health(f->h).degraded == -ENOSPC);
	/* What runs can end, also when its result is not small. */
	end.result = (struct span){ block, sizeof(block) };
	(void)memset(block, 'r', sizeof(block));
	MUST(history_finish(f->h, running, &end, &err) == 0);
	MUST(!history_tick(f->h) && history_health(f->h).degraded == -ENOSPC);
	MUST(history_accept(f->h, &in, &at, NULL) == -ENOSPC);
	/* Space is back: no restart. */
	MUST(ftruncate(fd, 0) == 0);
	(void)history_tick(f->h);
	MUST(history_health(f->h).degraded == 0);
	in = new_of(f, "alice", id);
	MUST(history_accept(f->h, &in, &at, NULL) == 0);
	/* A start on a full disk works, says so, and makes good what the dead process owed. */
	MUST(history_start(f->h, at, 1, NULL) == 0);
	f->h = history_close(f->h);
	while (write(fd, block, sizeof(block)) > 0 || write(fd, block, 1) > 0)
		;
	MUST(history_open(&f->options, &f->h, NULL) == 0);
	_cleanup_history_row_ struct history_row row = { 0 };

	MUST(history_get(f->h, NULL, id, &row) == 0 && strcmp(row.status, "interrupted") == 0);
	MUST(history_health(f->h).degraded == -ENOSPC);
	MUST(ftruncate(fd, 0) == 0);
	(void)history_tick(f->h);
	MUST(history_health(f->h).degraded == 0);
	f->h = history_close(f->h);
	_exit(0);
}

/* Every word is another execution's. */
static struct span make_words(char *to, size_t size, unsigned which)
{
	struct span words = { to, 0 };

	for (unsigned i = 0; words.len + 16 < size; i++)
		words.len += (size_t)snprintf(to + words.len, size - words.len, "%08x ",
					      (which * 10000 + i) * 2654435761u);
	return words;
}

static void record_large(struct history_fixture *f, int n)
{
	struct history_end end = end_with(STATUS_SUCCESS);
	static char words[500 * 9];

	(void)memset(block, 'r', 2500);
	end.result = (struct span){ block, 2500 };
	for (int i = 0; i < n; i++) {
		end.code = make_words(words, sizeof(words), f->ids);
		char id[HISTORY_ID];
		struct history_new in = new_of(f, "alice", id);
		int64_t at = 0;

		MUST(history_record(f->h, &in, &end, &at, NULL) == 0);
	}
}

/* Deleting makes room, so it must be possible without any, also when many are on their way to the database. */
_noreturn_ static void delete_on_full_disk(struct history_fixture *f)
{
	struct history_count all = { 0 };
	char id[HISTORY_ID];
	int fd;

	open_small(f, "size=32m");
	/* A database with room in it … */
	record_large(f, 500);
	while (history_delete_some(f->h, NULL, NULL) > 0)
		;
	f->h = history_close(f->h);
	MUST(history_open(&f->options, &f->h, NULL) == 0);
	/* … and a log that some of them fit into, but not all. */
	record_large(f, 128);
	MUST(arrivals_list(f->h, 128) == 0);
	record_large(f, 250);
	MUST(arrivals_waiting(f->h) == 250);
	MUST(disk_reserve_spend(f->h));
	fd = fill_disk(f);
	MUST(history_delete(f->h, NULL, make_id(id, f->ids), NULL) == 0);
	MUST(history_health(f->h).degraded == -ENOSPC);
	MUST(ftruncate(fd, 0) == 0);
	(void)history_tick(f->h);
	MUST(history_health(f->h).degraded == 0);
	MUST(history_count(f->h, &(struct history_filter){ 0 }, &all, NULL) == 0);
	MUST(all.exact && all.n == 377);
	f->h = history_close(f->h);
	_exit(0);
}

static int count_one(struct history_fixture *f, const char *word)
{
	_cleanup_history_page_ struct history_page page = { 0 };

	MUST(history_list(f->h, &(struct history_filter){ .text = word, .limit = 5 }, &page,
			  NULL) == 0);
	return (int)page.n;
}

/* Executions with many indexed words, on a disk without a free byte: some go, and their words with them. */
_noreturn_ static void delete_words_on_full_disk(struct history_fixture *f)
{
	enum { ROWS = 80 };
	static char words[WORDS_CODE + 2 * WORDS_STREAM];
	char id[HISTORY_ID], word[16];
	struct history_end end = end_with(STATUS_TIMEOUT);
	int64_t at = 0;
	int fd, r;

	open_small(f, "size=64m");
	for (int i = 0; i < ROWS; i++) {
		struct history_new in = new_of(f, "alice", id);

		end.code = make_words(words, sizeof(words), f->ids);
		end.code.len = WORDS_CODE;
		end.stdout_text = (struct span){ words + WORDS_CODE, WORDS_STREAM };
		end.stderr_text = (struct span){ words + WORDS_CODE + WORDS_STREAM,
						 WORDS_STREAM - 16 };
		MUST(history_record(f->h, &in, &end, &at, NULL) == 0);
	}
	settle(f);
	f->h = history_close(f->h);
	fd = fill_disk(f);
	while (write(fd, block, 1) > 0)
		;
	MUST(history_open(&f->options, &f->h, NULL) == 0);
	(void)snprintf(word, sizeof(word), "%08x", 10000 * 2654435761u);
	MUST(count_one(f, word) == 1);
	MUST(history_delete(f->h, NULL, make_id(id, 1), NULL) == 0);
	MUST(history_health(f->h).degraded == -ENOSPC);
	MUST(history_get(f->h, NULL, make_id(id, 1), &(struct history_row){ 0 }) == -ENOENT);
	MUST(count_one(f, word) == 0);
	for (int i = 0; i < 5; i++)
		MUST(history_delete_some(f->h, NULL, NULL) > 0);
	assert_indexed(f);
	/* Then there is room for the rest. */
	MUST(ftruncate(fd, 0) == 0);
	settle(f);
	MUST(history_health(f->h).degraded == 0);
	while ((r = history_delete_some(f->h, NULL, NULL)) > 0)
		;
	MUST(r == 0 && count_entries(f) == 0);
	f->h = history_close(f->h);
	_exit(0);
}

static void in_child(struct history_fixture *f, void (*live)(struct history_fixture *))
{
	int status = 0;
	pid_t pid;

	if (geteuid() != 0) {
		print_message("# skipped: needs to be root\n");
		skip();
	}
	f->h = history_close(f->h);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		live(f);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_full_disk(void **state)
{
	in_child(*state, live_on_full_disk);
}

static void test_delete_on_full_disk(void **state)
{
	in_child(*state, delete_on_full_disk);
}

static void test_delete_words_on_full_disk(void **state)
{
	in_child(*state, delete_words_on_full_disk);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_kill),
		CASE(test_torn_log),
		CASE(test_damaged),
		CASE(test_newer_schema),
		CASE(test_two_openers),
		CASE(test_orphans),
		CASE(test_full_disk),
		CASE(test_delete_on_full_disk),
		CASE(test_delete_words_on_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
