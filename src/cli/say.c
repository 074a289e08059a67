/* SPDX-License-Identifier: Apache-2.0 */
/* See say.h. A message is built whole and written once, so that it does not mix with output. */
#include "cli/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "cli/cmd.h"

enum { MESSAGE_MAX = 16384 };

static int append_escaped(struct buf *out, const char *text)
{
	int r = 0;

	for (const unsigned char *p = (const unsigned char *)text; r == 0 && *p; p++) {
		/* 0xC2 0x80–0x9F are the C1 controls of UTF-8; all other bytes above 0x7F are text. */
		bool c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f;

		if (c1)
			r = buf_printf(out, "\\x%02x", *++p);
		else if (*p < 0x20 || *p == 0x7f)
			r = buf_printf(out, "\\x%02x", *p);
		else
			r = buf_append(out, p, 1);
	}
	return r;
}

void say(const char *fmt, ...)
{
	_cleanup_buf_ struct buf line = { 0 };
	char text[4096];
	va_list ap;

	buf_init(&line, MESSAGE_MAX);
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	if (buf_puts(&line, "atoll: ") < 0 || append_escaped(&line, text) < 0 ||
	    buf_puts(&line, "\n") < 0 || fd_write_all(STDERR_FILENO, line.data, line.len) < 0)
		return; /* there is nobody left to tell */
}

int error_exit_code(enum error_code code)
{
	static const int codes[_ERROR_MAX] = {
		[ERROR_POLICY] = EXIT_REFUSED,
		[ERROR_RUNTIME] = EXIT_NO_RUNTIME,
	};

	return code < _ERROR_MAX && codes[code] ? codes[code] : EXIT_OURS;
}

int say_error(const struct error *err)
{
	say("%s", err->text);
	return error_exit_code((enum error_code)err->code);
}
