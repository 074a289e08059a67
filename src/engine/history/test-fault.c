/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The n-th write of the process fails, for n = 1, 2, … until a whole scenario needs fewer: once, or from then on;
 * because the disk is full, or because it is broken. After each, what was acknowledged must be there, nothing
 * must be half there, and the store must be well again without being reopened.
 */
#include "engine/history/test-store.h"

static sqlite3_vfs *below;
static struct {
	int countdown; /* writes until one fails; < 0: none will */
	bool persist;
	int rc;
	bool hit;
} fault = { .countdown = -1 };

struct faulty {
	sqlite3_file base;
	sqlite3_io_methods methods;
	sqlite3_file *real;
};

static struct faulty *faulty_of(sqlite3_file *f)
{
	return (struct faulty *)f;
}

static int faulty_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at)
{
	struct faulty *x = faulty_of(f);

	if (fault.countdown == 0 || (fault.countdown > 0 && --fault.countdown == 0)) {
		fault.hit = true;
		fault.countdown = fault.persist ? 0 : -1;
		return fault.rc;
	}
	return x->real->pMethods->xWrite(x->real, data, n, at);
}

#define PASS(name, parameters, ...)                                                                \
	static int faulty_##name parameters                                                        \
	{                                                                                          \
		sqlite3_file *real = faulty_of(f)->real;                                           \
		return real->pMethods->x##name(real __VA_OPT__(, ) __VA_ARGS__);                   \
	}
PASS(Close, (sqlite3_file * f))
PASS(Read, (sqlite3_file * f, void *data, int n, sqlite3_int64 at), data, n, at)
PASS(Truncate, (sqlite3_file * f, sqlite3_int64 size), size)
PASS(Sync, (sqlite3_file * f, int flags), flags)
PASS(FileSize, (sqlite3_file * f, sqlite3_int64 *size), size)
PASS(Lock, (sqlite3_file * f, int level), level)
PASS(Unlock, (sqlite3_file * f, int level), level)
PASS(CheckReservedLock, (sqlite3_file * f, int *ret), ret)
PASS(FileControl, (sqlite3_file * f, int op, void *arg), op, arg)
PASS(SectorSize, (sqlite3_file * f))
PASS(DeviceCharacteristics, (sqlite3_file * f))

static int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
		       int *ret_flags)
{
	struct faulty *x = faulty_of(f);
	int rc;

	(void)vfs;
	*x = (struct faulty){ .real = (sqlite3_file *)(x + 1) };
	rc = below->xOpen(below, name, x->real, flags, ret_flags);
	if (rc != SQLITE_OK)
		return rc;
	/* Version 1: no shared memory, which exclusive mode does without. */
	x->methods = (sqlite3_io_methods){
		.iVersion = 1,
		.xClose = faulty_Close,
		.xRead = faulty_Read,
		.xWrite = faulty_write,
		.xTruncate = faulty_Truncate,
		.xSync = faulty_Sync,
		.xFileSize = faulty_FileSize,
		.xLock = faulty_Lock,
		.xUnlock = faulty_Unlock,
		.xCheckReservedLock = faulty_CheckReservedLock,
		.xFileControl = faulty_FileControl,
		.xSectorSize = faulty_SectorSize,
		.xDeviceCharacteristics = faulty_DeviceCharacteristics,
	};
	x->base.pMethods = &x->methods;
	return SQLITE_OK;
}

