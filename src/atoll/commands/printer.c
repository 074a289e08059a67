/* SPDX-License-Identifier: Apache-2.0 */
/* See printer.h. A text is written at once, so that it does not mix with other output. */
#include "atoll/commands/printer.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"
#include "base/fd.h"
#include "base/foreign.h"

/* The longest escape stands for one byte. */
enum { ESCAPE_BYTES = 6, STYLE_ROOM = 64 << 10 };

static const char style_marks[] =
	STYLE_CLEAR_LINE STYLE_BOLD STYLE_RED STYLE_GREEN STYLE_YELLOW STYLE_CYAN STYLE_END;
static const char *const style_sequences[] = { "\r\033[K", "\033[1m",  "\033[31m", "\033[32m",
					       "\033[33m", "\033[36m", "\033[0m" };

/* A terminal gets the sequence of the mark, where colours are wanted; any other reader gets nothing. */
static int put_style(struct buf *out, int fd, char mark)
{
	const char *no_colour = getenv("NO_COLOR");
	size_t i = (size_t)(strchr(style_marks, mark) - style_marks);
	bool wanted = isatty(fd) && (i == 0 || !(no_colour && *no_colour));

	return wanted ? buf_puts(out, style_sequences[i]) : 0;
}

int print_text(int fd, struct span text)
{
	_cleanup_buf_ struct buf out = { 0 };
	int r = 0;

	buf_init(&out, ESCAPE_BYTES * text.len + STYLE_ROOM);
	while (r == 0 && text.len > 0) {
		size_t n = 0;

		while (n < text.len && (!text.data[n] || !strchr(style_marks, text.data[n])))
			n++;
		r = foreign_put(&out, text.data, n, FOREIGN_LINES);
		if (r == 0 && n < text.len)
			r = put_style(&out, fd, text.data[n++]);
		text.data += n;
		text.len -= n;
	}
	return r < 0 || out.len == 0 ? r : fd_write_all(fd, out.data, out.len);
}

/* What a command exits with after it has written to standard output. */
static int exit_code_of(int r)
{
	if (r == -EPIPE)
		return EXIT_SIGNAL + SIGPIPE;
	if (r < 0)
		say("cannot write to standard output: %s", strerror(-r));
	return r < 0 ? EXIT_OURS : 0;
}

int print_out(const struct buf *text)
{
	return exit_code_of(print_text(STDOUT_FILENO, (struct span){ text->data, text->len }));
}

int print_json(const char *json)
{
	_cleanup_buf_ struct buf out = { 0 };
	size_t n = strlen(json);
	int r;

	buf_init(&out, ESCAPE_BYTES * n + 2);
	r = foreign_put(&out, json, n, FOREIGN_JSON);
	if (r == 0)
		r = buf_puts(&out, "\n");
	return exit_code_of(r < 0 ? r : fd_write_all(STDOUT_FILENO, out.data, out.len));
}

int print_raw(int fd, const char *bytes, size_t n)
{
	return n > 0 ? fd_write_all(fd, bytes, n) : 0;
}
