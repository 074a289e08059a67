/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/history/arrivals-fixture.h"
#include "engine/history/test-store.h"

#include <sys/resource.h>
#include <sys/wait.h>

static size_t found_by(struct history_fixture *f, struct history_filter filter)
{
	_cleanup_history_page_ struct history_page page = { 0 };

	filter.limit = 10;
	assert_int_equal(history_list(f->h, &filter, &page, NULL), 0);
	return page.n;
}

static void assert_row(const struct history_row *row, const struct history_new *in,
		       const struct history_end *end)
{
	assert_string_equal(row->status, "success");
	assert_string_equal(row->language, "python");
	assert_string_equal(row->policy, "strict");
	assert_string_equal(row->labels, "{\"job\":\"nightly\"}");
	assert_string_equal(row->code_sha256, HASH_A);
	assert_string_equal(row->request, in->request.data);
	assert_string_equal(row->result, end->result.data);
	assert_int_equal(row->created_ns / 1000, in->created_ns / 1000);
	assert_int_equal(row->started_ns / 1000, in->started_ns / 1000);
	assert_int_equal(row->ended_ns / 1000, end->ended_ns / 1000);
	assert_int_equal(row->exit_code, 3);
	assert_int_equal(row->duration_us, 2100);
	assert_int_equal(row->cpu_us, 900);
	assert_int_equal(row->memory_peak_bytes, 9 << 20);
	assert_int_equal(row->kept_bytes, 17);
}

static void assert_past(struct history_fixture *f, int n)
{
	const struct history_past by_code = { .caller = "alice", .code_sha256 = HASH_A };
	const struct history_past by_label = { .label_name = "job", .label_value = "nightly" };
	int64_t us[HISTORY_PAST_MAX];

	assert_int_equal(history_durations(f->h, &by_code, us), n);
	assert_int_equal(arrivals_waiting(f->h), 1);
	assert_int_equal(history_durations(f->h, &by_label, us), n);
}

/* A reader sees at once what was recorded, though it reaches the database later. */
static void test_arrivals(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID];
	int64_t at = 0;
	json_t *labels = json_pack("{s:s}", "job", "nightly"), *stats = NULL;

	for (int way = 0; way < 8; way++) {
		struct history_new in = new_of(f, "alice", id);
		struct history_end end = end_with(STATUS_SUCCESS);
		struct history_count count = { 0 };
		_cleanup_history_row_ struct history_row row = { 0 };

		/* It waited for its turn; every other one was never begun. */
		in.started_ns = way % 2 ? in.created_ns + NS_PER_SEC : 0;
		in.code_sha256 = HASH_A;
		in.labels = labels;
		end.code = SPAN("needle");
		end.policy = "strict";
		end.exit_code = 3;
		end.kept_bytes = 17;
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
		assert_int_equal(arrivals_waiting(f->h), 1);
		assert_int_equal(history_health(f->h).backlog, 1);
		switch (way) {
		case 0:
			assert_int_equal(history_get(f->h, "alice", id, &row), 0);
			assert_int_equal(row.row, at);
			assert_row(&row, &in, &end);
			break;
		case 1:
			assert_int_equal(found_by(f, (struct history_filter){ .text = "needle" }),
					 2);
			break;
		case 2:
			assert_int_equal(
				found_by(f, (struct history_filter){ .language = "python" }), 3);
			break;
		case 3:
			assert_int_equal(
				history_count(f->h, &(struct history_filter){ 0 }, &count, NULL),
				0);
			assert_int_equal(count.n, 4);
			break;
		case 4:
			assert_int_equal(
				history_stats(f->h, &(struct history_window){ 0 }, &stats, NULL),
				0);
			assert_int_equal(json_integer_value(json_object_get(stats, "total")), 5);
			break;
		case 5: /* looks without taking it in: every run asks this before it begins */
			assert_past(f, 6);
			break;
		case 6:
			assert_int_equal(history_finish(f->h, at, &end, NULL), -EALREADY);
			break;
		default:
			assert_int_equal(history_delete(f->h, "alice", id, NULL), 0);
		}
		assert_int_equal(arrivals_waiting(f->h), 0);
		settle(f);
	}
	json_decref(labels);
	json_decref(stats);
}

