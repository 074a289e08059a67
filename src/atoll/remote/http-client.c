/* SPDX-License-Identifier: Apache-2.0 */
/* See http-client.h. */
#include "atoll/remote/http-client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "web/codec/http-write.h"

enum {
	SEND_SECONDS = 30,
	SEND_PIECE = 1 << 20,
	REQUEST_HEAD_MAX = 16 << 10,
	PORT_DEFAULT = 8700,
	INTERIM_MAX = 8,
	CANCEL_MS = 5000
};

static int parse_unix(const char *path, struct http_address *ret, struct error *err)
{
	struct sockaddr_un *sun = (struct sockaddr_un *)&ret->socket;

	if (strlen(path) >= sizeof(sun->sun_path))
		return error_set(err, ERROR_INPUT, ENAMETOOLONG,
				 "the socket's path '%.200s' is too long; %zu bytes at most", path,
				 sizeof(sun->sun_path) - 1);
	sun->sun_family = AF_UNIX;
	memcpy(sun->sun_path, path, strlen(path) + 1);
	ret->socket_len = (socklen_t)sizeof(*sun);
	ret->is_unix = true;
	(void)snprintf(ret->host, sizeof(ret->host), "localhost");
	return 0;
}

static int bad_url(const char *text, struct error *err)
{
	if (strncmp(text, "https://", 8) == 0)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "'%.100s' cannot be used: this command speaks no TLS; give the "
				 "daemon's own address, http://ADDRESS:PORT, or its socket",
				 text);
	return error_set(err, ERROR_INPUT, EINVAL,
			 "'%.100s' is no daemon's address; give the path of its socket or "
			 "http://ADDRESS:PORT with an address in numbers",
			 text);
}

/* Parses "127.0.0.1", "[::1]" or "localhost" and the port after it. */
static int parse_host(struct span host, int64_t port, struct http_address *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&ret->socket;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret->socket;
	char text[64];

	if (span_is(host, "localhost"))
		host = span_of("127.0.0.1");
	if (host.len >= sizeof(text))
		return -EINVAL;
	if (host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']') {
		(void)snprintf(text, sizeof(text), "%.*s", (int)host.len - 2, host.data + 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		ret->socket_len = (socklen_t)sizeof(*in6);
		return inet_pton(AF_INET6, text, &in6->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	(void)snprintf(text, sizeof(text), "%.*s", (int)host.len, host.data);
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	ret->socket_len = (socklen_t)sizeof(*in);
	return inet_pton(AF_INET, text, &in->sin_addr) == 1 ? 0 : -EINVAL;
}

static int parse_http(const char *text, struct http_address *ret, struct error *err)
{
	const char *rest = text + strlen("http://"), *colon;
	struct span all = { rest, strcspn(rest, "/") }, host;
	int64_t port = PORT_DEFAULT;
	char number[8];

	if (strcmp(rest + all.len, "") != 0 && strcmp(rest + all.len, "/") != 0)
		return bad_url(text, err);
	colon = memrchr(all.data, ':', all.len);
	if (colon && memchr(colon, ']', all.len - (size_t)(colon - all.data)))
		colon = NULL;
	host = (struct span){ all.data, colon ? (size_t)(colon - all.data) : all.len };
	if (colon) {
		(void)snprintf(number, sizeof(number), "%.*s", (int)(all.len - host.len - 1),
			       colon + 1);
		if (all.len - host.len - 1 >= sizeof(number) || parse_i64(number, &port) < 0)
			port = 0;
	}
	if (port < 1 || port > UINT16_MAX || parse_host(host, port, ret) < 0)
		return bad_url(text, err);
	(void)snprintf(ret->host, sizeof(ret->host), "%.*s:%d", (int)host.len, host.data,
		       (int)port);
	return 0;
}

/* A host without http:// before it, which would otherwise be the name of a socket: "localhost:8700". */
static bool lacks_scheme(const char *text)
{
	struct http_address ignored = { 0 };

	return !strchr(text, '/') &&
	       (strchr(text, ':') || parse_host(span_of(text), PORT_DEFAULT, &ignored) == 0);
}

int http_address_parse(const char *text, struct http_address *ret, struct error *err)
{
	struct http_address a = { 0 };
	int r;

	(void)snprintf(a.text, sizeof(a.text), "%s", text);
	if (strncmp(text, "unix:", 5) == 0)
		r = text[5] ? parse_unix(text + 5, &a, err) : bad_url(text, err);
	else if (strncmp(text, "http://", 7) == 0)
		r = parse_http(text, &a, err);
	else if (lacks_scheme(text))
		r = error_set(err, ERROR_INPUT, EINVAL,
			      "the daemon's address '%.100s' has no scheme; write http://%.100s",
			      text, text);
	else if (strchr(text, '/') && !strstr(text, "://"))
		r = parse_unix(text, &a, err);
	else if (*text && !strchr(text, '/'))
		r = error_set(err, ERROR_INPUT, EINVAL,
			      "'%.100s' is no daemon's address; give http://ADDRESS:PORT or the "
			      "path of its socket, with a slash: ./%.100s",
			      text, text);
	else
		r = bad_url(text, err);
	if (r == 0)
		*ret = a;
	return r;
}

int http_client_open(const struct http_address *address, struct http_client **ret)
{
	const struct timeval patience = { .tv_sec = SEND_SECONDS };
	struct http_client *c;
	int one = 1;
	_cleanup_close_ int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!address->is_unix)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)&address->socket, address->socket_len) < 0)
		return errno == EINPROGRESS ? -ETIMEDOUT : -errno;
	c = malloc(sizeof(*c));
	if (!c)
		return -ENOMEM;
	/* Everything but the buffer, which is large and written before it is read. */
	memset(c, 0, offsetof(struct http_client, buffer));
	c->address = address;
	c->fd = TAKE_FD(fd);
	c->cancel_fd = -EBADF;
	c->timeout_ms = -1;
	*ret = c;
	return 0;
}

