/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access: listening addresses, whether other machines can reach them, and the file of tokens. An address is a
 * number or "localhost": a name could resolve differently tomorrow.
 */
#include "atoll/daemon/config.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/span.h"
#include "spec/read.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_FILE_MAX = 64 << 10 };

int config_address_parse(const char *text, struct config_address *ret, struct error *err)
{
	const char *colon = strrchr(text, ':');
	struct config_address a = { 0 };
	struct in6_addr number;
	size_t n = colon ? (size_t)(colon - text) : 0;
	const char *host = text;
	int64_t port = -1;

	if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
		a.v6 = true;
		host++;
		n -= 2;
	}
	if (n > 0 && n < sizeof(a.host))
		memcpy(a.host, host, n);
	if (strcmp(a.host, "localhost") == 0)
		(void)snprintf(a.host, sizeof(a.host), "127.0.0.1");
	if (inet_pton(a.v6 ? AF_INET6 : AF_INET, a.host, &number) != 1 ||
	    parse_i64(colon + 1, &port) < 0 || port > UINT16_MAX)
		return error_field(err, "listen",
				   "listen: '%s' is not an address and a port, such as "
				   "127.0.0.1:8700 or [::1]:8700 (port: 0 to 65535)",
				   quote_text(text).text);
	a.port = (uint16_t)port;
	/* Of an IPv4 address, the first byte; it has four, in the order of the network. */
	a.loopback = a.v6 ? IN6_IS_ADDR_LOOPBACK(&number) : number.s6_addr[0] == 127;
	*ret = a;
	return 0;
}

int config_check_exposure(const struct config *c, struct error *err)
{
	struct config_address address;

	if (c->access.tokens[0] || c->access.unauthenticated)
		return 0;
	for (size_t i = 0; c->listening.addresses[i]; i++) {
		int r = config_address_parse(c->listening.addresses[i], &address, err);

		if (r < 0)
			return r;
		if (!address.loopback)
			return error_field(
				err, "listen",
				"listening on %s lets other machines run code here; give "
				"--token-file FILE, or --allow-unauthenticated to accept that",
				c->listening.addresses[i]);
	}
	return 0;
}

/* A file with one secret a line. */
struct secret_file {
	const char *key, *path; /* the setting and its value */
	const char *empty;	/* why an empty one is refused */
	int (*check)(const struct secret_file *f, struct config *c, struct span line,
		     struct error *err);
};

static int refuse_file(const struct secret_file *f, const char *why, struct error *err)
{
	return error_field(err, f->key, "%s: '%.200s' %s", f->key, f->path, why);
}

static int read_lines(const struct secret_file *f, struct buf *text, struct error *err)
{
	_cleanup_close_ int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse_file(f, errno == ENOENT ? "does not exist" : "cannot be opened", err);
	if (!S_ISREG(st.st_mode))
		return refuse_file(f, "is not a regular file", err);
	if (st.st_mode & 066)
		return error_field(err, f->key,
				   "%s: other users can %s '%.150s'; run: chmod 600 %.150s", f->key,
				   st.st_mode & 022 ? "write to" : "read", f->path, f->path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return refuse_file(f, "belongs to another user; make it your own or root's", err);
	buf_init(text, SECRET_FILE_MAX);
	r = buf_read_fd(text, fd);
	if (r < 0 || memchr(text->len ? text->data : "", '\0', text->len))
		return refuse_file(f, "is not a text of at most 64 KiB", err);
	return 0;
}

/* The lines that are neither empty nor comments, each checked; at most CONFIG_WORDS_MAX. The file must be its owner's alone. */
static int read_secret_lines(struct config *c, const struct secret_file *f, const char *const **ret,
			     struct error *err)
{
	const char **lines = arena_alloc(&c->memory, (CONFIG_WORDS_MAX + 1) * sizeof(*lines));
	_cleanup_buf_ struct buf text = { 0 };
	struct span rest, line;
	size_t n = 0;
	int r = lines ? read_lines(f, &text, err) : error_oom(err);

	if (r < 0)
		return r;
	for (rest = (struct span){ text.len ? text.data : "", text.len };
	     span_split(&rest, '\n', &line);) {
		while (line.len > 0 && memchr("\r ", line.data[line.len - 1], 2))
			line.len--;
		if (line.len == 0 || *line.data == '#')
			continue;
		if (n == CONFIG_WORDS_MAX)
			return refuse_file(f, "has more than 64 lines", err);
		r = f->check(f, c, line, err);
		if (r < 0)
			return r;
		lines[n] = arena_strndup(&c->memory, line.data, line.len);
		if (!lines[n++])
			return error_oom(err);
	}
	if (n == 0)
		return refuse_file(f, f->empty, err);
	*ret = lines;
	return 0;
}

/* An operator's token has the mark after it. */
static int check_token(const struct secret_file *f, struct config *c, struct span line,
		       struct error *err)
{
	const size_t mark = strlen(CONFIG_OPERATOR_MARK);
	size_t n = line.len;

	if (n > mark && memcmp(line.data + n - mark, CONFIG_OPERATOR_MARK, mark) == 0)
		n -= mark;
	if (n > CONFIG_TOKEN_MAX)
		return refuse_file(f, "has a token of more than 512 characters", err);
	c->access.token_short = c->access.token_short || n < CONFIG_TOKEN_MIN;
	for (size_t i = 0; i < n; i++)
		if (line.data[i] <= ' ' || line.data[i] > '~')
			return refuse_file(
				f, "has a token with a character that is not visible ASCII", err);
	return 0;
}

int config_read_tokens(struct config *c, struct error *err)
{
	const struct secret_file f = {
		"token_file", c->access.token_file,
		"holds no token; put one of at least 16 characters on a line", check_token
	};

	c->access.token_short = false;
	if (!*c->access.token_file)
		return 0;
	return read_secret_lines(c, &f, &c->access.tokens, err);
}

void config_warn_of_tokens(const struct config *c, struct log *log)
{
	if (c->access.token_short)
		log_say(log, LOG_WARNING,
			"a token has fewer than 16 characters and may be guessed; use a longer one",
			LOG_TEXT("file", c->access.token_file));
}

/* As Standard Webhooks writes them. */
static int check_secret(const struct secret_file *f, struct config *c _unused_, struct span line,
			struct error *err)
{
	const size_t prefix = strlen(CONFIG_SECRET_PREFIX);
	char bytes[CONFIG_SECRET_MAX];
	size_t n = 0;

	if (line.len > prefix && line.len < sizeof(bytes) &&
	    memcmp(line.data, CONFIG_SECRET_PREFIX, prefix) == 0 &&
	    base64_decode(line.data + prefix, line.len - prefix, bytes, &n) == 0 && n >= 24 &&
	    n <= 64)
		return 0;
	return refuse_file(f,
			   "has a line that is not " CONFIG_SECRET_PREFIX
			   " and the base64 of 24 to 64 bytes",
			   err);
}

int config_read_secrets(struct config *c, struct error *err)
{
	const struct secret_file f = { "callbacks.secret_file", c->callback.secret_file,
				       "holds no secret; put " CONFIG_SECRET_PREFIX
				       " and base64 on a line",
				       check_secret };

	return *c->callback.secret_file ? read_secret_lines(c, &f, &c->callback.secrets, err) : 0;
}
