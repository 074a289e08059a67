/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with one route of each kind, for tests over real sockets: http-test-server SOCKET [KEY=VALUE…].
 * It listens on a free port of 127.0.0.1 and on the unix socket, prints the port, and ends when its
 * standard input ends. KEYs are limits: connections, reserve, head_ms, body_idle_ms, write_stall_ms,
 * idle_ms, linger_ms, body_max, body_total; also token=TEXT.
 */
#include "web/http/server.h"

#include "base/buf.h"
#include "base/caller.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct app {
	struct loop *loop;
	struct server *server;
	unsigned gone_half, gone_full, answered;
};

static int get_health(struct request_ctx *ctx)
{
	return respond_json(ctx, 200, json_pack("{s:s}", "status", "ok"));
}

static int post_echo(struct request_ctx *ctx)
{
	struct span body = request_body(ctx);

	return respond_bytes(ctx, 200, "application/octet-stream", body);
}

static int post_json(struct request_ctx *ctx)
{
	return respond_json(ctx, 200, json_incref(request_json(ctx)));
}

static int post_count(struct request_ctx *ctx)
{
	return respond_json(ctx, 200,
			    json_pack("{s:I, s:s}", "bytes", (json_int_t)request_body(ctx).len,
				      "caller", request_principal(ctx)->name));
}

static int get_thing(struct request_ctx *ctx)
{
	const char *q = request_query(ctx, "q");

	return respond_json(ctx, 200,
			    json_pack("{s:s, s:s?}", "id", request_param(ctx, "id"), "q", q));
}

static int get_fail(struct request_ctx *ctx)
{
	(void)ctx;
	return -EIO;
}

/* --- an answer that comes later --- */

struct late_answer {
	struct request_ctx *ctx;
	struct source *timer;
	struct app *app;
};

static int on_later(void *data, uint32_t events)
{
	struct late_answer *l = data;

	(void)events;
	l->timer = source_free(l->timer);
	l->app->answered++;
	(void)respond_json(l->ctx, 200, json_pack("{s:b}", "late", true));
	free(l);
	return 0;
}

static void on_later_gone(void *data, enum gone how)
{
	struct late_answer *l = data;

	if (how == GONE_HALF)
		l->app->gone_half++;
	else
		l->app->gone_full++;
	if (how == GONE_SERVER) {
		l->timer = source_free(l->timer);
		free(l);
	}
}

static int get_later(struct request_ctx *ctx)
{
	const char *ms = request_query(ctx, "ms");
	struct late_answer *l = calloc(1, sizeof(*l));
	int64_t wait_ms = 50;
	int r;

	if (!l)
		return -ENOMEM;
	if (ms && parse_i64(ms, &wait_ms) < 0) {
		free(l);
		return respond_field(ctx, "ms", "ms must be a number.");
	}
	*l = (struct late_answer){ .ctx = ctx, .app = request_app(ctx) };
	r = loop_add_timer(request_loop(ctx), clock_now_ns() + wait_ms * NS_PER_MS,
			   (struct handler){ on_later, l }, &l->timer);
	if (r < 0) {
		free(l);
		return r;
	}
	response_on_gone(ctx, on_later_gone, l);
	return 0;
}

static int get_gone(struct request_ctx *ctx)
{
	struct app *app = request_app(ctx);

	return respond_json(ctx, 200,
			    json_pack("{s:i, s:i, s:i}", "half", (int)app->gone_half, "full",
				      (int)app->gone_full, "answered", (int)app->answered));
}

/* --- a stream as fast as it is read --- */

struct flood {
	struct request_ctx *ctx;
	int64_t left;
	int64_t seq;
	bool events;
};

static int flood_piece(struct flood *f)
{
	static const char filler[4096];
	_cleanup_buf_ struct buf b = { 0 };
	int r;

	if (!f->events)
		return response_write(f->ctx, filler,
				      (size_t)MIN(f->left, (int64_t)sizeof(filler)));
	buf_init(&b, 4096);
	r = buf_printf(&b, "id: %lld\nevent: tick\ndata: {}\n\n", (long long)f->seq++);
	return r < 0 ? r : response_write(f->ctx, b.data, b.len);
}

