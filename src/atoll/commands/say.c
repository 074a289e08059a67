/* SPDX-License-Identifier: Apache-2.0 */
/* See say.h. A message is built whole and written once, so that it does not mix with output. */
#include "atoll/commands/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/commands/printer.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"
#include "base/foreign.h"

enum { MESSAGE_MAX = 16384 };

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
	if (buf_puts(&line, "atoll: ") < 0 ||
	    foreign_put(&line, text, strlen(text), FOREIGN_LINE) < 0 || buf_puts(&line, "\n") < 0 ||
	    print_text(STDERR_FILENO, (struct span){ line.data, line.len }) < 0)
		return; /* writing to standard error failed, so nothing can be reported */
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
