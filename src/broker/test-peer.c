/* SPDX-License-Identifier: Apache-2.0 */
/* The queue for a peer that does not read, and when the broker hangs up on it. No sandbox is made. */
#include "broker/peer.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "base/sys/test-descriptors.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
	struct broker broker;
	struct peer *peer;
	int front_fd; /* the front's own end */
	int records, gone;
};

static int on_record(void *data, uint32_t events)
{
	struct scene *s = data;
	struct record rec;

	(void)events;
	if (sys_recv_record(s->peer->fd, &rec, sizeof(rec), NULL, NULL) == sizeof(rec)) {
		s->records++;
		return 0;
	}
	s->gone++;
	s->peer = peer_free(s->peer);
	loop_stop(s->broker.loop);
	return 0;
}

static int on_tick(void *data, uint32_t events)
{
	(void)events;
	loop_stop(data);
	return 0;
}

/* Runs the loop until no event is left. */
static void turn(struct scene *s)
{
	struct source *tick = NULL;

	assert_int_equal(loop_add_timer(s->broker.loop, clock_now_ns(),
					(struct handler){ on_tick, s->broker.loop }, &tick),
			 0);
	assert_int_equal(loop_run(s->broker.loop), 0);
	source_free(tick);
}

static void enter(struct scene *s)
{
	int pair[2];

	*s = (struct scene){ .broker.loop = loop_new() };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	s->front_fd = pair[0];
	assert_int_equal(fd_set_nonblock(s->front_fd, true), 0);
	assert_int_equal(peer_new(&s->broker, pair[1], true, &s->peer), 0);
	assert_int_equal(peer_watch(s->peer, (struct handler){ on_record, s }), 0);
}

/* loop_free() catches sources that were not freed. */
static void leave(struct scene *s)
{
	if (s->peer)
		s->peer = peer_free(s->peer);
	assert_null(s->broker.peers);
	assert_int_equal(s->broker.n_pending, 0);
	loop_free(s->broker.loop);
	close(s->front_fd);
}

static int send_one(struct scene *s, uint32_t job, int fd)
{
	struct record rec = { .kind = fd >= 0 ? RECORD_FILE : RECORD_USAGE, .job = job };

	return peer_send(s->peer, &rec, fd);
}

static void test_what_does_not_fit_is_kept_in_order(void **state)
{
	enum { RECORDS = 1000 };
	int fd = fd_sealed_memfd("file", "text", 4);
	uint32_t next = 0;
	struct scene s;

	(void)state;
	enter(&s);
	for (uint32_t i = 0; i < RECORDS; i++)
		assert_int_equal(send_one(&s, i, i % 2 ? fd : -EBADF), 0);
	assert_true(s.broker.n_pending > RECORDS / 2 && s.broker.n_pending < RECORDS);
	assert_true(peer_is_behind(s.peer));
	while (next < RECORDS) {
		struct record rec;
		int got = -EBADF;
		size_t n_fds = 1;
		char text[5] = "";
		ssize_t n = sys_recv_record(s.front_fd, &rec, sizeof(rec), &got, &n_fds);

		if (n == -EAGAIN) {
			assert_true(s.broker.n_pending > 0);
			turn(&s);
			continue;
		}
		assert_int_equal(n, sizeof(rec));
		assert_int_equal(rec.job, next);
		assert_int_equal(n_fds, next % 2);
		if (n_fds > 0)
			assert_int_equal(pread(got, text, 4, 0), 4);
		(void)fd_close(got);
		next++;
	}
	assert_int_equal(s.broker.n_pending, 0);
	assert_false(peer_is_behind(s.peer));
	/* The queue is empty: records are sent at once, and the peer's records are read. */
	assert_int_equal(send_one(&s, 5, -EBADF), 0);
	assert_int_equal(s.broker.n_pending, 0);
	assert_int_equal(
		sys_send_record(s.front_fd, &(struct record){ 0 }, sizeof(struct record), NULL, 0),
		0);
	turn(&s);
	assert_int_equal(s.records, 1);
	close(fd);
	leave(&s);
}

static void test_more_than_the_bound_hangs_up(void **state)
{
	struct scene s;
	int r = 0;

	(void)state;
	enter(&s);
	for (uint32_t i = 0; i < 10000 && r == 0; i++)
		r = send_one(&s, i, -EBADF);
	assert_int_equal(r, -ENOBUFS);
	assert_int_equal(s.gone, 0);
	turn(&s);
	assert_int_equal(s.gone, 1);
	assert_null(s.peer);
	leave(&s);
}

static void expect_record(struct scene *s, uint32_t kind)
{
	struct record rec = { 0 };
	ssize_t n = sys_recv_record(s->front_fd, &rec, sizeof(rec), NULL, NULL);

	assert_int_equal(n, kind ? (ssize_t)sizeof(rec) : -EAGAIN);
	assert_int_equal(rec.kind, kind);
}