struct http_client *http_client_free(struct http_client *c)
{
	if (c)
		c->fd = fd_close(c->fd);
	free(c);
	return NULL;
}

void http_client_hang_up(struct http_client *c)
{
	(void)shutdown(c->fd, SHUT_WR);
	c->cancel_fd = -EBADF;
	c->timeout_ms = CANCEL_MS;
}

static int write_head(struct buf *head, const struct http_client *c, const struct http_call *call)
{
	char length[24], bearer[600];
	struct {
		const char *name, *value;
	} fields[] = {
		{ "Host", c->address->host },
		{ "User-Agent", "atoll" },
		{ "Accept", call->accept ? call->accept : "application/json" },
		{ "Connection", call->websocket_key || call->upgrade ? "Upgrade" : "close" },
		{ "Upgrade", call->websocket_key ? "websocket" : call->upgrade },
		{ "Sec-WebSocket-Version", call->websocket_key ? "13" : NULL },
		{ "Sec-WebSocket-Key", call->websocket_key },
		{ "Range", call->range },
		{ "Authorization", call->token ? bearer : NULL },
		{ "Content-Type", !call->body.data     ? NULL
				  : call->content_type ? call->content_type
						       : "application/json" },
		{ "Content-Length", call->body.data ? length : NULL },
	};
	int r = http_write_request_line(head, call->method, call->target);

	(void)snprintf(length, sizeof(length), "%zu", call->body.len);
	(void)snprintf(bearer, sizeof(bearer), "Bearer %s", call->token ?: "");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fields); i++)
		if (fields[i].value)
			r = http_write_field(head, fields[i].name, span_of(fields[i].value));
	return r < 0 ? r : http_write_end(head);
}

/* false: the connection takes no more bytes. */
static bool send_all(const struct http_client *c, const char *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t sent = send(c->fd, data + at, MIN(n - at, (size_t)SEND_PIECE),
				    MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return false;
		at += (size_t)sent;
		if (c->on_sent)
			c->on_sent(c->data, at, n);
	}
	return true;
}

int http_client_send(struct http_client *c, const struct http_call *call, struct error *err)
{
	_cleanup_buf_ struct buf head = { .max = REQUEST_HEAD_MAX };
	int r;

	r = write_head(&head, c, call);
	/* A small request is sent in one piece. */
	if (r == 0 && call->body.len <= REQUEST_HEAD_MAX - head.len)
		r = buf_append(&head, call->body.data, call->body.len);
	else if (r == 0)
		r = 1;
	if (r < 0)
		return error_set(err, ERROR_INPUT, -r, "the request cannot be written: %s",
				 strerror(-r));
	c->sent = send_all(c, head.data, head.len) &&
		  (r == 0 || send_all(c, call->body.data, call->body.len));
	return 0;
}

