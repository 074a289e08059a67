/* SPDX-License-Identifier: Apache-2.0 */
/* The client against bytes from the other end of a socket pair: cut anywhere, cut off, malformed, cancelled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "atoll/remote/http-client.h"
#include "base/buf.h"
#include "base/fd.h"

static const struct http_address here = { .text = "/here", .host = "localhost", .is_unix = true };

struct client_pair {
	struct http_client *client;
	int server;
};

static struct client_pair connected(void)
{
	struct client_pair p = { .client = calloc(1, sizeof(*p.client)) };
	int fds[2];

	assert_non_null(p.client);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	p.client->address = &here;
	p.client->fd = fds[0];
	p.client->cancel_fd = -EBADF;
	p.client->timeout_ms = 5000;
	p.server = fds[1];
	return p;
}

static void disconnect(struct client_pair *p)
{
	p->client = http_client_free(p->client);
	p->server = fd_close(p->server);
}

static void answer(struct client_pair *p, const char *text)
{
	assert_int_equal(fd_write_all(p->server, text, strlen(text)), 0);
}

/* Head and body; the last return value. */
static int read_all(struct client_pair *p, struct buf *body, struct error *err)
{
	struct span piece;
	int r = http_client_head(p->client, err);

	while (r == 0 && (r = http_client_read(p->client, &piece, err)) > 0) {
		assert_int_equal(buf_append(body, piece.data, piece.len), 0);
		r = 0;
		if (p->client->over)
			break;
	}
	return r;
}

static void test_addresses(void **state)
{
	static const struct {
		const char *text, *host;
		int family;
		uint16_t port;
	} good[] = {
		{ "/run/atoll/atoll.sock", "localhost", AF_UNIX, 0 },
		{ "unix:/x", "localhost", AF_UNIX, 0 },
		{ "./d.sock", "localhost", AF_UNIX, 0 },
		{ "http://127.0.0.1:8701", "127.0.0.1:8701", AF_INET, 8701 },
		{ "http://localhost/", "localhost:8700", AF_INET, 8700 },
		{ "http://[::1]:80", "[::1]:80", AF_INET6, 80 },
		{ "http://[::1]", "[::1]:8700", AF_INET6, 8700 },
	};
	static const char *const bad[] = { "",
					   "d.sock",
					   "unix:",
					   "https://127.0.0.1",
					   "http://",
					   "http://example.org",
					   "http://127.0.0.1:0",
					   "http://127.0.0.1:65536",
					   "http://127.0.0.1:1x",
					   "http://127.0.0.1:",
					   "http://127.0.0.1:80/path",
					   "http://[::1",
					   "http://127.0.0.1:111111111111" };
	char long_path[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct http_address a = { 0 };

		assert_int_equal(http_address_parse(good[i].text, &a, NULL), 0);
		assert_string_equal(a.host, good[i].host);
		assert_int_equal(a.socket.ss_family, good[i].family);
		if (good[i].port)
			assert_int_equal(ntohs(((struct sockaddr_in *)&a.socket)->sin_port),
					 good[i].port);
	}
	memset(long_path, '/', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	assert_int_equal(http_address_parse(long_path, &(struct http_address){ 0 }, NULL),
			 -ENAMETOOLONG);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(http_address_parse(bad[i], &(struct http_address){ 0 }, NULL),
				 -EINVAL);
}

static void test_request(void **state)
{
	const struct http_call call = { .method = HTTP_POST,
					.target = "/v1/execute",
					.token = "secret",
					.range = "bytes=1-",
					.body = span_of("{}") };
	const struct http_call bad = { .method = HTTP_GET, .target = "/", .accept = "a\r\nb: c" };
	struct client_pair p = connected();
	char text[1024] = "";

	(void)state;
	assert_int_equal(http_client_send(p.client, &call, NULL), 0);
	assert_true(p.client->sent);
	assert_true(read(p.server, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\n"
				  "User-Agent: atoll\r\nAccept: application/json\r\n"
				  "Connection: close\r\nRange: bytes=1-\r\n"
				  "Authorization: Bearer secret\r\n"
				  "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
	assert_int_equal(http_client_send(p.client, &bad, NULL), -EINVAL);
	disconnect(&p);
}

static void test_answers(void **state)
{
	static const struct {
		const char *text, *body;
		int r, status;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 0, 200 },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
		  "hello", 0, 200 },
		{ "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", "hello", 0, 200 },
		{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: "
		  "0\r\n\r\n",
		  "", 0, 404 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "hello", -ECONNRESET, 200 },
		{ "HTTP/1.1 200 OK\r\nContent-Len", "", -ECONNRESET, 0 },
		{ "", "", -ECONNRESET, 0 },
		{ "SSH-2.0-OpenSSH_9.2\r\n", "", -EBADMSG, 0 },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "", -EBADMSG,
		  200 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct buf body = { .max = 100 };
		struct client_pair p = connected();
		struct error err = { 0 };
		int r;

		answer(&p, cases[i].text);
		p.server = fd_close(p.server);
		r = read_all(&p, &body, &err);
		assert_int_equal(r, cases[i].r);
		assert_string_equal(body.data ? body.data : "", cases[i].body);
		if (cases[i].status)
			assert_int_equal(p.client->response.status, cases[i].status);
		assert_int_equal(err.text[0] != '\0', r < 0);
		disconnect(&p);
	}
}

static void test_silence(void **state)
{
	struct client_pair p = connected();
	struct error err = { 0 };

	(void)state;
	p.client->timeout_ms = 10;
	assert_int_equal(http_client_head(p.client, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "does not answer"));
	disconnect(&p);
}

/* The server learns of the hang-up, and the rest of its answer is read. */
static void test_cancel(void **state)
{
	_cleanup_buf_ struct buf body = { .max = 100 };
	_cleanup_close_ int cancel_fd = eventfd(1, EFD_CLOEXEC);
	struct client_pair p = connected();
	char byte;

	(void)state;
	p.client->cancel_fd = cancel_fd;
	answer(&p, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
	answer(&p, "late");
	assert_int_equal(read_all(&p, &body, NULL), 0);
	assert_string_equal(body.data, "late");
	assert_int_equal(read(p.server, &byte, 1), 0);
	disconnect(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses), cmocka_unit_test(test_request),
		cmocka_unit_test(test_answers),	  cmocka_unit_test(test_silence),
		cmocka_unit_test(test_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
