/* SPDX-License-Identifier: Apache-2.0 */
/* See confirm.h. */
#include "atoll/commands/confirm.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/say.h"

enum { ANSWER_MAX = 80, QUESTION_MAX = 1000 };

bool confirm_is_needed(const struct confirm *c)
{
	return !c->yes && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
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
