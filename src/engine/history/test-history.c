/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/history/test-store.h"

#include <sys/resource.h>

static void test_life(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID];
	struct history_new in = new_of(f, "alice", id);
	struct history_end end = end_with(STATUS_ERROR);
	_cleanup_history_row_ struct history_row row = { 0 };
	int64_t at = 0;

	in.code_sha256 = HASH_A;
	assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	assert_int_equal(history_get(f->h, "alice", id, &row), 0);
	assert_string_equal(row.status, "queued");
	assert_null(row.result);
	assert_int_equal(row.exit_code, -1);
	assert_true(row.started_ns == 0 && row.ended_ns == 0);
	history_row_done(&row);

	assert_int_equal(history_start(f->h, at, clock_realtime_ns(), NULL), 0);
	assert_int_equal(history_start(f->h, at, clock_realtime_ns(), NULL), -EALREADY);
	end.exit_code = 3;
	end.ended_ns = clock_realtime_ns();
	end.language = "ruby";
	end.policy = "strict";
	assert_int_equal(history_finish(f->h, at, &end, NULL), 0);
	assert_int_equal(history_get(f->h, NULL, id, &row), 0);
	assert_string_equal(row.status, "error");
	assert_string_equal(row.language, "ruby");
	assert_string_equal(row.policy, "strict");
	assert_string_equal(row.code_sha256, HASH_A);
	assert_string_equal(row.request, "{\"code\":\"print(1)\"}");
	assert_string_equal(row.result, "{\"status\":\"…\"}");
	assert_int_equal(row.exit_code, 3);
	assert_int_equal(row.duration_us, 2100);
	assert_true(row.started_ns > 0 && row.ended_ns >= row.started_ns);
	assert_int_equal(row.row, at);
}

static void test_one_result(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID];
	struct history_new in = new_of(f, "alice", id);
	struct history_end end = end_with(STATUS_SUCCESS);
	struct error err = { 0 };
	int64_t at = 0, again = 0;

	assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	assert_int_equal(history_accept(f->h, &in, &again, NULL), -EEXIST);
	assert_int_equal(history_finish(f->h, at, &end, NULL), 0);
	end.status = STATUS_TIMEOUT;
	assert_int_equal(history_finish(f->h, at, &end, &err), -EALREADY);
	assert_int_equal(history_finish(f->h, at + 1000000, &end, NULL), -ENOENT);
	_cleanup_history_row_ struct history_row row = { 0 };

	assert_int_equal(history_get(f->h, NULL, id, &row), 0);
	assert_string_equal(row.status, "success");
}

static void test_refused_names(void **state)
{
	struct history_fixture *f = *state;
	static const char *const ids[] = { "",
					   "ex_",
					   "ex_../../../../etc/passwd_____",
					   "ab_00000000000000000000000001",
					   "ex_0000000000000000000000000A",
					   "ex_000000000000000000000000011" };
	char id[HISTORY_ID];
	char large[HISTORY_NAME_MAX + 2];
	struct history_new in = new_of(f, "alice", id);
	int64_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		in.id = ids[i];
		assert_int_equal(history_accept(f->h, &in, &at, NULL), -EINVAL);
		assert_int_equal(history_output_create(f->h, ids[i], HISTORY_STDOUT), -EINVAL);
		assert_int_equal(history_files_create(f->h, ids[i]), -EINVAL);
		assert_int_equal(history_output_open(f->h, ids[i], HISTORY_STDERR), -ENOENT);
	}
	(void)memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	in.id = id;
	in.caller = large;
	assert_int_equal(history_accept(f->h, &in, &at, NULL), -E2BIG);
	in.caller = "alice";
	in.request.len = (size_t)HISTORY_BODY_MAX + 1; /* refused before it is read */
	assert_int_equal(history_accept(f->h, &in, &at, NULL), -E2BIG);
}

static void test_callers_are_apart(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID];
	_cleanup_history_row_ struct history_row row = { 0 };
	_cleanup_history_page_ struct history_page page = { 0 };

	(void)put(f, "alice", STATUS_SUCCESS);
	make_id(id, f->ids);
	assert_int_equal(history_get(f->h, "bob", id, &row), -ENOENT);
	assert_int_equal(history_get(f->h, "", id, &row), -ENOENT);
	assert_int_equal(history_delete(f->h, "bob", id, NULL), -ENOENT);
	assert_int_equal(history_list(f->h, &(struct history_filter){ .caller = "bob", .limit = 5 },
				      &page, NULL),
			 0);
	assert_int_equal(page.n, 0);
	assert_int_equal(history_get(f->h, "alice", id, &row), 0);
}

