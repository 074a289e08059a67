/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access: listening addresses, whether other machines can reach them, and the file of tokens. An address is a
 * number or "localhost": a name could resolve differently tomorrow.
 */
#include "daemon/config.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "spec/read.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKEN_FILE_MAX = 64 << 10 };

static bool is_loopback(const struct config_address *a)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (!a->v6)
		return inet_pton(AF_INET, a->host, &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
	return inet_pton(AF_INET6, a->host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static bool is_number(const struct config_address *a)
{
	struct in6_addr any;

	return inet_pton(a->v6 ? AF_INET6 : AF_INET, a->host, &any) == 1;
}

int config_address_parse(const char *text, struct config_address *ret, struct error *err)
{
	const char *colon = strrchr(text, ':');
	struct config_address a = { 0 };
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
	if (!is_number(&a) || parse_i64(colon + 1, &port) < 0 || port > UINT16_MAX)
		return error_field(err, "listen",
				   "listen: '%s' is not an address and a port, such as "
				   "127.0.0.1:8700 or [::1]:8700 (port: 0 to 65535)",
				   quote_text(text).text);
	a.port = (uint16_t)port;
	a.loopback = is_loopback(&a);
	*ret = a;
	return 0;
}

int config_check_exposure(const struct config *c, struct error *err)
{
	struct config_address address;

	if (c->tokens[0] || c->allow_unauthenticated)
		return 0;
	for (size_t i = 0; c->listen[i]; i++) {
		int r = config_address_parse(c->listen[i], &address, err);

		if (r < 0)
			return r;
		if (!address.loopback)
			return error_field(
				err, "listen",
				"listening on %s lets other machines run code here; give "
				"--token-file FILE, or --allow-unauthenticated to accept "
				"that",
				c->listen[i]);
	}
	return 0;
}

static int refuse_access(const struct config *c, const char *why, struct error *err)
{
	return error_field(err, "token_file", "token_file: '%.200s' %s", c->token_file, why);
}

/*
 * One token a line; an operator's token has the mark after it. Empty lines and lines that begin with # are
 * skipped.
 */
static int take_line(struct config *c, const char *line, size_t n, struct error *err)
{
	const size_t mark = strlen(CONFIG_OPERATOR_MARK);

	if (n > mark && memcmp(line + n - mark, CONFIG_OPERATOR_MARK, mark) == 0)
		n -= mark;
	if (n > CONFIG_TOKEN_MAX)
		return refuse_access(c, "has a token of more than 512 characters", err);
	c->token_short = c->token_short || n < CONFIG_TOKEN_MIN;
	for (size_t i = 0; i < n; i++)
		if (line[i] <= ' ' || line[i] > '~')
			return refuse_access(
				c, "has a token with a character that is not visible ASCII", err);
	return 0;
}

static int take_tokens(struct config *c, const struct buf *text, struct error *err)
{
	const char **tokens = arena_alloc(&c->memory, (CONFIG_WORDS_MAX + 1) * sizeof(*tokens));
	const char *end = text->data + text->len;
	size_t n_tokens = 0;

	for (const char *line = text->data; tokens && line < end;) {
		size_t whole = strcspn(line, "\n"), n = whole;
		int r;

		while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
			n--;
		r = n > 0 && *line != '#' ? take_line(c, line, n, err) : 1;
		if (r < 0)
			return r;
		if (r == 0 && n_tokens == CONFIG_WORDS_MAX)
			return refuse_access(c, "has more than 64 tokens", err);
		if (r == 0 && !(tokens[n_tokens++] = arena_strndup(&c->memory, line, n)))
			tokens = NULL;
		line += whole + 1;
	}
	if (!tokens)
		return error_oom(err);
	if (n_tokens == 0)
		return refuse_access(
			c, "holds no token; put one of at least 16 characters on a line", err);
	c->tokens = tokens;
	return 0;
}

int config_read_tokens(struct config *c, struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_buf_ struct buf text = { 0 };
	struct stat st;
	int r;

	c->token_short = false;
	if (!*c->token_file)
		return 0;
	fd = open(c->token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse_access(c, errno == ENOENT ? "does not exist" : "cannot be opened",
				     err);
	if (!S_ISREG(st.st_mode))
		return refuse_access(c, "is not a regular file", err);
	if (st.st_mode & 066)
		return error_field(err, "token_file",
				   "token_file: other users can %s '%.150s'; run: chmod 600 %.150s",
				   st.st_mode & 022 ? "write to" : "read", c->token_file,
				   c->token_file);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return refuse_access(c, "belongs to another user; make it your own or root's", err);
	buf_init(&text, TOKEN_FILE_MAX);
	r = buf_read_fd(&text, fd);
	if (r < 0 || memchr(text.len ? text.data : "", '\0', text.len))
		return refuse_access(c, "is not a text of at most 64 KiB", err);
	if (text.len == 0)
		return refuse_access(c, "is empty; put a token of at least 16 characters on a line",
				     err);
	return take_tokens(c, &text, err);
}

void config_warn_of_tokens(const struct config *c, struct log *log)
{
	if (c->token_short)
		log_say(log, LOG_WARNING,
			"a token has fewer than 16 characters and may be guessed; use a longer one",
			LOG_TEXT("file", c->token_file));
}
