/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors that came with a task, on their way to its programs. None of them is a file of the host or of another sandbox:
 * other processes would see what a program does to such a file (locks, times, watches). So if there is no input, the program gets
 * the null device of its own sandbox, or an empty file of its own if the nodes of /dev are the host's.
 */
#include "broker/task.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

void task_close_stdio(struct task *task)
{
	for (int i = 0; i < 3; i++)
		task->streams.stdio[i] = fd_close(task->streams.stdio[i]);
	task->plan_fd = fd_close(task->plan_fd);
	task->ticket_fd = fd_close(task->ticket_fd);
}

int task_stage_stdio(struct task *task, int ret[3], int *ret_own)
{
	const struct op *op = plan_find(&task->plan.view, OP_STDIN, (int)task->stages.index);
	int fd = -EBADF;

	for (int i = 0; i < 3; i++)
		ret[i] = task->streams.stdio[i];
	/* The caller's stream belongs to the first stage. */
	if (!task->streams.tty && !op && task->stages.index == 0 && task->streams.stdio[0] >= 0)
		return 0;
	if (task->streams.tty) {
		fd = ioctl(task->sandbox->terminal_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		ret[1] = ret[2] = fd;
	} else if (op) {
		fd = fd_sealed_memfd("stdin", op_a(&task->plan.view, op), op->a.len);
		if (fd >= 0)
			(void)lseek(fd, 0, SEEK_SET);
	} else if (task->sandbox->files.own_dev) {
		ret[0] = -EBADF;
		return 0;
	} else {
		fd = fd_sealed_memfd("stdin", "", 0);
	}
	if (fd < 0)
		return fd;
	ret[0] = *ret_own = fd;
	return 0;
}