static void test_idempotency(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID], other[HISTORY_ID], found[HISTORY_ID] = "";
	struct history_new in = new_of(f, "alice", id), second;
	struct history_end end = end_with(STATUS_SUCCESS);
	int64_t at = 0;

	in.key = "k'1\"%_";
	in.key_sha256 = HASH_A;
	assert_int_equal(history_find_key(f->h, "alice", in.key, HASH_A, found), 0);
	assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	reopen(f); /* keys survive */
	assert_int_equal(history_find_key(f->h, "alice", in.key, HASH_A, found), 1);
	assert_string_equal(found, id);
	assert_int_equal(history_find_key(f->h, "alice", in.key, HASH_B, found), -EEXIST);
	assert_int_equal(history_find_key(f->h, "bob", in.key, HASH_A, found), 0);
	second = new_of(f, "alice", other);
	second.key = in.key;
	second.key_sha256 = HASH_A;
	assert_int_equal(history_accept(f->h, &second, &at, NULL), -EEXIST);
	assert_int_equal(history_get(f->h, NULL, other, &(struct history_row){ 0 }), -ENOENT);

	/* The key goes with its row. */
	_cleanup_history_row_ struct history_row row = { 0 };

	assert_int_equal(history_get(f->h, NULL, id, &row), 0);
	assert_int_equal(history_finish(f->h, row.row, &end, NULL), 0);
	assert_int_equal(history_delete(f->h, "alice", id, NULL), 0);
	assert_int_equal(history_find_key(f->h, "alice", in.key, HASH_A, found), 0);
}

static void test_old_keys(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID], other[HISTORY_ID], found[HISTORY_ID] = "";
	struct history_new in = new_of(f, "alice", id), second;
	struct history_end end = end_with(STATUS_SUCCESS);
	int64_t at = 0, first;

	f->options.keep_keys_s = 60;
	reopen(f);
	in.key = "k";
	in.key_sha256 = HASH_A;
	in.created_ns -= 59 * NS_PER_SEC;
	assert_int_equal(history_accept(f->h, &in, &first, NULL), 0);
	assert_int_equal(history_find_key(f->h, "alice", "k", HASH_A, found), 1);
	f->options.keep_keys_s = 58;
	reopen(f);
	assert_int_equal(history_find_key(f->h, "alice", "k", HASH_A, found), 0);
	assert_int_equal(history_find_key(f->h, "alice", "k", HASH_B, found), 0);
	/* It can be used again; the old row's end does not take it along. */
	second = new_of(f, "alice", other);
	second.key = "k";
	second.key_sha256 = HASH_B;
	assert_int_equal(history_accept(f->h, &second, &at, NULL), 0);
	assert_int_equal(history_finish(f->h, first, &end, NULL), 0);
	assert_int_equal(history_delete(f->h, "alice", id, NULL), 0);
	assert_int_equal(history_find_key(f->h, "alice", "k", HASH_B, found), 1);
	assert_string_equal(found, other);
}

static void test_group(void **state)
{
	struct history_fixture *f = *state;
	char ids[3][HISTORY_ID];
	struct history_new in = new_of(f, "alice", ids[0]);
	struct history_end end = end_with(STATUS_SUCCESS);
	int64_t at = 0;

	assert_int_equal(history_begin(f->h, NULL), 0);
	assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	/* Refusals inside concern only themselves. */
	assert_int_equal(history_accept(f->h, &in, &at, NULL), -EEXIST);
	assert_int_equal(history_finish(f->h, 17, &end, NULL), -ENOENT);
	in = new_of(f, "alice", ids[1]);
	assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	assert_int_equal(history_finish(f->h, at, &end, NULL), 0);
	assert_int_equal(history_delete(f->h, NULL, ids[1], NULL), -EINVAL);
	assert_false(history_tick(f->h));
	assert_int_equal(history_commit(f->h, NULL), 0);
	assert_int_equal(history_commit(f->h, NULL), -EINVAL);

	/* What was not committed is not there. */
	in = new_of(f, "alice", ids[2]);
	assert_int_equal(history_begin(f->h, NULL), 0);
	assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	reopen(f);
	assert_int_equal(history_get(f->h, NULL, ids[2], &(struct history_row){ 0 }), -ENOENT);
	for (int i = 0; i < 2; i++) {
		_cleanup_history_row_ struct history_row row = { 0 };

		assert_int_equal(history_get(f->h, NULL, ids[i], &row), 0);
		assert_string_equal(row.status, i == 0 ? "queued" : "success");
	}
}

