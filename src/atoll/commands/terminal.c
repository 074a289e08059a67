/* SPDX-License-Identifier: Apache-2.0 */
/* See cmd-run.h. If fd is no terminal, nothing is changed; restoring twice is harmless. */
#include "atoll/commands/cmd-run.h"

#include <termios.h>
#include <unistd.h>

static void terminal_change(struct terminal *t, int fd, int when,
			    void (*make)(struct termios *mode))
{
	_cleanup_free_ struct termios *saved = malloc(sizeof(*saved));
	struct termios mode;

	*t = (struct terminal){ .fd = -EBADF, .when = when };
	if (!saved || tcgetattr(fd, saved) < 0)
		return;
	mode = *saved;
	make(&mode);
	if (tcsetattr(fd, when, &mode) < 0)
		return;
	t->fd = fd;
	t->saved = TAKE_PTR(saved);
}

void terminal_raw(struct terminal *t, int fd)
{
	terminal_change(t, fd, TCSAFLUSH, cfmakeraw);
}

static void make_keys(struct termios *mode)
{
	mode->c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	mode->c_iflag &= ~(tcflag_t)IXON;
	/* Stopped or killed by a key, this process would leave the terminal in this mode. */
	mode->c_cc[VSUSP] = mode->c_cc[VQUIT] = _POSIX_VDISABLE;
	mode->c_cc[VMIN] = 1;
	mode->c_cc[VTIME] = 0;
}

void terminal_keys(struct terminal *t, int fd)
{
	terminal_change(t, fd, TCSADRAIN, make_keys);
}

void terminal_restore(struct terminal *t)
{
	if (t->saved)
		(void)tcsetattr(t->fd, t->when, t->saved);
	free(TAKE_PTR(t->saved));
	t->fd = -EBADF;
}
