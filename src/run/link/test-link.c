/* SPDX-License-Identifier: Apache-2.0 */
/* The link: records and descriptors both ways, a peer that dies or breaks the protocol. */
#include "run/link/link.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "base/sys/test-descriptors.h"

struct link_seen {
	struct loop *loop;
	struct link *link;
	struct link_port port;
	int messages, gone;
	uint32_t kind;
	int code;
	size_t n_fds;
	bool lost_fds;
	int fd;
};

static int on_message(void *data, struct link_message *m)
{
	struct link_seen *s = data;

	if (!m) {
		s->gone++;
		loop_stop(s->loop);
		return 0;
	}
	s->messages++;
	s->kind = m->record.kind;
	s->code = m->record.failed.code;
	s->n_fds = m->n_fds;
	s->lost_fds = m->lost_fds;
	if (m->n_fds > 0)
		s->fd = TAKE_FD(m->fds[0]);
	return 0;
}

static void start(struct link_seen *s, int fd)
{
	*s = (struct link_seen){ .loop = loop_new(), .fd = -EBADF };
	assert_non_null(s->loop);
	assert_int_equal(link_new(fd, 0, &s->link), 0);
	s->port.on_message = on_message;
	s->port.data = s;
	link_attach(s->link, &s->port);
	assert_int_equal(link_watch(s->link, s->loop), 0);
}

static void finish(struct link_seen *s)
{
	(void)fd_close(s->fd);
	link_detach(s->link, &s->port);
	link_close(s->link);
	loop_free(s->loop);
}

static int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Sends raw bytes with n descriptors, as a peer might. */
static void peer_send(int fd, const void *bytes, size_t len, size_t n_fds)
{
	char control[CMSG_SPACE(sizeof(int) * 8)] = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (n_fds > 0) {
		struct cmsghdr *c;

		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		for (size_t i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &null_fd, sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &m, 0), len);
	close(null_fd);
}

static void test_records_and_fds_arrive(void **state)
{
	struct record r = { .kind = RECORD_STARTED, .job = 1 };
	struct link_seen s;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	start(&s, pair[0]);
	peer_send(pair[1], &r, sizeof(r), 1);
	assert_int_equal(link_dispatch(s.link), 0);
	assert_int_equal(s.messages, 1);
	assert_int_equal(s.kind, RECORD_STARTED);
	assert_int_equal(s.n_fds, 1);
	assert_int_equal(fcntl(s.fd, F_GETFD), FD_CLOEXEC);
	close(pair[1]);
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(s.gone, 1);
	assert_true(link_is_broken(s.link));
	assert_int_equal(link_send(s.link, &r, NULL, 0), -EPIPE);
	finish(&s);
}

static void test_other_jobs_records_are_dropped_with_their_fds(void **state)
{
	struct record r = { .kind = RECORD_STARTED, .job = 77 };
	struct link_seen s;
	int pair[2], before;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	start(&s, pair[0]);
	before = open_fds();
	peer_send(pair[1], &r, sizeof(r), RECORD_FDS_MAX);
	assert_int_equal(link_dispatch(s.link), 0);
	assert_int_equal(s.messages, 0);
	assert_int_equal(open_fds(), before);
	close(pair[1]);
	finish(&s);
}

static void breaks_with(const void *bytes, size_t len, size_t n_fds)
{
	struct link_seen s;
	int pair[2], before;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	start(&s, pair[0]);
	before = open_fds();
	peer_send(pair[1], bytes, len, n_fds);
	assert_int_equal(link_dispatch(s.link), 0);
	assert_int_equal(s.messages, 0);
	assert_int_equal(s.gone, 1);
	assert_true(link_is_broken(s.link));
	assert_int_equal(open_fds(), before);
	close(pair[1]);
	finish(&s);
}

static void test_wrong_sizes_and_too_many_fds_break_the_link(void **state)
{
	static char big[sizeof(struct record) + 1];
	struct record r = { .kind = RECORD_DONE, .job = 1 };

	(void)state;
	breaks_with(&r, sizeof(r) - 1, 0);
	breaks_with("x", 1, 2);
	memcpy(big, &r, sizeof(r));
	breaks_with(big, sizeof(big), 1);
	breaks_with(&r, sizeof(r), RECORD_FDS_MAX + 2);
}

