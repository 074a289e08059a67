/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll mcp`: the Model Context Protocol on standard input and output, for programs that start their servers.
 *
 *   stdin ── line ──▶ frame ──▶ WebSocket /mcp of a daemon ──▶ mcp/
 *   stdout ◀─ line ── frame ◀──
 *
 * The daemon speaks the protocol; this command carries lines. It asks the daemon that runs, or a private one that it starts
 * for itself. When standard input ends, requests that are nearly done are still answered; then it leaves, and what is left
 * is cancelled, which it says on standard error.
 *
 * Nothing is written to standard output but messages. A reader that stalls holds up the reading of answers, and a daemon that
 * stalls the reading of input: neither is buffered without bound.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atoll/commands/remote.h"
#include "atoll/remote/refusal.h"
#include "atoll/remote/websocket-client.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/utf8.h"

enum {
	LINE_MAX_BYTES = 16 << 20, /* as the daemon's messages */
	STDIN_PIECE = 64 << 10,
	STDOUT_PIECE = 4096, /* that a pipe takes at once */
	HELD_MAX = 1 << 20,  /* bytes for standard output, before answers are no longer read */
	OUT_MAX_BYTES = 512 << 20,
	LAST_ANSWERS_MS = 5000, /* after the end of the input */
};

struct mcp_options_of_command {
	struct ask ask; /* first */
	bool private;
};

struct bridge {
	struct websocket_client socket;
	struct buf in; /* the beginning of a line */
	struct buf out;
	size_t written; /* bytes of out that are written */
	int64_t asked, answered;
	bool input_ended, over;
	int64_t until_ns; /* after the end of the input */
};

/* --- in --- */

/* To know when all requests are answered; a request that is cancelled gets no answer. */
enum message_kind { MESSAGE_OTHER, MESSAGE_REQUEST, MESSAGE_ANSWER, MESSAGE_CANCEL };

static enum message_kind message_kind(struct span text)
{
	json_t *message = json_loadb(text.data, text.len, 0, NULL);
	const json_t *id = json_object_get(message, "id"),
		     *method = json_object_get(message, "method");
	enum message_kind kind = MESSAGE_OTHER;

	if (id && !json_is_null(id))
		kind = method ? MESSAGE_REQUEST : MESSAGE_ANSWER;
	else if (method && strcmp(json_string_value(method) ?: "", "notifications/cancelled") == 0)
		kind = MESSAGE_CANCEL;
	json_decref(message);
	return kind;
}

static int send_line(struct bridge *b, struct span line, struct error *err)
{
	enum websocket_op op = utf8_is_valid(line.data, line.len) ? WEBSOCKET_TEXT
								  : WEBSOCKET_BINARY;
	enum message_kind kind;
	int r;

	line = span_trim(line);
	while (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	if (line.len == 0)
		return 0;
	kind = message_kind(line);
	b->asked += kind == MESSAGE_REQUEST;
	b->answered += kind == MESSAGE_CANCEL;
	r = websocket_client_queue(&b->socket, op, line);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "cannot send to the daemon: %s",
				 strerror(-r))
		     : 0;
}

static int send_lines(struct bridge *b, struct error *err)
{
	size_t done = 0;
	int r = 0;

	while (r == 0 && done < b->in.len) {
		const char *begin = b->in.data + done;
		const char *end = memchr(begin, '\n', b->in.len - done);

		if (!end && !b->input_ended)
			break;
		r = send_line(
			b, (struct span){ begin, end ? (size_t)(end - begin) : b->in.len - done },
			err);
		done = end ? (size_t)(end - b->in.data) + 1 : b->in.len;
	}
	if (done > 0) {
		memmove(b->in.data, b->in.data + done, b->in.len - done);
		b->in.len -= done;
	}
	return r;
}

static int read_input(struct bridge *b, struct error *err)
{
	static char piece[STDIN_PIECE];
	ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0) {
		b->input_ended = true;
		b->until_ns = clock_now_ns() + LAST_ANSWERS_MS * NS_PER_MS;
	} else if (buf_append(&b->in, piece, (size_t)n) < 0) {
		return error_set(err, ERROR_INPUT, EMSGSIZE,
				 "a message on standard input is longer than %d MiB",
				 LINE_MAX_BYTES >> 20);
	}
	return send_lines(b, err);
}

/* --- out --- */

static int on_bridge_frame(void *data, enum websocket_op op, struct span payload, struct error *err)
{
	struct bridge *b = data;

	if (op == WEBSOCKET_CLOSE) {
		b->over = true;
		if (b->input_ended)
			return 1;
		/* Behind two bytes of a number, the daemon may have said why. */
		if (payload.len > 2)
			return error_set(err, ERROR_LOST, ECONNRESET,
					 "the daemon has closed the connection: %.*s",
					 (int)payload.len - 2, payload.data + 2);
		return error_set(err, ERROR_LOST, ECONNRESET,
				 "the daemon has closed the connection");
	}
	b->answered += message_kind(payload) == MESSAGE_ANSWER;
	if (buf_append(&b->out, payload.data, payload.len) < 0 || buf_puts(&b->out, "\n") < 0)
		return error_oom(err);
	return 0;
}

static int receive_answers(struct bridge *b, struct error *err)
{
	int r = websocket_client_receive(&b->socket,
					 (struct websocket_listener){ b, on_bridge_frame }, err);

	if (r == -ECONNRESET && err->code == ERROR_INTERNAL)
		return error_set(err, ERROR_LOST, ECONNRESET,
				 "the daemon has ended; let the client start this server again");
	return MIN(r, 0);
}

static int write_output(struct bridge *b, struct error *err)
{
	size_t n = MIN(b->out.len - b->written, (size_t)STDOUT_PIECE);
	ssize_t done = write(STDOUT_FILENO, b->out.data + b->written, n);

	if (done < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (done < 0)
		return error_set(err, ERROR_INTERNAL, errno, "cannot write to standard output: %s",
				 strerror(errno));
	b->written += (size_t)done;
	if (b->written == b->out.len)
		b->out.len = b->written = 0;
	return 0;
}

/* --- both --- */

static int step_bridge(struct bridge *b, struct error *err)
{
	const bool sending = websocket_client_is_sending(&b->socket);
	const bool held = b->out.len - b->written > HELD_MAX;
	struct pollfd fds[] = {
		{ .fd = b->input_ended || sending ? -1 : STDIN_FILENO, .events = POLLIN },
		{ .fd = b->out.len > 0 ? STDOUT_FILENO : -1, .events = POLLOUT },
		{ .fd = b->socket.http->fd,
		  .events = (short)((held ? 0 : POLLIN) | (sending ? POLLOUT : 0)) },
	};
	int r = poll(fds, ARRAY_SIZE(fds), b->input_ended ? LAST_ANSWERS_MS : -1);

	if (r < 0)
		return errno == EINTR
			       ? 0
			       : error_set(err, ERROR_INTERNAL, errno, "cannot wait for input");
	r = 0;
	if (fds[1].revents)
		r = write_output(b, err);
	if (r == 0 && (fds[2].revents & ~POLLOUT))
		r = receive_answers(b, err);
	if (r == 0 && fds[0].revents)
		r = read_input(b, err);
	if (r == 0 && websocket_client_send(&b->socket) < 0)
		r = error_set(err, ERROR_INTERNAL, EPIPE, "cannot send to the daemon");
	return r;
}

/* --- a daemon that belongs to this process --- */

enum { READY_MS = 30000, CHECK_MS = 200, PATH_SIZE = PATH_MAX / 2 + 32 };

/*
 * Its state is in a temporary directory. It ends with this process, also after kill -9: this process holds the other end of a pipe
 * (`atoll serve --until-eof`), and a shell removes the directory when it has ended.
 */
struct private_daemon {
	char dir[PATH_MAX / 2];
	char socket[PATH_MAX / 2 + 16]; /* where it listens */
	pid_t shell;			/* 0: none */
	int life_fd;			/* the pipe; the daemon ends when it closes */
	int ready_fd;			/* its messages to a service manager come here */
};

/*
 * The shell's name is the directory, which it removes when the daemon has ended. It waits without a standard error, because it would tell
 * there of a daemon that was killed.
 */
static const char shell_script[] = "exec 3<&0; \"$@\" <&3 3<&- & exec 2>/dev/null 3<&-; wait $!; "
				   "r=$?; rm -rf -- \"$0\"; exit $r";

static int make_private_dir(struct private_daemon *d, struct error *err)
{
	const char *run = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	const char *base = run && *run == '/' ? run : tmp && *tmp == '/' ? tmp : "/tmp";

	/*
	 * A socket's path has room for 107 bytes. The front of root's daemon runs as another user, to whom root's own directories
	 * (/run/user/0) are closed.
	 */
	if (strlen(base) > 60 || geteuid() == 0)
		base = "/tmp";
	(void)snprintf(d->dir, sizeof(d->dir), "%s/atoll-XXXXXX", base);
	if (!mkdtemp(d->dir))
		return error_set(err, ERROR_STORAGE, errno,
				 "cannot make a directory for a private daemon in %.100s: %s", base,
				 strerror(errno));
	/* The front of a daemon that root starts runs as another user. */
	(void)chmod(d->dir, 0711);
	(void)snprintf(d->socket, sizeof(d->socket), "%s/s", d->dir);
	return 0;
}

static int open_ready(struct private_daemon *d, char *ret, size_t size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/ready", d->dir);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		(void)fd_close(fd);
		return -errno;
	}
	(void)snprintf(ret, size, "NOTIFY_SOCKET=%s", address.sun_path);
	d->ready_fd = fd;
	return 0;
}

/* The caller's variables but those of another service manager's service and of addresses to listen on. */
static char **make_environment(char *ready)
{
	static const char *const without[] = { "NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID=",
					       "ATOLL_SOCKET=", "ATOLL_STATE_DIR=" };
	size_t n = 0, kept = 0;
	char **list;

	while (environ[n])
		n++;
	list = calloc(n + 2, sizeof(*list));
	for (size_t i = 0; list && i < n; i++) {
		bool keeps = true;

		for (size_t j = 0; j < ARRAY_SIZE(without); j++)
			keeps = keeps && strncmp(environ[i], without[j], strlen(without[j])) != 0;
		if (keeps)
			list[kept++] = environ[i];
	}
	if (list)
		list[kept] = ready;
	return list;
}

static int spawn_shell(struct private_daemon *d, int life_fd, char *ready)
{
	char program[PATH_MAX] = "", state[PATH_SIZE], log[PATH_SIZE];
	const char *const argv[] = { "sh",	"-c",	      shell_script,  d->dir,
				     program,	"serve",      "--until-eof", "--set",
				     "listen=", "--socket",   d->socket,     "--state-dir",
				     state,	"--log-file", log,	     NULL };
	char **environment = make_environment(ready);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	int r;

	(void)snprintf(state, sizeof(state), "%s/state", d->dir);
	(void)snprintf(log, sizeof(log), "%s/log", d->dir);
	if (n < 0 || !environment) {
		free(environment);
		return n < 0 ? errno : ENOMEM;
	}
	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawnattr_init(&attributes);
	r = posix_spawn_file_actions_adddup2(&files, life_fd, STDIN_FILENO);
	if (r == 0) /* standard output belongs to the protocol */
		r = posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	/* Signals of the terminal are for this process; the daemon sees its end. */
	if (r == 0)
		r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
	if (r == 0)
		r = posix_spawn(&d->shell, "/bin/sh", &files, &attributes,
				(char *const *)(uintptr_t)argv, environment);
	(void)posix_spawn_file_actions_destroy(&files);
	(void)posix_spawnattr_destroy(&attributes);
	free(environment);
	return r;
}

/* Ends it and waits until its directory is gone. */
static void private_daemon_stop(struct private_daemon *d)
{
	d->life_fd = fd_close(d->life_fd);
	d->ready_fd = fd_close(d->ready_fd);
	if (d->shell > 0) {
		(void)waitpid(d->shell, NULL, 0);
	} else if (d->dir[0]) { /* nothing was started in it */
		char path[PATH_SIZE];

		(void)snprintf(path, sizeof(path), "%s/ready", d->dir);
		(void)unlink(path);
		(void)rmdir(d->dir);
	}
	d->shell = 0;
}

/* Starts one. */
static int private_daemon_start(struct private_daemon *d, struct error *err)
{
	_cleanup_close_ int life_fd = -EBADF;
	char ready[PATH_SIZE];
	int ends[2], r;

	*d = (struct private_daemon){ .life_fd = -EBADF, .ready_fd = -EBADF };
	r = make_private_dir(d, err);
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		r = errno;
	} else {
		life_fd = ends[0];
		d->life_fd = ends[1];
		r = -open_ready(d, ready, sizeof(ready));
	}
	if (r == 0)
		r = spawn_shell(d, life_fd, ready);
	if (r == 0)
		return 0;
	private_daemon_stop(d);
	return error_set(err, ERROR_INTERNAL, r, "cannot start a private daemon: %s", strerror(r));
}

/* Returns when it takes work. */
static int private_daemon_wait(struct private_daemon *d, struct error *err)
{
	int64_t until_ns = clock_now_ns() + READY_MS * NS_PER_MS;
	struct pollfd p = { .fd = d->ready_fd, .events = POLLIN };
	char text[512];
	ssize_t n;

	while (clock_now_ns() < until_ns && d->shell > 0) {
		if (waitpid(d->shell, NULL, WNOHANG) == d->shell) {
			d->shell = 0;
			break;
		}
		if (poll(&p, 1, CHECK_MS) <= 0)
			continue;
		n = recv(d->ready_fd, text, sizeof(text) - 1, MSG_DONTWAIT);
		text[MAX(n, (ssize_t)0)] = '\0';
		if (strstr(text, "READY=1"))
			return 0;
	}
	return error_set(err, ERROR_INTERNAL, d->shell ? ETIMEDOUT : ECHILD, "%s",
			 d->shell
				 ? "the private daemon is not ready after 30 s"
				 : "the private daemon ended at once; `atoll doctor` may know why");
}

/* --- the daemon --- */

static int shake_hands(struct bridge *b, const struct remote *remote, struct error *err)
{
	const struct http_call call = { .method = HTTP_GET,
					.target = "/mcp",
					.accept = "*/*",
					.token = remote->token[0] ? remote->token : NULL };
	int r = websocket_client_open(&b->socket, &remote->address, &call, err);

	return r > 0 ? refusal_from_answer(b->socket.http, err) : r;
}

static int connect_private(struct bridge *b, struct private_daemon *own, struct error *err)
{
	struct remote remote = { 0 };
	int r = private_daemon_start(own, err);

	if (r == 0)
		r = private_daemon_wait(own, err);
	if (r == 0)
		r = http_address_parse(own->socket, &remote.address, err);
	return r == 0 ? shake_hands(b, &remote, err) : r;
}

/* The daemon that was named, else the one that runs, else an own one. */
static int connect_bridge(struct bridge *b, const struct mcp_options_of_command *o,
			  struct private_daemon *own, struct error *err)
{
	struct remote remote = { 0 };
	int r = o->private ? -ENOENT : remote_find(o->ask.url, &remote, err);

	if (r == 0)
		r = shake_hands(b, &remote, err);
	else if (err->code != ERROR_NONE)
		return r;
	if (r != -ENOENT && r != -ECONNREFUSED && r != -ENOTDIR)
		return r;
	if (remote.named)
		return error_set(
			err, ERROR_INTERNAL, -r,
			"no daemon answers at %s; start one with `atoll serve`, or name none",
			remote.address.text);
	*err = (struct error){ 0 };
	websocket_client_done(&b->socket);
	return connect_private(b, own, err);
}

static int mcp_main(struct invocation *in)
{
	struct private_daemon own = { .life_fd = -EBADF, .ready_fd = -EBADF };
	struct bridge b = { .in.max = LINE_MAX_BYTES + STDIN_PIECE, .out.max = OUT_MAX_BYTES };
	struct error err = { 0 };
	int r = connect_bridge(&b, in->data, &own, &err);

	while (r == 0 && !b.over &&
	       !(b.input_ended && b.out.len == 0 && !websocket_client_is_sending(&b.socket) &&
		 (b.answered >= b.asked || clock_now_ns() >= b.until_ns)))
		r = websocket_client_has_bytes(&b.socket) && b.out.len - b.written <= HELD_MAX
			    ? receive_answers(&b, &err)
			    : step_bridge(&b, &err);
	if (r == 0 && b.asked > b.answered)
		say("the input has ended; requests that were not answered are cancelled: %" PRId64,
		    b.asked - b.answered);
	websocket_client_done(&b.socket);
	private_daemon_stop(&own);
	buf_done(&b.in);
	buf_done(&b.out);
	return r < 0 ? say_error(&err) : 0;
}

static const struct option mcp_rows[] = {
	ASK_URL_AT(0),
	OPTION_SWITCH("--no-daemon", 0, struct mcp_options_of_command, private,
		      "start a private daemon, even if one runs"),
};
static const struct option_list mcp_list = { OPTION_ROWS(mcp_rows) };

static const struct command *const mcp_commands[] = { &cmd_mcp_install, NULL };

const struct command cmd_mcp = {
	.name = "mcp",
	.usage = "[OPTIONS]",
	.summary = "serve the Model Context Protocol on standard input and output",
	.details = "For programs that start MCP servers: one JSON-RPC message a line. A running "
		   "daemon does the work; without\none, a private daemon is started, and ends with "
		   "this command. The daemon serves the same at /mcp over HTTP.\n",
	.options = &mcp_list,
	.size = sizeof(struct mcp_options_of_command),
	.main = mcp_main,
	.asks = true,
	.finds = true,
	.commands = mcp_commands,
};
