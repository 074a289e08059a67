/* SPDX-License-Identifier: Apache-2.0 */
/* See cmd-run.h. If fd is no terminal, nothing is changed; restoring twice is harmless. */
#include "cli/cmd-run.h"

#include <termios.h>
#include <unistd.h>

void terminal_raw(struct terminal *t, int fd)
{
	_cleanup_free_ struct termios *saved = malloc(sizeof(*saved));
	struct termios raw;

	*t = (struct terminal){ .fd = -EBADF };
	if (!saved || tcgetattr(fd, saved) < 0)
		return;
	raw = *saved;
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSAFLUSH, &raw) < 0)
		return;
	t->fd = fd;
	t->saved = TAKE_PTR(saved);
}

void terminal_restore(struct terminal *t)
{
	if (t->saved)
		(void)tcsetattr(t->fd, TCSAFLUSH, t->saved);
	free(TAKE_PTR(t->saved));
	t->fd = -EBADF;
}
