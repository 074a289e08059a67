/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that costs next to nothing: requests are prepared text, answers are looked at only as far as needed to
 * know where they end. One connection a lane, kept alive; the clock stops when an answer's last byte is here.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "drive.h"

enum { ANSWER_MAX = 4 << 20, READ_BYTES = 64 << 10, WAIT_SECONDS = 60 };

int http_connect(int port, struct error *err)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct timeval patience = { .tv_sec = WAIT_SECONDS };
	const int one = 1;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "port %d: %s", port, strerror(errno));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return TAKE_FD(fd);
}

int http_send(int fd, const struct job *job, struct error *err)
{
	size_t n = strlen(job->http);

	if (send(fd, job->http, n, MSG_NOSIGNAL) != (ssize_t)n)
		return error_set(err, ERROR_INTERNAL, EPIPE, "the request was not taken: %s",
				 strerror(errno));
	return 0;
}

/* The number behind a header's name, up to the end of its line. */
static int64_t find_number(const char *head, size_t n, const char *name)
{
	size_t len = strlen(name);
	char digits[24];
	int64_t value;

	for (size_t i = 0; i + len < n; i++) {
		const char *line = memchr(head + i, '\n', n - i);

		if (!line)
			break;
		i = (size_t)(line - head);
		if (i + 1 + len >= n || strncasecmp(line + 1, name, len) != 0)
			continue;
		const char *from = line + 1 + len, *end = memchr(from, '\r', n - i - 1 - len);

		if (!end || (size_t)(end - from) >= sizeof(digits))
			break;
		(void)memcpy(digits, from, (size_t)(end - from));
		digits[end - from] = '\0';
		return parse_i64(digits, &value) < 0 ? -1 : value;
	}
	return -1;
}

int answer_find(const char *data, size_t n, struct answer *ret)
{
	static const char version[] = "HTTP/1.1 ";
	const char *end = n > 0 ? memmem(data, n, "\r\n\r\n", 4) : NULL;
	int64_t length;
	size_t head;

	if (!end)
		return 0;
	head = (size_t)(end - data) + 4;
	if (head < sizeof(version) + 3 || memcmp(data, version, sizeof(version) - 1) != 0)
		return -EPROTO;
	length = find_number(data, head, "content-length: ");
	if (length < 0 || length > ANSWER_MAX)
		return -EPROTO;
	if (n - head < (size_t)length)
		return 0;
	*ret = (struct answer){
		.status = (data[9] - '0') * 100 + (data[10] - '0') * 10 + (data[11] - '0'),
		.head = head,
		.body = (size_t)length,
	};
	return 1;
}

/* Some more bytes; 0: the server closed. */
static int receive(int fd, struct buf *in, struct error *err)
{
	static _Thread_local char chunk[READ_BYTES];
	ssize_t n = recv(fd, chunk, sizeof(chunk), 0);

	if (n < 0)
		return error_set(err, ERROR_INTERNAL, errno, "no answer: %s", strerror(errno));
	if (n > 0 && buf_append(in, chunk, (size_t)n) < 0)
		return error_set(err, ERROR_INTERNAL, EPROTO, "the answer is too long");
	return (int)n;
}

static int receive_answer(int fd, struct buf *in, struct answer *answer, struct error *err)
{
	int r = 0;

	while (r == 0) {
		r = receive(fd, in, err);
		if (r < 0)
			return r;
		if (r == 0)
			return error_set(err, ERROR_INTERNAL, EPROTO,
					 "the server closed without an answer");
		r = answer_find(in->data, in->len, answer);
	}
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, EPROTO, "that is no answer: %.200s",
				 in->data);
	return 0;
}

int http_sample(struct lane *lane, const struct job *job, struct sample *ret, struct error *err)
{
	_cleanup_buf_ struct buf in = { .max = ANSWER_MAX };
	struct answer answer;
	int64_t begin;
	int r;

	if (job->fresh || lane->http_port != job->port)
		lane->http_fd = fd_close(lane->http_fd);
	begin = clock_now_ns();
	if (lane->http_fd < 0) {
		lane->http_fd = http_connect(job->port, err);
		if (lane->http_fd < 0)
			return -EPROTO;
		lane->http_port = job->port;
		begin = job->fresh ? begin : clock_now_ns();
	}
	r = http_send(lane->http_fd, job, err);
	if (r >= 0)
		r = receive_answer(lane->http_fd, &in, &answer, err);
	ret->ns = clock_now_ns() - begin;
	if (r < 0) {
		lane->http_fd = fd_close(lane->http_fd);
		return r;
	}
	if (answer.status != 200)
		return error_set(err, ERROR_INTERNAL, EPROTO, "status %d: %.300s", answer.status,
				 in.data + answer.head);
	return job->any_body ? 0 : job_check_result(job, in.data + answer.head, ret, err);
}

/* The moment in "at=NANOSECONDS." once it is complete; 0: not yet. */
static int64_t find_moment(const struct buf *in)
{
	const char *from = memmem(in->data, in->len, "at=", 3), *end;
	char digits[24];
	int64_t moment;

	end = from ? memchr(from, '.', in->len - (size_t)(from - in->data)) : NULL;
	if (!end || (size_t)(end - from) - 3 >= sizeof(digits))
		return 0;
	(void)memcpy(digits, from + 3, (size_t)(end - from) - 3);
	digits[end - from - 3] = '\0';
	return parse_i64(digits, &moment) < 0 ? 0 : moment;
}

/* A connection of its own each time: so the end of the stream is the end of the connection. */
int http_first_byte(const struct job *job, int64_t *ret_ns, struct error *err)
{
	_cleanup_buf_ struct buf in = { .max = ANSWER_MAX };
	_cleanup_close_ int fd = http_connect(job->port, err);
	int64_t begin = clock_now_ns(), moment = 0, arrived = 0;
	int r;

	if (fd < 0 || http_send(fd, job, err) < 0)
		return -EPROTO;
	do {
		r = receive(fd, &in, err);
		if (moment == 0) {
			arrived = clock_now_ns();
			moment = find_moment(&in);
		}
	} while (r > 0);
	if (r < 0)
		return r;
	/* Both clocks are the same one, or this would not lie between the request and now. */
	if (moment < begin || moment > arrived || !memmem(in.data, in.len, "\"success\"", 9))
		return error_set(err, ERROR_INTERNAL, EPROTO, "a wrong stream: %.300s",
				 in.data ? in.data : "");
	*ret_ns = arrived - moment;
	return 0;
}