/* Records, which go by way of the arrivals, and acceptances: each is later than the one before, also behind a restart. */
static void test_clock_stands_still(void **state)
{
	struct history_fixture *f = *state;
	const int64_t now = clock_realtime_ns();
	const struct history_end end = end_with(STATUS_SUCCESS);
	int64_t last = 0, at = 0;
	char id[HISTORY_ID];

	for (int i = 0; i < 60; i++) {
		struct history_new in = new_of(f, "alice", id);

		in.created_ns = now;
		if (i % 3)
			assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
		else
			assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
		assert_true(at > last);
		last = at;
		if (i == 30)
			reopen(f);
	}
	/* A clock that is set back onto taken instants. */
	for (int i = 0; i < 20; i++) {
		struct history_new in = new_of(f, "alice", id);

		in.created_ns = now + i * 1000LL;
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
		assert_int_equal(at, ++last);
	}
	/* One that was created before, and ran for a while, keeps its time. */
	struct history_new in = new_of(f, "alice", id);

	in.created_ns = now - 5 * NS_PER_SEC;
	assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	assert_int_equal(at, in.created_ns / 1000);
	in = new_of(f, "alice", id);
	in.created_ns = now;
	assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	assert_int_equal(at, last + 1);
}

static void test_queued_in_order(void **state)
{
	struct history_fixture *f = *state;
	_cleanup_history_page_ struct history_page page = { 0 }, rest = { 0 };
	char id[HISTORY_ID];
	int64_t at = 0;

	for (int i = 0; i < 10; i++) {
		struct history_new in = new_of(f, "alice", id);

		in.running = i == 4;
		assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	}
	reopen(f);
	assert_int_equal(history_queued(f->h, INT64_MIN, 6, &page), 0);
	assert_int_equal(page.n, 6);
	for (size_t i = 1; i < page.n; i++)
		assert_true(page.rows[i - 1].row < page.rows[i].row);
	assert_int_equal(history_queued(f->h, page.rows[5].row, 100, &rest), 0);
	assert_int_equal(rest.n, 3);
}

static void test_interrupted(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID];
	struct history_new in = new_of(f, "alice", id);
	json_t *labels = json_pack("{s:s}", "team", "x"), *result;
	int64_t at = 0;

	in.running = true;
	in.labels = labels;
	in.policy = "default";
	assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	{
		_cleanup_close_ int fd = history_output_create(f->h, id, HISTORY_STDOUT);

		assert_int_equal(fd_write_all(fd, "half\xff", 5), 0);
	}
	reopen(f);
	assert_int_equal(history_health(f->h).interrupted, 1);
	_cleanup_history_row_ struct history_row row = { 0 };

	assert_int_equal(history_get(f->h, "alice", id, &row), 0);
	assert_string_equal(row.status, "interrupted");
	result = json_loads(row.result, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(result, "id")), id);
	assert_string_equal(json_string_value(json_object_get(result, "status")), "interrupted");
	assert_string_equal(json_string_value(json_object_get(result, "stdout")),
			    "half\xef\xbf\xbd");
	assert_int_equal(json_integer_value(json_object_get(result, "stdout_bytes")), 5);
	assert_string_equal(json_string_value(json_object_get(result, "node")), "here");
	assert_true(json_equal(json_object_get(result, "labels"), labels));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(result, "cause"), "kind")),
		"interrupted");
	assert_true(json_is_true(json_object_get(json_object_get(result, "cause"), "retryable")));
	json_decref(result);
	json_decref(labels);
	reopen(f); /* … once */
	assert_int_equal(history_health(f->h).interrupted, 0);
}

static void test_durations(void **state)
{
	struct history_fixture *f = *state;
	json_t *labels = json_pack("{s:s}", "job", "nightly");
	int64_t us[HISTORY_PAST_MAX], at = 0;
	char id[HISTORY_ID];

	for (int i = 0; i < 80; i++) {
		struct history_new in = new_of(f, i % 2 ? "alice" : "bob", id);
		struct history_end end = end_with(i % 10 == 9 ? STATUS_TIMEOUT : STATUS_SUCCESS);

		in.code_sha256 = i < 40 ? HASH_A : HASH_B;
		in.labels = i < 4 ? labels : NULL;
		end.duration_us = 1000 + i;
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	}
	json_decref(labels);
	assert_int_equal(
		history_durations(f->h, &(struct history_past){ .code_sha256 = HASH_A }, us), 36);
	assert_int_equal(us[0], 1038); /* the newest that is no timeout */
	assert_int_equal(
		history_durations(
			f->h, &(struct history_past){ .caller = "bob", .code_sha256 = HASH_B }, us),
		20);
	assert_int_equal(history_durations(f->h,
					   &(struct history_past){ .label_name = "job",
								   .label_value = "nightly" },
					   us),
			 4);
	assert_int_equal(us[3], 1000);
}