static int went_away(const struct http_client *c, int errnum, struct error *err)
{
	if (errnum == ETIMEDOUT)
		return error_set(err, ERROR_INTERNAL, errnum,
				 "the daemon at %s does not answer; see its log", c->address->text);
	return error_set(err, ERROR_INTERNAL, errnum,
			 "the daemon at %s went away in the middle of its answer; see its log",
			 c->address->text);
}

static int http_malformed(const struct http_client *c, const char *why, struct error *err)
{
	return error_set(err, ERROR_INTERNAL, EBADMSG, "what answers at %s is no atoll daemon: %s",
			 c->address->text, why ?: "no HTTP");
}

/* Waits until there is something to read; if cancel_fd becomes readable, hangs up. */
static int wait_readable(struct http_client *c)
{
	for (;;) {
		struct pollfd fds[] = { { .fd = c->fd, .events = POLLIN },
					{ .fd = c->cancel_fd, .events = POLLIN } };
		int r = poll(fds, ARRAY_SIZE(fds), c->timeout_ms);

		if (r == 0)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0 && (fds[1].revents & POLLIN))
			http_client_hang_up(c);
		if (r > 0 && fds[0].revents)
			return 0;
	}
}

/* Reads more bytes behind the ones in the buffer. 0: the other side has closed. */
static ssize_t fill_http_buffer(struct http_client *c, struct error *err)
{
	ssize_t n;

	do {
		int r = wait_readable(c);

		if (r < 0)
			return went_away(c, -r, err);
		n = recv(c->fd, c->buffer + c->len, sizeof(c->buffer) - c->len, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return went_away(c, errno, err);
	c->len += (size_t)n;
	return n;
}

/* Reads one head, which may be an interim one. */
static int read_head(struct http_client *c, struct error *err)
{
	int r;

	memmove(c->buffer, c->buffer + c->at, c->len - c->at);
	c->len -= c->at;
	c->at = 0;
	http_response_init(&c->response, HTTP_LIMITS);
	while ((r = http_response_feed(&c->response, c->buffer, c->len, false)) == 0) {
		ssize_t n = fill_http_buffer(c, err);

		if (n <= 0)
			return n < 0 ? (int)n : went_away(c, ECONNRESET, err);
	}
	if (r < 0)
		return http_malformed(c, c->response.head.why, err);
	c->at = c->response.head.len;
	return 0;
}

enum http_answer http_client_answer(const struct http_client *c)
{
	switch (c->response.status) {
	case 101:
		return HTTP_ANSWER_SWITCHED;
	case 413:
	case 421:
	case 429:
	case 503:
		return HTTP_ANSWER_DECLINED;
	default:
		return c->response.status / 100 == 2 ? HTTP_ANSWER_GOOD : HTTP_ANSWER_REFUSED;
	}
}

int http_client_head(struct http_client *c, struct error *err)
{
	for (int i = 0; i < INTERIM_MAX; i++) {
		int r = read_head(c, err);

		if (r < 0 || c->response.status >= 200 || c->response.status == 101)
			return r;
	}
	return http_malformed(c, "too many interim answers", err);
}

int http_client_read(struct http_client *c, struct span *ret, struct error *err)
{
	while (!c->over) {
		struct span piece = { 0 };
		size_t used = 0;
		int r = http_body_feed(&c->response.body,
				       (struct span){ c->buffer + c->at, c->len - c->at }, &used,
				       &piece);

		if (r < 0)
			return http_malformed(c, c->response.body.why, err);
		c->at += used;
		c->over = r == 1;
		if (piece.len > 0) {
			*ret = piece;
			return 1;
		}
		if (!c->over && c->at == c->len) {
			ssize_t n;

			c->at = c->len = 0;
			n = fill_http_buffer(c, err);
			if (n < 0)
				return (int)n;
			c->over = n == 0 && c->response.body.kind == HTTP_BODY_UNTIL_CLOSE;
			if (n == 0 && !c->over)
				return went_away(c, ECONNRESET, err);
		}
	}
	return 0;
}

int http_client_receive(struct http_client *c, struct span *ret, struct error *err)
{
	ssize_t n;

	if (c->at == c->len) {
		c->at = c->len = 0;
		n = fill_http_buffer(c, err);
		if (n <= 0)
			return (int)n;
	}
	*ret = (struct span){ c->buffer + c->at, c->len - c->at };
	c->at = c->len;
	return 1;
}
