/* SPDX-License-Identifier: Apache-2.0 */
/* See printer.h. A text is written at once, so that it does not mix with other output. A message is built whole for the same reason. */
#include "atoll/commands/printer.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/foreign.h"

/* The longest escape stands for one byte. */
enum { ESCAPE_BYTES = 6, STYLE_ROOM = 64 << 10 };
enum { MESSAGE_MAX = 16384, ANSWER_MAX = 80, QUESTION_MAX = 1000 };
enum { PROGRESS_FIRST_MS = 1000, PROGRESS_AGAIN_MS = 200 };

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

int print_page(const struct page *page, const char *what)
{
	if (page->error == 0)
		return print_out(&page->text);
	say("cannot print %s: %s", what, strerror(-page->error));
	return EXIT_OURS;
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

void say(const char *fmt, ...)
{
	_cleanup_page_ struct page line = { .text.max = MESSAGE_MAX };
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	page_add_line(&line, "atoll: %s", text);
	page_add(&line, "\n");
	/* If writing to standard error fails, nothing can be reported. */
	if (line.error == 0)
		(void)!print_text(STDERR_FILENO, (struct span){ line.text.data, line.text.len });
}

int error_exit_code(enum error_code code)
{
	/* Every other code: EXIT_OURS. */
	static const int codes[_ERROR_MAX] = {
		[ERROR_POLICY] = EXIT_REFUSED,
		[ERROR_CALLBACKS_OFF] = EXIT_REFUSED,
		[ERROR_RUNTIME] = EXIT_NO_RUNTIME,
	};

	return code < _ERROR_MAX && codes[code] ? codes[code] : EXIT_OURS;
}

int say_error(const struct error *err)
{
	say("%s", err->text);
	return error_exit_code((enum error_code)err->code);
}

bool confirm_can_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool confirm_ask(const char *question)
{
	char answer[ANSWER_MAX], asked[QUESTION_MAX];
	ssize_t n;

	(void)snprintf(asked, sizeof(asked), "atoll: %s [y/N] ", question);
	(void)!print_text(STDERR_FILENO, span_of(asked));
	do
		n = read(STDIN_FILENO, answer, sizeof(answer));
	while (n < 0 && errno == EINTR);
	if (n > 0 && (answer[0] == 'y' || answer[0] == 'Y'))
		return true;
	say("nothing was removed");
	return false;
}

void progress_say(struct progress *p, const char *fmt, ...)
{
	int64_t now_ns = p->wanted ? clock_now_ns() : 0;
	char text[200];
	va_list ap;

	if (p->next_ns == 0)
		p->next_ns = now_ns + PROGRESS_FIRST_MS * NS_PER_MS;
	if (!p->wanted || now_ns < p->next_ns)
		return;
	p->next_ns = now_ns + PROGRESS_AGAIN_MS * NS_PER_MS;
	p->shown = true;
	(void)snprintf(text, sizeof(text), STYLE_CLEAR_LINE "atoll: ");
	va_start(ap, fmt);
	(void)vsnprintf(text + strlen(text), sizeof(text) - strlen(text), fmt, ap);
	va_end(ap);
	(void)!print_text(STDERR_FILENO, span_of(text));
}

void progress_clear(struct progress *p)
{
	if (p->shown)
		(void)!print_text(STDERR_FILENO, span_of(STYLE_CLEAR_LINE));
	p->shown = false;
}