static void flood_more(void *data)
{
	struct flood *f = data;
	struct request_ctx *ctx = f->ctx;
	int r = 0;

	for (int i = 0; r == 0 && f->left > 0; i++) {
		if (i == 64) {
			response_yield(ctx);
			return;
		}
		r = flood_piece(f);
		if (r >= 0)
			f->left -= f->events ? 1 : MIN(f->left, 4096);
	}
	if (r == 1 && f->left > 0)
		return;
	free(f);
	if (r < 0)
		response_abort(ctx);
	else
		response_end(ctx);
}

static void flood_gone(void *data, enum gone how)
{
	struct flood *f = data;
	struct request_ctx *ctx = f->ctx;

	if (how == GONE_HALF)
		return;
	free(f);
	if (how == GONE_FULL)
		response_abort(ctx);
}

static int begin_flood(struct request_ctx *ctx, bool events)
{
	struct flood *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	*f = (struct flood){ .ctx = ctx, .events = events };
	r = parse_i64(request_param(ctx, "n"), &f->left);
	if (r >= 0)
		r = response_begin(ctx, 200,
				   events ? "text/event-stream" : "application/octet-stream", -1);
	if (r < 0) {
		free(f);
		return r;
	}
	response_on_drain(ctx, flood_more, f);
	response_on_gone(ctx, flood_gone, f);
	flood_more(f);
	return 0;
}

static int get_flood(struct request_ctx *ctx)
{
	return begin_flood(ctx, false);
}

static int get_events(struct request_ctx *ctx)
{
	return begin_flood(ctx, true);
}

/* The digits 0 to 9, again and again. */
static int get_file(struct request_ctx *ctx)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	char digits[10000];
	int64_t size = 0;

	if (fd < 0 || parse_i64(request_param(ctx, "n"), &size) < 0) {
		(void)fd_close(fd);
		return -EINVAL;
	}
	for (size_t i = 0; i < sizeof(digits); i++)
		digits[i] = (char)('0' + i % 10);
	for (int64_t at = 0; at < size; at += (int64_t)sizeof(digits))
		if (fd_write_all(fd, digits, (size_t)MIN(size - at, (int64_t)sizeof(digits))) < 0)
			break;
	if (response_attachment(ctx, "a\r\nb\".bin") < 0) {
		(void)fd_close(fd);
		return -EIO;
	}
	return respond_file(ctx, &(struct file_body){ fd, size, "application/octet-stream" });
}

/* --- a tunnel that sends back what it gets --- */

struct echo_tunnel {
	struct tunnel *tunnel;
};

static void echo_data(void *data, const void *bytes, size_t n)
{
	struct echo_tunnel *e = data;

	if (n > 0 && *(const char *)bytes == 'q') {
		tunnel_close(e->tunnel);
		free(e);
		return;
	}
	tunnel_pause(e->tunnel, tunnel_write(e->tunnel, bytes, n) == 1);
}

static void echo_drain(void *data)
{
	struct echo_tunnel *e = data;

	tunnel_pause(e->tunnel, false);
}

static void echo_gone(void *data)
{
	free(data);
}

static int get_echo(struct request_ctx *ctx)
{
	struct echo_tunnel *e = calloc(1, sizeof(*e));
	const struct tunnel_ops ops = { echo_data, echo_drain, echo_gone, e };

	if (!e)
		return -ENOMEM;
	if (response_upgrade(ctx, NULL, &ops, &e->tunnel) < 0)
		free(e);
	return 0;
}

static const struct route routes[] = {
	{ HTTP_GET, "/healthz", get_health, .flags = ROUTE_PUBLIC | ROUTE_ALWAYS },
	{ HTTP_POST, "/echo", post_echo, .flags = ROUTE_BYTES },
	{ HTTP_POST, "/json", post_json, .flags = ROUTE_JSON },
	{ HTTP_POST, "/maybe", post_count, .flags = ROUTE_JSON_OPTIONAL },
	{ HTTP_PUT, "/count", post_count, .flags = ROUTE_BYTES },
	{ HTTP_GET, "/things/{id}", get_thing, .summary = "A thing" },
	{ HTTP_DELETE, "/things/{id}", get_thing, .summary = "A thing" },
	{ HTTP_GET, "/things/{id}/files/{path...}", get_thing, .summary = "A thing" },
	{ HTTP_GET, "/fail", get_fail, .summary = "Fails" },
	{ HTTP_GET, "/later", get_later, .summary = "Takes time" },
	{ HTTP_GET, "/gone", get_gone, .summary = "Counts" },
	{ HTTP_GET, "/flood/{n}", get_flood, .flags = ROUTE_STREAMS },
	{ HTTP_GET, "/events/{n}", get_events, .flags = ROUTE_STREAMS },
	{ HTTP_GET, "/file/{n}", get_file, .summary = "A file" },
	{ HTTP_GET, "/tunnel", get_echo, .flags = ROUTE_UPGRADES },
	{ 0 },
};

