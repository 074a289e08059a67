/* SPDX-License-Identifier: Apache-2.0 */
/* See run-fds.h. */
#include "run/link/run-fds.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int make_pipe(int ret[2])
{
	if (pipe2(ret, O_CLOEXEC) < 0)
		return -errno;
	/* Only the front's end is non-blocking: the program would see the flag on its own end. */
	return fcntl(ret[0], F_SETFL, O_RDONLY | O_NONBLOCK) < 0 ? -errno : 0;
}

int run_fds_make(struct run_fds *w)
{
	int r;

	if (w->made)
		return 0;
	*w = (struct run_fds){ true, { -EBADF, -EBADF }, { -EBADF, -EBADF }, -EBADF };
	r = make_pipe(w->out);
	if (r == 0)
		r = make_pipe(w->err);
	if (r == 0) {
		w->ticket_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
		r = w->ticket_fd < 0 ? -errno : 0;
	}
	if (r < 0)
		run_fds_done(w);
	return r;
}

int run_fds_take(struct run_fds *w, struct run_fds *ret)
{
	int r = run_fds_make(w);

	if (r < 0)
		return r;
	*ret = *w;
	w->made = false;
	return 0;
}

void run_fds_done(struct run_fds *w)
{
	if (!w->made)
		return;
	(void)fd_close(w->ticket_fd);
	for (int i = 0; i < 2; i++) {
		(void)fd_close(w->out[i]);
		(void)fd_close(w->err[i]);
	}
	w->made = false;
}
