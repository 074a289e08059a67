/* SPDX-License-Identifier: Apache-2.0 */
/* The link: records and descriptors both ways, a peer that dies or breaks the protocol. */
#include "supervise/link.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
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

static int inspected;

/* What a forked broker must look like: fds 0-3 only, a session of its own. Reports by exit code. */
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
	/* Ends when the front closes. */
	return read(fd, &r, sizeof(r)) == 0 ? 0 : 2;
}

static void test_spawned_broker_holds_only_its_socket(void **state)
{
	struct seen s = { .loop = loop_new(), .fd = -EBADF };
	struct error err;
	int extra = open("/dev/null", O_RDONLY); /* deliberately inheritable */

	(void)state;
	assert_int_equal(
		link_spawn((struct link_server){ serve_inspect, &inspected }, &s.link, &err), 0);
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

/* A broker that listens: greets as told, then waits until we leave. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_and_fds_arrive),
		cmocka_unit_test(test_other_jobs_records_are_dropped_with_their_fds),
		cmocka_unit_test(test_wrong_sizes_and_too_many_fds_break_the_link),
		cmocka_unit_test(test_spawned_broker_holds_only_its_socket),
		cmocka_unit_test(test_a_listening_broker_is_connected_to),
		cmocka_unit_test(test_a_broker_of_another_version_is_left_alone),
		cmocka_unit_test(test_nobody_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