static int listen_tcp(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (void *)&a, len) < 0 || listen(fd, 4096) < 0 ||
	    getsockname(fd, (void *)&a, &len) < 0)
		return -errno;
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static int listen_unix(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (void *)&a, sizeof(a)) < 0 || listen(fd, 4096) < 0)
		return -errno;
	return fd;
}

static int set_limit(struct server_limits *l, const char *key, int64_t value)
{
	const struct {
		const char *key;
		int64_t *value;
	} times[] = {
		{ "head_ms", &l->head_ms },
		{ "body_idle_ms", &l->body_idle_ms },
		{ "write_stall_ms", &l->write_stall_ms },
		{ "idle_ms", &l->idle_ms },
		{ "linger_ms", &l->linger_ms },
		{ "slow_bytes_per_s", &l->slow_bytes_per_s },
		{ "slow_max_ms", &l->slow_max_ms },
		{ "body_max", &l->body_max_bytes },
		{ "body_total", &l->body_total_bytes },
	};

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		if (strcmp(times[i].key, key) == 0) {
			*times[i].value = value;
			return 0;
		}
	}
	if (strcmp(key, "connections") == 0)
		l->connections = (uint32_t)value;
	else if (strcmp(key, "reserve") == 0)
		l->connections_reserve = (uint32_t)value;
	else
		return -EINVAL;
	return 0;
}

static int read_options(char **argv, struct server_config *config, struct access_token *token)
{
	for (; *argv; argv++) {
		char *value = strchr(*argv, '=');
		int64_t number;

		if (!value)
			return -EINVAL;
		*value++ = '\0';
		if (strcmp(*argv, "token") == 0) {
			if (token_init(token, "test", value) < 0)
				return -EINVAL;
			config->auth.tokens = token;
			config->auth.n_tokens = 1;
		} else if (parse_i64(value, &number) < 0 ||
			   set_limit(&config->limits, *argv, number) < 0) {
			return -EINVAL;
		}
	}
	return 0;
}

static int on_stop(void *data, uint32_t events)
{
	(void)events;
	loop_stop(data);
	return 0;
}

static int serve(struct server_config *config, const char *path)
{
	struct app *app = config->app;
	bool needs_token = config->auth.n_tokens > 0;
	struct source *stop = NULL;
	uint16_t port = 0;
	int r = server_new(config, &app->server);

	if (r < 0)
		return r;
	r = server_listen(app->server,
			  (struct listener){ listen_tcp(&port), LISTENER_TCP, needs_token, false });
	if (r >= 0)
		r = server_listen(app->server, (struct listener){ listen_unix(path), LISTENER_UNIX,
								  false, false });
	if (r >= 0)
		r = loop_add_fd(app->loop, STDIN_FILENO, EPOLLIN,
				(struct handler){ on_stop, app->loop }, &stop);
	if (r >= 0) {
		(void)printf("%u\n", port);
		(void)fflush(stdout);
		r = loop_run(app->loop);
	}
	stop = source_free(stop);
	app->server = server_free(app->server);
	return r;
}

int main(int argc, char **argv)
{
	static const struct route *const tables[] = { routes };
	struct app app = { .loop = loop_new() };
	struct callers callers = { 0 };
	struct access_token token;
	struct server_config config = {
		.loop = app.loop,
		.router = { tables, ARRAY_SIZE(tables) },
		.auth = { .uid = getuid() },
		.limits = server_limits_default(),
		.callers = &callers,
		.app = &app,
	};
	int r;

	if (argc < 2 || !app.loop || read_options(argv + 2, &config, &token) < 0) {
		(void)fprintf(stderr, "usage: http-test-server SOCKET [KEY=VALUE...]\n");
		return 2;
	}
	r = serve(&config, argv[1]);
	app.loop = loop_free(app.loop);
	return r < 0 ? 1 : 0;
}
