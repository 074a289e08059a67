/* SPDX-License-Identifier: Apache-2.0 */
/* Which cell waits for which bell: two sets of cells that are nothing but a socket, whose other end shows what they were told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sys/kernel.h"
#include "warm/prewake.h"
#include "warm/zygote-proto.h"

enum { CELLS = 3 };

struct prewake_fixture {
	struct prewake e;
	struct cell_set sets[2];
	struct cell cells[2][CELLS];
	struct sandbox sandboxes[2][CELLS];
	int ends[2][CELLS];
	struct bell bells[PREWAKE_MAX + 1];
};

static int setup(void **state)
{
	struct prewake_fixture *f = calloc(1, sizeof(*f));

	for (int s = 0; s < 2; s++)
		for (int i = 0; i < CELLS; i++) {
			int pair[2];

			if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
				       pair) < 0)
				return -1;
			f->sandboxes[s][i].program_fd = pair[0];
			f->ends[s][i] = pair[1];
			f->cells[s][i] = (struct cell){ .sandbox = &f->sandboxes[s][i],
							.shape = &f->sets[s].shape,
							.state = CELL_READY };
			cell_set_add(&f->sets[s], &f->cells[s][i]);
		}
	for (size_t i = 0; i < ARRAY_SIZE(f->bells); i++)
		f->bells[i] = bell_new();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct prewake_fixture *f = *state;

	for (int s = 0; s < 2; s++)
		for (int i = 0; i < CELLS; i++) {
			(void)close(f->ends[s][i]);
			(void)close(f->sandboxes[s][i].program_fd);
		}
	for (size_t i = 0; i < ARRAY_SIZE(f->bells); i++)
		bell_done(&f->bells[i]);
	prewake_done(&f->e);
	free(f);
	return 0;
}

/* As a request does it: claims the cell that is best for it. Returns its number. */
static int ask(struct prewake_fixture *f, int set, int bell)
{
	struct cell_set *s = &f->sets[set];
	struct cell *cell = cell_set_best(s, &f->bells[bell]);

	assert_non_null(cell);
	prewake_note(&f->e, &f->bells[bell], s);
	assert_true(cell_set_remove(s, cell));
	prewake_forget_cell(&f->e, cell);
	return (int)(cell - f->cells[set]);
}

/* One that is made in the place of another. */
static void refill(struct prewake_fixture *f, int set, int i)
{
	f->cells[set][i].bell = 0;
	cell_set_add(&f->sets[set], &f->cells[set][i]);
}

static void settle(struct prewake_fixture *f)
{
	f->e.used_ns = clock_now_ns() + NS_PER_SEC;
	assert_false(prewake_next(&f->e)); /* not so soon after a request */
	f->e.used_ns = clock_now_ns() - PREWAKE_MS * NS_PER_MS;
	assert_true(prewake_next(&f->e));
}

/* What a cell was told last: the descriptor of the bell it waits for; -ENOENT: to wait for none; -EAGAIN: nothing. */
static int told(struct prewake_fixture *f, int set, int i)
{
	int last = -EAGAIN;

	for (;;) {
		struct expect_record rec;
		int fd = -EBADF;
		size_t n_fds = 1;
		ssize_t n = sys_recv_record(f->ends[set][i], &rec, sizeof(rec), &fd, &n_fds);

		if (n < 0)
			return last;
		assert_int_equal(n, sizeof(rec));
		assert_int_equal(rec.kind, PROGRAM_EXPECT);
		if (last >= 0)
			(void)close(last);
		last = n_fds == 1 ? fd : -ENOENT;
	}
}

static bool hears(struct prewake_fixture *f, int fd, int bell)
{
	eventfd_t n;
	bool heard;

	assert_int_equal(eventfd_write(f->bells[bell].fd, 1), 0);
	heard = eventfd_read(fd, &n) == 0;
	(void)eventfd_read(f->bells[bell].fd, &n);
	return heard;
}

/* The cell of a set that waits for a bell; -1: none. There is never more than one. */
static int waiting(struct prewake_fixture *f, int set, int bell)
{
	int found = -1;

	for (int i = 0; i < CELLS; i++)
		if (f->cells[set][i].bell == f->bells[bell].serial) {
			assert_int_equal(found, -1);
			found = i;
		}
	return found;
}