static void test_outputs(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID], text[8] = "";
	struct history_new in = new_of(f, "alice", id);
	struct history_end end = end_with(STATUS_SUCCESS);
	int64_t at = 0;

	assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	_cleanup_close_ int nameless = history_output_nameless(f->h, id, HISTORY_STDOUT);

	assert_int_equal(fd_write_all(nameless, "gone", 4), 0);
	assert_int_equal(history_output_open(f->h, id, HISTORY_STDOUT), -ENOENT);
	assert_int_equal(history_files_open(f->h, id), -ENOENT);
	for (int i = 0; i < 2; i++) {
		_cleanup_close_ int fd = history_output_create(f->h, id, (enum history_stream)i);

		assert_int_equal(fd_write_all(fd, i ? "err" : "out", 3), 0);
	}
	{
		_cleanup_close_ int fd = history_output_open(f->h, id, HISTORY_STDERR);
		_cleanup_close_ int dir = history_files_create(f->h, id);
		_cleanup_close_ int file = -EBADF;

		assert_int_equal(read(fd, text, sizeof(text)), 3);
		assert_string_equal(text, "err");
		assert_int_equal(mkdirat(dir, "deep", 0700), 0);
		file = openat(dir, "deep/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(file >= 0);
		assert_int_equal(symlinkat("/etc", dir, "link"), 0);
	}
	assert_int_equal(history_delete(f->h, NULL, id, NULL), 0);
	assert_int_equal(history_output_open(f->h, id, HISTORY_STDOUT), -ENOENT);
	assert_int_equal(history_files_open(f->h, id), -ENOENT);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
}

static void test_delete(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID];
	struct history_new in = new_of(f, "alice", id);
	struct error err = { 0 };
	int64_t at = 0;
	int n, all = 0;

	assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	assert_int_equal(history_delete(f->h, "alice", id, &err), -EBUSY);
	for (int i = 0; i < 100; i++)
		(void)put(f, i % 4 ? "alice" : "bob", STATUS_SUCCESS);
	settle(f);
	assert_int_equal(history_health(f->h).rows, 100);
	while ((n = history_delete_some(f->h, "alice", NULL)) > 0) {
		assert_true(n <= 32);
		all += n;
	}
	assert_int_equal(all, 75);
	assert_int_equal(history_health(f->h).rows, 25);
	while (history_delete_some(f->h, NULL, NULL) > 0)
		;
	settle(f);
	assert_int_equal(history_health(f->h).rows, 0);
	assert_int_equal(history_health(f->h).bytes, 0);
	/* The one that never ended stays. */
	assert_int_equal(history_start(f->h, at, 1, NULL), 0);
	/* Numbers of results are not given again, not even after a restart: what comes now is counted. */
	reopen(f);
	(void)put(f, "bob", STATUS_SUCCESS);
	settle(f);
	assert_int_equal(history_health(f->h).rows, 2);
}