static void register_faulty(void)
{
	static sqlite3_vfs vfs;

	below = sqlite3_vfs_find(NULL);
	vfs = *below;
	vfs.pNext = NULL;
	vfs.zName = "faulty";
	vfs.szOsFile = (int)sizeof(struct faulty) + below->szOsFile;
	vfs.xOpen = faulty_open;
	assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

enum { EXECUTIONS = 6 };

struct acknowledged {
	char id[HISTORY_ID];
	bool accepted, ended, deleted;
	int64_t row;
};

static bool is_degraded(const struct history_fixture *f)
{
	return history_health(f->h).degraded != 0;
}

static bool is_storage(int r)
{
	return r == 0 || r == -ENOSPC || r == -EIO;
}

static void scenario(struct history_fixture *f, struct acknowledged *done)
{
	for (int i = 0; i < EXECUTIONS; i++) {
		struct history_new in = new_of(f, "alice", done[i].id);
		struct history_end end = end_with(STATUS_SUCCESS);
		int r;

		end.code = SPAN("words");
		if (i % 3 == 2) {
			r = history_record(f->h, &in, &end, &done[i].row, NULL);
			assert_true(is_storage(r));
			done[i].accepted = done[i].ended = r == 0;
			continue;
		}
		r = history_accept(f->h, &in, &done[i].row, NULL);
		assert_true(is_storage(r));
		done[i].accepted = r == 0;
		if (!done[i].accepted)
			continue;
		r = history_finish(f->h, done[i].row, &end, NULL);
		assert_true(is_storage(r));
		done[i].ended = r == 0;
		if (i % 4 == 3)
			(void)history_tick(f->h);
	}
	if (done[0].ended)
		done[0].deleted = history_delete(f->h, NULL, done[0].id, NULL) == 0;
	if (!is_degraded(f))
		(void)store_checkpoint(f->h);
}

static void check(struct history_fixture *f, const struct acknowledged *done)
{
	for (int i = 0; i < EXECUTIONS; i++) {
		_cleanup_history_row_ struct history_row row = { 0 };
		int r = history_get(f->h, NULL, done[i].id, &row);

		assert_int_equal(r, done[i].accepted && !done[i].deleted ? 0 : -ENOENT);
		if (r == 0)
			assert_string_equal(row.status, done[i].ended ? "success" : "queued");
	}
}

/* false: the scenario needed fewer writes than that. */
static bool fail_at(struct history_fixture *f, int n)
{
	struct acknowledged done[EXECUTIONS] = { 0 };
	struct history_end end = end_with(STATUS_SUCCESS);
	bool hit;

	fault.countdown = n;
	fault.hit = false;
	scenario(f, done);
	hit = fault.hit;
	(void)history_tick(f->h); /* nothing to be had from it while the trouble lasts */
	fault.countdown = -1;
	/* The trouble is over. */
	for (int i = 0; i < 3 && is_degraded(f); i++)
		(void)history_tick(f->h);
	assert_false(is_degraded(f));
	check(f, done);
	for (int i = 0; i < EXECUTIONS; i++)
		if (done[i].accepted && !done[i].ended) {
			assert_int_equal(history_finish(f->h, done[i].row, &end, NULL), 0);
			done[i].ended = true;
		}
	reopen(f);
	check(f, done);
	assert_false(history_health(f->h).replaced);
	settle(f);
	assert_indexed(f);
	/* The next one is not to be checked with all before it. */
	while (history_delete_some(f->h, NULL, NULL) > 0)
		;
	return hit;
}

static void sweep(struct history_fixture *f, int rc, bool persist)
{
	int n = 1;

	fault.rc = rc;
	fault.persist = persist;
	while (fail_at(f, n))
		n++;
	assert_true(n > EXECUTIONS);
	f->h = history_close(f->h);
	assert_sound(f->dir);
	reopen(f);
}

static void test_full_once(void **state)
{
	sweep(*state, SQLITE_FULL, false);
}

static void test_full_from_then_on(void **state)
{
	sweep(*state, SQLITE_FULL, true);
}

static void test_broken_once(void **state)
{
	sweep(*state, SQLITE_IOERR_WRITE, false);
}

static void test_broken_from_then_on(void **state)
{
	sweep(*state, SQLITE_IOERR_WRITE, true);
}

static void test_group_is_undone(void **state)
{
	struct history_fixture *f = *state;
	char ids[3][HISTORY_ID];
	int64_t at = 0;

	assert_int_equal(history_begin(f->h, NULL), 0);
	for (int i = 0; i < 3; i++) {
		struct history_new in = new_of(f, "alice", ids[i]);

		assert_int_equal(history_accept(f->h, &in, &at, NULL), 0);
	}
	fault = (typeof(fault)){ .countdown = 1, .rc = SQLITE_FULL };
	assert_int_equal(history_commit(f->h, NULL), -ENOSPC);
	for (int i = 0; i < 3; i++)
		assert_int_equal(history_get(f->h, NULL, ids[i], &(struct history_row){ 0 }),
				 -ENOENT);
	(void)history_tick(f->h);
	assert_false(is_degraded(f));
	(void)put(f, "alice", STATUS_SUCCESS);
}

/* The trouble began with an attempt to connect anew: there is no connection to try with. */
static void test_no_connection(void **state)
{
	struct history_fixture *f = *state;

	store_disconnect(f->h);
	f->h->health.degraded = -ENOSPC;
	(void)history_tick(f->h);
	assert_false(is_degraded(f));
	(void)put(f, "alice", STATUS_SUCCESS);
	settle(f);
	assert_int_equal(history_health(f->h).rows, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_full_once),	    CASE(test_full_from_then_on),
		CASE(test_broken_once),	    CASE(test_broken_from_then_on),
		CASE(test_group_is_undone), CASE(test_no_connection),
	};

	register_faulty();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
