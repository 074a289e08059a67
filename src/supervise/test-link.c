/* SPDX-License-Identifier: Apache-2.0 */
/* The link: records and descriptors both ways, a peer that dies or breaks the protocol. */
#include "supervise/link.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

struct seen {
	struct loop *loop;
	struct link *link;
	struct link_port port;
	int messages, gone;
	uint32_t kind;
	size_t n_fds;
	int fd;
};

static int on_message(void *data, struct link_message *m)
{
	struct seen *s = data;

	if (!m) {
		s->gone++;
		loop_stop(s->loop);
		return 0;
	}
	s->messages++;
	s->kind = m->record.kind;
	s->n_fds = m->n_fds;
	if (m->n_fds > 0)
		s->fd = TAKE_FD(m->fds[0]);
	return 0;
}

static void start(struct seen *s, int fd)
{
	*s = (struct seen){ .loop = loop_new(), .fd = -EBADF };
	assert_non_null(s->loop);
	assert_int_equal(link_new(fd, 0, &s->link), 0);
	s->port.on_message = on_message;
	s->port.data = s;
	link_attach(s->link, &s->port);
	assert_int_equal(link_watch(s->link, s->loop), 0);
}

static void finish(struct seen *s)
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
	struct seen s;
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
	struct seen s;
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
	struct seen s;
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

/* What a forked broker must look like: fds 0-3 only, a session of its own. Reports by exit code. */
static int serve_inspect(int fd)
{
	struct record r = { .kind = RECORD_DONE, .job = 1 };
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	/* ".", "..", 0, 1, 2, the socket and the directory itself. */
	if (n != 7 || fd != 3 || getsid(0) != getpid())
		return 1;
	(void)!write(fd, &r, sizeof(r));
	/* Ends when the front closes. */
	return read(fd, &r, sizeof(r)) == 0 ? 0 : 2;
}

static void test_spawned_broker_holds_only_its_socket(void **state)
{
	struct seen s = { .loop = loop_new(), .fd = -EBADF };
	struct error err;
	int extra = open("/dev/null", O_RDONLY); /* deliberately inheritable */

	(void)state;
	assert_int_equal(link_spawn(serve_inspect, &s.link, &err), 0);
	s.port.on_message = on_message;
	s.port.data = &s;
	link_attach(s.link, &s.port);
	assert_int_equal(link_watch(s.link, s.loop), 0);
	for (int i = 0; i < 2000 && s.messages == 0 && s.gone == 0; i++) {
		assert_int_equal(link_dispatch(s.link), 0);
		usleep(1000);
	}
	assert_int_equal(s.messages, 1);
	close(extra);
	finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_and_fds_arrive),
		cmocka_unit_test(test_other_jobs_records_are_dropped_with_their_fds),
		cmocka_unit_test(test_wrong_sizes_and_too_many_fds_break_the_link),
		cmocka_unit_test(test_spawned_broker_holds_only_its_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