static void test_who_asks_again(void **state)
{
	struct prewake_fixture *f = *state;
	int first = ask(f, 0, 0), second, fd, next;

	settle(f);
	assert_int_equal(waiting(f, 0, 0), -1);
	second = ask(f, 0, 0);
	refill(f, 0, first);
	refill(f, 0, second);
	settle(f);
	next = waiting(f, 0, 0);
	assert_true(next >= 0);
	fd = told(f, 0, next);
	assert_true(fd >= 0);
	assert_true(hears(f, fd, 0));
	assert_false(hears(f, fd, 1));
	(void)close(fd);
	/* It is told once, and is the one that is claimed. */
	settle(f);
	assert_int_equal(told(f, 0, next), -EAGAIN);
	assert_int_equal(ask(f, 0, 0), next);
	refill(f, 0, next);
	settle(f);
	assert_int_not_equal(waiting(f, 0, 0), -1);
}

/* Two kinds of requests in turn, from one front: each has its bell, and a cell of its own. */
static void test_in_turn(void **state)
{
	struct prewake_fixture *f = *state;

	for (int i = 0; i < 4; i++) {
		int a = ask(f, 0, 0), b = ask(f, 1, 1);

		refill(f, 0, a);
		refill(f, 1, b);
	}
	settle(f);
	for (int s = 0; s < 2; s++) {
		int fd = told(f, s, waiting(f, s, s));

		assert_true(fd >= 0);
		assert_true(hears(f, fd, s));
		assert_false(hears(f, fd, 1 - s));
		(void)close(fd);
	}
}

/* Two fronts that ask for the same: each gets the cell that heard it, and others get one that waits for nobody. */
static void test_two_fronts(void **state)
{
	struct prewake_fixture *f = *state;
	int one, two;

	for (int i = 0; i < 2; i++) {
		refill(f, 0, ask(f, 0, 0));
		refill(f, 0, ask(f, 0, 1));
	}
	settle(f);
	one = waiting(f, 0, 0);
	two = waiting(f, 0, 1);
	assert_true(one >= 0 && two >= 0 && one != two);
	assert_int_equal(cell_set_best(&f->sets[0], NULL)->bell, 0);
	assert_int_equal(ask(f, 0, 1), two);
	assert_int_equal(ask(f, 0, 0), one);
}

/* One bell for everything: who asks for something else each time is not waited for. */
static void test_not_steady(void **state)
{
	struct prewake_fixture *f = *state;

	refill(f, 0, ask(f, 0, 0));
	refill(f, 0, ask(f, 0, 0));
	settle(f);
	int fd = told(f, 0, waiting(f, 0, 0));

	assert_true(fd >= 0);
	(void)close(fd);
	fd = waiting(f, 0, 0);
	refill(f, 1, ask(f, 1, 0));
	settle(f);
	assert_int_equal(waiting(f, 0, 0), -1);
	assert_int_equal(waiting(f, 1, 0), -1);
	assert_int_equal(told(f, 0, fd), -ENOENT);
}

/* More bells than are remembered: the one that was silent longest is forgotten; so is a set that is gone. */
static void test_forgets(void **state)
{
	struct prewake_fixture *f = *state;
	int kept;

	for (int i = 0; i < 2; i++)
		refill(f, 0, ask(f, 0, 0));
	settle(f);
	kept = waiting(f, 0, 0);
	assert_true(kept >= 0);
	for (int i = 1; i <= PREWAKE_MAX; i++)
		refill(f, 1, ask(f, 1, i));
	assert_int_equal(waiting(f, 0, 0), -1);
	assert_int_equal(told(f, 0, kept), -ENOENT);
	refill(f, 1, ask(f, 1, PREWAKE_MAX));
	prewake_forget_set(&f->e, &f->sets[1]);
	settle(f);
	for (int i = 0; i <= PREWAKE_MAX; i++)
		assert_int_equal(waiting(f, 1, i), -1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_who_asks_again), CASE(test_in_turn), CASE(test_two_fronts),
		CASE(test_not_steady),	   CASE(test_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