/* What is too much for the file, and what must not be there, goes into the database itself. */
static void test_arrivals_are_bounded(void **state)
{
	struct history_fixture *f = *state;
	char id[HISTORY_ID], found[HISTORY_ID], *large = calloc(1, 100000);
	struct history_new in = new_of(f, "alice", id);
	struct history_end end = end_with(STATUS_SUCCESS);
	_cleanup_history_row_ struct history_row row = { 0 };
	int64_t at = 0;

	(void)memset(large, 'x', 99999);
	end.result = SPAN(large);
	assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	assert_int_equal(arrivals_waiting(f->h), 0);
	in = new_of(f, "alice", id);
	end = end_with(STATUS_SUCCESS);
	in.key = "k";
	in.key_sha256 = HASH_A;
	assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	assert_int_equal(arrivals_waiting(f->h), 0);
	assert_int_equal(history_find_key(f->h, "alice", "k", HASH_A, found), 1);
	for (int i = 0; i < ARRIVALS_MAX + 10; i++)
		(void)put(f, "alice", STATUS_SUCCESS);
	assert_int_equal(arrivals_waiting(f->h), ARRIVALS_MAX);
	/* A group neither waits for those on their way nor sees them. */
	assert_int_equal(history_begin(f->h, NULL), 0);
	assert_int_equal(history_get(f->h, NULL, make_id(id, 3), &row), -ENOENT);
	(void)put(f, "alice", STATUS_SUCCESS);
	assert_int_equal(history_get(f->h, NULL, make_id(id, f->ids), &row), 0);
	assert_int_equal(arrivals_waiting(f->h), ARRIVALS_MAX);
	assert_int_equal(history_commit(f->h, NULL), 0);
	history_row_done(&row);
	assert_int_equal(history_get(f->h, NULL, make_id(id, 3), &row), 0);
	settle(f);
	assert_int_equal(history_health(f->h).rows, ARRIVALS_MAX + 13);
	/* Where a commit must reach the disk, so must they. */
	f->options.full = true;
	reopen(f);
	(void)put(f, "alice", STATUS_SUCCESS);
	assert_int_equal(arrivals_waiting(f->h), 0);
	free(large);
}

/* Which of the first n are there: whole ones from the first on, and how many. */
static unsigned count_first(struct history *h, unsigned n)
{
	char id[HISTORY_ID];
	unsigned found = 0;
	bool missing = false;

	for (unsigned i = 1; i <= n; i++) {
		_cleanup_history_row_ struct history_row row = { 0 };
		int r = history_get(h, "alice", make_id(id, i), &row);

		missing |= r == -ENOENT;
		assert_int_equal(r, missing ? -ENOENT : 0);
		if (missing)
			continue;
		assert_string_equal(row.status, "success");
		assert_non_null(strstr(row.request, "print"));
		found++;
	}
	return found;
}

