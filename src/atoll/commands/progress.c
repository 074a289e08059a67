/* SPDX-License-Identifier: Apache-2.0 */
/* See progress.h. */
#include "atoll/commands/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/printer.h"
#include "atoll/remote/remote-text.h"
#include "base/clock.h"

enum { FIRST_MS = 1000, AGAIN_MS = 200 };

void progress_say(struct progress *p, const char *fmt, ...)
{
	int64_t now_ns = p->wanted ? clock_now_ns() : 0;
	char text[200];
	va_list ap;

	if (p->next_ns == 0)
		p->next_ns = now_ns + FIRST_MS * NS_PER_MS;
	if (!p->wanted || now_ns < p->next_ns)
		return;
	p->next_ns = now_ns + AGAIN_MS * NS_PER_MS;
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