/* A queued file that the kernel does not pass on is left out, and the DONE of its task says so. DONE itself leaves without its list. */
static void test_a_missed_file_is_reported(void **state)
{
	const struct record done = { .kind = RECORD_DONE, .job = 7 };
	const struct record other = { .kind = RECORD_DONE, .job = 8 };
	int fd = fd_sealed_memfd("file", "text", 4);
	struct record rec = { 0 };
	struct scene s, crowd;

	(void)state;
	enter(&crowd);
	assert_int_equal(send_one(&crowd, 0, fd), 0);
	enter(&s);
	while (s.broker.n_pending == 0)
		assert_int_equal(send_one(&s, 0, -EBADF), 0);
	assert_int_equal(send_one(&s, 7, fd), 0);
	assert_int_equal(peer_send(s.peer, &other, -EBADF), 0);
	assert_int_equal(peer_send(s.peer, &done, fd), 0);
	assert_int_equal(s.broker.n_pending, 4);
	refuse_descriptors(true);
	while (rec.kind != RECORD_DONE || rec.job != 7) {
		ssize_t n = sys_recv_record(s.front_fd, &rec, sizeof(rec), NULL, NULL);

		if (n == -EAGAIN) {
			turn(&s);
			continue;
		}
		assert_int_equal(n, sizeof(rec));
		assert_int_not_equal(rec.kind, RECORD_FILE);
		if (rec.kind != RECORD_DONE)
			continue;
		assert_int_equal(rec.done.files_truncated, rec.job == 7);
		assert_int_equal(rec.done.commit.omitted, rec.job == 7);
	}
	/* The same for a DONE that is not queued. */
	turn(&s);
	assert_int_equal(s.broker.n_pending, 0);
	assert_int_equal(peer_send(s.peer, &done, fd), 0);
	assert_int_equal(sys_recv_record(s.front_fd, &rec, sizeof(rec), NULL, NULL), sizeof(rec));
	assert_int_equal(rec.done.commit.omitted, 1);
	refuse_descriptors(false);
	assert_int_equal(s.gone, 0);
	close(fd);
	leave(&s);
	leave(&crowd);
}

/* STARTED is sent with the next record, or a little later, or at once if it has a terminal. */
static void test_beginnings_are_held_back(void **state)
{
	const struct record started = { .kind = RECORD_STARTED, .started.landlock_abi = 7 };
	const struct record done = { .kind = RECORD_DONE };
	const struct record other = { .kind = RECORD_DONE, .job = 1 };
	struct record both = { 0 };
	int fd = fd_sealed_memfd("terminal", "", 0);
	int64_t begin_ns;
	struct scene s;

	(void)state;
	enter(&s);
	assert_int_equal(peer_send(s.peer, &started, -EBADF), 0);
	expect_record(&s, 0);
	assert_int_equal(peer_send(s.peer, &done, -EBADF), 0);
	assert_int_equal(sys_recv_record(s.front_fd, &both, sizeof(both), NULL, NULL),
			 sizeof(both));
	assert_int_equal(both.kind, RECORD_DONE);
	assert_true(both.done.has_started);
	assert_int_equal(both.done.started.landlock_abi, 7);
	expect_record(&s, 0);
	/* DONE of another task: STARTED is sent before it, as a record of its own. */
	assert_int_equal(peer_send(s.peer, &started, -EBADF), 0);
	assert_int_equal(peer_send(s.peer, &other, -EBADF), 0);
	expect_record(&s, RECORD_STARTED);
	expect_record(&s, RECORD_DONE);
	begin_ns = clock_now_ns();
	assert_int_equal(peer_send(s.peer, &started, -EBADF), 0);
	turn(&s);
	/* Not checked on a slow machine, where the hold time may be over already. */
	if (clock_now_ns() - begin_ns < 2 * NS_PER_MS)
		expect_record(&s, 0);
	usleep(5000);
	turn(&s);
	expect_record(&s, RECORD_STARTED);
	assert_int_equal(peer_send(s.peer, &started, fd), 0);
	assert_true(sys_recv_record(s.front_fd, &(struct record){ 0 }, sizeof(struct record),
				    &(int){ -1 }, &(size_t){ 1 }) > 0);
	/* Freeing a peer drops the records that are held for it. */
	assert_int_equal(peer_send(s.peer, &started, -EBADF), 0);
	close(fd);
	leave(&s);
}

static void test_a_front_that_left_is_no_error(void **state)
{
	struct scene s;
	uint32_t i = 0;

	(void)state;
	enter(&s);
	while (s.broker.n_pending < 10)
		assert_int_equal(send_one(&s, i++, -EBADF), 0);
	close(s.front_fd);
	turn(&s);
	assert_int_equal(s.gone, 1);
	s.front_fd = -EBADF;
	assert_int_equal(peer_send(NULL, &(struct record){ 0 }, -EBADF), -EPIPE);
	leave(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_does_not_fit_is_kept_in_order),
		cmocka_unit_test(test_more_than_the_bound_hangs_up),
		cmocka_unit_test(test_a_missed_file_is_reported),
		cmocka_unit_test(test_beginnings_are_held_back),
		cmocka_unit_test(test_a_front_that_left_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