/* A process that died while recorded executions were on their way to the database, at any moment. */
static void test_torn_arrivals(void **state)
{
	enum { ROWS = 40 };
	struct history_fixture *f = *state;
	char from[96], to[96], copy[80];
	struct stat st;

	for (int i = 0; i < ROWS; i++)
		(void)put(f, "alice", STATUS_SUCCESS);
	assert_int_equal(arrivals_waiting(f->h), ROWS);
	(void)snprintf(from, sizeof(from), "%s/arrivals", f->dir);
	(void)snprintf(copy, sizeof(copy), "%s/copy", f->dir);
	(void)snprintf(to, sizeof(to), "%s/arrivals", copy);
	assert_int_equal(stat(from, &st), 0);
	for (int round = 0; round < 40; round++) {
		struct history_fixture other = { .options = { .dir = copy } };
		size_t cut = round ? (size_t)(clock_now_ns() / 7 % st.st_size) : SIZE_MAX;
		unsigned found;

		(void)nftw(copy, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
		assert_int_equal(mkdir(copy, 0700), 0);
		copy_file(from, to, cut, round % 2);
		reopen(&other);
		found = count_first(other.h, ROWS);
		if (round == 0)
			assert_int_equal(found, ROWS);
		/* What comes then is not confused with what was half there. */
		other.ids = ROWS;
		(void)put(&other, "alice", STATUS_SUCCESS);
		reopen(&other);
		struct history_count all = { 0 };

		assert_int_equal(history_count(other.h, &(struct history_filter){ 0 }, &all, NULL),
				 0);
		assert_int_equal(all.n, found + 1);
		(void)history_close(other.h);
		assert_sound(copy);
	}
}

/* It died between the database's commit and the emptying of the file: nothing comes twice. */
static void test_arrivals_come_once(void **state)
{
	struct history_fixture *f = *state;
	char from[96], to[96], id[HISTORY_ID];
	struct history_count all = { 0 };
	struct stat st;

	for (int i = 0; i < 20; i++)
		(void)put(f, "alice", STATUS_SUCCESS);
	(void)snprintf(from, sizeof(from), "%s/arrivals", f->dir);
	(void)snprintf(to, sizeof(to), "%s/before", f->dir);
	copy_file(from, to, SIZE_MAX, 0);
	assert_int_equal(count_first(f->h, 20), 20);
	f->h = history_close(f->h);
	copy_file(to, from, SIZE_MAX, 0);
	reopen(f);
	settle(f);
	assert_int_equal(history_count(f->h, &(struct history_filter){ 0 }, &all, NULL), 0);
	assert_int_equal(all.n, 20);
	assert_int_equal(history_health(f->h).rows, 20);
	/* What is deleted has left the file before, so that it cannot come again. */
	(void)put(f, "alice", STATUS_SUCCESS);
	assert_int_equal(history_delete(f->h, NULL, make_id(id, 3), NULL), 0);
	assert_int_equal(stat(from, &st), 0);
	assert_int_equal(st.st_size, 0);
}

static int64_t file_size(const char *dir)
{
	char path[96];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/arrivals", dir);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* It died when all of it had reached the database: a clean stop leaves a clean state, though there was nothing to write. */
static void test_emptied_at_close(void **state)
{
	struct history_fixture *f = *state;
	int status = 0;
	pid_t pid;

	f->h = history_close(f->h);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		reopen(f);
		for (int i = 0; i < 100; i++)
			(void)put(f, "alice", STATUS_SUCCESS);
		_exit(count_first(f->h, 100) == 100 && arrivals_waiting(f->h) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(file_size(f->dir) > 0);
	reopen(f);
	assert_false(history_health(f->h).clean);
	assert_int_equal(arrivals_waiting(f->h), 100);
	reopen(f);
	assert_true(history_health(f->h).clean);
	assert_int_equal(count_first(f->h, 100), 100);
}

/* What follows the last whole record, a program's text for all we know, is never read as another one. */
static void test_tail_is_cut(void **state)
{
	struct history_fixture *f = *state;
	struct history_fixture other = { .ids = 1 };
	_cleanup_buf_ struct buf record = { .max = 4096 };
	_cleanup_close_ int fd = -EBADF;
	char path[96], copy[80];

	(void)put(f, "alice", STATUS_SUCCESS);
	(void)snprintf(path, sizeof(path), "%s/arrivals", f->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(buf_read_fd(&record, fd), 0);
	fd = fd_close(fd);
	/* Every byte is one that was given: the last of them end the result. */
	assert_int_equal(record.data[record.len - 1], '\0');
	assert_int_equal(record.data[record.len - 2], '}');

	/* One that looks whole, where the next one of the same length will end. */
	(void)snprintf(copy, sizeof(copy), "%s/copy", f->dir);
	(void)snprintf(path, sizeof(path), "%s/copy/arrivals", f->dir);
	assert_int_equal(mkdir(copy, 0700), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(pwrite(fd, record.data, record.len, (off_t)record.len), record.len);
	other.options.dir = copy;
	reopen(&other);
	assert_int_equal(arrivals_waiting(other.h), 0);
	assert_int_equal(file_size(copy), 0);
	(void)put(&other, "alice", STATUS_SUCCESS);
	assert_int_equal(file_size(copy), record.len);
	reopen(&other);
	assert_true(history_health(other.h).clean);
	(void)history_close(other.h);
}

/* A write that ends half way leaves nothing behind, and what it was for is on record all the same. */
static void test_short_write(void **state)
{
	enum { ROWS = 40, LARGE = 50000 };
	struct history_fixture *f = *state;
	struct history_end end = end_with(STATUS_SUCCESS);
	char id[HISTORY_ID], *large = calloc(1, LARGE + 1);
	struct rlimit before, small;
	int64_t size = 0, at = 0;

	(void)memset(large, 'x', LARGE);
	end.result = SPAN(large);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	for (int i = 0; i <= ROWS; i++) {
		struct history_new in = new_of(f, "alice", id);

		/* The database is smaller than that, and can be written. */
		size = file_size(f->dir);
		small.rlim_cur = (rlim_t)size + 1000;
		if (i == ROWS)
			assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		assert_int_equal(history_record(f->h, &in, &end, &at, NULL), 0);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(arrivals_waiting(f->h), ROWS);
	assert_int_equal(file_size(f->dir), size);
	(void)put(f, "alice", STATUS_SUCCESS);
	assert_int_equal(arrivals_waiting(f->h), ROWS + 1);
	settle(f);
	assert_int_equal(history_health(f->h).rows, ROWS + 2);
	free(large);
}

/* What was acknowledged lies there and cannot be had: that is no history to begin with. */
static void test_unreadable(void **state)
{
	struct history_fixture *f = *state;
	struct error err = { 0 };
	char path[96];

	f->h = history_close(f->h);
	(void)snprintf(path, sizeof(path), "%s/arrivals", f->dir);
	assert_int_equal(truncate(path, 5 << 20), 0);
	assert_int_equal(history_open(&f->options, &f->h, &err), -EFBIG);
	assert_null(f->h);
	assert_int_equal(file_size(f->dir), 5 << 20);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(history_open(&f->options, &f->h, &err), -EISDIR);
	assert_null(f->h);
	assert_int_equal(err.code, ERROR_STORAGE);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(rmdir(path), 0);
	reopen(f);
}

/* Only an id that is taken says that one is there already; with anything else in the way it is not there by half. */
static void test_other_conflict(void **state)
{
	struct history_fixture *f = *state;
	_cleanup_history_row_ struct history_row row = { 0 };
	struct history_count all = { 0 };
	char id[HISTORY_ID], sql[96];

	(void)snprintf(sql, sizeof(sql), "INSERT INTO request(at, text) VALUES(%lld, '')",
		       (long long)put(f, "alice", STATUS_SUCCESS));
	assert_int_equal(sqlite3_exec(f->h->db, sql, NULL, NULL, NULL), SQLITE_OK);
	make_id(id, f->ids);
	assert_int_equal(history_get(f->h, NULL, id, &row), -ENOENT);
	assert_int_equal(
		history_count(f->h, &(struct history_filter){ .caller = "alice" }, &all, NULL), 0);
	assert_int_equal(all.n, 0);
	assert_int_equal(arrivals_waiting(f->h), 1);
	assert_int_equal(sqlite3_exec(f->h->db, "DELETE FROM request", NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(history_get(f->h, NULL, id, &row), 0);
	assert_non_null(row.result);
}

/* A process that recorded some with output files and died. */
_noreturn_ static void record_and_die(struct history_fixture *f)
{
	reopen(f);
	for (int i = 0; i < 100; i++) {
		char id[HISTORY_ID];

		(void)put(f, "alice", STATUS_SUCCESS);
		if (history_output_create(f->h, make_id(id, f->ids), HISTORY_STDOUT) < 0)
			_exit(1);
	}
	_exit(arrivals_waiting(f->h) == 100 ? 0 : 1);
}

/* The sweep for orphans knows them. */
static void test_files_of_arrivals(void **state)
{
	struct history_fixture *f = *state;
	int status = 0;
	pid_t pid;

	f->h = history_close(f->h);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		record_and_die(f);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* Later than they are, also by the clock that files are dated with. */
	(void)usleep(30000);
	reopen(f);
	assert_false(history_health(f->h).clean);
	assert_int_equal(arrivals_waiting(f->h), 100);
	settle(f);
	assert_int_equal(f->h->files.sweep, SWEEP_END);
	for (unsigned i = 1; i <= 100; i++) {
		char id[HISTORY_ID];
		_cleanup_close_ int fd = history_output_open(f->h, make_id(id, i), HISTORY_STDOUT);

		assert_true(fd >= 0);
	}
	assert_int_equal(count_first(f->h, 100), 100);
}

/* What an older daemon left is taken in. */
static void test_old_file(void **state)
{
	static const char *const status[] = { "success", "timeout", "success" };
	struct history_fixture *f = *state;
	_cleanup_close_ int fd = -EBADF;
	char path[96], id[HISTORY_ID];

	f->h = history_close(f->h);
	(void)snprintf(path, sizeof(path), "%s/arrivals", f->dir);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, arrivals_fixture, sizeof(arrivals_fixture)),
			 sizeof(arrivals_fixture));
	fd = fd_close(fd);
	reopen(f);
	assert_int_equal(arrivals_waiting(f->h), 3);
	for (int i = 0; i < 3; i++) {
		_cleanup_history_row_ struct history_row row = { 0 };

		(void)snprintf(id, sizeof(id), "ex_%026d", i + 1);
		assert_int_equal(history_get(f->h, "alice", id, &row), 0);
		assert_string_equal(row.status, status[i]);
		assert_string_equal(row.language, "python");
		assert_string_equal(row.policy, "default");
		assert_string_equal(row.request, "{\"code\":\"print(42)\"}");
		assert_string_equal(row.result, "{\"status\":\"success\",\"stdout\":\"42\\n\"}");
		assert_int_equal(row.created_ns, INT64_C(1790000000) * NS_PER_SEC + i * NS_PER_SEC);
		assert_int_equal(row.started_ns, i ? row.created_ns + 250 * NS_PER_MS : 0);
		assert_int_equal(row.ended_ns, row.created_ns + 500 * NS_PER_MS);
		assert_int_equal(row.exit_code, i == 1 ? -1 : 0);
		assert_int_equal(row.duration_us, 2100);
		assert_int_equal(row.cpu_us, 900);
		assert_int_equal(row.memory_peak_bytes, 9 << 20);
		assert_int_equal(row.kept_bytes, 17);
		assert_int_equal(strlen(row.code_sha256), i ? 64 : 0);
		if (i == 2)
			assert_string_equal(row.labels, "{\"job\":\"nightly\"}");
		else
			assert_null(row.labels);
	}
	assert_int_equal(found_by(f, (struct history_filter){ .text = "needle" }), 3);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_arrivals),	      CASE(test_arrivals_are_bounded),
		CASE(test_torn_arrivals),     CASE(test_arrivals_come_once),
		CASE(test_files_of_arrivals), CASE(test_emptied_at_close),
		CASE(test_tail_is_cut),	      CASE(test_short_write),
		CASE(test_unreadable),	      CASE(test_other_conflict),
		CASE(test_old_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