static void test_modes(void **state)
{
	struct history_fixture *f = *state;
	static const char *const names[] = { "",	"history.db", "history.db-wal",
					     "outputs", "reserve",    "arrivals" };
	char path[96];
	struct stat st;

	(void)put(f, "alice", STATUS_SUCCESS);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", f->dir, names[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 077, 0);
	}
	f->h = history_close(f->h);
	assert_int_equal(chmod(f->dir, 0755), 0);
	reopen(f);
	assert_int_equal(stat(f->dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static int synchronous(struct history_fixture *f)
{
	sqlite3_stmt *s = NULL;
	int level;

	assert_int_equal(sqlite3_prepare_v2(f->h->db, "PRAGMA synchronous", -1, &s, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	level = sqlite3_column_int(s, 0);
	(void)sqlite3_finalize(s);
	return level;
}

static void test_durability(void **state)
{
	struct history_fixture *f = *state;

	(void)put(f, "alice", STATUS_SUCCESS);
	assert_int_equal(synchronous(f), 0);
	assert_int_equal(store_settle(f->h), 0);
	assert_int_equal(synchronous(f), 0); /* waits once, not from then on */
	f->options.full = true;
	reopen(f);
	(void)put(f, "alice", STATUS_SUCCESS);
	assert_int_equal(store_settle(f->h), 0);
	assert_int_equal(synchronous(f), 2);
}

static int files_seen;

static int see_file(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)path;
	(void)st;
	(void)ftw;
	files_seen += kind == FTW_F;
	return 0;
}

static int count_below(const char *dir)
{
	char path[96];

	files_seen = 0;
	(void)snprintf(path, sizeof(path), "%s/files", dir);
	assert_int_equal(nftw(path, see_file, 16, FTW_PHYS), 0);
	return files_seen;
}

static void make_files(struct history_fixture *f, const char *id, int n)
{
	_cleanup_close_ int dir = history_files_create(f->h, id);
	char name[32];

	assert_true(dir >= 0);
	assert_int_equal(mkdirat(dir, "below", 0700), 0);
	for (int i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "%s%d", i % 2 ? "below/" : "", i);
		(void)close(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
}

/* However many files they have: many executions go at once, their files some at a time, and those of a dead process, too. */
static void test_many_files_go_in_steps(void **state)
{
	enum { N = 4, FILES = 600, STEP = 256 };
	struct history_fixture *f = *state;
	char ids[N][HISTORY_ID];
	int left = N * FILES, now, steps = 0;

	for (int i = 0; i < N; i++) {
		(void)put(f, "alice", STATUS_SUCCESS);
		make_files(f, make_id(ids[i], f->ids), FILES);
	}
	assert_int_equal(count_below(f->dir), left);
	assert_int_equal(history_delete_some(f->h, NULL, NULL), N);
	for (int i = 0; i < N; i++)
		assert_int_equal(history_files_open(f->h, ids[i]), -ENOENT);
	assert_true(count_below(f->dir) >= left - STEP);
	for (; (now = count_below(f->dir)) > 0 && steps < N * FILES; steps++) {
		assert_true(now >= left - STEP);
		left = now;
		(void)history_tick(f->h);
	}
	assert_true(now == 0 && steps >= N * FILES / STEP);
	/* It died before all were gone. */
	(void)put(f, "alice", STATUS_SUCCESS);
	make_files(f, make_id(ids[0], f->ids), FILES);
	assert_int_equal(history_delete_some(f->h, NULL, NULL), 1);
	f->h->files.has_gone = false;
	reopen(f);
	assert_int_equal(count_below(f->dir), FILES);
	settle(f);
	assert_int_equal(count_below(f->dir), 0);
	/* A close leaves nothing. */
	(void)put(f, "alice", STATUS_SUCCESS);
	make_files(f, make_id(ids[0], f->ids), FILES);
	assert_int_equal(history_delete_some(f->h, NULL, NULL), 1);
	reopen(f);
	assert_int_equal(count_below(f->dir), 0);
}

/* A store without a free descriptor has not emptied anything, and no call waits until that is over. */
static void test_files_that_do_not_go_now(void **state)
{
	struct history_fixture *f = *state;
	struct rlimit usual, none;
	char id[HISTORY_ID];
	int lowest;

	(void)put(f, "alice", STATUS_SUCCESS);
	make_files(f, make_id(id, f->ids), 3);
	assert_int_equal(history_delete_some(f->h, NULL, NULL), 1);
	assert_true(files_are_going(f->h));
	lowest = dup(STDIN_FILENO);
	assert_true(lowest >= 0 && getrlimit(RLIMIT_NOFILE, &usual) == 0);
	(void)close(lowest);
	none = (struct rlimit){ (rlim_t)lowest, usual.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_false(files_empty_gone(f->h));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(count_below(f->dir), 3);
	assert_true(f->h->files.has_gone && !files_are_going(f->h));
	/* A minute later. */
	f->h->files.gone_at_ns = 0;
	settle(f);
	assert_int_equal(count_below(f->dir), 0);
	assert_false(f->h->files.has_gone);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_life),
		CASE(test_one_result),
		CASE(test_refused_names),
		CASE(test_callers_are_apart),
		CASE(test_idempotency),
		CASE(test_old_keys),
		CASE(test_group),
		CASE(test_clock_stands_still),
		CASE(test_queued_in_order),
		CASE(test_interrupted),
		CASE(test_durations),
		CASE(test_outputs),
		CASE(test_delete),
		CASE(test_many_files_go_in_steps),
		CASE(test_files_that_do_not_go_now),
		CASE(test_modes),
		CASE(test_durability),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
