/* SPDX-License-Identifier: Apache-2.0 */
/* See remote.h. Each question has a connection of its own: over a unix socket that costs next to nothing. */
#include "atoll/commands/remote.h"

#include "atoll/remote/refusal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "spec/result.h"

enum {
	ANSWER_BYTES_MAX = 256 << 20,
	TOKEN_FILE_MAX = 64 << 10,
	ANSWER_MS = 120000, /* of silence: cleaning up many executions takes time */
};

/* The daemon's default socket, as atoll/daemon/config.c finds it, without its files and flags. */
static int default_path(char *ret, size_t size)
{
	const char *named = getenv("ATOLL_SOCKET");
	const char *run = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n = -1;

	if (named && strcmp(named, "off") == 0)
		return -ENOENT;
	if (named && *named)
		n = snprintf(ret, size, "%s", named);
	else if (run && *run == '/')
		n = snprintf(ret, size, "%s/atoll/atoll.sock", run);
	else if (state && *state == '/')
		n = snprintf(ret, size, "%s/atoll/atoll.sock", state);
	else if (home && *home == '/')
		n = snprintf(ret, size, "%s/.local/state/atoll/atoll.sock", home);
	return n < 0 || (size_t)n >= size ? -ENOENT : 0;
}

static bool set_token(struct remote *remote, struct span text)
{
	if (text.len == 0 || text.len >= sizeof(remote->token))
		return false;
	memcpy(remote->token, text.data, text.len);
	remote->token[text.len] = '\0';
	return true;
}

