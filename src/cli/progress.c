/* SPDX-License-Identifier: Apache-2.0 */
/* See progress.h. */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"

enum { FIRST_MS = 1000, AGAIN_MS = 200 };

#define CLEAR_LINE "\r\033[K"

void progress_say(struct progress *p, const char *fmt, ...)
{
	int64_t now_ns = p->wanted ? clock_now_ns() : 0;
	va_list ap;

	if (p->next_ns == 0)
		p->next_ns = now_ns + FIRST_MS * NS_PER_MS;
	if (!p->wanted || now_ns < p->next_ns)
		return;
	p->next_ns = now_ns + AGAIN_MS * NS_PER_MS;
	p->shown = true;
	(void)fputs(CLEAR_LINE "atoll: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fflush(stderr);
}

void progress_clear(struct progress *p)
{
	if (p->shown)
		(void)fputs(CLEAR_LINE, stderr);
	(void)fflush(stderr);
	p->shown = false;
}