/* If no descriptors are left, a record arrives without its own, and the link goes on for other runs. */
static void test_no_room_for_descriptors(void **state)
{
	struct record r = { .kind = RECORD_FILE, .job = 1 };
	struct rlimit before, full;
	struct link_seen s;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	start(&s, pair[0]);
	peer_send(pair[1], &r, sizeof(r), 1);
	peer_send(pair[1], &r, sizeof(r), 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	full = before;
	full.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	assert_int_equal(link_dispatch(s.link), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(s.messages, 2);
	assert_int_equal(s.kind, RECORD_FILE);
	assert_int_equal(s.n_fds, 0);
	assert_true(s.lost_fds);
	assert_false(link_is_broken(s.link));
	peer_send(pair[1], &r, sizeof(r), 1);
	assert_int_equal(link_dispatch(s.link), 0);
	assert_int_equal(s.n_fds, 1);
	assert_false(s.lost_fds);
	finish(&s);
	close(pair[1]);
}

static int inspected;

/* Checks that a forked broker has fds 0-3 only and a session of its own. Reports by exit code. */
static int serve_inspect(void *data, int fd)
{
	struct record r = { .kind = RECORD_DONE, .job = 1 };
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	/* ".", "..", 0, 1, 2, the socket and the directory itself. */
	if (n != 7 || fd != 3 || data != &inspected || getsid(0) != getpid())
		return 1;
	(void)!write(fd, &r, sizeof(r));
	/* Waits until the front closes the socket. */
	return read(fd, &r, sizeof(r)) == 0 ? 0 : 2;
}

static void test_spawned_broker_holds_only_its_socket(void **state)
{
	struct link_seen s = { .loop = loop_new(), .fd = -EBADF };
	struct error err;
	int extra = open("/dev/null", O_RDONLY); /* deliberately inheritable */

	(void)state;
	assert_int_equal(
		link_spawn((struct link_server){ serve_inspect, &inspected }, &s.link, &err), 0);
	s.port.on_message = on_message;
	s.port.data = &s;
	link_attach(s.link, &s.port);
	assert_int_equal(link_watch(s.link, s.loop), 0);
	for (int i = 0; i < 20000 && s.messages == 0 && s.gone == 0; i++) {
		assert_int_equal(link_dispatch(s.link), 0);
		usleep(1000);
	}
	assert_int_equal(s.messages, 1);
	close(extra);
	finish(&s);
}

/* A listening broker: sends the given greeting, then waits until the test leaves. */
struct host {
	char path[64];
	int listen_fd;
	pid_t pid;
};

static void host_start(struct host *h, const struct record *hello, size_t n)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(h->path, sizeof(h->path), "/tmp/test-link.%d.sock", (int)getpid());
	memcpy(address.sun_path, h->path, sizeof(h->path));
	h->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(h->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(h->listen_fd, 4), 0);
	h->pid = fork();
	if (h->pid == 0) {
		struct record rec;
		int fd = accept(h->listen_fd, NULL, NULL);

		(void)!write(fd, hello, n);
		_exit(read(fd, &rec, sizeof(rec)) == 0 ? 0 : 1);
	}
}

static void host_end(struct host *h)
{
	int status = -1;

	assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
	assert_int_equal(status, 0);
	close(h->listen_fd);
	assert_int_equal(unlink(h->path), 0);
}

static void test_a_listening_broker_is_connected_to(void **state)
{
	struct record hello = { .kind = RECORD_HELLO };
	struct host_facts facts = { 0 };
	struct link *l = NULL;
	struct host h;

	(void)state;
	hello.hello.version = PROTO_VERSION;
	hello.hello.warm = 1;
	hello.hello.facts.cores = 77;
	host_start(&h, &hello, sizeof(hello));
	assert_int_equal(link_connect(h.path, &l), 0);
	assert_true(link_is_shared(l));
	assert_int_equal(link_hello(l, &facts), 0);
	assert_true(link_is_warm(l));
	assert_int_equal(facts.cores, 77);
	link_close(l);
	host_end(&h);
}

static void test_a_broker_of_another_version_is_left_alone(void **state)
{
	struct record hello = { .kind = RECORD_HELLO };
	struct host_facts facts;
	struct link *l = NULL;
	int before = open_fds();
	struct host h;

	(void)state;
	hello.hello.version = PROTO_VERSION + 1;
	host_start(&h, &hello, sizeof(hello));
	assert_int_equal(link_connect(h.path, &l), 0);
	assert_true(link_hello(l, &facts) < 0);
	l = link_close(l);
	host_end(&h);
	hello.hello.version = PROTO_VERSION;
	host_start(&h, &hello, sizeof(hello) - 8);
	assert_int_equal(link_connect(h.path, &l), 0);
	assert_true(link_hello(l, &facts) < 0);
	l = link_close(l);
	host_end(&h);
	assert_int_equal(open_fds(), before);
}

static void test_nobody_listens(void **state)
{
	static const char long_path[] = "/tmp/0123456789012345678901234567890123456789"
					"01234567890123456789012345678901234567890123456789"
					"01234567890123456789012345678901234567890123456789";
	struct link *l = NULL;
	int before = open_fds();

	(void)state;
	assert_int_equal(link_connect("/tmp/test-link-nobody", &l), -ENOENT);
	assert_int_equal(link_connect("/dev/null", &l), -ECONNREFUSED);
	assert_int_equal(link_connect(long_path, &l), -ENAMETOOLONG);
	assert_null(l);
	assert_int_equal(open_fds(), before);
}

enum { BURST = 500 };

/* Reads all records in the socket, with their descriptors. */
static uint32_t read_burst(int fd, uint32_t next)
{
	for (;;) {
		int fds[RECORD_FDS_MAX];
		size_t n_fds = RECORD_FDS_MAX;
		struct record rec;
		char plan[8] = "";
		const struct record_parts parts = { &rec, plan, sizeof(rec), sizeof(plan) };
		ssize_t n = sys_recv_parts(fd, &parts, fds, &n_fds);

		if (n < 0)
			return next;
		assert_int_equal(n, sizeof(rec) + (next % 2 ? 4 : 0));
		assert_string_equal(plan, next % 2 ? "plan" : "");
		assert_int_equal(rec.job, next);
		assert_int_equal(rec.kind, next % 2 ? RECORD_RUN : RECORD_KILL);
		assert_int_equal(n_fds, next % 2 ? 1 : 0);
		if (next % 2 == 0)
			assert_int_equal(rec.kill_cause, next % _CAUSE_MAX);
		for (size_t i = 0; i < n_fds; i++)
			close(fds[i]);
		next++;
	}
}

static int on_stop(void *data, uint32_t events)
{
	(void)events;
	loop_stop(data);
	return 0;
}

static void one_turn(struct loop *loop)
{
	struct source *stop;

	assert_int_equal(loop_add_timer(loop, 0, (struct handler){ on_stop, loop }, &stop), 0);
	assert_int_equal(loop_run(loop), 0);
	source_free(stop);
}

static void test_what_does_not_fit_goes_later_and_in_order(void **state)
{
	int before = open_fds(), pair[2], null_fd;
	uint32_t got = 0;
	struct link_seen s;

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	start(&s, pair[0]);
	for (uint32_t i = 0; i < BURST; i++) {
		struct record rec = { .kind = i % 2 ? RECORD_RUN : RECORD_KILL, .job = i };

		if (i % 2 == 0)
			rec.kill_cause = (int32_t)(i % _CAUSE_MAX);
		assert_int_equal(link_send_plan(s.link, &rec,
						(struct span){ "plan", i % 2 ? 4 : 0 }, &null_fd,
						i % 2),
				 0);
	}
	for (int i = 0; i < BURST && got < BURST; i++) {
		got = read_burst(pair[1], got);
		one_turn(s.loop);
	}
	assert_int_equal(got, BURST);
	close(null_fd);
	close(pair[1]);
	finish(&s);
	assert_int_equal(open_fds(), before);
}

/* The kernel passes on no descriptors: a queued RUN fails as busy. The link stays, and so do the records behind that RUN. */
static void test_descriptors_that_are_not_passed_on(void **state)
{
	int pair[2], crowd[2], null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct record rec = { .kind = RECORD_KILL }, run = { .kind = RECORD_RUN };
	struct link_seen s;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, crowd), 0);
	peer_send(crowd[0], &rec, sizeof(rec), 1);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	start(&s, pair[0]);
	for (int i = 0; i < BURST; i++)
		assert_int_equal(link_send(s.link, &rec, NULL, 0), 0);
	run.job = s.port.job;
	assert_int_equal(link_send(s.link, &run, &null_fd, 1), 0);
	rec.job = 77;
	assert_int_equal(link_send(s.link, &rec, NULL, 0), 0);
	refuse_descriptors(true);
	rec.job = 0;
	for (int i = 0; i < 4 * BURST && rec.job != 77; i++) {
		if (sys_recv_record(pair[1], &rec, sizeof(rec), NULL, NULL) < 0)
			one_turn(s.loop);
		assert_int_equal(rec.kind, RECORD_KILL);
	}
	assert_int_equal(rec.job, 77);
	assert_int_equal(s.messages, 1);
	assert_int_equal(s.kind, RECORD_FAILED);
	assert_int_equal(s.code, ERROR_BUSY);
	one_turn(s.loop);
	assert_int_equal(link_send(s.link, &run, &null_fd, 1), -ETOOMANYREFS);
	assert_false(link_is_broken(s.link));
	refuse_descriptors(false);
	close(null_fd);
	close(pair[1]);
	close(crowd[0]);
	close(crowd[1]);
	finish(&s);
}