/* $ATOLL_TOKEN, or the first line of $ATOLL_TOKEN_FILE that is no comment. Only TCP needs one. */
static int find_token(struct remote *remote, struct error *err)
{
	const char *token = getenv("ATOLL_TOKEN");
	const char *path = getenv("ATOLL_TOKEN_FILE");
	_cleanup_buf_ struct buf text = { .max = TOKEN_FILE_MAX };
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (remote->address.is_unix)
		return 0;
	if (token && *token)
		return set_token(remote, span_trim(span_of(token)))
			       ? 0
			       : error_set(err, ERROR_INPUT, EINVAL, "ATOLL_TOKEN is no token");
	if (!path || !*path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	r = fd < 0 ? -errno : buf_read_fd(&text, fd);
	if (r < 0)
		return error_set(err, ERROR_INPUT, -r, "cannot read ATOLL_TOKEN_FILE '%.200s': %s",
				 path, strerror(-r));
	for (struct span rest = { text.data, text.len }, line, word;
	     span_split(&rest, '\n', &line);) {
		line = span_trim(line);
		if (line.len == 0 || line.data[0] == '#')
			continue;
		/* The operator's mark may follow the token. */
		(void)span_split(&line, ' ', &word);
		if (set_token(remote, word))
			return 0;
		break;
	}
	return error_set(err, ERROR_INPUT, EINVAL, "ATOLL_TOKEN_FILE '%.200s' holds no token",
			 path);
}

int remote_find(const char *url, struct remote *ret, struct error *err)
{
	const char *word = url ?: getenv("ATOLL_URL");
	struct remote remote = { 0 };
	char path[256];
	int r;

	if (word && strcmp(word, "off") == 0)
		return -ENOENT;
	remote.named = word && *word;
	if (!remote.named) {
		const char *socket = getenv("ATOLL_SOCKET");

		r = default_path(path, sizeof(path));
		if (r < 0)
			return r;
		word = path;
		remote.named = socket && *socket;
	}
	r = http_address_parse(word, &remote.address, err);
	if (r == 0)
		r = find_token(&remote, err);
	if (r == 0)
		*ret = remote;
	return r;
}

int remote_absent(const struct remote *remote, int errnum, struct error *err)
{
	if (errnum == EACCES || errnum == EPERM)
		return error_set(err, ERROR_INTERNAL, errnum,
				 "the daemon's socket %s is another user's; run this as that user",
				 remote->address.text);
	if (errnum != ENOENT && errnum != ECONNREFUSED)
		return error_set(err, ERROR_INTERNAL, errnum,
				 "cannot reach the daemon at %s: %s; start one with `atoll serve`",
				 remote->address.text, strerror(errnum));
	return error_set(err, ERROR_INTERNAL, errnum,
			 "no daemon answers at %s; start one with `atoll serve`",
			 remote->address.text);
}

/* Reads the rest of the body. */
int remote_body(struct http_client *c, struct buf *ret, struct error *err)
{
	struct span piece;
	int r;

	while ((r = http_client_read(c, &piece, err)) > 0) {
		r = buf_append(ret, piece.data, piece.len);
		if (r == -ENOBUFS)
			return error_set(err, ERROR_INTERNAL, EFBIG,
					 "the daemon's answer is larger than %zu MiB",
					 ret->max >> 20);
		if (r < 0)
			return error_oom(err);
	}
	return r;
}

/* timeout_ms: of silence; -1: none. */
static int call_patiently(const struct remote *remote, const struct http_call *call, int timeout_ms,
			  int cancel_fd, struct http_client **ret, struct error *err)
{
	_cleanup_http_client_ struct http_client *c = NULL;
	struct http_call whole = *call;
	int r = http_client_open(&remote->address, &c);

	if (r < 0)
		return remote_absent(remote, -r, err);
	c->timeout_ms = timeout_ms;
	c->cancel_fd = cancel_fd;
	whole.token = remote->token[0] ? remote->token : NULL;
	r = http_client_send(c, &whole, err);
	if (r == 0)
		r = http_client_head(c, err);
	if (r == 0 && http_client_answer(c) != HTTP_ANSWER_GOOD)
		r = refusal_from_answer(c, err);
	if (r == 0)
		*ret = TAKE_PTR(c);
	return r;
}

int remote_call(const struct remote *remote, const struct http_call *call, struct http_client **ret,
		struct error *err)
{
	return call_patiently(remote, call, ANSWER_MS, -EBADF, ret, err);
}

int remote_call_until(const struct remote *remote, const struct http_call *call, int cancel_fd,
		      struct http_client **ret, struct error *err)
{
	return call_patiently(remote, call, -1, cancel_fd, ret, err);
}

int remote_text(const struct remote *remote, const struct http_call *call, struct buf *ret,
		struct error *err)
{
	_cleanup_http_client_ struct http_client *c = NULL;
	int r = remote_call(remote, call, &c, err);

	buf_init(ret, ANSWER_BYTES_MAX);
	return r < 0 ? r : remote_body(c, ret, err);
}

int remote_tree(const struct remote *remote, struct http_client *c, json_t **ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { .max = ANSWER_BYTES_MAX };
	json_t *tree;
	int r;

	r = remote_body(c, &text, err);
	if (r < 0)
		return r;
	tree = json_loadb(text.data ?: "", text.len, JSON_ALLOW_NUL, NULL);
	if (!tree)
		return error_set(err, ERROR_INTERNAL, EBADMSG,
				 "what answers at %s is no atoll daemon: its answer is no JSON",
				 remote->address.text);
	*ret = tree;
	return 0;
}

int remote_json(const struct remote *remote, const struct http_call *call, json_t **ret,
		struct error *err)
{
	_cleanup_http_client_ struct http_client *c = NULL;
	int r = remote_call(remote, call, &c, err);

	return r != 0 ? r : remote_tree(remote, c, ret, err);
}

char *remote_dump(const json_t *tree)
{
	return json_dumps(tree, JSON_COMPACT | result_json_flags(tree));
}

int remote_print_json(const json_t *tree)
{
	_cleanup_free_ char *json = remote_dump(tree);

	if (!json) {
		say("out of memory");
		return EXIT_OURS;
	}
	return print_json(json);
}