static void test_what_was_not_sent_goes_with_the_link(void **state)
{
	int before = open_fds(), pair[2], null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC), r = 0;
	struct record rec = { .kind = RECORD_RUN };
	struct link_seen s;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	start(&s, pair[0]);
	for (rec.job = 1; rec.job < 100000 && r == 0; rec.job++)
		r = link_send(s.link, &rec, &null_fd, rec.job % 64 == 0);
	assert_int_equal(r, -ENOBUFS);
	assert_false(link_is_broken(s.link));
	close(pair[1]);
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(s.gone, 1);
	assert_int_equal(link_send(s.link, &rec, NULL, 0), -EPIPE);
	close(null_fd);
	finish(&s);
	assert_int_equal(open_fds(), before);
}

static void test_the_keeper_hears_of_hello_and_of_the_end(void **state)
{
	struct record hello = { .kind = RECORD_HELLO };
	struct link_seen s;
	int pair[2];

	(void)state;
	hello.hello.version = PROTO_VERSION;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	start(&s, pair[0]);
	link_detach(s.link, &s.port);
	assert_true(link_is_idle(s.link));
	link_attach_keeper(s.link, &s.port);
	assert_false(link_is_idle(s.link));
	peer_send(pair[1], &hello, sizeof(hello), 0);
	one_turn(s.loop);
	assert_int_equal(s.messages, 1);
	assert_int_equal(s.kind, RECORD_HELLO);
	close(pair[1]);
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(s.gone, 1);
	finish(&s);
}

static int on_slow_message(void *data, struct link_message *m)
{
	(void)usleep(3000);
	return on_message(data, m);
}

/* A slow handler must not block the loop: after its time is over, the rest is read in the next rounds. */
static void test_slow_records_share_the_loop(void **state)
{
	struct record r = { .kind = RECORD_FILE, .job = 1 };
	struct link_seen s;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	start(&s, pair[0]);
	s.port.on_message = on_slow_message;
	for (int i = 0; i < 4; i++)
		peer_send(pair[1], &r, sizeof(r), 0);
	one_turn(s.loop);
	assert_int_equal(s.messages, 1);
	/* link_dispatch() reads all of them. */
	assert_int_equal(link_dispatch(s.link), 0);
	assert_int_equal(s.messages, 4);
	close(pair[1]);
	finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_and_fds_arrive),
		cmocka_unit_test(test_other_jobs_records_are_dropped_with_their_fds),
		cmocka_unit_test(test_wrong_sizes_and_too_many_fds_break_the_link),
		cmocka_unit_test(test_no_room_for_descriptors),
		cmocka_unit_test(test_spawned_broker_holds_only_its_socket),
		cmocka_unit_test(test_a_listening_broker_is_connected_to),
		cmocka_unit_test(test_a_broker_of_another_version_is_left_alone),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_what_does_not_fit_goes_later_and_in_order),
		cmocka_unit_test(test_descriptors_that_are_not_passed_on),
		cmocka_unit_test(test_what_was_not_sent_goes_with_the_link),
		cmocka_unit_test(test_the_keeper_hears_of_hello_and_of_the_end),
		cmocka_unit_test(test_slow_records_share_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
